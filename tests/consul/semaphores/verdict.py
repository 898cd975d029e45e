"""The verdict on a round, by the lines of its hooks and of its faults, in their order.

``tests.support.tenures`` says which node acts when. Consul's record is known by indexes alone: a tenure's
token is the index at which its slot was taken, and a change of the limit has one as well. So no clock decides
which limit held for a slot.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.support import tenures
from tests.support.tenures import Record

LATE_S = 0.02  # /proc/uptime is cut to this


@dataclass(frozen=True, slots=True)
class Terms:
    """The promises of a round.

    limit: the limit of all files.
    room_s: how long a killed node counts.
    idle_s_max: the longest time without a holder, for one slot.
    passed_max: how many nodes may come to hold while one stands in line undisturbed.
    """

    name: str
    limit: int
    room_s: float
    idle_s_max: float
    passed_max: int


@dataclass(slots=True)
class Using:
    """A tenure whose on_lose has not ended.

    seen: the slot is visibly used, because its supervisor was not killed since it began or was adopted.
    """

    node: str
    seen: bool = True


@dataclass(slots=True)
class Waiting:
    """A node without a slot, since it was last disturbed.

    passed: the nodes that came to hold meanwhile.
    """

    since: float
    passed: int = 0


@dataclass(slots=True)
class Verdict:
    """The counts of a round, and its broken promises."""

    terms: Terms
    broken: list[str] = field(default_factory=list)
    begun: dict[str, int] = field(default_factory=dict)
    most_at_once: int = 0
    idle_s: float = 0.0
    wait_s: float = 0.0
    passed: int = 0

    def says(self, at: float, what: str) -> None:
        """Record a broken promise."""
        self.broken.append(f"{at:.2f} {what}")


def judged(records: Sequence[Record], terms: Terms, at: float) -> Verdict:
    """Judge a round that was over at that time."""
    judge = _Judge(terms)
    for record in records:
        judge.hear(record)
    verdict = judge.end(at)
    _count(records, verdict)
    return verdict


# --- at most ``limit`` ----------------------------------------------------------------------------

_CHANGES = ("limit", "lock-deleted")


def _count(records: Sequence[Record], verdict: Verdict) -> None:
    """Compare the nodes that act at once with the limit in force when each took its slot.

    An older holder that still acts had a slot then.
    """
    terms = verdict.terms
    changes = [(0, terms.limit), *sorted(_change(terms, each) for each in records if each.stage in _CHANGES)]
    found = tenures.tenures(records, terms.name, terms.room_s)
    for begun, acting in tenures.crowds(found):
        verdict.most_at_once = max(verdict.most_at_once, len(acting))
        for number, each in enumerate(acting, 1):
            in_force = changes[bisect_left(changes, (each.token, 0)) - 1]
            limit = min(in_force[1], terms.limit)  # no file allows more than its own limit
            if number > limit:
                who = ", ".join(f"{one.node} since {one.token}" for one in acting[:number])
                verdict.says(begun.begin.at, f"{number} act and {limit} may: {who}")
    for wrong in tenures.wrong_tokens(found, slots=True):
        verdict.broken.append(wrong)


def _change(terms: Terms, record: Record) -> tuple[int, int]:
    """Return from which index on which limit counts; a record that was deleted has that of the files."""
    return record.token, terms.limit if record.stage == "lock-deleted" else record.attempt


# --- idle slots and waiting nodes ----------------------------------------------------------------


class _Judge:
    """Reads one line after the other."""

    def __init__(self, terms: Terms) -> None:
        self._verdict = Verdict(terms)
        self._terms = terms
        self._limit_now = terms.limit
        self._tenures: dict[str, Using | None] = {}  # by session; None: its on_lose has ended
        self._idle: deque[float] = deque()
        self._waiting: dict[str, Waiting] = {}
        self._down: set[str] = set()

    def hear(self, record: Record) -> None:
        """Read the next line."""
        match record.stage, record.event:
            case "begin", "acquire":
                self._begins(record)
            case "begin", "lose" if record.session not in self._tenures:
                # Its on_acquire was ended before it could write a line.
                self._tenures[record.session] = Using(record.node)
            case "end", "lose" if record.exit == 0:
                self._tenures[record.session] = None
                self._queues(record.node, record.at)
            case tenures.KILLED, _:
                self._goes(record.node)
                for tenure in self._of(record.node):
                    tenure.seen = False
            case tenures.STARTED, _:
                self._down.discard(record.node)
                self._waiting[record.node] = Waiting(record.at)
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
        """Judge slots that have been idle and nodes that have waited for long when the faults are over."""
        for since in self._idle:
            self._idled(since, at)
        for node in self._waiting:
            self._waited(node, at)
        return self._verdict

    def _begins(self, record: Record) -> None:
        node, at = record.node, record.at
        tenure = self._tenures.get(record.session)
        if record.reason == "acquired" or (tenure is not None and not tenure.seen):
            self._used(at)
        self._tenures[record.session] = Using(node)
        if record.reason == "acquired":
            self._verdict.begun[node] = self._verdict.begun.get(node, 0) + 1
            self._waited(node, at)
            for other, waiting in self._waiting.items():
                waiting.passed += other != node
        self._waiting.pop(node, None)

    def _of(self, node: str) -> list[Using]:
        return [each for each in self._tenures.values() if each is not None and each.node == node]

    # --- idle slots ----------------------------------------------------------------------------------

    def _settle(self, at: float) -> None:
        """Give each slot without a holder the time since which it is idle."""
        using = sum(each is not None and each.seen for each in self._tenures.values())
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

    # --- waiting nodes -------------------------------------------------------------------------------

    def _goes(self, node: str) -> None:
        self._down.add(node)
        self._waiting.pop(node, None)

    def _queues(self, node: str, at: float) -> None:
        """Put the node at the end of the line, unless it has a slot or is not there."""
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
