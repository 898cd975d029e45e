"""The history of each item, for status and for people.

The history gets its events where the log gets them, after everything urgent, so it may lag by one callback of
the loop. It must never decide anything, nor answer whether this node holds. It keeps the newest of everything
and forgets the rest, which is in the log. Of a hook it keeps nothing except the name, because the command may
hold secrets. Only events and transitions also come from earlier processes, as soon as their file was read.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from supervisor.consul.permissions import UNKNOWN_TOKEN
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
    View,
)
from supervisor.core.requests import Answerer, Watch
from supervisor.telemetry.event_log import EventLog
from supervisor.telemetry.item_history import (
    TRANSITIONS_MAX,
    Attempt,
    Denial,
    ItemHistory,
    LastError,
    Transition,
)
from supervisor.telemetry.stuck import failure_of

DENIED_S = 90.0  # each request that is denied is repeated sooner; a watch is the last, after its wait
TOKENS_LOADED_S = 15.0  # after the start of a server; each request that is denied is repeated within 5 s
HOLDING = (Role.ACQUIRING, Role.HOLDING, Role.LOSING)
ALTERED = "session-altered: Consul has made another session than this node asked for"
CONSUL = "consul"  # ends with any answer of Consul's servers
RECORD = "record"  # ends with a record that was written
PREFLIGHT = "preflight"  # ends with a look that finds every hook able to start
TROUBLES: dict[type[Outcome], tuple[str, str]] = {  # the texts while it goes on, and once it is over
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


def _is_expired(watch: Watch, outcome: Outcome) -> bool:
    """Return whether a watch ended without a change.

    A server that led when the watch began answers so even if it has led nobody since (Consul 1.8, which also
    says that it knows a leader). So such an answer counts only where no other request has failed meanwhile.
    """
    return isinstance(outcome, View) and outcome.index == watch.index


class History:
    """The histories of all items.

    ``wall`` returns Unix time, ``clock`` the seconds that durations are taken from.

    events: the events of this node.
    refused: why this process runs by the last accepted configuration. Blank: it runs by the present one.
    """

    def __init__(self, wall: Callable[[], float], clock: Callable[[], float]) -> None:
        self._wall = wall
        self._clock = clock
        self.began_at = wall()
        self.began = clock()
        self.answered_at: float | None = None
        self.refused = ""
        self.events = EventLog(wall)
        self._items: dict[str, ItemHistory] = {}
        self._running: dict[StartHook | StartRun, tuple[Transition, Attempt]] = {}

    def of(self, item: str) -> ItemHistory:
        """Return what happened to this item, which is an empty history as long as nothing has happened."""
        if item not in self._items:
            self._items[item] = ItemHistory(self._wall(), self._clock())
        return self._items[item]

    def retain(self, items: Collection[str]) -> None:
        """Forget what happened to all other items, which the configuration does not declare any more."""
        self._items = {item: kept for item, kept in self._items.items() if item in items}

    def recall(self, item: str, transitions: Iterable[Transition]) -> None:
        """Add the transitions of earlier processes to this item, the newest first."""
        history, boot = self.of(item), self._wall() - self._clock()
        former = [replace(each, began=each.at - boot) for each in transitions]
        history.transitions = deque([*history.transitions, *former][:TRANSITIONS_MAX], TRANSITIONS_MAX)
        history.transitions_json = ""

    def end_all(self) -> None:
        """End the transitions that are under way, because their process has ended."""
        for history in self._items.values():
            self._leave(history)
            history.role = None

    def why_token_refused(self, now: float) -> str:
        """Return why Consul refuses the token for a kind of request that is still sent. Blank: it does not.

        A server that has just started knows no token for 5 to 10 s, so this refusal counts once it lasts.
        """
        for denial in (denial for history in self._items.values() for denial in history.denied.values()):
            unknown = UNKNOWN_TOKEN in denial.why
            if now - denial.at < DENIED_S and (not unknown or denial.at - denial.since >= TOKENS_LOADED_S):
                lasted = f"403 {UNKNOWN_TOKEN}: it was deleted or mistyped, so give the daemon another"
                return lasted if unknown else denial.why
        return ""

    def on_step(self, event: Event, actions: Sequence[Action]) -> None:
        """Note an event and the actions that followed."""
        match event:
            case Answered():
                self._answered(event)
            case HookEnded() | RunEnded():
                self._ended(event)
            case RecordWritten(write, why_not):
                self._record_written(write.item, why_not)
        for action in actions:
            match action:
                case StartHook(context=context) if context.event == "check":
                    pass
                case StartHook() | StartRun():
                    self._started(action)
                case StopRun(started) if started in self._running:
                    self._running[started][1].stop_requested = True
                case RoleChanged():
                    self.on_role(action)
                case CannotStart(item, (fault, *_)):
                    how = f"{fault.why}: {fault.remedy}"
                    present, past = (
                        f"{fault.hook} cannot start: {how}",
                        f"{fault.hook} could not start: {how}",
                    )
                    self._note_error(self.of(item), present, past, PREFLIGHT)
                case CannotStart(item):
                    self._end_error(self.of(item), PREFLIGHT)

    # --- Consul and the disk ---------------------------------------------------------------------

    def _answered(self, event: Answered) -> None:
        request, outcome, kind = event.request, event.outcome, type(event.request).__name__
        history, now = self.of(request.item), self._clock()
        if not isinstance(outcome, Unknown | Denied):
            history.denied.pop(kind, None)
        if isinstance(request, Watch) and _is_expired(request, outcome) and request.at < history.failed_at:
            return
        if event.of_leader:
            self.answered_at = history.answered_at = now
            history.unanswered = history.expired = False
            self._end_error(history, CONSUL)
        elif request.answerer is Answerer.LEADER:
            history.unanswered, history.failed_at = True, now
        if isinstance(outcome, View):
            history.seen_at = now if isinstance(request, Watch) else request.at
        if isinstance(outcome, Denied):
            since = history.denied[kind].since if kind in history.denied else now
            history.denied[kind] = Denial(since, now, outcome.why)
        if isinstance(outcome, Unknown | Denied | Refused | Ineligible | SessionAltered):
            ended_by = CONSUL if isinstance(outcome, Unknown) else kind
            present, past = (f"{text}{outcome.why}" for text in TROUBLES[type(outcome)])
            self._note_error(history, present, past, ended_by)
        else:
            self._end_error(history, kind)

    def _record_written(self, item: str, why_not: str) -> None:
        history = self.of(item)
        if why_not:
            self._note_error(
                history, f"cannot be recorded: {why_not}", f"could not be recorded: {why_not}", RECORD
            )
        elif history.unrecorded:
            self._end_error(history, RECORD)
        history.unrecorded = why_not

    def _note_error(self, history: ItemHistory, present: str, past: str, ended_by: str) -> None:
        history.last_error = LastError(self._wall(), present, past, ended_by)

    def _end_error(self, history: ItemHistory, ended_by: str) -> None:
        """Note that the last error is over, if it goes on and this ends it."""
        error = history.last_error
        if error is None or error.ended_by != ended_by or error.over_at is not None:
            return
        history.last_error = replace(error, over_at=self._wall())

    # --- hooks -----------------------------------------------------------------------------------

    def _started(self, start: StartHook | StartRun) -> None:
        context, history = start.context, self.of(start.context.name)
        is_run = isinstance(start, StartRun)
        event = "run" if is_run else context.event
        transition = self.transition(history, event, context.reason, context.transition)
        hook, number = ("run", 1) if isinstance(start, StartRun) else (start.hook.name, start.attempt)
        attempt = Attempt(hook, number, event, self._wall(), self._clock())
        transition.attempts.append(attempt)
        self._running[start] = (transition, attempt)
        if not is_run:
            history.last_hook = attempt
        history.transitions_json = ""

    def _ended(self, event: HookEnded | RunEnded) -> None:
        of = event.started.context.event
        history = self.of(event.started.context.name)
        if isinstance(event, HookEnded):
            self._hook_ended(history, event, of)
        begun = self._running.pop(event.started, None)
        if begun is None:  # a check, of which no attempts are kept
            return
        transition, attempt = begun
        now = self._clock()
        attempt.ok = event.ok if isinstance(event, HookEnded) else attempt.stop_requested
        attempt.duration_s, attempt.detail = now - attempt.began, event.detail
        if transition is not history.current:
            transition.duration_s = now - transition.began
        history.transitions_json = ""
        if isinstance(event, RunEnded) and not attempt.ok:
            self._failed(history, f"{attempt.hook} ended: {event.detail}", of)

    def _hook_ended(self, history: ItemHistory, event: HookEnded, of: str) -> None:
        """Note the end of a hook. A success ends an error of an earlier hook for the same event."""
        if event.ok:
            self._end_error(history, of)
            return
        self._failed(history, failure_of(event), of)
        if of in LOSE_SIDE:
            history.lose_failure = failure_of(event)

    def transition(self, history: ItemHistory, event: str, reason: str, id_: str) -> Transition:
        """Return the transition to which these hooks belong, which is begun if there is none."""
        if event in ("acquire", "lose"):
            transition = self._enter(history, event, reason)
            transition.id, transition.reason = id_, reason
            return transition
        for transition in history.transitions:
            if transition.id == id_:
                transition.duration_s = None
                return transition
        return self._add(history, Transition(event, reason, self._wall(), self._clock(), id_))

    def _failed(self, history: ItemHistory, text: str, of: str) -> None:
        self._note_error(history, text, text, of)

    # --- roles -----------------------------------------------------------------------------------

    def on_role(self, became: RoleChanged) -> None:
        """Note that the role of an item has changed."""
        history = self.of(became.item)
        if became.role is Role.ACQUIRING:
            self._enter(history, "acquire", became.reason)
            history.lose_failure = ""
        elif became.role is Role.HOLDING:
            self._enter(history, "acquire", became.reason).reason = became.reason  # adopted by now
            self._leave(history)
        elif became.role is Role.LOSING:
            lost = self._enter(history, "lose", became.reason)
            lost.reason = became.reason  # may have become known since the transition began
        elif history.role in (Role.ACQUIRING, Role.HOLDING):  # without a hook there is no role LOSING
            self._enter(history, "lose", became.reason)
        if became.role not in HOLDING:
            self._leave(history)
        if became.reason == Reason.LEASE_EXPIRED:
            history.expired = True
        history.role, history.since = became.role, self._wall()
        history.transitions_json = ""

    def _enter(self, history: ItemHistory, event: str, reason: str) -> Transition:
        """Begin a transition, unless it is under way already. Return it."""
        if history.current is None or history.current.event != event:
            self._leave(history)
            history.current = self._add(history, Transition(event, reason, self._wall(), self._clock()))
        return history.current

    def _leave(self, history: ItemHistory) -> None:
        if history.current is not None:
            history.current.duration_s = self._clock() - history.current.began
            history.current = None

    def _add(self, history: ItemHistory, transition: Transition) -> Transition:
        history.transitions.appendleft(transition)
        return transition
