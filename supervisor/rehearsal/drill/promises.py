"""A promise beside what was measured. Pure."""

from dataclasses import dataclass

from supervisor.config.formats.durations import format_duration

NEVER = "none, it did not happen"
ALLOWANCE_S = 1.0  # for a busy machine to start a hook, and for this process to see its record


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise."""

    what: str  # what is promised, in a few words
    promised: str
    measured: str
    kept: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the time line of a play."""

    at_s: float  # from the begin of the play
    node: str  # blank: the line is about the drill itself
    text: str


@dataclass(frozen=True, slots=True)
class Played:
    """The result of a play."""

    play: str
    title: str
    promises: tuple[Promise, ...] = ()
    lines: tuple[Line, ...] = ()
    skipped: str = ""  # why it was not played. Blank: it was played.

    @property
    def kept(self) -> bool:
        return all(promise.kept for promise in self.promises)


def at_most(what: str, limit_s: float, measured_s: float | None) -> Promise:
    """Return the promise that something takes ``limit_s`` at most. None: it did not happen in time."""
    kept = measured_s is not None and measured_s <= limit_s + ALLOWANCE_S
    return Promise(what, f"at most {format_duration(limit_s)}", _measured(measured_s), kept)


def at_least(what: str, limit_s: float, measured_s: float | None) -> Promise:
    kept = measured_s is not None and measured_s >= limit_s
    return Promise(what, f"at least {format_duration(limit_s)}", _measured(measured_s), kept)


def _measured(length_s: float | None) -> str:
    return NEVER if length_s is None else format_duration(length_s)


def yes(what: str, kept: bool, otherwise: str = "no") -> Promise:
    return Promise(what, "yes", "yes" if kept else otherwise or "no", kept)
