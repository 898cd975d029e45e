"""Who held when: tenures from the lines of the hooks, and what is wrong with them. Pure.

A node holds from the first instruction of on_acquire to the last of on_lose. One that was killed
holds until its on_lose ends, or until the end of its last room, whichever comes first; if its
successor adopted the tenure, which its reason for losing tells, the death counts for nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

# Hooks write lines with BEGUN and ENDED, the test the other two: what it did to a node.
ACQUIRE_BEGUN, ACQUIRE_ENDED = "acquire-begin", "acquire-end"
LOSE_BEGUN, LOSE_ENDED = "lose-begin", "lose-end"
KILLED = "killed"
LEADER_RESTARTED = "leader-restarted"  # a server that led again less than a lock-delay later
NOT_ADOPTED = "crashed"  # the reason of an on_lose for a tenure that nobody went on with


@dataclass(frozen=True, slots=True)
class Event:
    """One line; ``line`` is its place in the file, ``at`` in seconds of CLOCK_BOOTTIME."""

    line: int
    at: float
    node: str
    what: str
    session: str = ""
    token: int = 0
    reason: str = ""

    @property
    def when(self) -> tuple[float, int]:
        """For an order of events that are nearer to each other than the clock can tell."""
        return self.at, self.line


@dataclass(frozen=True, slots=True)
class Tenure:
    """``begin`` and ``end`` as ``Event.when``; ``lost`` False: no on_lose has ended it yet."""

    node: str
    session: str
    token: int
    begin: tuple[float, int]
    end: tuple[float, int]
    lost: bool


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
            f"{second.node} began at {second.begin[0]:.2f} (token {second.token}), {self.length_s:.2f} s "
            f"before {first.node} ended at {first.end[0]:.2f} (token {first.token})"
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


def parse(text: str) -> list[Event]:
    """All whole lines, in their order: ``AT NODE WHAT SESSION TOKEN REASON``."""
    lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [_event(number, *line.split()) for number, line in enumerate(lines)]


def _event(
    line: int, at: str, node: str, what: str, session: str = "", token: str = "0", reason: str = ""
) -> Event:
    return Event(line, float(at), node, what, session, int(token), reason)


def tenures(events: Sequence[Event], room_s: float) -> list[Tenure]:
    """All tenures, by their begin; one that goes on ends at infinity."""
    by_session: dict[str, list[Event]] = {}
    for event in events:
        if event.session:
            by_session.setdefault(event.session, []).append(event)
    found = [_tenure(of_session, events, room_s) for of_session in by_session.values()]
    return sorted(found, key=lambda tenure: tenure.begin)


def _tenure(of_session: Sequence[Event], events: Sequence[Event], room_s: float) -> Tenure:
    first = of_session[0]
    lost = next((event for event in reversed(of_session) if event.what == LOSE_ENDED), None)
    end = (inf, 0) if lost is None else lost.when
    if lost is None or lost.reason == NOT_ADOPTED:
        # The newest death: an older one was survived. The contact is not younger than the death, so
        # it can have believed one room longer at most.
        deaths = [e.at for e in events if (e.node, e.what) == (first.node, KILLED)]
        within = [at for at in deaths if first.at <= at <= end[0]]
        end = min([end, *((at + room_s, 0) for at in within[-1:])])
    return Tenure(first.node, first.session, first.token, first.when, end, lost is not None)


def overlaps(found: Sequence[Tenure], events: Sequence[Event], lock_delay_s: float) -> list[Overlap]:
    """Every two tenures that were there at once, by the begin of the second."""
    restarts = [event.at for event in events if event.what == LEADER_RESTARTED]
    both = []
    for first, second in combinations(sorted(found, key=lambda tenure: tenure.begin), 2):
        if second.begin < first.end:
            began_at = second.begin[0]
            length_s = min(first.end[0], second.end[0]) - began_at
            # Replayed delays end a lock-delay after the restart; what began under them, one later.
            excused = any(at <= began_at <= at + 2 * lock_delay_s for at in restarts)
            both.append(Overlap(first, second, length_s, excused))
    return both


def gaps(found: Sequence[Tenure]) -> Iterator[Gap]:
    """The times without a holder between the first begin and the last end."""
    ordered = sorted(found, key=lambda tenure: tenure.begin)
    held_until = ordered[0].end[0] if ordered else inf
    for tenure in ordered[1:]:
        if held_until < tenure.begin[0]:
            yield Gap(held_until, tenure.begin[0])
        held_until = max(held_until, tenure.end[0])


def longest_gap_s(found: Sequence[Tenure], since: float, until: float) -> float:
    """The longest time without a holder that ended within this window; 0 for none."""
    return max((gap.length_s for gap in gaps(found) if since <= gap.end <= until), default=0.0)


def tokens_that_fell(found: Sequence[Tenure]) -> list[tuple[Tenure, Tenure]]:
    """Neighbours of which the later has no larger fencing token."""
    ordered = sorted(found, key=lambda tenure: tenure.begin)
    return [pair for pair in zip(ordered, ordered[1:], strict=False) if pair[0].token >= pair[1].token]


def holder(found: Sequence[Tenure]) -> Tenure | None:
    """Who holds at the end of the lines; None for nobody."""
    return next((tenure for tenure in reversed(found) if not tenure.lost), None)
