"""The lock that a contender wants: the key of an election, or a slot of a semaphore.

    base.py       what both kinds share: the newest observation, and which answer to believe
    election.py   one key
    slots.py      what is known of a semaphore's slots: which keys are missing, when a slot is free
    queue.py      who of the contenders is next, and how long the ones behind leave a slot to it
    semaphore.py  at most ``limit`` slots below a prefix: which request takes and leaves one, and when
    backoff.py    how soon one of many contenders tries for a key that has just become free
    handover.py   the hint with which a holder hands its key over to a node that an operator has named

A lock decides nothing about hooks: it says who holds, and what to ask or write next.
"""
