"""Runs hooks: commands and webhooks, as the core decides, and reports how each attempt ended.

This package decides nothing about order or retries. The package keeps the promises of an action: the deadline
of the attempt, TERM and then KILL for its process group, and exactly one end for each start. The loop reports
that end later, never the call that started or killed the attempt.

    attempts.py    every attempt that is under way: its start, its deadline, its end
    context.py     the facts that a hook gets: environment, standard input, body
    reasons.py     the reasons for which the hooks of each event are called
    command.py     one process group, from its spawn to the end of its last process
    group.py       whether any process of a group still runs
    unkillable.py  hooks that run again and again, and of which KILL has left processes
    privileges.py  the user and the group as which a command runs
    spawn.py       starts a process with its standard streams
    shortage.py    the means that a start may lack for a moment, and those kept back for on_lose
    output.py      the output of a child as bounded lines
    webhook.py     one HTTP request and its outcome
    abandoned.py   ends the hooks that a crashed supervisor left running
    signature.py   signs a webhook, so that its receiver can trust it
    rehearsal.py   one hook outside the daemon, for ``test-hook``
"""
