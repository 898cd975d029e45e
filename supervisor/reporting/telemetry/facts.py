"""What a step means to people, found out once for the log, the history and the metrics.

A fact is the change of a role, or the begin or end of a hook or of the run child. It has the name and the
fields of its line in the log. Events of earlier processes, which are such lines, are read as facts again.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from supervisor.core.actions import (
    LOSE_SIDE,
    Action,
    Finished,
    HookContext,
    KillHook,
    Reason,
    Role,
    RoleChanged,
    StartHook,
    StartRun,
    StopRun,
)
from supervisor.core.events import Answered, Event, HookEnded, RunEnded, StepDownAsked, SurvivorsChanged
from supervisor.core.machines.tenure import ORDERED
from supervisor.core.outcomes import (
    Denied,
    Dropped,
    Failed,
    Ineligible,
    InMaintenance,
    Outcome,
    Refused,
    SessionAltered,
    Throttled,
    Unknown,
)
from supervisor.reporting.telemetry.formatting import FAILED_BEFORE, remedy
from supervisor.reporting.telemetry.names import Level

CHECK = "candidate_check"  # the name of that hook
ALTERED = "session-altered: Consul has made another session than this node asked for"


class Failure(NamedTuple):
    """The names that log, status and metrics have for an outcome that is a failure."""

    line: str
    level: Level
    error: str | None  # the label of the metric. None: the metric does not count it
    text: str  # the beginning of its text in status


Trouble = Unknown | Denied | Refused | Ineligible | SessionAltered
FAILURES: dict[type[Outcome], Failure] = {
    Unknown: Failure("consul-silent", "warning", "no-answer", "Consul does not answer: "),
    Failed: Failure("consul-fails", "warning", "failed", "Consul answers "),
    Dropped: Failure("consul-drops", "warning", "failed", "Consul answers "),
    Throttled: Failure("consul-throttled", "warning", "throttled", "Consul takes no more requests for now: "),
    Denied: Failure("consul-denied", "error", "denied", "Consul refuses: "),
    Refused: Failure("consul-refused", "error", "refused", "Consul refuses what the file asks for: "),
    SessionAltered: Failure("session-altered", "error", "altered", f"{ALTERED}: "),
    Ineligible: Failure("not-eligible", "warning", None, "not eligible: "),
}


class Fact(NamedTuple):
    """A change of a role, or the begin or end of a hook or the run child, as its line in the log has it."""

    level: Level
    name: str
    fields: dict[str, Any]  # durations are exact, and a value may be None or blank


Observe = Callable[[Event, Sequence[Action], Sequence[Fact]], None]
"""Takes note of an event, of the actions that followed, and of what they mean."""


class Facts:
    """Tells the observers of each step. ``clock`` returns the seconds that durations are taken from."""

    def __init__(self, clock: Callable[[], float], *observe: Observe) -> None:
        self._clock = clock
        self._observe = observe
        self._begun_at: dict[StartHook | StartRun, float] = {}
        self._roles: dict[str, Role] = {}
        self._lose_failures: dict[str, str] = {}

    def on_step(self, event: Event, actions: Sequence[Action]) -> None:
        facts = [self._ended(event)] if isinstance(event, HookEnded | RunEnded) else []
        if isinstance(event, SurvivorsChanged) and event.survivors:
            self._lose_failures[event.item] = event.survivors
        for action in actions:
            match action:
                case StartHook() | StartRun():
                    facts.append(self._begun(action))
                case KillHook(started):
                    hook = {"hook": started.hook.name}
                    facts.append(Fact("info", "hook-killed", context_fields(started.context) | hook))
                case StopRun(started):
                    facts.append(Fact("info", "run-stopping", context_fields(started.context)))
                case RoleChanged():
                    facts.append(self._became(action, _note_of(event) or action.note))
                case Finished(item):
                    self._roles.pop(item, None)
                    self._lose_failures.pop(item, None)
        for observe in self._observe:
            observe(event, actions, facts)

    def _begun(self, start: StartHook | StartRun) -> Fact:
        self._begun_at[start] = self._clock()
        level: Level = "debug" if start.context.event == "check" else "info"
        name = "hook-started" if isinstance(start, StartHook) else "run-started"
        return Fact(level, name, context_fields(start.context) | _attempt_fields(start))

    def _ended(self, event: HookEnded | RunEnded) -> Fact:
        started, context = event.started, event.started.context
        begun_at = self._begun_at.pop(started, None)
        lasted_s = None if begun_at is None else self._clock() - begun_at
        fields = context_fields(context) | _attempt_fields(started)
        fields |= {"duration_s": lasted_s, "detail": event.detail}
        level: Level = "warning" if event.left else "info"
        if isinstance(event, RunEnded):
            return Fact(level, "run-ended", fields)
        if event.ok:
            return Fact(level, "hook-succeeded", fields)
        if context.event in LOSE_SIDE:
            self._lose_failures[context.name] = f"{event.started.hook.name} failed: {event.detail}"
        return Fact("error", "hook-failed", fields)

    def _became(self, became: RoleChanged, note: str) -> Fact:
        item, stuck = became.item, became.role is Role.STUCK
        unasked = became.role is Role.LOSING and became.reason not in ORDERED
        level: Level = "error" if stuck else "warning" if unasked else "info"
        began_as = Role.WAITING if became.reason == Reason.ACQUIRED else None
        former, self._roles[item] = self._roles.get(item, began_as), became.role
        fields: dict[str, Any] = {"item": item, "role": became.role, "reason": became.reason}
        fields |= {"former_role": former, "note": note}
        if stuck:
            fields |= {"why": self._lose_failures.get(item, FAILED_BEFORE), "remedy": remedy(item)}
        elif became.role is Role.ACQUIRING:
            self._lose_failures.pop(item, None)
        tenure = {"transition": became.transition, "session": became.session, "token": became.token or None}
        return Fact(level, "role", fields | tenure)


def context_fields(context: HookContext) -> dict[str, Any]:
    fields = {"item": context.name, "event_kind": context.event, "reason": context.reason}
    tenure = {"session": context.session, "token": context.fencing_token or None}
    return fields | {"transition": context.transition} | tenure


def _attempt_fields(started: StartHook | StartRun) -> dict[str, Any]:
    return {"hook": started.hook.name, "attempt": started.attempt} if isinstance(started, StartHook) else {}


def _note_of(event: Event) -> str:
    """Return the operator's words with which this event ends a tenure. Blank: there are none."""
    match event:
        case StepDownAsked(note=note) | Answered(outcome=InMaintenance(reason=note)):
            return note
    return ""
