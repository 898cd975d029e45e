"""One lock around one command: ``lock`` acquires, runs the command as the run child, and releases.

    holding.py    the core, Consul and the command, from the first request to the release
    judgement.py  when to give up before the command has begun, and why
    period.py     whether a command of ``--every`` is due
    terminal.py   the terminal, which belongs to the command while it runs
    waiting.py    the process of the command, which waits until the lock is held, and its killer

The package wires the same core and the same shell as the daemon does, for one item. It has no configuration
file, no journal and no log. A crash of this process ends the command, so nothing is left that a later process
would have to wind up.
"""
