"""Which runs of the fence may begin now: by ``fence_limit``, and by the notes of the fleet.

Without a fleet the limit alone decides. With one, a lane reads the notes and writes what is to begin or has
ended, each time by check-and-set, so that of all nodes that would shoot a boot one does. A node that cannot
read or write them goes without, at once or after ASK_S: then each survivor shoots once.
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
    note_of,
    with_note,
)
from supervisor.core.frozen import dataclass, replace
from supervisor.core.outcomes import Done, LostRace, NotesShown, Outcome, Unknown
from supervisor.core.requests import ReadNotes, Request, WriteNotes
from supervisor.core.settings import Fence
from supervisor.core.times import LONG_AGO, NEVER

ASK_S = 2.0  # for so long a shot waits for Consul to answer
AGAIN_S = 0.25  # between two reads: while another node shoots, and while Consul does not answer
LIMITED_S = 5.0  # between two looks whether the limit has room again
TELL_S, TELL_EVERY_S = 60.0, 2.0  # for so long, and so often, the end of a shot is told again


@dataclass(frozen=True, slots=True)
class Want:
    """A run that is to begin."""

    item: str
    fence: Fence
    token: int  # the fencing token of the guard
    former: int  # that of the tenure before, which the run is to end
    by: str
    since: float


class Grants:
    """The runs of one process that are wanted, or may begin."""

    def __init__(self) -> None:
        self.granted: dict[Boot, Note] = {}
        self.limited: frozenset[Boot] = frozenset()  # those that ``fence_limit`` keeps back
        self.news: set[Boot] = set()  # what has changed for the guards behind these
        self.over: list[Shot] = []  # of other nodes, by their notes
        self.own: tuple[Note, ...] = ()  # the shots of this node, which count over its restarts
        self.due_at = NEVER
        self._wants: dict[Boot, Want] = {}
        self._given: dict[Boot, Want] = {}  # by which a run was granted
        self._untold: dict[Boot, tuple[Want, Note]] = {}  # what the others are to learn
        self._pending: ReadNotes | WriteNotes | None = None
        self._writes: tuple[dict[Boot, Note], Collection[Boot]] = ({}, ())  # what begins by it, what it tells
        self._seen: dict[Note, float] = {}  # when a note of another node was first read
        self._heard_at = LONG_AGO

    def want(self, boot: Boot, want: Want) -> None:
        """Let a run begin as soon as it may."""
        if boot not in self.granted and boot not in self._wants:
            self._wants[boot] = want
            self.due_at = LONG_AGO

    def keep(self, wanted: Collection[Boot]) -> None:
        """Forget what no guard waits for any more."""
        for boot in self._wants.keys() - wanted:
            del self._wants[boot]
        for boot in self.granted.keys() - wanted:
            self.give_back(boot)
        self.limited = frozenset(self.limited & self._wants.keys())

    def give_back(self, boot: Boot, shot: Shot | None = None) -> None:
        """Note that the run is over. shot: it has succeeded. None: another node may have its turn."""
        note, want = self.granted.pop(boot, None), self._given.pop(boot, None)
        if note is None or want is None or not want.fence.notes:
            return
        state, method = (NoteState.FAILED, "") if shot is None else (NoteState.DONE, shot.method)
        self._untold[boot] = want, replace(note, state=state, method=method)
        self.due_at = LONG_AGO

    # --- the lane -------------------------------------------------------------------------------------

    def tend(self, now: float) -> Iterator[Request]:
        """Grant what needs no answer, and yield the read that is due."""
        self.due_at = NEVER
        if self._pending is not None:
            return
        alone = [boot for boot, want in self._wants.items() if not want.fence.notes]
        self._grant_alone(alone, now)
        late = [boot for boot, (_, note) in self._untold.items() if now - note.at > note.takes_s + TELL_S]
        for boot in late:
            del self._untold[boot]
        told = (want for want, _ in self._untold.values())
        if ask := next((want for want in (*self._wants.values(), *told) if want.fence.notes), None):
            self._pending = ReadNotes(ask.item, now, ASK_S, ask.fence.notes)
            yield self._pending

    def answered(self, request: Request, outcome: Outcome, now: float) -> Iterator[Request]:
        """Take in the notes or the end of a write, and yield the write that follows."""
        if request is not self._pending:
            return
        self._pending, asked = None, [boot for boot, want in self._wants.items() if want.fence.notes]
        if isinstance(outcome, NotesShown | Done | LostRace):
            self._heard_at = now
        if isinstance(outcome, NotesShown):
            yield from self._decide(request, asked, outcome, now)
        elif isinstance(outcome, Done):
            begins, told = self._writes
            for boot, note in begins.items():
                self._grant(boot, note)
            for boot in told:
                self._untold.pop(boot, None)
            self.due_at = LONG_AGO if self._wants or self._untold else NEVER
        elif isinstance(outcome, Unknown | LostRace):
            self.due_at = now + (0.0 if isinstance(outcome, LostRace) else AGAIN_S if asked else TELL_EVERY_S)
            silent = [each for each in asked if now - max(self._heard_at, self._wants[each].since) >= ASK_S]
            self._grant_alone(silent, now)
        else:  # without the right, or the document is another program's
            self._untold.clear()
            self._grant_alone(asked, now)

    def _decide(
        self, request: Request, asked: Iterable[Boot], shown: NotesShown, now: float
    ) -> Iterator[Request]:
        """Write what is to begin and what has ended; wait for what other nodes shoot."""
        assert isinstance(request, ReadNotes), "a write shows no notes"
        told, notes, begins = tuple(self._untold), shown.notes, dict[Boot, Note]()
        for _, note in self._untold.values():
            notes = with_note(notes, note)
        self._seen = {note: self._seen_at(note, now) for note in shown.notes}
        for boot in asked:
            want, shot = self._wants[boot], ended_by(boot, shown.notes)
            if shot is not None and shot.has_ended(boot, want.former):
                self.over.append(shot)
                del self._wants[boot]
                self.news.add(boot)
            elif self._is_under_way(boot, want, now):
                self.due_at = min(self.due_at, now + AGAIN_S)
            elif self._may_begin(boot, want, (*self.own, *notes), now):
                begins[boot] = note_of(boot, want.token, want.by, now)
                notes = with_note(notes, begins[boot])
        if notes != shown.notes:
            self._writes = begins, told
            item, key = request.item, request.key
            self._pending = WriteNotes(item, now, ASK_S, key, notes, shown.modify_index)
            yield self._pending

    def _seen_at(self, note: Note, now: float) -> float:
        """Return when this note was first read. Its time differs a little with each reading of a clock."""
        seen = (at for each, at in self._seen.items() if each.is_same(note))
        return next(seen, now)

    def _is_under_way(self, boot: Boot, want: Want, now: float) -> bool:
        """Return whether another node shoots, or has said so for no longer than that takes."""
        return any(
            note.is_of(boot)
            and note.state is NoteState.SHOOTING
            and note.by != want.by
            and now - seen_at < min(note.takes_s, TAKES_MAX_S)
            for note, seen_at in self._seen.items()
        )

    def _may_begin(self, boot: Boot, want: Want, notes: Iterable[Note], now: float) -> bool:
        """Return whether the limit has room for this run; look again later if it has none."""
        beyond = is_beyond(want.fence.limit, boot, notes, now)
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
            if self._may_begin(boot, want, self.own, now):
                self._grant(boot, note_of(boot, want.token, want.by, now))

    def _grant(self, boot: Boot, note: Note) -> None:
        if (want := self._wants.pop(boot, None)) is None:
            return  # no guard waits for it any more, and its note is over by itself
        self._given[boot], self.granted[boot] = want, note
        self.own = with_note(self.own, note)
        self.news.add(boot)
