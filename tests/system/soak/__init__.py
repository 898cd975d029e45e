"""A long life: two supervisors with a hundred elections each, disturbed for minutes or an hour.

    __main__.py    python -m tests.system.soak: one soak, its plot and its verdict
    pair.py        the two, their elections and hooks, and the state in which they rest
    receiver.py    who is told by webhooks, now and then too late
    churn.py       what is done to them, from one seed
    look.py        what a process takes, as the kernel tells
    judge.py       series of looks, their limits, and the plot of text
    soak.py        churn and rest in turn, and the looks at both

It looks from outside alone: nothing in the product is made for it. How many tasks the loop of a
supervisor has is therefore not among the figures; each of them has memory, and most a descriptor.
"""
