"""Everything that can be decided.

An action is a plain value. The shell carries out the actions of one step in their order, and begins no action
of a later step before. Each ``Request`` is answered by exactly one ``Answered`` event, and each ``StartHook``
or ``StartRun`` by exactly one ``HookEnded`` or ``RunEnded``. The event carries the action that it completes,
so it is matched by identity and not by order. Each ``WriteRecord`` is answered by one ``RecordWritten``
before anything else happens, and each ``Tend`` by one ``WatchdogTried``.
"""

from enum import StrEnum
from math import inf

from supervisor.core.frozen import dataclass
from supervisor.core.requests import Acquire, Release, Request
from supervisor.core.settings import Hook, ItemSettings, Run, Watchdog
from supervisor.core.watchdog import Act, Device


class Role(StrEnum):
    """The part that this node has in an election or semaphore, as status and logs name it."""

    OBSERVER = "observer"
    WAITING = "waiting"
    RESTING = "resting"
    INELIGIBLE = "ineligible"
    ACQUIRING = "acquiring"
    HOLDING = "holding"
    LOSING = "losing"
    STUCK = "stuck"
    PAUSED = "paused"
    STOPPED = "stopped"


class Reason(StrEnum):
    """The reason for which a hook is called. The words are part of the contract with hooks."""

    ACQUIRED = "acquired"
    ADOPTED = "adopted"
    LOCK_GONE = "lock-gone"
    RELEASED_BY_OPERATOR = "released-by-operator"
    SESSION_INVALIDATED = "session-invalidated"
    SESSION_ALTERED = "session-altered"
    KEY_DELETED = "key-deleted"
    LEASE_EXPIRED = "lease-expired"
    UNHEALTHY = "unhealthy"
    MAINTENANCE = "maintenance"
    RUN_EXITED = "run-exited"
    SLOT_REMOVED = "slot-removed"
    SHUTDOWN = "shutdown"
    STEP_DOWN = "step-down"
    CONFIG_CHANGED = "config-changed"
    ACQUIRE_FAILED = "acquire-failed"
    CRASHED = "crashed"
    LOSE_FAILED = "lose-failed"
    LEADER_CHANGED = "leader-changed"
    VALUE_CHANGED = "value-changed"
    INITIAL = "initial"
    SCHEDULED = "scheduled"


@dataclass(frozen=True, slots=True)
class PrepareWrite:
    """Encode this write, which may be sent within moments, and send nothing yet."""

    request: Acquire | Release


@dataclass(frozen=True, slots=True)
class Holder:
    """A session that holds, and the value that it gave."""

    session: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Previous:
    """The facts about the tenure before that its record showed to a node that acquired after it."""

    end: str  # how it ended: see ``claim.guard.GuardEnd``
    target: str = ""
    node: str = ""
    host: str = ""
    token: int = 0
    method: str = ""  # of the fence that is tried, or has succeeded, and which failed before. Blank: none

    @property
    def how(self) -> str:
        """How it ended, and by which of several methods."""
        return f"{self.end} by {self.method}" if self.method not in ("", "fence") else self.end


LOSE_SIDE = ("lose", "lose-failure")  # the events of the hooks that make room for a rival


@dataclass(frozen=True, slots=True)
class HookContext:
    """The facts that a hook receives, except those that only the shell knows, such as the node's name."""

    event: str  # acquire | lose | change | lose-failure | check | fence
    name: str
    key: str
    reason: Reason
    transition: str  # unique; all attempts and hooks of one transition share it
    session: str = ""  # as hooks get it: blank where no session holds
    lock_index: int = 0
    fencing_token: int = 0
    leader: bytes | None = None
    previous_leader: bytes | None = None
    rival_at: float | None = None  # lose: the time from which a rival may hold
    kind: str = "election"
    holders: tuple[Holder, ...] = ()  # of a semaphore, as far as this node knows
    slot: int | None = None  # the number of the slot of a semaphore. None: it has none
    note: str = ""  # why an operator gave the command that causes the hook
    role: Role | None = None  # change, check: the role of this node at the start of the attempt
    previous: Previous | None = None  # acquire, fence: of an election with a fence


@dataclass(frozen=True, slots=True)
class StartHook:
    """Run one attempt (1, 2, ...) of one hook, which ends within ``hook.attempt_s``.

    An attempt that lacks the resources to start is tried again within its timeout.
    """

    hook: Hook
    attempt: int
    context: HookContext
    begin_by: float = inf  # the attempt never begins after this time


@dataclass(frozen=True, slots=True)
class KillHook:
    """End an attempt early: TERM to its process group, KILL after kill_after. HookEnded follows."""

    started: StartHook


@dataclass(frozen=True, slots=True)
class StartRun:
    """Start the child that lives while this node leads."""

    run: Run
    context: HookContext
    begin_by: float = inf  # the child never begins after this time


@dataclass(frozen=True, slots=True)
class StopRun:
    """End the run child: TERM, KILL after stop_timeout. RunEnded follows."""

    started: StartRun


class Point(StrEnum):
    """The point that a contender had reached when a record was made, in the order of a tenure."""

    NONE = "none"  # nothing is left to do
    SESSION = "session"  # no hook is left to run, and a session is left to release and destroy
    TENURE = "tenure"  # on_acquire may have begun
    HOLDING = "holding"  # on_acquire is done
    LOSING = "losing"  # belief has ended
    STUCK = "stuck"  # on_lose and on_lose_failure have failed


@dataclass(frozen=True, slots=True)
class Record:
    """The facts about one contender that must survive a crash of this process.

    The fields are those of ``Tenure``. While the step is NONE, only the pause means anything.
    """

    step: Point = Point.NONE
    key: str = ""
    session: str = ""
    token: int = 0
    create_index: int = 0
    lock_index: int = 0
    contact: float = 0.0
    taken_at: float | None = None
    leader: bytes = b""
    previous_leader: bytes | None = None
    reason: Reason = Reason.ACQUIRED
    paused: bool = False
    pause_ends_at: float | None = None  # Unix time. None: there is no pause, or only an operator ends it
    # Unix time until which undrain leaves the pause. 0: until resume. None: undrain ends it.
    stays_until: float | None = None
    # The record is from another boot or machine, so this process must not renew, release or destroy the
    # session.
    foreign: bool = False
    note: str = ""
    owes: bool = False  # that of ``Session``
    asked_delay_s: float | None = None  # that of ``Session``
    slot: int | None = None
    leased_s: float = 0.0
    stopped_at: float | None = None


EMPTY_RECORD = Record()


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """Write this record, with the settings that wind its tenure up. ``RecordWritten`` follows at once."""

    item: str
    record: Record
    settings: ItemSettings


@dataclass(frozen=True, slots=True)
class Arm:
    """Let the watchdog be open before on_acquire or run begins. ``Devices`` makes a ``Tend`` of it."""

    item: str
    watchdog: Watchdog
    reset_by: float  # the device must not fire later than this


@dataclass(frozen=True, slots=True)
class Tend:
    """Do this to a watchdog device. ``WatchdogTried`` follows at once."""

    path: str
    act: Act | None  # None: nothing is to be done, and the device is to be known as it is here
    device: Device
    item: str | None = None  # whose ``Arm`` this is. None: nobody's
    by: float = inf  # opened or fed later than this, the device would fire too late


@dataclass(frozen=True, slots=True)
class RoleChanged:
    """A change of the role, for the log and status."""

    item: str
    role: Role
    reason: str = ""
    session: str | None = None  # this and the next two: those that the hooks of the tenure receive
    token: int = 0
    transition: str | None = None
    note: str = ""  # how the guard before has ended. Blank: there was none


@dataclass(frozen=True, slots=True)
class NoticeChanged:
    """A change of the notice about this item that an operator should read, for the log and status."""

    item: str
    notice: str  # the text. Blank: all is well again


@dataclass(frozen=True, slots=True)
class Fault:
    """A hook that cannot start on this machine, with the reason and the remedy."""

    hook: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True)
class CannotStart:
    """A change of the hooks that cannot start on this machine, for the log."""

    item: str
    faults: tuple[Fault, ...]  # the hooks that cannot start. Empty: all can again
    leads: bool  # this node has a tenure of the item nevertheless


@dataclass(frozen=True, slots=True)
class Finished:
    """The contender has wound up after a stop."""

    item: str
    clean: bool  # False: the contender is stuck, and an operator is needed


Action = (
    Request
    | PrepareWrite
    | StartHook
    | KillHook
    | StartRun
    | StopRun
    | WriteRecord
    | Arm
    | Tend
    | RoleChanged
    | NoticeChanged
    | CannotStart
    | Finished
)
