"""How soon one of many contenders tries for a key that has just become free.

All contenders that wait see it at the same moment. If all tried, Consul would write one attempt after the
other for one winner. Where the key is free because a session has ended, Consul would refuse each attempt,
with a warning in its log, until the lock-delay is over. So each contender has an *attempt probability* p, and
hashes itself to a number u in [0, 1), anew for each time that the key is free:

    u < p       the contender tries at once
    otherwise   it waits FIRST_BACKOFF_S + ROUND_S * log2(u / p): each ROUND_S twice as many have tried

until its watch shows a new holder. So the number of attempts does not grow with the number of contenders, and
a lone contender tries after ``BACKOFF_MAX_S`` at the latest. Only while a lock-delay lasts does each
contender try once, because no contender can take the key and so end the wait of the rest. Consul refuses
these attempts without a write.

The probability is 1 until a race is lost, so a lone contender never waits. The probability falls to a quarter
with every race that is lost, and whenever another contender was first while this one waited. It is 1 again
for a contender that has held. After some hand-overs only the last holder and a few other contenders try at
once.

Pure functions: nothing here knows a clock or makes a random number.
"""

from math import log2

ATTEMPT_PROBABILITY_MIN = 1 / 256  # of 200 waiters one tries at once, and three or four within a hand-over
DECREASE_FACTOR = 4  # of 200 waiters that try at first, 50 try in the next hand-over, then 12, then 3
FIRST_BACKOFF_S = 0.005  # as long as a hand-over, so that the result of an attempt at once is seen by then
ROUND_S = 0.010  # a hand-over and the network's delay: the next round has seen the attempts of this one
BACKOFF_MAX_S = FIRST_BACKOFF_S - ROUND_S * log2(ATTEMPT_PROBABILITY_MIN)


def hash_to_unit(spread: float, index: int) -> float:
    """Return a number in [0, 1), which differs for each contender and for each index."""
    return (hash((spread, index)) >> 8) % 2**32 / 2**32  # the hash of numbers is equal in every process


def backoff_s(attempt_probability: float, unit: float) -> float:
    """Return how long a contender with this number in [0, 1) leaves a free key to other contenders."""
    if unit < attempt_probability:
        return 0.0
    return FIRST_BACKOFF_S + ROUND_S * log2(unit / attempt_probability)


def decrease(attempt_probability: float) -> float:
    """Return the attempt probability after another contender was first."""
    return max(ATTEMPT_PROBABILITY_MIN, attempt_probability / DECREASE_FACTOR)
