"""The history of each item, for status and for people.

The history gets its events where the log gets them, after everything urgent, so it may lag by one callback of
the loop. It must never decide anything, nor answer whether this node holds. It keeps the newest of everything
and forgets the rest, which is in the log. Of a hook it keeps nothing except the name, because the command may
hold secrets. Only events and transitions also come from earlier processes, as soon as their file was read.
"""

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from supervisor.adapters.consul.permissions import UNKNOWN_TOKEN
from supervisor.adapters.hooks.output import HookLine
from supervisor.core.actions import Action, CannotStart, Reason, Role
from supervisor.core.events import Answered, Event, RecordWritten
from supervisor.core.outcomes import Denied, Failed, Ineligible, Outcome, Refused, Unknown, View
from supervisor.core.requests import Answerer, ServiceRequest, Watch
from supervisor.reporting.telemetry.event_log import EventLog
from supervisor.reporting.telemetry.facts import CHECK, FAILURES, Fact, Trouble
from supervisor.reporting.telemetry.fleet import FleetReport
from supervisor.reporting.telemetry.formatting import cannot_start, unix_time
from supervisor.reporting.telemetry.item_history import (
    TRANSITIONS_MAX,
    Attempt,
    Denial,
    ItemHistory,
    LastError,
    Transition,
)
from supervisor.reporting.telemetry.leaders import Leaders

WROTE_CHARS_MAX = 200  # of a line of candidate_check, which is to fit beside its warning
_SECRET_OF_URL = re.compile(r"(?<=://)[^/\s@]+(?=@)|(?<=\?)\S+")
DENIED_S = 90.0  # each request that is denied is repeated sooner; a watch is the last, after its wait
TOKENS_LOADED_S = 15.0  # after the start of a server; each request that is denied is repeated within 5 s
TRIES = ("CreateSession", "Acquire", "JoinSemaphore", "TakeSlot")  # for a lock, repeated while it is free
LEADS = (Role.ACQUIRING, Role.HOLDING)
CONSUL = "consul"  # ends with any answer of Consul's servers
RECORD = "record"  # ends with a record that was written
_BEGINS = {"hook-succeeded": "hook-started", "hook-failed": "hook-started", "run-ended": "run-started"}
PREFLIGHT = "preflight"  # ends with a look that finds every hook able to start


def _is_expired(watch: Watch, outcome: Outcome) -> bool:
    """Return whether a watch ended without a change.

    A server that led when the watch began answers so even if it has led nobody since (Consul 1.8, which also
    says that it knows a leader). So such an answer counts only where no other request has failed meanwhile.
    """
    return isinstance(outcome, View) and outcome.index == watch.index


class History:
    """The histories of all items. ``wall`` returns Unix time, ``clock`` seconds for durations."""

    def __init__(self, wall: Callable[[], float], clock: Callable[[], float], refused: str = "") -> None:
        """Begin without a history. ``refused``: why the process does not run by the present files."""
        self.wall, self.clock, self.refused = wall, clock, refused  # blank: it does run by them
        self.began_at = wall()
        self.began = clock()
        self.answered_at: float | None = None
        self.uncopied = ""  # why the records are not on disk. Blank: they are
        self.fleet = FleetReport()
        self.events = EventLog(wall)  # the events of this node
        self.leaders = Leaders(wall)
        self._items: dict[str, ItemHistory] = {}
        self._running: dict[tuple[str, ...], tuple[Transition, Attempt]] = {}

    def of(self, item: str) -> ItemHistory:
        """Return what happened to this item, which is an empty history as long as nothing has happened."""
        if item not in self._items:
            self._items[item] = ItemHistory(self.wall(), self.clock())
        return self._items[item]

    def retain(self, items: Collection[str]) -> None:
        """Forget what happened to all other items, which the configuration does not declare any more."""
        self._items = {item: kept for item, kept in self._items.items() if item in items}
        self.leaders.retain(items)

    def recall(self, item: str, transitions: Iterable[Transition]) -> None:
        """Add the transitions of earlier processes to this item, the newest first."""
        history, boot = self.of(item), self.wall() - self.clock()
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

    def on_step(self, event: Event, actions: Sequence[Action], facts: Sequence[Fact]) -> None:
        self.leaders.on_step(event)
        match event:
            case Answered():
                self._answered(event)
            case RecordWritten(write, why_not):
                self._record_written(write.item, why_not)
        for _, name, fields in facts:
            self.note(name, fields)
        for action in actions:
            match action:
                case CannotStart(item, (fault, *_)):
                    self._note_error(self.of(item), cannot_start(fault), PREFLIGHT)
                case CannotStart(item):
                    self._end_error(self.of(item), PREFLIGHT)

    def note(self, name: str, fields: Mapping[str, Any]) -> None:
        """Note a fact, or an event of an earlier process.

        Raises KeyError, TypeError or ValueError for an event that no process of this version has left.
        """
        match name:
            case "role":
                self._became(self.of(fields["item"]), Role(fields["role"]), fields)
            case "hook-started" | "run-started" if fields["event_kind"] != "check":
                self._began(fields)
            case "run-stopping" if started := self._running.get(_key(fields)):
                started[1].stop_requested = True
            case "leader-changed":
                about = (fields[name] for name in ("item", "to", "session", "key", "time"))
                self.leaders.recall(*about)
            case "hook-succeeded" | "hook-failed" | "run-ended":
                self._ended(fields, ok=name == "hook-succeeded")

    def wrote(self, line: HookLine) -> None:
        """Keep the last line of candidate_check, because it usually says why the check fails.

        Everybody who can reach the page reads it: no trace of a shell (``set -x``), and no secret of a URL.
        """
        text = line.text.strip()
        if line.hook == CHECK and text and not text.startswith("+"):
            self.of(line.item).check_wrote = _SECRET_OF_URL.sub("…", text)[:WROTE_CHARS_MAX]

    # --- Consul and the disk ---------------------------------------------------------------------

    def _answered(self, event: Answered) -> None:
        request, outcome, kind = event.request, event.outcome, type(event.request).__name__
        history, now = self.of(request.item), self.clock()
        if not isinstance(outcome, Unknown | Denied):
            history.denied.pop(kind, None)
            history.refused.pop(kind, None)
        match outcome:
            case Refused(why, may_pass=False) if kind in TRIES:
                history.refused[kind] = FAILURES[Refused].text + why
            case Failed(why) if why.startswith("400 "):
                history.refused[kind] = FAILURES[Refused].text + why
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
        if isinstance(outcome, Denied) and not isinstance(request, ServiceRequest):  # the lock has its rights
            since = history.denied[kind].since if kind in history.denied else now
            history.denied[kind] = Denial(since, now, outcome.why)
        if isinstance(outcome, Ineligible):
            history.ineligible = outcome.why
        if isinstance(outcome, Trouble):
            failure, ended_by = FAILURES[type(outcome)], CONSUL if isinstance(outcome, Unknown) else kind
            self._note_error(history, failure.text + outcome.why, ended_by)
        else:
            self._end_error(history, kind)

    def _record_written(self, item: str, why_not: str) -> None:
        history = self.of(item)
        if why_not:
            self._note_error(history, f"cannot be recorded: {why_not}", RECORD)
        elif history.unrecorded:
            self._end_error(history, RECORD)
        history.unrecorded = why_not

    def _note_error(self, history: ItemHistory, text: str, ended_by: str) -> None:
        history.last_error = LastError(self.wall(), text, ended_by)

    def _end_error(self, history: ItemHistory, ended_by: str) -> None:
        """Note that the last error, which is of this kind, is over."""
        error = history.last_error
        if error is None or error.ended_by != ended_by or error.over_at is not None:
            return
        history.last_error = replace(error, over_at=self.wall())

    # --- hooks -----------------------------------------------------------------------------------

    def _began(self, fields: Mapping[str, Any]) -> None:
        hook, number, event = _attempt_of(fields)
        history = self.of(fields["item"])
        transition = self._transition(history, event, fields["reason"], fields.get("transition", ""))
        attempt = Attempt(hook, number, event, self.wall(), self.clock())
        transition.attempts.append(attempt)
        self._running[_key(fields)] = (transition, attempt)
        if event != "run":
            history.last_hook = attempt
        history.transitions_json = ""

    def _ended(self, fields: Mapping[str, Any], *, ok: bool) -> None:
        """Note the end of a hook or of the run child. A success ends an error of a hook for the same event.

        The end of the run child is a success if it was asked for, as an earlier process did while it lost.
        """
        hook, _, event = _attempt_of(fields)
        history, detail = self.of(fields["item"]), fields.get("detail", "")
        if event == "check":  # of which no attempts are kept
            detail = ": ".join(filter(None, (detail, history.check_wrote)))
            history.check_failed, history.check_wrote = "" if ok else f"failed: {detail}", ""
        else:
            (transition, attempt), now = self._running.pop(_key(fields)), self.clock()
            if event == "run":
                ok = attempt.stop_requested or history.role is Role.LOSING
            attempt.ok, attempt.duration_s, attempt.detail = ok, now - attempt.began, detail
            if transition is not history.current:
                transition.duration_s = now - transition.began
            history.transitions_json = ""
        if not ok:
            text = f"{hook} {'ended' if event == 'run' else 'failed'}: {detail}"
            self._note_error(history, text, fields["event_kind"])
        elif event != "run":
            self._end_error(history, event)

    def _transition(self, history: ItemHistory, event: str, reason: str, id_: str) -> Transition:
        """Return the transition to which these hooks belong, which is begun if there is none."""
        if event in ("acquire", "lose"):
            transition = self._enter(history, event, reason)
            transition.id, transition.reason = id_, reason
            return transition
        for transition in history.transitions:
            if transition.id == id_:
                transition.duration_s = None
                return transition
        return self._add(history, Transition(event, reason, self.wall(), self.clock(), id_))

    # --- roles -----------------------------------------------------------------------------------

    def _became(self, history: ItemHistory, role: Role, fields: Mapping[str, Any]) -> None:
        reason = fields.get("reason", "")
        # Without a hook there is no role LOSING, so a loss shows by the role before it.
        if role is Role.LOSING or role in LEADS or history.role in LEADS:
            transition = self._enter(history, "acquire" if role in LEADS else "lose", reason)
            if role in (Role.HOLDING, Role.LOSING):
                transition.reason = reason  # it may have become known since the transition began
        self._end_error(history, "" if role is Role.ACQUIRING else "fence")  # the guard is over
        if role not in (Role.ACQUIRING, Role.LOSING):
            self._leave(history)
        if reason == Reason.LEASE_EXPIRED:
            history.expired = True
        if role is Role.STUCK:
            history.why_stuck = fields.get("why", "")
            self._note_error(history, history.why_stuck, "lose")
        history.role, history.since = role, self.wall()
        history.transitions_json = ""

    def _enter(self, history: ItemHistory, event: str, reason: str) -> Transition:
        """Begin a transition, unless it is under way already. Return it."""
        if history.current is None or history.current.event != event:
            self._leave(history)
            history.current = self._add(history, Transition(event, reason, self.wall(), self.clock()))
        return history.current

    def _leave(self, history: ItemHistory) -> None:
        if history.current is not None:
            history.current.duration_s = self.clock() - history.current.began
            history.current = None

    def _add(self, history: ItemHistory, transition: Transition) -> Transition:
        history.transitions.appendleft(transition)
        return transition


class Replay:
    """Makes the history of earlier processes from their events. Its clock is the time of the newest event.

    A transition that a crash cut ends where the next process starts.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self.history = History(lambda: self._now, lambda: self._now)

    def event(self, event: Mapping[str, Any]) -> None:
        """Take in the next event, the oldest first. One that lacks a field makes no transition."""
        self.history.events.keep(dict(event))
        with suppress(KeyError, TypeError, ValueError):
            at, name = unix_time(event["time"]), event["event"]
            if name in _BEGINS:  # only the end of a hook is an event
                self._now = at - float(event.get("duration_s", 0.0))
                self.history.note(_BEGINS[name], event)
            self._now = at
            if name == "started":
                self.history.end_all()
            else:
                self.history.note(name, event)


def _attempt_of(fields: Mapping[str, Any]) -> tuple[str, int, str]:
    """Return the name of the hook, the number of its attempt, and its event. The run child has no fields."""
    if "hook" not in fields:
        return "run", 1, "run"
    return fields["hook"], int(fields["attempt"]), fields["event_kind"]


def _key(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what tells a hook from all others that are under way."""
    return fields["item"], fields.get("transition", ""), fields.get("hook", "run")
