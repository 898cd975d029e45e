"""The lock that a contender wants: the key of an election, or a slot of a semaphore.

    base.py       the part of both kinds: the newest observation, and which answer counts
    election.py   one key
    slots.py      the known state of a semaphore's slots: which keys are missing, when a slot is free
    queue.py      which contender is next, and how long the later ones leave a slot to it
    semaphore.py  at most ``limit`` slots below a prefix: which request takes and leaves one, and when
    backoff.py    how soon one of many contenders tries for a key that has just become free
    hint.py       the second watch of a waiter with a fence, which any server answers
    handover.py   the name of the successor to which a holder hands its key over for an operator

A lock decides nothing about hooks. It shows the holder, and returns the next read or write.
"""
