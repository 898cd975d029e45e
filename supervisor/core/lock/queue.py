"""The queue for the slots of a semaphore: which contender is next, and how long the rest wait.

A contender that is alive and has no slot waits, in the order in which the contender keys were created. All
waiters observe a free slot at one moment. Without an order they would all write at once, and Consul would
refuse all of them but one. So each waiter leaves the slot to the ones before it for ``RANK_S`` each, and the
waiters that cannot be next learn of it a little later.

The queue is a courtesy and no rule of safety, because the check-and-set of ``.lock`` alone gives the slot. So
the delay has an end, because a waiter at the head may have crashed, and its key lives until its session
expires.
"""

from supervisor.core.outcomes import ContenderKey, SlotsView

RANK_S = 0.2  # the next contender in line has this much time before the one behind it tries
QUEUE_DELAY_MAX_S = 2.0  # the longest delay that a dead contender at the head causes
READ_LAG_PER_RANK_S = 0.02  # a tenth of RANK_S: a contender that tries later may also read later
READ_LAG_MAX_S = 0.5


def waiting(view: SlotsView) -> tuple[ContenderKey, ...]:
    """Return the contender keys that live and have no slot."""
    holders = frozenset(view.named)
    return tuple(key for key in view.contenders if key.is_alive and key.name not in holders)


def attempt_delay_s(view: SlotsView, our_session: str) -> float:
    """Return how long this contender leaves a free slot to the contenders before it."""
    return min(_rank(view, our_session) * RANK_S, QUEUE_DELAY_MAX_S)


def read_lag_s(view: SlotsView | None, our_session: str, limit: int) -> float:
    """Return how much later than the first waiters this contender may learn of a change.

    A contender that may be next has no lag, though all slots become free at once. The later contenders leave
    Consul to it, and the machine that all of them may share.
    """
    if view is None or view.slot_record is None or view.alive(our_session) is None:
        return 0.0
    rank = _rank(view, our_session)
    return 0.0 if rank < limit else min(rank * READ_LAG_PER_RANK_S, READ_LAG_MAX_S)


def _rank(view: SlotsView, our_session: str) -> int:
    """Return how many contenders wait before this one; 0 for a contender that is not in line yet."""
    keys = waiting(view)
    ours = next((key for key in keys if key.name == our_session), None)
    return 0 if ours is None else sum(key.create_index < ours.create_index for key in keys)
