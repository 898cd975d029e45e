"""When regular requests are sent, so that contenders which began together drift apart.

All contenders of a fleet that restarts, and all items of one process, begin at the same instant. Each
contender has a ``spread`` in [0, 1) of its own. The spread decides where within the first interval the
contender begins, and by how much each later interval is shorter. An interval is never longer than stated,
because the lease counts on that. Watches have no jitter here, because Consul adds up to a sixteenth to their
wait.

Where one process has many items, their requests are aligned to common ticks or to common reads, because
waking up costs more than a request.
"""

import math

FIRST_JITTER_MAX = 0.5  # the first request does not meet the start of the hooks
JITTER_MAX = 0.1  # two contenders at its ends are an interval apart after ten; costs 5 % more requests
TICK_S = 0.25  # a dozen of a thousand sessions that are renewed every 20 s
TICK_SHARE_MAX = 0.05  # the share of an interval by which an aligned request may be early
ROUNDING = 1e-6  # the share of an interval by which floating point may miss a time of a series


def first_interval_s(every_s: float, spread: float) -> float:
    """Return the time to the first event of a series that repeats every ``every_s``."""
    return every_s * (1 - FIRST_JITTER_MAX * spread)


def next_interval_s(every_s: float, spread: float) -> float:
    """Return the time from one event of the series to the next."""
    return every_s * (1 - JITTER_MAX * spread)


def align_to_tick(at: float, every_s: float) -> float:
    """Return the last tick before this time."""
    tick_s = min(TICK_S, TICK_SHARE_MAX * every_s)
    return at // tick_s * tick_s


def align_to_series(at: float, every_s: float, offset: float) -> float:
    """Return the last time up to this one in the series that begins at this share of ``every_s``."""
    return min(at, (math.floor(at / every_s - offset + ROUNDING) + offset) * every_s)
