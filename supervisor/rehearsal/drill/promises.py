"""A promise beside what was measured. Pure."""

from dataclasses import dataclass

from supervisor.config.formats.durations import format_duration

NEVER = "none, it did not happen"
TOO_BUSY = "this machine is too busy to start a supervisor in time"
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
        return self.skipped != TOO_BUSY and all(promise.kept for promise in self.promises)


class Judge:
    """The promises of a play, each compared with what was measured."""

    def __init__(self) -> None:
        self.promises: list[Promise] = []

    def judge(self, what: str, promised: str, measured: str, kept: bool) -> None:
        self.promises.append(Promise(what, promised, measured, kept))

    def at_most(self, what: str, limit_s: float, measured_s: float | None) -> None:
        """Judge the promise that something takes ``limit_s`` at most. None: it did not happen in time."""
        kept = measured_s is not None and measured_s <= limit_s + ALLOWANCE_S
        self.judge(what, f"at most {format_duration(limit_s)}", _measured(measured_s), kept)

    def at_least(self, what: str, limit_s: float, measured_s: float | None) -> None:
        kept = measured_s is not None and measured_s >= limit_s
        self.judge(what, f"at least {format_duration(limit_s)}", _measured(measured_s), kept)

    def yes(self, what: str, kept: bool, otherwise: str = "no") -> None:
        self.judge(what, "yes", "yes" if kept else otherwise or "no", kept)


def _measured(length_s: float | None) -> str:
    return NEVER if length_s is None else format_duration(length_s)
