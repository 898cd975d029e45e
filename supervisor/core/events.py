"""Everything that can happen: the shell reports each as one event."""

from dataclasses import field

from supervisor.core.actions import Fault, Reason, StartHook, StartRun, WriteRecord
from supervisor.core.frozen import dataclass
from supervisor.core.outcomes import Outcome, Unknown
from supervisor.core.requests import Answerer, Request
from supervisor.core.settings import ItemSettings, Wanted
from supervisor.core.times import LONG_AGO, NEVER
from supervisor.core.watchdog import Device


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: the earliest deadline may have come."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A request came to its end."""

    request: Request
    outcome: Outcome

    @property
    def of_leader(self) -> bool:
        """Whether Consul's servers have answered, which therefore have a leader."""
        return self.request.answerer is Answerer.LEADER and not isinstance(self.outcome, Unknown)


@dataclass(frozen=True, slots=True)
class HookEnded:
    """An attempt of a hook ended; nothing of its process group is left."""

    started: StartHook
    ok: bool
    detail: str = ""
    began: bool = True  # a process of the attempt existed, if only for a moment
    left: str = field(default="", compare=False)  # what it left running, and was killed. Decides nothing


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run child ended, or could not be started; nothing of its process group is left."""

    started: StartRun
    detail: str = ""
    began: bool = True  # a process of the child existed, if only for a moment
    # Its exit status, negative for a signal, which decides nothing here. None: no process has ended.
    code: int | None = field(default=None, compare=False)
    left: str = field(default="", compare=False)  # what it left running, and was killed. Decides nothing


@dataclass(frozen=True, slots=True)
class SurvivorsChanged:
    """KILL has not ended these processes of the item's tenure, or one that it had not ended is gone now."""

    item: str
    survivors: str  # that, in words, with the name and the number of each. Blank: there are none


@dataclass(frozen=True, slots=True)
class HooksChecked:
    """The shell has checked whether the hooks of this item can start on this machine."""

    item: str
    faults: tuple[Fault, ...]  # the hooks that cannot start


@dataclass(frozen=True, slots=True)
class StopAsked:
    """Wind up in order: run on_lose if it is due, release, destroy, finish."""

    reason: Reason = Reason.SHUTDOWN


@dataclass(frozen=True, slots=True)
class RecordWritten:
    """The kernel has the record, or could not take it."""

    write: WriteRecord
    why_not: str = ""  # why the kernel does not have the record. Blank: it has

    @property
    def ok(self) -> bool:
        return not self.why_not


@dataclass(frozen=True, slots=True)
class WatchdogTried:
    """A ``Tend`` was carried out, or came too late, or failed."""

    path: str
    device: Device  # as it is now
    item: str | None = None  # whose ``Arm`` this answers. None: nobody's


@dataclass(frozen=True, slots=True)
class Stalled:
    """This step came later than expected, because the machine or the process stood still."""

    late_s: float


@dataclass(frozen=True, slots=True)
class RecoverAsked:
    """The operator confirms that nothing of a stuck tenure acts any more."""

    item: str


@dataclass(frozen=True, slots=True)
class PauseAsked:
    """Do not contend until ``ResumeAsked`` or ``PauseOver``, not even after a restart; a tenure goes on.

    ``until``: the Unix time at which the shell sends the latter. NEVER: only an operator ends the pause.
    """

    item: str
    until: float = NEVER
    stays_until: float = LONG_AGO  # as in ``Contender``


@dataclass(frozen=True, slots=True)
class PauseOver:
    """The time of a pause is over; a rest goes on, and nothing is allowed that the file forbids."""

    item: str


@dataclass(frozen=True, slots=True)
class ResumeAsked:
    """Contend again: end a pause, and a rest after a step-down."""

    item: str
    by_name: bool = True  # the operator named this item, so that it may try although its file says manual


@dataclass(frozen=True, slots=True)
class OrderSeen:
    """What an operator has ordered for the whole fleet has been read: whether no node is to try for now."""

    item: str
    withheld: bool | None  # None: it is to be read anew, and until then nothing is tried


@dataclass(frozen=True, slots=True)
class StepDownAsked:
    """Give up the tenure in order, and do not contend for ``for_s`` seconds after that."""

    item: str
    for_s: float
    handover_to: str | None = None  # the session to which an election's key is handed over. None: any
    note: str = ""  # the operator's reason, which the hooks receive. Blank: none was given
    session: str | None = None  # whose tenure is meant, so that no other one ends. None: any


@dataclass(frozen=True, slots=True)
class ConfirmOffAsked:
    """The operator confirms that the machine of the former holder is off, which ends a guard."""

    item: str


@dataclass(frozen=True, slots=True)
class ConfigLoaded:
    """The file has been read again, and has these items."""

    wanted: tuple[Wanted, ...]
    instance: str  # the part of transition ids that names this start or reload


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """An item that goes on has these settings in the file now."""

    item: str
    settings: ItemSettings
    unchecked: bool = False  # the check whether its hooks can start here has no result yet


@dataclass(frozen=True, slots=True)
class ItemRemoved:
    """The file no longer has this item: wind it up in order, while this process goes on."""

    item: str


Event = (
    Tick
    | Answered
    | HookEnded
    | RunEnded
    | SurvivorsChanged
    | HooksChecked
    | RecordWritten
    | WatchdogTried
    | Stalled
    | StopAsked
    | RecoverAsked
    | PauseAsked
    | PauseOver
    | ResumeAsked
    | OrderSeen
    | StepDownAsked
    | ConfirmOffAsked
    | ConfigLoaded
    | SettingsChanged
    | ItemRemoved
)
