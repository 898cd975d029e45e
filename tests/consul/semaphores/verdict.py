"""The verdict on a round, by the lines of its hooks and of whoever made its faults, in their order.

It knows Consul's record by indexes alone: a tenure's token is the index at which its slot was taken,
and a change of the limit has one too. So which limit held for a slot does not hang on any clock.
Whoever was killed counts as acting until its on_lose has ended or its last room is over.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.consul.elections.records import Record

LATE_S = 0.02  # what /proc/uptime cuts off


@dataclass(frozen=True, slots=True)
class Terms:
    """``limit``: of all files; ``room_s``: what a killed one counts for; ``idle_s_max``: for one slot;
    ``passed_max``: how many may come to hold while one stands in line undisturbed."""

    name: str
    limit: int
    room_s: float
    idle_s_max: float
    passed_max: int


@dataclass(slots=True)
class Acting:
    """A tenure. ``room_end``: of one that was killed; ``revived``: its process is there again, and was
    before that."""

    node: str
    token: int
    room_end: float | None = None
    revived: bool = False
    over: bool = False

    def acts(self, at: float) -> bool:
        """Whether it counts at that time."""
        return not self.over and (self.room_end is None or self.revived or at < self.room_end)

    @property
    def uses(self) -> bool:
        """Whether its slot is used as far as anybody can see."""
        return not self.over and self.room_end is None


@dataclass(slots=True)
class Waiting:
    """A node without a slot, since it was last disturbed. ``passed``: who came to hold meanwhile."""

    since: float
    passed: int = 0


@dataclass(slots=True)
class Verdict:
    """What was counted, and what was wrong."""

    terms: Terms
    broken: list[str] = field(default_factory=list)
    begun: dict[str, int] = field(default_factory=dict)
    most_at_once: int = 0
    idle_s: float = 0.0
    wait_s: float = 0.0
    passed: int = 0

    def says(self, at: float, what: str) -> None:
        """Something was not as it must be."""
        self.broken.append(f"{at:.2f} {what}")


def judged(records: Sequence[Record], terms: Terms, at: float) -> Verdict:
    """Of a round that was over at that time."""
    judge = _Judge(terms, [_change(terms, each) for each in records if each.stage in _CHANGES])
    for record in records:
        judge.hear(record)
    return judge.end(at)


_CHANGES = ("limit", "lock-deleted")


def _change(terms: Terms, record: Record) -> tuple[int, int]:
    """From which index on which limit. A record that was deleted is made again with that of the files."""
    return record.token, terms.limit if record.stage == "lock-deleted" else record.attempt


class _Judge:
    """Is told one line after the other; the changes of the limit it knows beforehand, for their lines
    may come after those of whoever used them."""

    def __init__(self, terms: Terms, changes: Iterable[tuple[int, int]]) -> None:
        self._verdict = Verdict(terms)
        self._terms = terms
        self._changes = [(0, terms.limit), *sorted(changes)]
        self._limit_now = terms.limit
        self._tenures: dict[str, Acting] = {}
        self._idle: deque[float] = deque()
        self._waiting: dict[str, Waiting] = {}
        self._down: set[str] = set()

    def hear(self, record: Record) -> None:
        """The next line."""
        match record.stage, record.event:
            case "begin", "acquire":
                self._begins(record)
            case "begin", "lose" if record.session not in self._tenures:
                # Its on_acquire was ended at its birth and has left no line.
                self._tenures[record.session] = Acting(record.node, record.token)
                self._count(record)
            case "end", "lose" if record.exit == 0:
                self._ends(record)
            case "killed", _:
                self._killed(record)
            case "started", _:
                self._started(record)
            case "stopping", _:
                self._goes(record.node)
            case "disturbed", _:
                self._queues(record.node, record.at)
            case "limit" | "lock-deleted", _:
                self._limit_now = min(_change(self._terms, record)[1], self._terms.limit)
                if record.stage == "lock-deleted":
                    self._idle = deque(record.at for _ in self._idle)
        self._settle(record.at)

    def end(self, at: float) -> Verdict:
        """The faults are over; what is idle or waits since long is wrong, too."""
        for since in self._idle:
            self._idled(since, at)
        for node in self._waiting:
            self._waited(node, at)
        return self._verdict

    # --- at most so many ---------------------------------------------------------------------------

    def _begins(self, record: Record) -> None:
        node, at = record.node, record.at
        tenure = self._tenures.setdefault(record.session, Acting(node, record.token))
        if not tenure.uses or record.reason == "acquired":
            self._used(at)
        tenure.room_end, tenure.revived = None, False
        self._count(record)
        if record.reason == "acquired":
            self._verdict.begun[node] = self._verdict.begun.get(node, 0) + 1
            self._waited(node, at)
            for other, waiting in self._waiting.items():
                waiting.passed += other != node
        self._waiting.pop(node, None)

    def _count(self, record: Record) -> None:
        acting = [each for each in self._tenures.values() if each.acts(record.at)]
        self._verdict.most_at_once = max(self._verdict.most_at_once, len(acting))
        newest = max(each.token for each in acting)
        limit = self._limit_at(newest)
        if len(acting) > limit:
            who = ", ".join(f"{each.node} since {each.token}" for each in acting)
            self._verdict.says(record.at, f"{len(acting)} act and {limit} may: {who}")

    def _limit_at(self, token: int) -> int:
        """In force when a slot was taken at that index; no file allows more than its own."""
        before = bisect_left(self._changes, (token, 0)) - 1
        return min(self._changes[before][1], self._terms.limit)

    def _ends(self, record: Record) -> None:
        tenure = self._tenures[record.session]
        tenure.over = True
        self._queues(tenure.node, record.at)

    def _killed(self, record: Record) -> None:
        self._goes(record.node)
        for tenure in self._of(record.node):
            tenure.revived = False
            if tenure.room_end is None:
                tenure.room_end = record.at + self._terms.room_s

    def _started(self, record: Record) -> None:
        self._down.discard(record.node)
        self._waiting[record.node] = Waiting(record.at)
        for tenure in self._of(record.node):
            tenure.revived = tenure.room_end is not None and record.at < tenure.room_end

    def _of(self, node: str) -> list[Acting]:
        return [each for each in self._tenures.values() if each.node == node and not each.over]

    # --- slots that nobody uses ----------------------------------------------------------------------

    def _settle(self, at: float) -> None:
        """Each slot that nobody uses is idle since a time of its own."""
        using = sum(each.uses for each in self._tenures.values())
        free = max(0, self._limit_now - using)
        while len(self._idle) > free:
            self._idle.popleft()
        while len(self._idle) < free:
            self._idle.append(at)

    def _used(self, at: float) -> None:
        if self._idle:
            self._idled(self._idle.popleft(), at)

    def _idled(self, since: float, at: float) -> None:
        self._verdict.idle_s = max(self._verdict.idle_s, at - since)
        if at - since > self._terms.idle_s_max + LATE_S:
            self._verdict.says(at, f"a slot was idle for {at - since:.2f} s")

    # --- who waits -----------------------------------------------------------------------------------

    def _goes(self, node: str) -> None:
        self._down.add(node)
        self._waiting.pop(node, None)

    def _queues(self, node: str, at: float) -> None:
        """It stands at the end of the line now, unless it has a slot or is not there."""
        if node not in self._down and not self._of(node):
            self._waiting[node] = Waiting(at)

    def _waited(self, node: str, at: float) -> None:
        waiting = self._waiting.get(node)
        if waiting is None:
            return
        self._verdict.wait_s = max(self._verdict.wait_s, at - waiting.since)
        self._verdict.passed = max(self._verdict.passed, waiting.passed)
        if waiting.passed > self._terms.passed_max:
            self._verdict.says(at, f"{node} let {waiting.passed} pass in {at - waiting.since:.1f} s")
