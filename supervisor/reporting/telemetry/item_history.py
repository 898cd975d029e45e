"""The history of one item: its transitions, their hooks, and its last error."""

from collections import deque
from dataclasses import dataclass, field

from supervisor.core.actions import Role
from supervisor.reporting.telemetry.formatting import FAILED_BEFORE

TRANSITIONS_MAX = 20  # of an item: the transitions that a page shows; older ones are in the log
ATTEMPTS_MAX = 20  # of a transition: the newest attempts show whether retries help


@dataclass(slots=True)
class Attempt:
    """One attempt of a hook, or the run child."""

    hook: str
    number: int
    event: str
    at: float  # when it began, as Unix time
    began: float  # when it began, by the clock that durations are taken from
    ok: bool | None = None  # whether it succeeded. None: it is under way
    duration_s: float | None = None  # None: it is under way
    detail: str = ""  # how it ended
    stop_requested: bool = False  # whether the core has ended the run child


@dataclass(slots=True)
class Transition:
    """A change of this node's part in the item, and the hooks that were run for it."""

    event: str  # acquire | lose | lose-failure | change | run
    reason: str
    at: float  # when it began, as Unix time
    began: float  # when it began, by the clock that durations are taken from
    id: str = ""  # the id of its hooks. Blank: it has none
    duration_s: float | None = None  # None: it is not over
    attempts: deque[Attempt] = field(default_factory=lambda: deque(maxlen=ATTEMPTS_MAX))


@dataclass(frozen=True, slots=True)
class LastError:
    """The newest thing that went wrong."""

    at: float  # when it went wrong, as Unix time
    text: str  # in the present tense, also once it is over, which whoever shows it adds
    ended_by: str  # the key of the event that ends it
    over_at: float | None = None  # when it ended, as Unix time. None: it goes on


@dataclass(frozen=True, slots=True)
class Denial:
    """A kind of request that Consul refuses (403): since when, the newest time, and why."""

    since: float
    at: float
    why: str


@dataclass(slots=True)
class ItemHistory:
    """The history of one item since this process began; its transitions may be of earlier processes."""

    since: float  # when it took its role, as Unix time
    # When Consul's servers last answered a request for the item, by the clock that durations are taken from.
    # Before the first answer: when this history began.
    answered_at: float
    role: Role | None = None
    transitions: deque[Transition] = field(default_factory=lambda: deque(maxlen=TRANSITIONS_MAX))
    last_hook: Attempt | None = None
    last_error: LastError | None = None
    unanswered: bool = False  # whether a request has ended without their answer since then
    failed_at: float = float("-inf")  # when a request last ended so
    expired: bool = False  # whether its lease expired while it held, and they have not answered since
    seen_at: float = float("-inf")  # when the newest answer that shows who holds was true, by the same clock
    unrecorded: str = ""  # why its newest record could not be written. Blank: it was written
    why_stuck: str = FAILED_BEFORE  # why it was stuck when it was so last
    # The refusals (403) by the kind of request, until Consul answers that kind otherwise.
    denied: dict[str, Denial] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)  # why Consul refuses a kind of its tries for good
    ineligible: str = ""  # why its session could not be made when that was so last
    check_failed: str = ""  # how candidate_check has failed. Blank: it has succeeded since
    check_wrote: str = ""  # the last line that the running candidate_check has written
    current: Transition | None = None  # the acquire or lose that is not over. None: there is none
    transitions_json: str = ""  # of the transitions, kept by ``status``. Blank: one has changed since
