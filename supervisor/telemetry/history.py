"""What has happened to each item since this process began, for status and for people.

Fed from the one point that also feeds the log, behind everything urgent, so it may lag by a turn of
the loop: it must never decide anything, nor answer whether this node holds. It keeps the newest of
everything and forgets the rest, which is in the log. Nothing of a hook but its name is kept: what it
is made of may hold secrets.
"""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from supervisor.core.actions import (
    LOSE_SIDE,
    Action,
    CannotStart,
    Reason,
    Role,
    RoleChanged,
    StartHook,
    StartRun,
    StopRun,
)
from supervisor.core.events import Answered, Event, HookEnded, RecordWritten, RunEnded
from supervisor.core.outcomes import (
    Denied,
    Failed,
    Ineligible,
    Outcome,
    Refused,
    SessionAltered,
    Throttled,
    Unknown,
)
from supervisor.telemetry.stuck import failure_of

TRANSITIONS_MAX = 20  # an item: what a page shows; older ones are in the log
ATTEMPTS_MAX = 20  # a transition: the newest tell whether retries help
DENIED_S = 90.0  # each request that is denied is repeated sooner: a watch last, after its wait
HOLDING = (Role.ACQUIRING, Role.HOLDING, Role.LOSING)
ALTERED = "session-altered: Consul has made another session than this node asked for"
CONSUL = "consul"  # what an answer of Consul ends, whatever was asked
RECORD = "record"  # what a record that was written ends
PREFLIGHT = "preflight"  # what a look that finds every hook able to start ends
TROUBLES: dict[type[Outcome], tuple[str, str]] = {  # while it goes on, and once it is over
    Unknown: ("Consul does not answer: ", "Consul did not answer: "),
    Failed: ("Consul answers ", "Consul answered "),
    Throttled: (
        "Consul takes no more requests for now: ",
        "Consul took no more requests for some time: ",
    ),
    Denied: ("Consul refuses: ", "Consul refused: "),
    Refused: ("Consul refuses what the file asks for: ", "Consul refused what the file asked for: "),
    SessionAltered: (f"{ALTERED}: ", f"{ALTERED}: "),
    Ineligible: ("not eligible: ", "was not eligible: "),
}


@dataclass(slots=True)
class Attempt:
    """One attempt of a hook, or the run child. ``at`` is a time of day, ``began`` one of the clock.

    ``ok`` and ``duration_s`` are None while it runs.
    """

    hook: str
    number: int
    event: str
    at: float
    began: float
    ok: bool | None = None
    duration_s: float | None = None
    detail: str = ""
    asked_to_end: bool = False


@dataclass(slots=True)
class Transition:
    """Something that came and what was run for it. ``id`` is that of its hooks, blank without one.

    ``duration_s`` is None until it is over. ``text`` is for whoever has put it into words, to keep them;
    it is blank again when something has changed.
    """

    event: str  # acquire | lose | lose-failure | change | run
    reason: str
    at: float
    began: float
    id: str = ""
    duration_s: float | None = None
    attempts: deque[Attempt] = field(default_factory=lambda: deque(maxlen=ATTEMPTS_MAX))
    text: str = ""


@dataclass(frozen=True, slots=True)
class LastError:
    """What went wrong last, and at which time of day.

    ``past``: the same in the past tense, said once it is over. ``ended_by``: what ends it. ``over_at``:
    the time of day when that came; None: it has not.
    """

    at: float
    present: str
    past: str
    ended_by: str
    over_at: float | None = None

    @property
    def text(self) -> str:
        """Return the text in the present tense, or in the past tense once the mishap is over."""
        return self.present if self.over_at is None else self.past


@dataclass(slots=True)
class ItemHistory:
    """What happened to one item. ``version`` grows whenever something of it changes.

    ``since``: the time of day from which on it has its role. ``answered_at``: when Consul last answered
    a request for it, by the clock. ``unheard``: it ceased to hold, and Consul has not answered since;
    ``expired``: so it did for want of news.
    ``unrecorded``: why its newest record could not be written. ``lose_failure``: which hook of the lose
    side failed last, and how. ``denied``: the requests that were last
    answered by 403, and when.
    """

    since: float
    answered_at: float
    role: Role | None = None
    transitions: deque[Transition] = field(default_factory=lambda: deque(maxlen=TRANSITIONS_MAX))
    last_hook: Attempt | None = None
    last_error: LastError | None = None
    consul_unreachable: bool = False
    expired: bool = False
    unrecorded: str = ""
    lose_failure: str = ""
    denied: dict[str, float] = field(default_factory=dict)
    version: int = 0
    current: Transition | None = None  # the acquire or lose that is not over

    def changed(self, transition: Transition) -> None:
        """Something of this transition, and so of the story."""
        transition.text = ""
        self.version += 1


class History:
    """The stories of all items. ``wall`` is the time of day, ``clock`` what durations are taken from."""

    def __init__(self, wall: Callable[[], float], clock: Callable[[], float]) -> None:
        self._wall = wall
        self._clock = clock
        self.began_at = wall()
        self.answered_at: float | None = None
        self._stories: dict[str, ItemHistory] = {}
        self._running: dict[StartHook | StartRun, tuple[Transition, Attempt]] = {}

    def story(self, item: str) -> ItemHistory:
        """What happened to this item; a blank one as long as nothing was heard of it."""
        return self._of(item)

    def retain(self, items: Collection[str]) -> None:
        """What happened to others is forgotten: the file has them no more."""
        self._stories = {item: story for item, story in self._stories.items() if item in items}

    def token_refused(self, now: float) -> bool:
        """Whether Consul refuses the token for anything that is still being asked."""
        denials = (at for story in self._stories.values() for at in story.denied.values())
        return any(now - at < DENIED_S for at in denials)

    def on_step(self, event: Event, actions: Sequence[Action]) -> None:
        """An event, and what was done about it."""
        match event:
            case Answered():
                self._answered(event)
            case HookEnded() | RunEnded():
                self._ended(event)
            case RecordWritten(write, why_not):
                self._remembered(write.item, why_not)
        for action in actions:
            match action:
                case StartHook(context=context) if context.event == "check":
                    pass
                case StartHook() | StartRun():
                    self._started(action)
                case StopRun(started) if started in self._running:
                    self._running[started][1].asked_to_end = True
                case RoleChanged():
                    self._became(action)
                case CannotStart(item, (fault, *_)):
                    how = f"{fault.why}: {fault.remedy}"
                    present, past = (
                        f"{fault.hook} cannot start: {how}",
                        f"{fault.hook} could not start: {how}",
                    )
                    self._mishap(self._of(item), present, past, PREFLIGHT)
                case CannotStart(item):
                    self._over(self._of(item), PREFLIGHT)

    def _of(self, item: str) -> ItemHistory:
        if item not in self._stories:
            self._stories[item] = ItemHistory(self._wall(), self._clock())
        return self._stories[item]

    # --- Consul and the disk ---------------------------------------------------------------------

    def _answered(self, event: Answered) -> None:
        outcome, kind = event.outcome, type(event.request).__name__
        story, now = self._of(event.request.item), self._clock()
        if not isinstance(outcome, Unknown):
            self.answered_at = story.answered_at = now
            story.denied.pop(kind, None)
            story.consul_unreachable = story.expired = False
            self._over(story, CONSUL)
        if isinstance(outcome, Denied):
            story.denied[kind] = now
        if isinstance(outcome, Unknown | Denied | Refused | Ineligible | SessionAltered):
            ended_by = CONSUL if isinstance(outcome, Unknown) else kind
            present, past = (f"{said}{outcome.why}" for said in TROUBLES[type(outcome)])
            self._mishap(story, present, past, ended_by)
        else:
            self._over(story, kind)

    def _remembered(self, item: str, why_not: str) -> None:
        story = self._of(item)
        if why_not:
            self._mishap(story, f"cannot be recorded: {why_not}", f"could not be recorded: {why_not}", RECORD)
        elif story.unrecorded:
            self._over(story, RECORD)
            story.version += 1
        story.unrecorded = why_not

    def _mishap(self, story: ItemHistory, present: str, past: str, ended_by: str) -> None:
        story.last_error = LastError(self._wall(), present, past, ended_by)
        story.version += 1

    def _over(self, story: ItemHistory, ended_by: str) -> None:
        """What this ends is over, if it went wrong last and still goes on."""
        error = story.last_error
        if error is None or error.ended_by != ended_by or error.over_at is not None:
            return
        story.last_error = replace(error, over_at=self._wall())
        story.version += 1

    # --- hooks -----------------------------------------------------------------------------------

    def _started(self, start: StartHook | StartRun) -> None:
        context, story = start.context, self._of(start.context.name)
        is_run = isinstance(start, StartRun)
        event = "run" if is_run else context.event
        transition = self._transition(story, event, context.reason, context.transition)
        hook, number = ("run", 1) if isinstance(start, StartRun) else (start.hook.name, start.attempt)
        attempt = Attempt(hook, number, event, self._wall(), self._clock())
        transition.attempts.append(attempt)
        self._running[start] = (transition, attempt)
        if not is_run:
            story.last_hook = attempt
        story.changed(transition)

    def _ended(self, event: HookEnded | RunEnded) -> None:
        of = event.started.context.event
        story = self._of(event.started.context.name)
        if isinstance(event, HookEnded):
            self._hook_ended(story, event, of)
        begun = self._running.pop(event.started, None)
        if begun is None:  # a check: they are not kept
            return
        transition, attempt = begun
        now = self._clock()
        attempt.ok = event.ok if isinstance(event, HookEnded) else attempt.asked_to_end
        attempt.duration_s, attempt.detail = now - attempt.began, event.detail
        if transition is not story.current:
            transition.duration_s = now - transition.began
        story.changed(transition)
        if isinstance(event, RunEnded) and not attempt.ok:
            self._failed(story, f"{attempt.hook} ended: {event.detail}", of)

    def _hook_ended(self, story: ItemHistory, event: HookEnded, of: str) -> None:
        """What failed is over once a hook for the same event succeeds."""
        if event.ok:
            self._over(story, of)
            return
        self._failed(story, failure_of(event), of)
        if of in LOSE_SIDE:
            story.lose_failure = failure_of(event)

    def _transition(self, story: ItemHistory, event: str, reason: str, id_: str) -> Transition:
        """The one that these hooks belong to."""
        if event in ("acquire", "lose"):
            transition = self._enter(story, event, reason)
            transition.id, transition.reason = id_, reason
            return transition
        for transition in story.transitions:
            if transition.id == id_:
                transition.duration_s = None
                return transition
        return self._add(story, Transition(event, reason, self._wall(), self._clock(), id_))

    def _failed(self, story: ItemHistory, text: str, of: str) -> None:
        self._mishap(story, text, text, of)

    # --- roles -----------------------------------------------------------------------------------

    def _became(self, became: RoleChanged) -> None:
        story = self._of(became.item)
        if became.role is Role.ACQUIRING:
            self._enter(story, "acquire", became.reason)
            story.lose_failure = ""
        elif became.role is Role.HOLDING:
            self._enter(story, "acquire", became.reason).reason = became.reason  # adopted, by now
            self._leave(story)
        elif became.role is Role.LOSING:
            lost = self._enter(story, "lose", became.reason)
            lost.reason = became.reason  # it may have become known since
            story.changed(lost)
        elif story.role in (Role.ACQUIRING, Role.HOLDING):  # without a hook to run it is lost in no time
            self._enter(story, "lose", became.reason)
        if became.role not in HOLDING:
            self._leave(story)
            story.consul_unreachable = story.consul_unreachable or story.role in HOLDING
        if became.reason == Reason.LEASE_EXPIRED:
            story.expired = True
        story.role, story.since = became.role, self._wall()
        story.version += 1

    def _enter(self, story: ItemHistory, event: str, reason: str) -> Transition:
        """It is under way from now on, unless it is already."""
        if story.current is None or story.current.event != event:
            self._leave(story)
            story.current = self._add(story, Transition(event, reason, self._wall(), self._clock()))
        return story.current

    def _leave(self, story: ItemHistory) -> None:
        if story.current is not None:
            story.current.duration_s = self._clock() - story.current.began
            story.changed(story.current)
            story.current = None

    def _add(self, story: ItemHistory, transition: Transition) -> Transition:
        story.transitions.appendleft(transition)
        return transition
