"""One item's contender: a value that each step replaces.

    state.py      its parts, what it may do, its role, its deadline
    lifecycle.py  how it changes: wants a session, begins a tenure, loses it, ends
    creation.py   how it is born: from the file, from a record, after another item
    reducer.py    how an event changes it
    scheduler.py  the exchanges, hooks and records that are due, in their order
    step.py       the one way in: lease, then the event, then the scheduler

``core.contenders`` has the contenders of a process, and calls ``step`` for each event.
"""
