"""One structured line for each thing worth knowing, at one point of the shell.

Lines go to standard error: text on a terminal, JSON elsewhere. What repeats (an outage, a denied
token) is said once, then at most once in REPEAT_S with a count, and its end is said too. No line
may carry a secret: fields are chosen here one by one, and values of keys are not among them.
"""

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO, cast

import structlog

from supervisor.core.actions import (
    Action,
    Became,
    DestroySession,
    Finished,
    HookContext,
    KillHook,
    Leave,
    Noticed,
    Release,
    Request,
    Role,
    StartHook,
    StartRun,
    StopRun,
)
from supervisor.core.events import (
    Answered,
    Denied,
    Event,
    HookEnded,
    Ineligible,
    LockDelayed,
    Outcome,
    Raced,
    Refused,
    Resumed,
    RunEnded,
    StopAsked,
    Unknown,
)
from supervisor.hooks import HookLine
from supervisor.outlet import Outlet

STANDARD_ERROR = 2
CHECK = "candidate_check"  # the name of that hook
REPEAT_S = 60.0  # an outage of an hour is sixty lines an item, not seven thousand
REASONS_MAX = 4  # in REPEAT_S: reasons take turns (refused, timed out) or carry a changing number

Level = str  # debug | info | warning | error
_PRIORITY = {"debug": 10, "info": 20, "warning": 30, "error": 40}


@dataclass(slots=True)
class _Repeated:
    since: float
    reasons: set[str]
    unsaid: int = 0


class Log:
    """The daemon's log. ``clock`` in seconds, for the bound on repetition."""

    def __init__(
        self, level: str, form: str, clock: Callable[[], float], outlet: Outlet | None = None
    ) -> None:
        self._least = _PRIORITY[level]
        self._clock = clock
        self._outlet = Outlet(STANDARD_ERROR) if outlet is None else outlet
        self._logger = _logger(form, self._outlet)
        self._repeated: dict[tuple[str, str], _Repeated] = {}

    def line(self, level: Level, event: str, **fields: Any) -> None:
        """One line; fields that are None or empty are left out. Never waits, never raises."""
        dropped, self._outlet.dropped = self._outlet.dropped, 0
        if dropped:
            self._logger.warning("log-lines-dropped", count=dropped)
        if _PRIORITY[level] >= self._least:
            kept = {name: value for name, value in fields.items() if value is not None and value != ""}
            getattr(self._logger, level)(event, **kept)

    def adjust(self, level: str, form: str) -> None:
        """From now on at least this level, in this form."""
        self._least = _PRIORITY[level]
        self._logger = _logger(form, self._outlet)

    def finish(self) -> None:
        """Nothing more will be said."""
        self._outlet.finish()

    def turn(self, event: Event, actions: Sequence[Action]) -> None:
        """An event and what was decided about it."""
        self.event(event)
        for action in actions:
            self.action(action)

    def event(self, event: Event) -> None:
        """What happened, if it is worth a line."""
        match event:
            case Answered(request, outcome):
                self._answered(request, outcome)
            case HookEnded(started, ok=ok, detail=detail) if started.context.event == "check":
                self._checked(started.context.name, detail, ok=ok)
            case HookEnded(started, ok=ok, detail=detail):
                fields = _hook_fields(started.context) | {
                    "hook": started.hook.name,
                    "attempt": started.attempt,
                }
                name = "hook-succeeded" if ok else "hook-failed"
                self.line("info" if ok else "error", name, **fields, detail=detail)
            case RunEnded(started, detail=detail):
                self.line("info", "run-ended", **_hook_fields(started.context), detail=detail)
            case Resumed(late_s):
                self.line("warning", "stood-still", late_s=round(late_s, 3))
            case StopAsked(reason):
                self.line("info", "stopping", reason=reason)

    def action(self, action: Action) -> None:
        """What was decided, if it is worth a line."""
        match action:
            case StartHook(hook, attempt, context):
                level = "debug" if context.event == "check" else "info"
                self.line(level, "hook-started", **_hook_fields(context), hook=hook.name, attempt=attempt)
            case KillHook(started):
                self.line("info", "hook-killed", **_hook_fields(started.context), hook=started.hook.name)
            case StartRun(context=context):
                self.line("info", "run-started", **_hook_fields(context))
            case StopRun(started):
                self.line("info", "run-stopping", **_hook_fields(started.context))
            case Became(item, role, reason):
                level = "error" if role is Role.STUCK else "info"
                self.line(level, "role", item=item, role=role, reason=reason)
            case Noticed(item, notice):
                if notice:
                    self.line("warning", "notice", item=item, why=notice)
                else:
                    self.line("info", "notice-over", item=item)
            case Finished(item, clean=clean):
                if not clean:
                    self.line("error", "finished-stuck", item=item, remedy=_STUCK_REMEDY)
            case Release() | Leave() | DestroySession():
                name = "destroying" if isinstance(action, DestroySession) else "releasing"
                self.line("debug", name, item=action.item, session=action.session)
            case Request():
                self.line("debug", "request", item=action.item, kind=type(action).__name__)

    def output(self, line: HookLine) -> None:
        """A line that a hook wrote."""
        fields = {"item": line.item, "hook": line.hook, "transition": line.transition}
        level = "debug" if line.hook == CHECK else "info"
        self.line(level, "hook-output", **fields, stream=line.stream, text=line.text)

    def _checked(self, item: str, detail: str, *, ok: bool) -> None:
        """A check ends every few seconds: what is worth a line is that its result has changed."""
        about = (item, CHECK)
        if not ok:
            self._repeat("warning", "check-failed", about, detail)
        elif self._repeated.pop(about, None) is not None:
            self.line("info", "check-succeeds", item=item)

    def _answered(self, request: Request, outcome: Outcome) -> None:
        kind = type(request).__name__
        about = (request.item, kind)
        match outcome:
            case Unknown(why) | Denied(why) | Refused(why) | Ineligible(why):
                level = "warning" if isinstance(outcome, Unknown | Ineligible) else "error"
                self._repeat(level, _TROUBLE[type(outcome)], about, why)
                return
            case LockDelayed() | Raced():
                reason = "lock-delay" if isinstance(outcome, LockDelayed) else "held by another"
                self.line("debug", "acquire-refused", item=request.item, reason=reason)
        if self._repeated.pop(about, None) is not None:
            self.line("info", "consul-answers", item=request.item, kind=kind)

    def _repeat(self, level: Level, event: str, about: tuple[str, str], why: str) -> None:
        now = self._clock()
        last = self._repeated.get(about)
        unsaid = None
        if last is None or now - last.since >= REPEAT_S:
            unsaid = last.unsaid or None if last is not None else None
            self._repeated[about] = _Repeated(now, {why})
        elif why in last.reasons or len(last.reasons) >= REASONS_MAX:
            last.unsaid += 1
            return
        else:
            last.reasons.add(why)
        item, kind = about
        self.line(level, event, item=item, kind=kind, why=why, times_unsaid=unsaid)


_TROUBLE: dict[type[Outcome], str] = {
    Unknown: "consul-silent",
    Denied: "consul-denied",
    Refused: "consul-refused",
    Ineligible: "not-eligible",
}
_STUCK_REMEDY = "on_lose failed: see that nothing of it still acts, start again, then run `recover`"


def _hook_fields(context: HookContext) -> dict[str, Any]:
    fields = {"item": context.name, "event_kind": context.event, "reason": context.reason}
    return fields | {"transition": context.transition}


def _in_order(logger: Any, method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Who reads raw lines finds when, how bad and what at their beginning."""
    return {"time": fields["time"], "level": fields["level"], "event": fields["event"]} | dict(fields)


def _logger(form: str, stream: Outlet) -> Any:
    console = form == "console" or (form == "auto" and stream.isatty())
    renderer: Any = structlog.processors.JSONRenderer()
    if console:
        renderer = structlog.dev.ConsoleRenderer(colors=stream.isatty())
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp" if console else "time")
    return structlog.wrap_logger(
        structlog.PrintLogger(cast(TextIO, stream)),
        processors=[structlog.processors.add_log_level, stamp, *([] if console else [_in_order]), renderer],
        wrapper_class=structlog.BoundLogger,
        cache_logger_on_first_use=True,
    )
