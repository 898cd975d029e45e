"""One structured line for each thing worth knowing, written at one point of the shell.

    names.py      the names of lines, which are a contract
    recurring.py  recurring failures: each has one line for its begin and one for its end
    notices.py    what an operator should know of an item, logged once although it comes and goes
    sentences.py  a sentence for each name, for people who read the journal
    format.py     how a line looks: in the journal, on a terminal, elsewhere
    journald.py   a line as journald's own datagram: never waits, never raises

Lines go to the journal, or to standard error. Lines that repeat (an outage, a denied token) are bounded, and
so is the output of hooks. No line may carry a secret: fields are chosen here one by one, and values of keys
are not among them.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from supervisor.consul.endpoints import endpoint_of
from supervisor.core.actions import (
    LOSE_SIDE,
    Action,
    CannotStart,
    Finished,
    HookContext,
    KillHook,
    NoticeChanged,
    Reason,
    Role,
    RoleChanged,
    StartHook,
    StartRun,
    StopRun,
)
from supervisor.core.events import (
    Answered,
    Event,
    HookEnded,
    RunEnded,
    Stalled,
    StepDownAsked,
    StopAsked,
)
from supervisor.core.outcomes import (
    Denied,
    Failed,
    Ineligible,
    InMaintenance,
    LockDelayed,
    LostRace,
    Outcome,
    Refused,
    SessionAltered,
    Throttled,
    Unknown,
)
from supervisor.core.requests import Request
from supervisor.core.tenure import ORDERED
from supervisor.filesystem.writing import NonBlockingWriter
from supervisor.hooks import HookLine
from supervisor.hooks.output import LineBudget
from supervisor.telemetry.log.format import reaches_journal, writer
from supervisor.telemetry.log.journald import JOURNAL, JournalWriter
from supervisor.telemetry.log.names import PRIORITIES, Level, Name
from supervisor.telemetry.log.notices import Notices
from supervisor.telemetry.log.recurring import RecurringFailures
from supervisor.telemetry.stuck import failure_of, remedy, why_stuck

__all__ = ["Level", "Log", "Name", "reaches_journal"]

STANDARD_ERROR = 2
# The lines that are kept as events of this node: its tenures and its commands.
KEPT: tuple[Name, ...] = (
    "started",
    "stopped",
    "role",
    "hook-succeeded",
    "hook-failed",
    "run-ended",
    "command-received",
    "command",
)
CHECK = "candidate_check"  # the name of that hook
# Of all hooks together in ten seconds. journald drops the lines of a service beyond 10,000 in 30 s
# (RateLimitBurst= in journald.conf(5)), those of a failover as well as those of a chatty hook.
OUTPUT_LINES_MAX = 2000
TICK_S = 1.0  # between looks for the end of a notice, of a failure, or of lines that were dropped


class Log:
    """The daemon's log.

    clock: seconds for durations and for the bound on repetition.
    journal: whether standard error is the journal, as ``reaches_journal`` returns.
    journal_socket: the socket of journald.
    keep: receives the name and the fields of each line of KEPT, whatever the level of the log.
    """

    def __init__(
        self,
        level: Level,
        form: str,
        clock: Callable[[], float],
        outlet: NonBlockingWriter | None = None,
        *,
        journal: bool = False,
        journal_socket: str = JOURNAL,
    ) -> None:
        self._clock = clock
        self._outlet = NonBlockingWriter(STANDARD_ERROR) if outlet is None else outlet
        self._journal = journal
        self._journald = JournalWriter(self._outlet, path=journal_socket, prefixed=journal)
        self.adjust(level, form)
        self._recurring = RecurringFailures(self._write, clock)
        self._notices = Notices(self._write, clock)
        self._output = LineBudget(clock, OUTPUT_LINES_MAX)
        self._output_dropped = 0  # lines of hooks that are not reported yet
        self._begun_at: dict[StartHook | StartRun, float] = {}
        self._lose_failures: dict[str, str] = {}
        self._roles: dict[str, Role] = {}
        self._tick_at = float("-inf")
        self.keep: Callable[[Name, dict[str, Any]], None] = lambda event, fields: None

    def adjust(self, level: Level, form: str) -> None:
        """Use this level and this form from now on."""
        self._least = PRIORITIES[level]
        self._debugs = level == "debug"
        self._write_formatted = writer(form, self._outlet, self._journald, journal=self._journal)

    def line(self, level: Level, event: Name, **fields: Any) -> None:
        """Write one line, without fields that are None, blank or empty. Never wait and never raise.

        The ``text`` of a hook is written even if it is blank, because a hook may print an empty line.
        """
        self._write(level, event, fields)

    def failed(self, event: Name, item: str, why: str) -> None:
        """Log a recurring failure: see ``recurring.KINDS``."""
        self._recurring.failed(event, item, why)

    def recovered(self, event: Name, item: str) -> None:
        """Note that this has not failed this time."""
        self._recurring.recovered(event, item)

    def on_step(self, event: Event, actions: Sequence[Action]) -> None:
        """Log an event and the actions that followed, as far as they are worth a line."""
        if (now := self._clock()) >= self._tick_at:
            self._tick_at = now + TICK_S
            self._tick()
        self._happened(event)
        note = _note_of(event)
        for action in sorted(actions, key=_is_no_role) if len(actions) > 1 else actions:
            self._decided(action, note)

    def _tick(self) -> None:
        self._recurring.tick()
        self._notices.tick()
        if not self._output.exhausted:
            self._log_dropped_output()

    def delayed(self, started: StartHook | StartRun, why: str) -> None:
        """Log that a hook cannot start yet. The line of its end reports the result."""
        hook = started.hook.name if isinstance(started, StartHook) else "run"
        remedy = "raise the limit, or end what uses it up; the start is tried again within the hook's timeout"
        self.line("warning", "hook-delayed", **_of_hook(started.context), hook=hook, why=why, remedy=remedy)

    def output(self, line: HookLine) -> None:
        """Log a line that a hook wrote."""
        level: Level = "debug" if line.hook == CHECK else "info"
        if PRIORITIES[level] > self._least:
            return
        if not self._output.take():
            self._output_dropped += 1
            return
        self._log_dropped_output()
        about = {"item": line.item, "hook": line.hook, "transition": line.transition}
        self.line(level, "hook-output", **about, stream=line.stream, text=line.text)

    def _log_dropped_output(self) -> None:
        if self._output_dropped:
            self.line("warning", "hook-output-dropped", count=self._output_dropped)
            self._output_dropped = 0

    def finish(self) -> None:
        """Write the last lines. No line may follow."""
        self._journald.finish()
        self._outlet.finish()

    def _write(self, level: Level, event: Name, fields: dict[str, Any]) -> None:
        if dropped := self._outlet.dropped:
            self._outlet.dropped = 0
            self._write_formatted("warning", "log-lines-dropped", {"count": dropped})
            if self._outlet.dropped:
                self._outlet.dropped = dropped  # also this line was dropped
        if PRIORITIES[level] > self._least and event not in KEPT:
            return
        present = {name: value for name, value in fields.items() if name == "text" or value not in _NOTHING}
        if event in KEPT:
            self.keep(event, present)
        if PRIORITIES[level] <= self._least:
            self._write_formatted(level, event, present)

    # --- what happened -----------------------------------------------------------------------------

    def _happened(self, event: Event) -> None:
        match event:
            case Answered(request, outcome):
                self._answered(request, outcome)
            case HookEnded():
                self._hook_ended(event)
            case RunEnded(started, detail=detail):
                about = _of_hook(started.context) | {"duration_s": self._lasted_s(started)}
                self.line("info", "run-ended", **about, detail=detail)
            case Stalled(late_s):
                self.line("warning", "event-loop-stalled", late_s=round(late_s, 3))
            case StopAsked(reason):
                self.line("info", "stopping", reason=reason)

    def _hook_ended(self, event: HookEnded) -> None:
        started, duration_s = event.started, self._lasted_s(event.started)
        context = started.context
        if context.event == "check":
            self._checked(context.name, event.detail, ok=event.ok)
            return
        about = _of_hook(context) | {"hook": started.hook.name, "attempt": started.attempt}
        level: Level = "info" if event.ok else "error"
        name: Name = "hook-succeeded" if event.ok else "hook-failed"
        if not event.ok and context.event in LOSE_SIDE:
            self._lose_failures[context.name] = failure_of(event)
        self.line(level, name, **about, duration_s=duration_s, detail=event.detail)

    def _checked(self, item: str, detail: str, *, ok: bool) -> None:
        """Log a check only when its result has changed, because a check ends every few seconds."""
        if ok:
            self.recovered("check-failed", item)
        else:
            self.failed("check-failed", item, detail)

    def _answered(self, request: Request, outcome: Outcome) -> None:
        failure = _FAILURES.get(type(outcome))
        if failure is None and not self._recurring.going_on and not self._debugs:
            return
        item, kind = request.item, in_words(type(request).__name__)
        for name in _FAILURES.values():
            if name != failure and name in self._recurring.going_on:
                for works in (type(request), *endpoint_of(request).shows):
                    self._recurring.recovered(name, item, in_words(works.__name__), since=request.at)
        match outcome:
            case Unknown(why) | Denied(why) | Refused(why) | Ineligible(why) | SessionAltered(why):
                self.line("debug", "exchange-failed", item=item, kind=kind, why=why)
                self._recurring.failed(_FAILURES[type(outcome)], item, why, kind)
            case LockDelayed() | LostRace():
                reason = "lock-delay" if isinstance(outcome, LockDelayed) else "held by another"
                self.line("debug", "acquire-refused", item=item, reason=reason)

    # --- what was decided --------------------------------------------------------------------------

    def _decided(self, action: Action, note: str) -> None:
        match action:
            case StartHook(hook, attempt, context):
                self._begun_at[action] = self._clock()
                level: Level = "debug" if context.event == "check" else "info"
                self.line(level, "hook-started", **_of_hook(context), hook=hook.name, attempt=attempt)
            case KillHook(started):
                self.line("info", "hook-killed", **_of_hook(started.context), hook=started.hook.name)
            case StartRun(context=context):
                self._begun_at[action] = self._clock()
                self.line("info", "run-started", **_of_hook(context))
            case StopRun(started):
                self.line("info", "run-stopping", **_of_hook(started.context))
            case RoleChanged():
                self._became(action, note)
            case NoticeChanged(item, notice):
                self._notices.noticed(item, notice)
            case CannotStart():
                self._cannot_start(action)
            case Finished(item, clean=clean):
                self._recurring.forget_item(item)
                self._notices.forget_item(item)
                self._lose_failures.pop(item, None)
                self._roles.pop(item, None)
                if not clean:
                    self.line("error", "finished-stuck", item=item, remedy=remedy(item, ended=True))
            case Request() if self._debugs:
                line, kind = endpoint_of(action).line, in_words(type(action).__name__)
                about = {"kind": kind} if line == "request" else {"session": getattr(action, "session", None)}
                self.line("debug", line, item=action.item, **about)

    def _became(self, became: RoleChanged, note: str) -> None:
        item, stuck = became.item, became.role is Role.STUCK
        unasked = became.role is Role.LOSING and became.reason not in ORDERED
        level: Level = "error" if stuck else "warning" if unasked else "info"
        began_as = Role.WAITING if became.reason == Reason.ACQUIRED else None
        former, self._roles[item] = self._roles.get(item, began_as), became.role
        fields: dict[str, Any] = {"item": item, "role": became.role, "reason": became.reason}
        fields |= {"former_role": former, "note": note}
        if stuck:
            fields |= {"why": why_stuck(self._lose_failures.get(item, "")), "remedy": remedy(item)}
        elif became.role is Role.ACQUIRING:
            self._lose_failures.pop(item, None)
        tenure = {"transition": became.transition, "session": became.session, "token": became.token or None}
        self.line(level, "role", **fields, **tenure)

    def _cannot_start(self, found: CannotStart) -> None:
        effect = "this node goes on leading: correct this before a loss"
        if not found.leads:
            effect = "this node does not contend"
        for fault in found.faults:
            about = {"item": found.item, "hook": fault.hook, "why": fault.why, "remedy": fault.remedy}
            self.line("error", "hook-cannot-start", **about, effect=effect)
        if not found.faults:
            self.line("info", "hooks-can-start", item=found.item)

    def _lasted_s(self, started: StartHook | StartRun) -> float | None:
        """Return the time since the start of the attempt was logged. None: it was not."""
        begun_at = self._begun_at.pop(started, None)
        return None if begun_at is None else round(self._clock() - begun_at, 3)


_NOTHING: tuple[object, ...] = (None, "", [])
_FAILURES: dict[type[Outcome], Name] = {
    Unknown: "consul-silent",
    Failed: "consul-fails",
    Throttled: "consul-throttled",
    Denied: "consul-denied",
    Refused: "consul-refused",
    Ineligible: "not-eligible",
    SessionAltered: "session-altered",
}


@cache
def in_words(kind: str) -> str:
    """Return the name of a kind of request: ``ReadKey`` is ``read key``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower()


def _note_of(event: Event) -> str:
    """Return the operator's words with which this event ends a tenure. Blank: there are none."""
    match event:
        case StepDownAsked(note=note) | Answered(outcome=InMaintenance(reason=note)):
            return note
    return ""


def _is_no_role(action: Action) -> bool:
    """Return whether the line of this action comes after that of the role to which it belongs."""
    return not isinstance(action, RoleChanged)


def _of_hook(context: HookContext) -> dict[str, Any]:
    fields = {"item": context.name, "event_kind": context.event, "reason": context.reason}
    tenure = {"session": context.session, "token": context.fencing_token or None}
    return fields | {"transition": context.transition} | tenure
