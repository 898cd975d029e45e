"""Which node acted when, by the lines that hooks left, and the promises about it. Pure: it knows no product.

A node acts from the first line of on_acquire to the last of on_lose. A node whose supervisor was killed acts
until its on_lose has ended or its last room is over, whichever comes first. If its process has gone on with
the tenure, the death does not count.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf
from pathlib import Path

SCRIPT = Path(__file__).with_name("hook.sh")  # the hook that leaves these lines

# Lines that the test writes about its own acts.
KILLED = "killed"
SHOT = "shot"  # killed with all that it had started, so that nothing of its tenure acts any more
NOT_ADOPTED = "crashed"  # the reason of an on_lose for a tenure that was not adopted


@dataclass(frozen=True, slots=True)
class Record:
    """One line: a hook begins or ends, or the test did something to a node.

    at: seconds of CLOCK_BOOTTIME, cut to hundredths.
    line: its place in the file.
    """

    stage: str  # begin | end, or the act of the test
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
    slot: str = ""
    line: int = 0

    @property
    def when(self) -> "Moment":
        return Moment(self.at, self.line)


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """The time and the place of a line.

    Lines are written in the order of events, except those of a test.
    line: -1: the moment has no line.
    """

    at: float
    line: float = -1

    def is_over(self, at: "Moment") -> bool:
        """Return whether an act that ended at this moment had surely ended by that one.

        Both the clock, which is cut, and the order of the lines must say so.
        """
        return self.at <= at.at and self.line < at.line


FOR_EVER = Moment(inf, inf)


@dataclass(frozen=True, slots=True)
class Tenure:
    """One tenure, as its lines show it.

    tokens: all tokens that its hooks got.
    slots: all numbers of a slot that its hooks got; blank: none.
    lost: False: no on_lose has ended it yet.
    """

    node: str
    session: str
    tokens: tuple[int, ...]
    begin: Moment
    end: Moment
    lost: bool
    slots: tuple[str, ...] = ("",)

    @property
    def token(self) -> int:
        """The fencing token; 0 when there is none."""
        return self.tokens[0]

    def acts_at(self, at: Moment) -> bool:
        """Return whether the tenure had begun by then and is not surely over."""
        return self.begin <= at and not self.end.is_over(at)


# --- lines ---------------------------------------------------------------------------------------


def read_records(path: Path) -> list[Record]:
    """Read all lines, oldest first; none when there is no file yet."""
    return parse(path.read_text() if path.exists() else "")


def parse(text: str) -> list[Record]:
    """Parse all lines, oldest first; a line that is still being written does not count."""
    lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [_record(number, line.rstrip("\n")) for number, line in enumerate(lines)]


def told_line(stage: str, node: str, at: float) -> str:
    """Write a line of the test's own, for an act that no hook can record."""
    return "\t".join([stage, "", f"{at:.2f}", node, *[""] * 16]) + "\n"


def _record(number: int, line: str) -> Record:
    stage, code, at, node, hook, name, event, reason, session, *rest = line.split("\t")
    token, lock_index, leader, previous_leader, transition, attempt, time_left, *place = rest
    kind, key, holders, slot = place
    return Record(
        stage, int(code) if code else None, float(at), node, hook, name, event, reason, session,
        int(token or 0), int(lock_index or 0), leader, previous_leader, transition,
        int(attempt or 0), float(time_left) if time_left else None, kind, key, holders, slot, number,
    )  # fmt: skip


def shown(records: Iterable[Record]) -> str:
    """Show the lines in the text of a failure."""
    return "\n".join(
        f"{r.at:.2f} {r.node} {r.stage}{'' if r.exit is None else f' {r.exit}'} {r.hook} {r.name} "
        f"{r.reason} session={r.session[:8]} token={r.token} leader={r.leader} "
        f"previous={r.previous_leader} attempt={r.attempt} left={r.time_left} {r.holders}".rstrip()
        for r in records
    )


# --- tenures -------------------------------------------------------------------------------------


def tenures(records: Sequence[Record], name: str, room_s: float | None = None) -> list[Tenure]:
    """Find the tenures of one item, in the order of their begins; a tenure that goes on never ends.

    room_s: None: the lines are those of a scene that breaks hooks on purpose. There any line of on_lose ends
        a tenure, however late, because a hook that TERM ends leaves no other line. Without any such line, the
        death of the supervisor ends the tenure.
    """
    of_session: dict[str, list[Record]] = {}
    for record in records:
        if record.name == name and record.event in ("acquire", "lose", "lose-failure"):
            of_session.setdefault(record.session, []).append(record)
    found = [_tenure(lines, records, room_s) for lines in of_session.values()]
    return sorted(found, key=lambda tenure: tenure.begin)


def _tenure(lines: Sequence[Record], records: Sequence[Record], room_s: float | None) -> Tenure:
    first = lines[0]
    if first.event != "acquire":  # on_acquire was killed before it wrote a line, at that death at the latest
        died = [r for r in records if (r.stage, r.node) == (KILLED, first.node) and r.when < first.when]
        first = died[-1] if died else first
    losing = [line for line in lines if line.event != "acquire"]
    if room_s is not None:
        losing = [line for line in losing if (line.event, line.stage, line.exit) == ("lose", "end", 0)]
    end = losing[-1].when if losing else FOR_EVER
    if not losing or (room_s is not None and losing[-1].reason == NOT_ADOPTED):
        end = min(end, _last_of_the_dead(first, lines, records, room_s, end.at))
    shots = (each for each in records if (each.stage, each.node) == (SHOT, first.node))
    end = min([end, *(shot.when for shot in shots if shot.when >= first.when)])
    tokens = tuple(dict.fromkeys(line.token for line in lines))
    slots = tuple(dict.fromkeys(line.slot for line in lines))
    return Tenure(first.node, lines[0].session, tokens, first.when, end, bool(losing), slots)


def _last_of_the_dead(
    first: Record, lines: Sequence[Record], records: Sequence[Record], room_s: float | None, lost_at: float
) -> Moment:
    """Return until when a node may have acted after its death. FOR_EVER: no supervisor of the node died."""
    # A tenure whose on_acquire begins has survived all earlier deaths.
    since = max(
        line.at
        for line in (first, *lines)
        if line is first or (line.event, line.stage) == ("acquire", "begin")
    )
    of_node = [record for record in records if record.node == lines[0].node and since <= record.at <= lost_at]
    deaths = [record for record in of_node if record.stage == KILLED]
    if not deaths:
        return FOR_EVER
    if room_s is None:
        return deaths[0].when
    # An adoption may run no hook, so the tenure may have survived an older death. No contact is later than
    # the newest death, so belief ends one room after it at most.
    return Moment(deaths[-1].at + room_s)


# --- promises about tenures ----------------------------------------------------------------------


def most_at_once(found: Sequence[Tenure]) -> int:
    """Count how many tenures acted at once at most."""
    return max((sum(each.acts_at(begun.begin) for each in found) for begun in found), default=0)


def wrong_numbers(found: Sequence[Tenure], limit: int) -> list[str]:
    """List the faults of the numbers of slots, where every contender writes them.

    A tenure has one number below the limit, and no two that act at once have the same one.
    """
    numbers = {str(number) for number in range(limit)}
    wrong = [
        f"{each.node} got the numbers {each.slots} in one tenure"
        for each in found
        if each.slots[1:] or each.slots[0] not in numbers
    ]
    shared = [(one, other) for one, other in overlaps(found) if one.slots == other.slots]
    wrong += [f"{one.node} and {other.node} act with number {one.slots[0]}" for one, other in shared]
    return wrong


def most_between(journal: Iterable[tuple[str, str]], begin: str, end: str) -> int:
    """Count how many nodes were between these two at once at most. ``journal``: what each node did."""
    most, under_way = 0, set[str]()
    for what, node in journal:
        if what == begin:
            assert node not in under_way, f"{node} begins twice: {journal}"
            under_way.add(node)
        elif what == end:
            under_way.discard(node)
        most = max(most, len(under_way))
    return most


def overlaps(found: Sequence[Tenure]) -> list[tuple[Tenure, Tenure]]:
    """Find every two tenures that acted at once, in the order of their begins."""
    return [(first, second) for first, second in combinations(found, 2) if first.acts_at(second.begin)]


def wrong_tokens(found: Sequence[Tenure], *, slots: bool = False) -> list[str]:
    """List the faults of fencing tokens: each tenure has one token, and it grows with every tenure.

    slots: the holder of one of many slots may begin later than the holder of a later token. There the token
        grows only from a tenure that is over to one that begins after it.
    """
    wrong = [f"{each.node} got the tokens {each.tokens} in one tenure" for each in found if each.tokens[1:]]
    wrong += [f"{each.node} has no token" for each in found if 0 in each.tokens]
    for earlier, later in combinations(found, 2):
        in_order = not slots or not earlier.acts_at(later.begin)
        if earlier.token == later.token or (in_order and earlier.token > later.token):
            wrong.append(f"token {later.token} of {later.node} came after {earlier.token} of {earlier.node}")
    return wrong


def unfinished(found: Sequence[Tenure]) -> list[Tenure]:
    """Find the tenures that no on_lose has ended."""
    return [tenure for tenure in found if not tenure.lost]
