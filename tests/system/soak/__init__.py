"""A long life: two supervisors with a hundred elections each, disturbed for minutes or an hour.

    __main__.py    python -m tests.system.soak: one soak, its plot and its verdict
    pair.py        the two, their elections and hooks, and the state in which they rest
    receiver.py    the receiver of webhooks, which now and then answers too late
    churn.py       the disturbances, from one seed
    look.py        a process as the kernel shows it
    judge.py       series of looks, their limits, and the plot of text
    soak.py        churn and rest in turn, and the looks at both

The soak looks from outside only: the product has nothing made for it. So the number of tasks in a
supervisor's loop is not among the figures; each task has memory, and most have a descriptor.
"""
