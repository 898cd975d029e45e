"""When what is asked of Consul regularly is asked next, so that those that began together drift apart.

A fleet that restarts, and all items of one process, begin at the same instant. ``spread`` in [0, 1)
is each contender's own: it says where within the first interval it begins, and by how much each
later interval is shorter. An interval is never lengthened: the contract's are upper bounds, and the
lease counts on them. Watches need nothing of it, for Consul adds up to a sixteenth of their wait.
"""

FIRST_HASTE_MAX = 0.5  # what has just begun is not asked about while its hooks are being started
HASTE_MAX = 0.1  # two at its ends are an interval apart after ten; the mean costs 5 % more requests


def first_s(every_s: float, spread: float) -> float:
    """The time to the first of a series that is to go on each ``every_s``."""
    return every_s * (1 - FIRST_HASTE_MAX * spread)


def next_s(every_s: float, spread: float) -> float:
    """The time from one of the series to the next."""
    return every_s * (1 - HASTE_MAX * spread)
