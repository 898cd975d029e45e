"""Figures of a campaign from its tenures: overlaps with their lengths, gaps, and the holder.

The functions here are pure. ``tests.support.tenures`` finds out which node acted when.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from tests.support import tenures
from tests.support.tenures import Record, Tenure

LEADER_RESTARTED = "leader-restarted"  # a server has led again less than a lock-delay after its restart


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two nodes that held at once. ``beyond_limits``: a server's restart had cut lock-delays short."""

    first: Tenure
    second: Tenure
    length_s: float
    beyond_limits: bool

    def __str__(self) -> str:
        first, second = self.first, self.second
        return (
            f"{second.node} began at {second.begin.at:.2f} (token {second.token}), {self.length_s:.2f} s "
            f"before {first.node} ended at {first.end.at:.2f} (token {first.token})"
        )


def overlaps(found: Sequence[Tenure], records: Sequence[Record], lock_delay_s: float) -> list[Overlap]:
    """Return the overlap of every two tenures that existed at once, by the begin of the first."""
    restarts = [record.at for record in records if record.stage == LEADER_RESTARTED]
    both = []
    for first, second in tenures.overlaps(found):
        began_at = second.begin.at
        length_s = min(first.end.at, second.end.at) - began_at
        # The replayed delays end one lock-delay after the restart. A tenure that follows from them begins at
        # most one lock-delay later.
        excused = any(at <= began_at <= at + 2 * lock_delay_s for at in restarts)
        both.append(Overlap(first, second, length_s, excused))
    return both


def gaps(found: Sequence[Tenure]) -> Iterator[tuple[float, float]]:
    """Yield begin and end of each time without a holder between the first begin and the last end."""
    ordered = sorted(found, key=lambda tenure: tenure.begin)
    held_until = ordered[0].end.at if ordered else inf
    for tenure in ordered[1:]:
        if held_until < tenure.begin.at:
            yield held_until, tenure.begin.at
        held_until = max(held_until, tenure.end.at)


def longest_gap_s(found: Sequence[Tenure], since: float, until: float) -> float:
    """Return the longest time without a holder that ended within this window; 0 when there is none."""
    return max((end - begin for begin, end in gaps(found) if since <= end <= until), default=0.0)


def holder(found: Sequence[Tenure]) -> Tenure | None:
    """Return the tenure that has not ended; None when there is none."""
    return next((tenure for tenure in reversed(found) if not tenure.lost), None)
