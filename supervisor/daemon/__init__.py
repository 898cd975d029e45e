"""The daemon: the one package that wires the core to the world.

    loop.py              the event loop with its parts: Consul, hooks, records, listeners, signals, stop
    shared.py            what most parts use of the daemon
    operator.py          an operator's commands as events for the core, and the replies
    pauses.py            the end of each pause that has one
    shots.py             which machines this node has shot, kept for the next process
    outages.py           the lines about silences of Consul that holders ride out
    listeners.py         the control socket and http.listen: opened, moved, closed
    records.py           reads the journal at the start, writes it, and logs its failures
    events.py            the events on disk: read after the start, written after everything urgent
    restore.py           the contenders with which a process starts, from configuration and records
    accepted.py          the last accepted configuration, kept for a start that cannot use its file
    reload.py            the configuration, read again by a child: checked whole before anything changes
    fleet/               what the daemons tell each other and people through Consul
    preflight/           whether a configuration fits this machine: hooks that can start, modes of files

What ``lock`` needs as well is in adapters/runtime.
"""
