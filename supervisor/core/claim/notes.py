"""What is known of a shot, and what the daemons of a fleet tell each other of theirs: notes in one document.

A note is no order. A daemon that is about to shoot reads the document first. A shot that has succeeded ends
the guards which it would have ended here, one that another node runs is waited for, and one that begins here
is noted before. So each boot of a machine is shot once, by one of its survivors. The document also counts
how many machines were shot, for ``fence_limit``.
"""

from collections.abc import Iterable
from enum import StrEnum

from supervisor.core.frozen import dataclass
from supervisor.core.settings import FenceLimit, Hook

NOTES_MAX, KEPT_S = 64, 86_400.0  # how many notes there are, so no fence_limit may be larger; for how long
LOOK_S = 2.0  # from a note to the run: a look at the tenure record
TAKES_MAX_S = 900.0  # for so long at most a shot of another node is waited for


@dataclass(frozen=True, slots=True)
class Aim:
    """Names what a shot is aimed at: one boot of one machine, and the name by which the fence knows it."""

    machine: str
    host: str
    boot: str
    target: str

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Return what tells it from any other one."""
        return self.machine, self.host, self.boot, self.target

    @property
    def is_known(self) -> bool:
        """Whether it can be told from any other boot, so that one run serves all guards behind it."""
        return "" not in (self.machine, self.boot)


@dataclass(frozen=True, slots=True)
class Boot(Aim):
    """Names the same with the methods of one fence, because two fences share no run."""

    methods: tuple[Hook, ...]


@dataclass(frozen=True, slots=True)
class Shot:
    """A run of the fence, to be remembered once it has succeeded."""

    boot: Boot
    token: int  # the fencing token of the guard that has shot
    method: str = ""  # as in ``Previous``

    def has_ended(self, boot: Boot | None, token: int) -> bool:
        """Return whether the tenure that began with this token in this boot is over."""
        return boot == self.boot and self.boot.is_known and 0 < token < self.token


class NoteState(StrEnum):
    """How far a shot has come. The words stand in Consul."""

    SHOOTING = "shooting"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Note(Aim):
    """One shot, as the node says that runs it."""

    by: str  # who shoots: the host, and the beginning of the id of its journal
    at: float  # when it was about to begin
    token: int  # the fencing token of its guard
    takes_s: float = 0.0  # how long its methods take at most
    state: NoteState = NoteState.SHOOTING
    method: str = ""

    @property
    def counts_as(self) -> str:
        """What tells its machine from others for ``fence_limit``."""
        return self.machine or self.target

    def is_of(self, boot: Boot) -> bool:
        """Return whether it is about this boot of this machine, by this name to the fence."""
        return boot.is_known and self.place == boot.place


def note_of(boot: Boot, token: int, by: str, now: float) -> Note:
    """Return the note of a shot that is about to begin."""
    takes_s = LOOK_S + sum(each.attempt_s for each in boot.methods)
    return Note(*boot.place, by, now, token, takes_s)


def with_note(notes: Iterable[Note], note: Note) -> tuple[Note, ...]:
    """Return the notes with this one in its place, and without old ones."""
    kept = (each for each in notes if each.place != note.place and abs(note.at - each.at) < KEPT_S)
    return (*kept, note)[-NOTES_MAX:]


def is_beyond(limit: FenceLimit | None, note: Note, notes: Iterable[Note], now: float) -> bool:
    """Return whether the run of this note would shoot more machines than the limit allows."""
    if limit is None:
        return False
    shot = {each.counts_as for each in notes if abs(now - each.at) < limit.within_s}
    return note.counts_as not in shot and len(shot) >= limit.machines


def ended_by(boot: Boot, notes: Iterable[Note]) -> Shot | None:
    """Return the shot of another node that has ended this boot. None: no note says so."""
    found = (each for each in notes if each.state is NoteState.DONE and each.is_of(boot))
    return next((Shot(boot, each.token, each.method) for each in found), None)
