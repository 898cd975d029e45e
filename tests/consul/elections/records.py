"""What the hooks of all nodes of a test wrote, and judgements that hold for every test.

The judges look at the hooks' own lines, in the order in which they were written, and know nothing
of the product. A line ``killed`` is the test's own: there a node was ended without a chance.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).with_name("hook.sh")


@dataclass(frozen=True, slots=True)
class Record:
    """One line: a hook begins or ends. ``at`` in seconds of CLOCK_BOOTTIME, cut to hundredths."""

    stage: str  # begin | end | killed
    exit: int | None
    at: float
    node: str
    hook: str
    name: str = ""
    event: str = ""
    reason: str = ""
    session: str = ""
    token: int = 0
    lock_index: int = 0
    leader: str = ""
    previous_leader: str = ""
    transition: str = ""
    attempt: int = 0
    time_left: float | None = None
    kind: str = ""
    key: str = ""
    holders: str = ""  # JSON


@dataclass(frozen=True, slots=True)
class Tenure:
    """From the begin of the first on_acquire to the end of the last on_lose, as line numbers."""

    node: str
    session: str
    token: int
    first: int
    last: float


def read_records(path: Path) -> list[Record]:
    """All lines, oldest first; a line that is being written does not count yet."""
    text = path.read_text() if path.exists() else ""
    return [_record(line.rstrip("\n")) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def killed_line(node: str, at: float) -> str:
    """The line that says that this node was ended without a chance to run anything."""
    return told_line("killed", node, at)


def told_line(stage: str, node: str, at: float, *, token: int = 0, attempt: int = 0) -> str:
    """A line of the test's own, for what no hook can tell."""
    fields = [stage, "", f"{at:.2f}", node, *[""] * 5, str(token or ""), *[""] * 4, str(attempt or "")]
    return "\t".join([*fields, *[""] * 4]) + "\n"


def _record(line: str) -> Record:
    stage, code, at, node, hook, name, event, reason, session, *rest = line.split("\t")
    token, lock_index, leader, previous_leader, transition, attempt, time_left, *place = rest
    kind, key, holders = place
    return Record(
        stage, int(code) if code else None, float(at), node, hook, name, event, reason, session,
        int(token or 0), int(lock_index or 0), leader, previous_leader, transition,
        int(attempt or 0), float(time_left) if time_left else None, kind, key, holders,
    )  # fmt: skip


def tenures(records: Sequence[Record], name: str) -> list[Tenure]:
    """The tenures of one election, by their first line. One that nothing ended lasts for ever."""
    spans: dict[str, Tenure] = {}
    for number, record in enumerate(records):
        if record.stage == "killed":
            cut = {s: t for s, t in spans.items() if t.node == record.node and t.last == float("inf")}
            for session, tenure in cut.items():
                spans[session] = Tenure(tenure.node, session, tenure.token, tenure.first, number)
        elif record.name == name and record.event == "acquire" and record.session not in spans:
            spans[record.session] = Tenure(record.node, record.session, record.token, number, float("inf"))
        elif record.name == name and record.event in ("lose", "lose-failure"):
            # An on_acquire that was killed at its birth has left no line.
            first = spans[record.session].first if record.session in spans else number
            spans[record.session] = Tenure(record.node, record.session, record.token, first, number)
    return list(spans.values())


def assert_exclusive(records: Sequence[Record], name: str) -> None:
    """No two nodes were between the begin of on_acquire and the end of on_lose at once."""
    ordered = tenures(records, name)
    for earlier, later in zip(ordered, ordered[1:], strict=False):
        assert earlier.last < later.first, f"two nodes act at once: {earlier} and {later}:\n{shown(records)}"


def assert_tokens_grow(records: Sequence[Record], name: str) -> None:
    """The fencing token grows with every holder and never changes within a tenure."""
    ordered = tenures(records, name)
    tokens = [tenure.token for tenure in ordered]
    assert tokens == sorted(set(tokens)) and 0 not in tokens, f"tokens {tokens}:\n{shown(records)}"
    token_of = {tenure.session: tenure.token for tenure in ordered}
    for record in _lock_side(records, name):
        assert record.token == token_of[record.session], f"{record}:\n{shown(records)}"


def assert_once_each(records: Sequence[Record], name: str) -> None:
    """Each attempt of a hook began once, and a tenure has one on_lose, with one reason; ``run`` has a
    transition of its own."""
    begun = [(r.transition, r.hook, r.attempt) for r in records if r.stage == "begin" and r.name == name]
    assert len(begun) == len(set(begun)), f"a hook ran twice: {begun}"
    told: dict[tuple[str, str, bool], set[tuple[str, str]]] = {}
    for record in _lock_side(records, name):
        what = (record.session, record.event, record.hook == "run")
        told.setdefault(what, set()).add((record.transition, record.reason))
    assert all(len(one) == 1 for one in told.values()), f"one transition, one reason: {told}"


def assert_changes_are_changes(records: Sequence[Record], name: str) -> None:
    """on_change fires on transitions, knows what it told before, and begins with ``initial``."""
    for node in {record.node for record in records}:
        told = [r for r in records if (r.node, r.name, r.event, r.stage) == (node, name, "change", "begin")]
        told = [record for record in told if record.attempt == 1 and record.hook == told[0].hook]
        assert [r.reason == "initial" for r in told] == [n == 0 for n in range(len(told))], shown(told)
        for before, after in zip(told, told[1:], strict=False):
            same = (before.session, before.leader, before.holders) == (
                after.session, after.leader, after.holders,
            )  # fmt: skip
            assert not same, f"no change: {before} and {after}"
            expected = before.leader or before.previous_leader
            assert after.previous_leader == expected, f"{before} and {after}"


def unfinished(records: Sequence[Record], name: str) -> list[Tenure]:
    """The tenures whose on_lose never ran."""
    return [tenure for tenure in tenures(records, name) if tenure.last == float("inf")]


def shown(records: Iterable[Record]) -> str:
    """The lines for the text of a failure."""
    return "\n".join(
        f"{r.at:.2f} {r.node} {r.stage}{'' if r.exit is None else f' {r.exit}'} {r.hook} {r.name} "
        f"{r.reason} session={r.session[:8]} token={r.token} leader={r.leader} "
        f"previous={r.previous_leader} attempt={r.attempt} left={r.time_left} {r.holders}".rstrip()
        for r in records
    )


def _lock_side(records: Sequence[Record], name: str) -> list[Record]:
    return [r for r in records if r.name == name and r.event in ("acquire", "lose")]
