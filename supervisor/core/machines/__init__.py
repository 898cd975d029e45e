"""The state machines that a contender is made of. None knows a contender. Two have a table.

    machine.py   the form of each: a table of states, causes and next states
    lane.py      exchanges of one kind, one at a time
    session.py   one Consul session: create, renew, acquire, release, destroy; forward only
    sequence.py  a list of hooks, one attempt at a time
    tenure.py    acquire -> on_acquire -> holding -> on_lose -> ended: the phases and their edges
    phases.py    the work of each phase of a tenure: which hook begins, which phase follows
    record.py    the record of an item, and how a process that starts goes on with it

A reader starts with ``tenure.py`` and ``session.py``, whose ``become`` is the only way along an edge.
"""
