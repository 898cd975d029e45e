"""How long the next request waits while Consul's rate limits refuse requests.

Consul counts reads and writes apart, so each has a level of its own. A level rises with each request that is
refused, and falls to 0 with the first one that is answered. The pause is that of the higher level. Renewals,
reads of a holder and releases do not wait, and do not count when they are refused, because a delay would cost
leadership or keep rivals out of a free lock.

An agent may hold a refused read for longer than the read may take. So a waiter's read whose time runs out
counts up to a low level. A write that was dropped between two agents is repeated at once, once in a row.
"""

from typing import Self

from supervisor.core.frozen import dataclass, replace
from supervisor.core.outcomes import Dropped, Outcome, Throttled, Unknown
from supervisor.core.requests import LeaveSemaphore, Release, RenewSession, Request, Write

THROTTLED_S = 1.0  # the pause after the first refusal; it doubles with each further one
LEVEL_MAX = 5
THROTTLED_S_MAX = THROTTLED_S * 2 ** (
    LEVEL_MAX - 1
)  # at worst a failover is late by one and a half times that
TIMED_OUT_LEVEL_MAX = 2
DROPS_MAX = 3


@dataclass(frozen=True, slots=True)
class Throttle:
    """The refusals that a contender has received from Consul's rate limits."""

    reads: int = 0  # how many reads were refused since the last answer to one
    writes: int = 0  # how many writes were refused since the last answer to one
    drops: int = 0  # writes dropped in a row. 1: this step repeats the first. 2: it did. 3 stands for more

    def count(self, request: Request, outcome: Outcome, now: float, *, holds: bool) -> Self:
        """Count a request that has ended now.

        holds: this node has a tenure.
        """
        is_write = isinstance(request, Write)
        if isinstance(request, RenewSession | Release | LeaveSemaphore):
            return self
        if isinstance(outcome, Throttled) and holds and not is_write:
            return self
        is_late = type(outcome) is Unknown and now >= request.at + request.timeout_s
        if is_late and not (is_write or holds):
            return self._at(is_write, max(self.reads, min(self.reads + 1, TIMED_OUT_LEVEL_MAX)))
        if isinstance(outcome, Throttled):
            return self._at(is_write, min((self.writes if is_write else self.reads) + 1, LEVEL_MAX))
        return self if isinstance(outcome, Unknown) else self._at(is_write, 0)

    def count_drop(self, outcome: Outcome) -> Self:
        """Count a write or renewal of the present session that has ended."""
        drops = min(self.drops + 1, DROPS_MAX) if isinstance(outcome, Dropped) else 0
        return self if drops == self.drops else replace(self, drops=drops)

    def _at(self, is_write: bool, level: int) -> Self:
        if level == (self.writes if is_write else self.reads):
            return self
        return replace(self, writes=level) if is_write else replace(self, reads=level)

    def pause_s(self, spread: float) -> float:
        """Return how much longer than usual to wait; 0 while Consul answers.

        spread: the contender's own number in [0, 1), so that the nodes of a fleet do not all come back at one
            time.
        """
        level = max(self.reads, self.writes)
        return THROTTLED_S * 2 ** (level - 1) * (0.5 + spread) if level else 0.0
