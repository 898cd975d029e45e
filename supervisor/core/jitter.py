"""When what is asked of Consul regularly is asked next, so that those that began together drift apart.

A fleet that restarts, and all items of one process, begin at the same instant. ``spread`` in [0, 1)
is each contender's own: it says where within the first interval it begins, and by how much each
later interval is shorter. An interval is never lengthened: the contract's are upper bounds, and the
lease counts on them. Watches need nothing of it, for Consul adds up to a sixteenth of their wait.

Where one process has many items, theirs fall on beats that they have in common: to wake for one of
them costs more than what it then does.
"""

FIRST_JITTER_MAX = 0.5  # what has just begun is not asked about while its hooks are being started
JITTER_MAX = 0.1  # two at its ends are an interval apart after ten; the mean costs 5 % more requests
BEAT_S = 0.25  # a dozen of a thousand that renew each 20 s
BEAT_SHARE_MAX = 0.05  # of an interval: so much earlier may it be for a beat


def first_interval_s(every_s: float, spread: float) -> float:
    """The time to the first of a series that is to go on each ``every_s``."""
    return every_s * (1 - FIRST_JITTER_MAX * spread)


def next_interval_s(every_s: float, spread: float) -> float:
    """The time from one of the series to the next."""
    return every_s * (1 - JITTER_MAX * spread)


def align_to_tick(at: float, every_s: float) -> float:
    """The last beat before this time."""
    beat_s = min(BEAT_S, BEAT_SHARE_MAX * every_s)
    return at // beat_s * beat_s
