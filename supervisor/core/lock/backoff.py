"""How soon one of many tries for a key that has just become free.

All who wait see it at the same moment. If all tried, Consul would write one try after the other for
one winner; and where the key is free because a session has ended, each try would be refused, with a
warning in Consul's log, until the lock-delay is over. So each contender has an *eagerness* p, and
draws u in [0, 1) anew for each time that the key is free:

    u < p       tries at once
    otherwise   waits SECOND_S + WAVE_S * log2(u / p): with every WAVE_S as many try as before it in all

until the watch tells that another has it. So few try whatever their number, and one that is left alone
tries as well, after ``WAIT_S_MAX`` at the latest. (Where a lock-delay may last: ``lock.election``.)

Eagerness is 1 until a race is lost, so where nobody else is in the way nothing ever waits. It falls to
a quarter with every race that is lost, and whenever another was first while this one waited; it is 1
again for who has held. After some hand-overs those that try at once are who held last and a few others.

Pure functions; nothing here knows a clock or makes a random number.
"""

from math import log2

EAGERNESS_MIN = 1 / 256  # of 200 that wait one tries at once, and three or four before a hand-over is over
LESS = 4  # of 200 that try at first 50 do with the next hand-over, then 12, then 3
SECOND_S = 0.005  # a hand-over takes as long: where somebody tried at once, others know of it by then
WAVE_S = 0.010  # a hand-over and the network's delay: those who tried have been noticed by the next
WAIT_S_MAX = SECOND_S - WAVE_S * log2(EAGERNESS_MIN)
GUESS_S = SECOND_S + 2 * WAVE_S  # who waits for longer does not try where a lock-delay may last


def draw(spread: float, index: int) -> float:
    """A number in [0, 1): another for each contender, and for each index."""
    return (hash((spread, index)) >> 8) % 2**32 / 2**32  # of numbers it is the same in every process


def patience_s(eagerness: float, drawn: float) -> float:
    """For how long who has drawn this number leaves a free key to others."""
    return 0.0 if drawn < eagerness else SECOND_S + WAVE_S * log2(drawn / eagerness)


def last_wait_s(patience_s: float, round_trip_s: float) -> float:
    """For how long who has waited for ``GUESS_S`` waits on: where Consul's answers take longer than a wave
    it takes longer to hear of others, too."""
    return (patience_s - GUESS_S) * max(1.0, 2 * round_trip_s / WAVE_S)


def less(eagerness: float) -> float:
    """After another was first."""
    return max(EAGERNESS_MIN, eagerness / LESS)
