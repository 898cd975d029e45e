"""What the report tells of tenures: overlaps with their lengths, gaps, and who holds. Pure.

Who acts when says ``tests.support.tenures``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from tests.support import tenures
from tests.support.tenures import Record, Tenure

LEADER_RESTARTED = "leader-restarted"  # a server that led again less than a lock-delay later


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two that held at once; ``beyond_limits``: lock-delays were cut short by a server's restart."""

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


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which nobody held, in seconds of CLOCK_BOOTTIME."""

    begin: float
    end: float

    @property
    def length_s(self) -> float:
        """How long."""
        return self.end - self.begin


def overlaps(found: Sequence[Tenure], records: Sequence[Record], lock_delay_s: float) -> list[Overlap]:
    """Measure every two tenures that were there at once, by the begin of the first."""
    restarts = [record.at for record in records if record.stage == LEADER_RESTARTED]
    both = []
    for first, second in tenures.overlaps(found):
        began_at = second.begin.at
        length_s = min(first.end.at, second.end.at) - began_at
        # Replayed delays end a lock-delay after the restart; what began under them, one later.
        excused = any(at <= began_at <= at + 2 * lock_delay_s for at in restarts)
        both.append(Overlap(first, second, length_s, excused))
    return both


def gaps(found: Sequence[Tenure]) -> Iterator[Gap]:
    """The times without a holder between the first begin and the last end."""
    ordered = sorted(found, key=lambda tenure: tenure.begin)
    held_until = ordered[0].end.at if ordered else inf
    for tenure in ordered[1:]:
        if held_until < tenure.begin.at:
            yield Gap(held_until, tenure.begin.at)
        held_until = max(held_until, tenure.end.at)


def longest_gap_s(found: Sequence[Tenure], since: float, until: float) -> float:
    """The longest time without a holder that ended within this window; 0 for none."""
    return max((gap.length_s for gap in gaps(found) if since <= gap.end <= until), default=0.0)


def holder(found: Sequence[Tenure]) -> Tenure | None:
    """Who holds at the end of the lines; None for nobody."""
    return next((tenure for tenure in reversed(found) if not tenure.lost), None)
