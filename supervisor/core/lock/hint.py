"""The hint of an item with `fence`: a second watch on the key, which the nearest server answers by itself.

A watch is answered by the leading server. Where that one stands still with its machine, the watch hangs until
the agent gives up the connection, although the other servers have another leader by then. So the second watch
has the mode ``stale``. A holder has it as well, because it must not learn later than others that it has lost
the key: they shoot it unless it says so in time. What it shows is a hint that the lock is to be read, and
never evidence: nothing of it enters the view of the lock, and no write carries its index.
"""

from typing import Self

from supervisor.core.frozen import dataclass, replace
from supervisor.core.machines.lane import Lane
from supervisor.core.machines.session import Terms
from supervisor.core.outcomes import Hinted, KeyView, Outcome, View
from supervisor.core.requests import HintKey
from supervisor.core.times import LONG_AGO, NEVER

HINT_WAIT_S = 28.0  # with Consul's jitter less than 30 s, at which some close the connection
HINT_S = 40.0  # for the longest of these answers, and for delays of Consul and of the network
FIRST_S = 3.0  # for one that is answered at once
QUIET_EVERY_S = 30.0  # between two hints while nothing changes
HINT_EVERY_S = 1.0  # between two hints, and between two reads by them, however often a server answers
LAG_S = 0.05  # how late a change is read: a hand-over is over, and the watch has shown it unless that hangs


@dataclass(frozen=True, slots=True)
class Hint:
    """The lane of that watch, and the read for which its newest answer asks."""

    lane: Lane = Lane(due_at=LONG_AGO)
    index: int = 0  # the index from which the next hint waits. 0: it is answered at once
    shown: int = 0  # the index at which a server has shown the key
    read_at: float = NEVER  # when the lock is read, unless our view has become as new as that
    read_before: float = LONG_AGO  # when it was read by a hint last

    @property
    def deadline(self) -> float:
        return min(self.lane.deadline, self.read_at)

    def answered(
        self, request: HintKey, outcome: Outcome, view: View | None, now: float, retry_s: float
    ) -> Self:
        """Take in an answer, beside our own view of the key."""
        if not isinstance(outcome, Hinted):
            return replace(self, lane=self.lane.finish(now + retry_s), index=0)
        every_s = QUIET_EVERY_S if outcome.index == request.index else HINT_EVERY_S
        lane = self.lane.finish(max(now, request.at + every_s))
        hint = replace(self, lane=lane, index=0 if outcome.index < request.index else outcome.index)
        # The index of an absent key grows with every other key.
        shows_key = outcome.present or (isinstance(view, KeyView) and view.present)
        if not shows_key or not _is_behind(view, outcome.index):
            return replace(hint, read_at=NEVER)
        return replace(hint, shown=outcome.index, read_at=max(now, self.read_before + HINT_EVERY_S))

    def advance(self, terms: Terms, view: View | None, now: float) -> tuple[Self, HintKey | None]:
        """Begin the next hint if it is due. ``read_before`` becomes ``now`` where the lock is to be read."""
        hint = self
        if now >= hint.read_at:
            hint = replace(hint, read_at=NEVER)
            hint = replace(hint, read_before=now) if _is_behind(view, hint.shown) else hint
        if not hint.lane.ready(now):
            return hint, None
        within_s, lag_s = (HINT_S, LAG_S) if hint.index else (FIRST_S, 0.0)
        wait = (hint.index, HINT_WAIT_S)
        request = HintKey(terms.item, now, within_s, terms.key, *wait, consistent=False, lag_s=lag_s)
        return replace(hint, lane=hint.lane.begin(request)), request


def _is_behind(view: View | None, index: int) -> bool:
    return isinstance(view, KeyView) and view.modify_index < index
