"""How soon one of many tries for a key that has just become free.

All contenders that wait see it at the same moment. If all tried, Consul would write one attempt after the
other for one winner. Where the key is free because a session has ended, Consul would refuse each attempt,
with a warning in its log, until the lock-delay is over. So each contender has an *attempt probability* p,
and hashes itself to a number u in [0, 1), anew for each time that the key is free:

    u < p       the contender tries at once
    otherwise   it waits FIRST_BACKOFF_S + ROUND_S * log2(u / p): each ROUND_S as many try as before in all

until its watch shows that another holds. So the number of attempts does not grow with the number of
contenders, and a contender that is alone tries as well, after ``BACKOFF_MAX_S`` at the latest. Only while a
lock-delay lasts does each contender try once, because nobody can take the key and end the wait of the rest:
Consul refuses these attempts without a write.

The probability is 1 until a race is lost, so where nobody else is in the way nothing ever waits. It falls
to a quarter with every race that is lost, and whenever another was first while this contender waited. It is
1 again for a contender that has held. After some hand-overs those that try at once are the one that held
last and a few others.

Pure functions: nothing here knows a clock or makes a random number.
"""

from math import log2

ATTEMPT_PROBABILITY_MIN = 1 / 256  # of 200 that wait one tries at once, three or four in a hand-over
DECREASE_FACTOR = 4  # of 200 that try at first 50 do with the next hand-over, then 12, then 3
FIRST_BACKOFF_S = 0.005  # a hand-over takes as long: where somebody tried at once, others know of it by then
ROUND_S = 0.010  # a hand-over and the network's delay: those who tried have been noticed by the next
BACKOFF_MAX_S = FIRST_BACKOFF_S - ROUND_S * log2(ATTEMPT_PROBABILITY_MIN)


def hash_to_unit(spread: float, index: int) -> float:
    """Return a number in [0, 1), another one for each contender and for each index."""
    return (hash((spread, index)) >> 8) % 2**32 / 2**32  # of numbers it is the same in every process


def backoff_s(attempt_probability: float, unit: float) -> float:
    """Return how long a contender with this number in [0, 1) leaves a free key to others."""
    if unit < attempt_probability:
        return 0.0
    return FIRST_BACKOFF_S + ROUND_S * log2(unit / attempt_probability)


def decrease(attempt_probability: float) -> float:
    """Return the attempt probability after another contender was first."""
    return max(ATTEMPT_PROBABILITY_MIN, attempt_probability / DECREASE_FACTOR)
