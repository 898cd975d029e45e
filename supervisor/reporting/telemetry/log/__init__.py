"""One structured line for each thing worth knowing, written at one point of the shell.

    recurring.py  recurring failures and notices: each has one line for its begin and one for its end
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

from supervisor.adapters.consul.endpoints import endpoint_of
from supervisor.adapters.filesystem.writing import NonBlockingWriter
from supervisor.adapters.hooks.output import HookLine, LineBudget
from supervisor.core.actions import Action, CannotStart, Finished, NoticeChanged, StartHook, StartRun
from supervisor.core.events import Answered, Event, Stalled, StopAsked, WatchdogTried
from supervisor.core.outcomes import LockDelayed, LostRace, Outcome
from supervisor.core.requests import Request
from supervisor.core.watchdog import Device
from supervisor.reporting.telemetry.facts import CHECK, FAILURES, Fact, Trouble, context_fields
from supervisor.reporting.telemetry.formatting import remedy
from supervisor.reporting.telemetry.log.format import reaches_journal, writer
from supervisor.reporting.telemetry.log.journald import JOURNAL, JournalWriter
from supervisor.reporting.telemetry.log.recurring import Notices, RecurringFailures
from supervisor.reporting.telemetry.names import PRIORITIES, Level

__all__ = ["Level", "Log", "reaches_journal"]

STANDARD_ERROR = 2
# The lines that are kept as events of this node: its tenures and its commands.
KEPT: tuple[str, ...] = (
    "started",
    "stopped",
    "reloaded",
    "reload-refused",
    "role",
    "ordered",
    "order-over",
    "pause-over",
    "leader-changed",
    "notice",
    "notice-over",
    "hook-succeeded",
    "hook-failed",
    "run-ended",
    "command-received",
    "command",
    "watchdog",
    "machine-reset",
)
CLOSED = ("closed", "")  # the state of a watchdog device of which nothing is known
# A device starves during each loss, mostly until on_lose has ended in time.
LEVEL_OF_DEVICE: dict[str, Level] = {"failed": "error", "starves": "warning"}
FOLLOW_ROLE: tuple[str, ...] = ("hook-started", "hook-killed", "run-started", "run-stopping")
# Of all hooks together in ten seconds. journald drops the lines of a service beyond 10,000 in 30 s
# (RateLimitBurst= in journald.conf(5)), those of a failover as well as those of a chatty hook.
OUTPUT_LINES_MAX = 2000
TICK_S = 1.0  # between looks for the end of a notice, of a failure, or of lines that were dropped


class Log:
    """The daemon's log. ``noted`` logs a recurring failure, and its end."""

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
        self._clock = clock  # seconds for durations and for the bound on repetition
        self._outlet = NonBlockingWriter(STANDARD_ERROR) if outlet is None else outlet
        self._journal = journal  # whether standard error is the journal, as ``reaches_journal`` returns
        self._journald = JournalWriter(self._outlet, path=journal_socket, prefixed=journal)
        self.adjust(level, form)
        self._recurring = RecurringFailures(self._write, clock)
        self.noted = self._recurring.noted
        self._notices = Notices(self._write, clock)
        self._devices: dict[str, tuple[str, str]] = {}  # by path: the state in the last line, and why
        self._output = LineBudget(clock, OUTPUT_LINES_MAX)
        self._output_dropped = 0  # lines of hooks that are not reported yet
        self._tick_at = float("-inf")
        self._leaves_running: set[str] = set()  # the items whose check has left processes running
        # Receives the name and the fields of each line of KEPT, whatever the level of the log.
        self.keep: Callable[[str, dict[str, Any]], None] = lambda event, fields: None

    def adjust(self, level: Level, form: str) -> None:
        self._least = PRIORITIES[level]
        self._debugs = level == "debug"
        self._write_formatted = writer(form, self._outlet, self._journald, journal=self._journal)

    def line(self, level: Level, event: str, **fields: Any) -> None:
        """Write one line, without fields that are None, blank or empty. Never wait and never raise.

        The ``text`` of a hook is written even if it is blank, because a hook may print an empty line.
        """
        self._write(level, event, fields)

    def on_step(self, event: Event, actions: Sequence[Action], facts: Sequence[Fact]) -> None:
        """Log an event, the actions that followed and what they mean, as far as they are worth a line."""
        if (now := self._clock()) >= self._tick_at:
            self._tick_at = now + TICK_S
            self._recurring.tick()
            self._notices.tick()
            if not self._output.exhausted:
                self._log_dropped_output()
        match event:
            case Answered(request, outcome):
                self._answered(request, outcome)
            case Stalled(late_s):
                self.line("warning", "event-loop-stalled", late_s=late_s)
            case StopAsked(reason):
                self.line("info", "stopping", reason=reason)
            case WatchdogTried(path, device, item) if self._has_changed(path, device) or item:
                level = LEVEL_OF_DEVICE.get(device.state, "info")
                left_s = max(0.0, device.fires_at - now) if device.is_open else None
                about = {"item": item, "device": path, "state": device.state}
                self.line(level, "watchdog", **about, why=device.why_not, reset_in_s=left_s)
        for level, name, fields in sorted(facts, key=lambda fact: fact.name in FOLLOW_ROLE):
            if fields.get("event_kind") == "check" and name in ("hook-succeeded", "hook-failed"):
                self._checked(level, name, fields)
            else:
                self._write(level, name, fields)
        for action in actions:
            self._decided(action)

    def _has_changed(self, path: str, device: Device) -> bool:
        """Return whether the device is in another state than in its last line; it is fed without a word."""
        known, state = self._devices.get(path, CLOSED), (device.state, device.why_not)
        self._devices[path] = state
        return state != known

    def delayed(self, started: StartHook | StartRun, why: str) -> None:
        """Log that a hook cannot start yet. The line of its end reports the result."""
        hook = started.hook.name if isinstance(started, StartHook) else "run"
        remedy = "raise the limit, or end what uses it up; the start is tried again within the hook's timeout"
        self.line(
            "warning", "hook-delayed", **context_fields(started.context), hook=hook, why=why, remedy=remedy
        )

    def output(self, line: HookLine) -> None:
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

    def _write(self, level: Level, event: str, fields: dict[str, Any]) -> None:
        if dropped := self._outlet.dropped:
            self._outlet.dropped = 0
            self._write_formatted("warning", "log-lines-dropped", {"count": dropped})
            if self._outlet.dropped:
                self._outlet.dropped = dropped  # also this line was dropped
        if PRIORITIES[level] > self._least and event not in KEPT:
            return
        present = {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in fields.items()
            if name == "text" or value not in _NOTHING
        }
        if event in KEPT:
            self.keep(event, present)
        if PRIORITIES[level] <= self._least:
            self._write_formatted(level, event, present)

    def _checked(self, level: Level, name: str, fields: dict[str, Any]) -> None:
        """Log a check only when its result has changed, because a check ends every few seconds.

        What the check of an item leaves running is logged once.
        """
        item = fields["item"]
        if name == "hook-failed":
            self.noted("check-failed", item, fields["detail"])
            return
        self.noted("check-failed", item, "")
        if level == "warning" and item not in self._leaves_running:
            self._leaves_running.add(item)
            self._write(level, name, fields)

    def _answered(self, request: Request, outcome: Outcome) -> None:
        failure = FAILURES.get(type(outcome))
        if failure is None and not self._recurring.going_on and not self._debugs:
            return
        item, kind = request.item, in_words(type(request).__name__)
        for other in FAILURES.values():
            if other is not failure and other.line in self._recurring.going_on:
                for works in (type(request), *endpoint_of(request).shows):
                    self._recurring.recovered(other.line, item, in_words(works.__name__), since=request.at)
        if failure is not None and isinstance(outcome, Trouble):
            self.line("debug", "exchange-failed", item=item, kind=kind, why=outcome.why)
            self._recurring.failed(failure.line, item, outcome.why, kind)
        elif isinstance(outcome, LockDelayed | LostRace):
            reason = "lock-delay" if isinstance(outcome, LockDelayed) else "held by another"
            self.line("debug", "acquire-refused", item=item, reason=reason)

    def _decided(self, action: Action) -> None:
        match action:
            case NoticeChanged(item, notice):
                self._notices.noticed(item, notice)
            case CannotStart():
                self._cannot_start(action)
            case Finished(item, clean=clean):
                self._recurring.forget_item(item)
                self._notices.forget_item(item)
                if not clean:
                    self.line("error", "finished-stuck", item=item, remedy=remedy(item, ended=True))
            case Request() if self._debugs:
                line, kind = endpoint_of(action).line, in_words(type(action).__name__)
                about = {"kind": kind} if line == "request" else {"session": getattr(action, "session", None)}
                self.line("debug", line, item=action.item, **about)

    def _cannot_start(self, found: CannotStart) -> None:
        effect = "this node goes on leading: correct this before a loss"
        if not found.leads:
            effect = "this node does not contend"
        for fault in found.faults:
            about = {"item": found.item, "hook": fault.hook, "why": fault.why, "remedy": fault.remedy}
            self.line("error", "hook-cannot-start", **about, effect=effect)
        if not found.faults:
            self.line("info", "hooks-can-start", item=found.item)


_NOTHING: tuple[object, ...] = (None, "", [])


@cache
def in_words(kind: str) -> str:
    """Return the name of a kind of request: ``ReadKey`` is ``read key``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower()
