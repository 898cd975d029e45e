"""Everything that can happen: the shell reports each as one event."""

from dataclasses import dataclass

from supervisor.core.actions import Fault, Reason, StartHook, StartRun, WriteRecord
from supervisor.core.outcomes import Outcome
from supervisor.core.requests import Request
from supervisor.core.settings import ItemSettings, Wanted


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: the earliest deadline may have come."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A request came to its end."""

    request: Request
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class HookEnded:
    """An attempt of a hook ended; nothing of its process group is left. ``began`` False: no process of
    it was ever there."""

    started: StartHook
    ok: bool
    detail: str = ""
    began: bool = True


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run child ended, or could not be started (``began`` False); nothing of its process group is
    left."""

    started: StartRun
    detail: str = ""
    began: bool = True


@dataclass(frozen=True, slots=True)
class HooksChecked:
    """It was looked whether the hooks that a holder of this item needs can start on this machine.
    ``faults``: those that cannot."""

    item: str
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class StopAsked:
    """Wind up in order: run on_lose where it is due, release, destroy, finish."""

    reason: Reason = Reason.SHUTDOWN


@dataclass(frozen=True, slots=True)
class RecordWritten:
    """The kernel has the record; or it does not, and ``why_not`` says why."""

    write: WriteRecord
    why_not: str = ""

    @property
    def ok(self) -> bool:
        """Whether it is written."""
        return not self.why_not


@dataclass(frozen=True, slots=True)
class Stalled:
    """This turn came later than expected: the machine or the process stood still."""

    late_s: float


@dataclass(frozen=True, slots=True)
class RecoverAsked:
    """The operator says that nothing of a stuck tenure acts any more."""

    item: str


@dataclass(frozen=True, slots=True)
class PauseAsked:
    """Do not contend until ``ResumeAsked``, over restarts too; a tenure goes on."""

    item: str


@dataclass(frozen=True, slots=True)
class ResumeAsked:
    """Contend again: a pause ends, and a rest after stepping down."""

    item: str


@dataclass(frozen=True, slots=True)
class StepDownAsked:
    """Give up what is held, in order, and do not contend for ``for_s`` seconds after that."""

    item: str
    for_s: float


@dataclass(frozen=True, slots=True)
class ConfigLoaded:
    """These items are wanted from now on. ``instance`` names what begins by this file in the ids of
    transitions."""

    wanted: tuple[Wanted, ...]
    instance: str


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """An item that goes on has these settings in the file now. ``unchecked``: as in ``Wanted``."""

    item: str
    settings: ItemSettings
    unchecked: bool = False


@dataclass(frozen=True, slots=True)
class ItemRemoved:
    """The file does not have an item any more, or has another in its place: wind it up, in order,
    while this process goes on."""

    item: str


Event = (
    Tick
    | Answered
    | HookEnded
    | RunEnded
    | HooksChecked
    | RecordWritten
    | Stalled
    | StopAsked
    | RecoverAsked
    | PauseAsked
    | ResumeAsked
    | StepDownAsked
    | ConfigLoaded
    | SettingsChanged
    | ItemRemoved
)
