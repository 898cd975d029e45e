"""Which runs of the fence may begin now: by ``fence_limit``, and by the notes of the fleet.

Without a fleet the limit alone decides. With one, a lane reads the notes and writes what is to begin or has
ended, each time by check-and-set, so that of all nodes that would shoot a boot one does. A node that cannot
read or write them goes without, at once or after SILENT_S: then each survivor shoots once.
"""

from collections.abc import Collection, Iterable, Iterator

from supervisor.core.claim.notes import (
    TAKES_MAX_S,
    Boot,
    Note,
    NoteState,
    Shot,
    ended_by,
    is_beyond,
    with_note,
)
from supervisor.core.frozen import dataclass, replace
from supervisor.core.outcomes import Done, LostRace, NotesShown, Outcome, Unknown
from supervisor.core.requests import ReadNotes, Request, WriteNotes
from supervisor.core.settings import Fence
from supervisor.core.times import LONG_AGO, NEVER

ASK_S = 2.0  # for one exchange with Consul
SILENT_S = 4.0  # without an answer until a node shoots for itself, because a second shot may hit a machine
# that boots already. It is judged when an exchange ends, so up to ASK_S + AGAIN_S later.
AGAIN_S = 0.25  # between two reads: while another node shoots, and while Consul does not answer
LIMITED_S = 5.0  # between two looks whether the limit has room again
TELL_S, TELL_EVERY_S = 60.0, 2.0  # for so long, and so often, the end of a shot is told again


@dataclass(frozen=True, slots=True)
class Want:
    """A run that is to begin."""

    item: str
    fence: Fence
    former: int  # the fencing token of the tenure that the run is to end
    note: Note  # of the run; ``at``: since when it is wanted, or when it was granted


class Grants:
    """Which runs are wanted and which may begin, for one process."""

    def __init__(self) -> None:
        self.granted: dict[Boot, Want] = {}
        self.limited: frozenset[Boot] = frozenset()  # those that ``fence_limit`` keeps back
        self.news: set[Boot] = set()  # the boots whose guards need a step
        self.over: list[Shot] = []  # the successes that other nodes have noted and that end a guard here
        self.own: tuple[Note, ...] = ()  # the shots of this node, which count over its restarts
        self.due_at = NEVER
        self._wants: dict[Boot, Want] = {}
        self._untold: dict[Boot, Want] = {}  # the runs whose end the others are to learn
        self._pending: ReadNotes | WriteNotes | None = None
        # Of the write under way: the runs that begin once it is done, and those whose end it tells.
        self._writes: tuple[dict[Boot, Want], Collection[Boot]] = ({}, ())
        self._seen: dict[Note, float] = {}  # when a note of another node was first read
        self._heard_at = LONG_AGO

    def want(self, boot: Boot, want: Want) -> None:
        """Let a run begin as soon as it may."""
        if boot not in self.granted and boot not in self._wants:
            self._wants[boot] = want
            self.due_at = LONG_AGO

    def forget_others(self, wanted: Collection[Boot]) -> None:
        """Keep only what these boots need, because no guard waits for another one any more."""
        for boot in self._wants.keys() - wanted:
            del self._wants[boot]
        for boot in self.granted.keys() - wanted:
            self.give_back(boot)
        self.limited = frozenset(self.limited & self._wants.keys())

    def give_back(self, boot: Boot, shot: Shot | None = None) -> None:
        """Note that the run is over. shot: it has succeeded. None: another node may have its turn."""
        if (want := self.granted.pop(boot, None)) is not None and want.fence.notes:
            self._tell(boot, want, shot)

    def begun(self, note: Note) -> None:
        """Count a run that begins, granted or not."""
        self.own = with_note(self.own, note)

    def _tell(self, boot: Boot, want: Want, shot: Shot | None) -> None:
        state, method = (NoteState.FAILED, "") if shot is None else (NoteState.DONE, shot.method)
        self._untold[boot] = replace(want, note=replace(want.note, state=state, method=method))
        self.due_at = LONG_AGO

    # --- the lane -------------------------------------------------------------------------------------

    def tend(self, now: float) -> Iterator[Request]:
        """Grant what needs no answer, and yield the read that is due."""
        self.due_at = NEVER
        self._grant_alone([boot for boot, want in self._wants.items() if not want.fence.notes], now)
        if self._pending is not None:
            return
        told = {boot: want.note for boot, want in self._untold.items()}
        for boot in [boot for boot, note in told.items() if now - note.at > note.takes_s + TELL_S]:
            del self._untold[boot]
        asks = (*self._wants.values(), *self._untold.values())
        if ask := next((want for want in asks if want.fence.notes), None):
            self._pending = ReadNotes(ask.item, now, ASK_S, ask.fence.notes)
            yield self._pending

    def answered(self, request: Request, outcome: Outcome, now: float) -> Iterator[Request]:
        """Take in the notes or the end of a write, and yield the write that follows."""
        if request is not self._pending:
            return
        self._pending, asked = None, [boot for boot, want in self._wants.items() if want.fence.notes]
        if isinstance(outcome, NotesShown):
            yield from self._decide(request, asked, outcome, now)
        elif isinstance(outcome, Done):
            self._heard_at = now
            begins, told = self._writes
            for boot in told:
                self._untold.pop(boot, None)
            for boot, want in begins.items():
                if boot in self._wants:
                    self._grant(boot, now)
                else:  # its guards have ended meanwhile
                    self._tell(boot, want, None)
            self.due_at = LONG_AGO if self._wants or self._untold else NEVER
        elif isinstance(outcome, Unknown | LostRace):
            self.due_at = now + (AGAIN_S if asked else TELL_EVERY_S)
            heard_at = {each: max(self._heard_at, self._wants[each].note.at) for each in asked}
            silent = [each for each in asked if now - heard_at[each] >= SILENT_S]
            self._grant_alone(silent, now)
        else:  # without the right, or the document is another program's
            self._untold.clear()
            self._grant_alone(asked, now)

    def _decide(
        self, request: Request, asked: Iterable[Boot], shown: NotesShown, now: float
    ) -> Iterator[Request]:
        """Write what is to begin and what has ended; wait for what other nodes shoot."""
        assert isinstance(request, ReadNotes), "a write shows no notes"
        told, notes, begins = tuple(self._untold), shown.notes, dict[Boot, Want]()
        for note in (want.note for want in self._untold.values()):
            others = [each for each in notes if each.place == note.place and each.by != note.by]
            if note.state is NoteState.DONE or not others:  # what another node has done meanwhile counts
                notes = with_note(notes, note)
        # A note is the same although its time, which two clocks give, differs a little at each reading.
        seen = (replace(note, at=0.0) for note in shown.notes)
        self._seen = {note: self._seen.get(note, now) for note in seen}
        for boot in asked:
            want, shot = self._wants[boot], ended_by(boot, shown.notes)
            if shot is not None and shot.has_ended(boot, want.former):
                self.over.append(shot)
                del self._wants[boot]
                self.news.add(boot)
            elif self._is_under_way(boot, want, now):
                self.due_at = min(self.due_at, now + AGAIN_S)
            elif self._may_begin(boot, want, notes, now):
                begins[boot] = want
                notes = with_note(notes, replace(want.note, at=now))
        if notes == shown.notes:
            self._heard_at = now
            for boot in told:
                del self._untold[boot]
            return
        self._writes = begins, told
        item, key = request.item, request.key
        self._pending = WriteNotes(item, now, ASK_S, key, notes, shown.modify_index)
        yield self._pending

    def _is_under_way(self, boot: Boot, want: Want, now: float) -> bool:
        """Return whether another node shoots, or has said so for no longer than that takes."""
        return any(
            note.is_of(boot)
            and note.state is NoteState.SHOOTING
            and note.by != want.note.by  # a run of an earlier process of ours was killed with it
            and now - seen_at < min(note.takes_s, TAKES_MAX_S)
            for note, seen_at in self._seen.items()
        )

    def _may_begin(self, boot: Boot, want: Want, notes: Iterable[Note], now: float) -> bool:
        """Return whether the limit has room for this run; look again later if it has none."""
        granted = (each.note for each in self.granted.values())
        beyond = is_beyond(want.fence.limit, want.note, (*notes, *self.own, *granted), now)
        if beyond != (boot in self.limited):
            self.limited = self.limited ^ {boot}
            self.news.add(boot)
        if beyond:
            self.due_at = min(self.due_at, now + LIMITED_S)
        return not beyond

    def _grant_alone(self, boots: Iterable[Boot], now: float) -> None:
        """Grant these runs by what this node knows."""
        for boot in boots:
            want = self._wants[boot]
            if self._may_begin(boot, want, (), now):
                self._grant(boot, now)

    def _grant(self, boot: Boot, now: float) -> None:
        want = self._wants.pop(boot)
        self.granted[boot] = replace(want, note=replace(want.note, at=now))
        self.news.add(boot)
