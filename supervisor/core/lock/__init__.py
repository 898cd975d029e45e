"""The lock that a contender wants: the key of an election, or a slot of a semaphore.

    base.py       what both kinds share: the newest observation, and which answer to believe
    election.py   one key
    semaphore.py  at most ``limit`` slots below a prefix, after Consul's guide
    backoff.py    how soon one of many contenders tries for a key that has just become free

A lock decides nothing about hooks: it says who holds, and what to ask or write next.
"""
