"""consul-supervisor: hooks for this node's part in Consul elections and semaphores.

Two rings. What the promise rests on is walked through every order of events, simulated and broken on purpose:

    errors.py   the three kinds of errors, by whose fault they are
    core/       decides: step(state, event, now) -> (state, actions); no I/O, no clock
    config/     the file, to settings; each refusal with its place. A wrong reading could let two act
    adapters/   carries out what the core decides: Consul, hooks, journal, files, the loop's driver

What makes it comfortable has ordinary tests, and none of the first ring imports it:

    reporting/  what is told of a running daemon: log, status, metrics, the page, the control socket
    daemon/     joins the rest for as long as it runs; whether a configuration fits this machine
    rehearsal/  drill, demo, and the embedded agent
    commands/   what a person types: each command, `check`, `plan`, `lock`

A package imports only from those before it. Each package's own docstring has a line for each of its modules.
"""

try:
    from supervisor._version import __version__ as __version__
except ImportError:  # a checkout that nobody has set up: the build writes that module
    __version__ = "0+unknown"
