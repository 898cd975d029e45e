"""The events of a node: lines of the log that are kept, bounded, and the transitions made from them again."""

import json
from typing import Any

import pytest

from supervisor.core.actions import HookContext, Reason, Role, RoleChanged, StartHook
from supervisor.core.events import HookEnded, StepDownAsked, Tick
from supervisor.core.settings import Command, Hook
from supervisor.reporting.telemetry.event_log import BYTES_MAX, EVENTS_MAX, EventLog
from supervisor.reporting.telemetry.facts import Facts
from supervisor.reporting.telemetry.formatting import DETAIL_CHARS_MAX, unix_time, when
from supervisor.reporting.telemetry.history import History, Replay
from supervisor.reporting.telemetry.log import KEPT, Level
from tests.support.log_written import Written

NOON = 1_790_000_000.0
HOOK = Hook("on_acquire[0]", Command(("true",)), 30.0)


def listed(log: EventLog, **how: int) -> list[dict[str, Any]]:
    document = json.loads(log.body(**how))
    assert document["version"] == 1
    return list(document["events"])


def log_at(now: float = NOON) -> EventLog:
    return EventLog(lambda: now)


def given(verb: str, item: str | None = None, **more: Any) -> dict[str, Any]:
    fields = {"verb": verb, "uid": 0, "user": "root", **more}
    return fields if item is None else {**fields, "item": item}


# --- what is kept ----------------------------------------------------------------------------------


@pytest.mark.long
def test_the_newest_are_kept_by_their_number_and_by_their_size() -> None:
    log = log_at()
    for number in range(100_000):
        log.add("role", {"number": number})
    found = listed(log)
    assert [each["number"] for each in found] == list(range(100_000 - EVENTS_MAX, 100_000))
    assert [each["number"] for each in listed(log, newest=2)] == [99_998, 99_999] and listed(
        log, newest=0
    ) == []
    for _ in range(EVENTS_MAX):
        log.add("role", {name: "\u2028" * 10_000 for name in ("a", "b", "c")})
    assert BYTES_MAX - 20_000 < len(log.body()) < BYTES_MAX + 20_000


def test_a_text_is_cut_and_the_time_is_now() -> None:
    log = log_at()
    log.add("hook-failed", {"detail": "x" * 1000, "duration_s": 1.5})
    (one,) = listed(log)
    assert one["detail"] == "x" * DETAIL_CHARS_MAX + "…" and one["duration_s"] == 1.5
    assert unix_time(one["time"]) == NOON and log.newest_at == when(NOON)


def test_earlier_events_come_before_those_that_there_are() -> None:
    earlier, log = log_at(), log_at()
    for number in range(EVENTS_MAX):
        earlier.add("role", {"number": number})
    log.add("role", {"number": -1})
    log.prepend(earlier)
    found = [each["number"] for each in listed(log)]
    assert found == [*range(1, EVENTS_MAX), -1]


def test_the_newest_command_is_found_for_the_item_or_for_all() -> None:
    earlier, log = log_at(), log_at(NOON + 60)
    earlier.add("command-received", given("pause", "a", note="old"))
    earlier.add("command-received", given("pause", "b", note="kept"))
    log.add("command-received", given("step-down", "a", note="other"))
    log.add("command-received", given("pause", "a", note="new"))
    log.prepend(earlier)
    notes = [(log.command("pause", item) or {}).get("note") for item in ("a", "b", "c")]
    assert notes == ["new", "kept", None]
    log.add("command-received", given("pause", note="all"))
    assert [(log.command("pause", item) or {}).get("note") for item in ("a", "c")] == ["all", "all"]
    assert (log.command("step-down", "a") or {})["note"] == "other"


def test_commands_for_names_without_end_are_bounded() -> None:
    log = log_at()
    for number in range(2 * EVENTS_MAX):
        log.add("command-received", given("pause", f"n{number}"))
    assert len(log._commands) == EVENTS_MAX


# --- from the log ------------------------------------------------------------------------------------


def lines_kept(level: Level = "error") -> tuple[Written, list[tuple[str, dict[str, Any]]]]:
    written = Written(level=level)
    found: list[tuple[str, dict[str, Any]]] = []
    written.log.keep = lambda event, fields: found.append((event, fields))
    return written, found


def test_events_are_kept_whatever_the_level_of_the_log() -> None:
    written, found = lines_kept()
    for name in KEPT:
        written.log.line("info", name, item="app", empty="")
    written.log.line("info", "hook-output", text="secret")
    assert found == [(name, {"item": "app"}) for name in KEPT] and written.text == ""


def test_a_role_names_the_role_before_it_and_the_reason_of_a_step_down() -> None:
    written, found = lines_kept()
    log = written
    log.on_step(Tick(), [RoleChanged("app", Role.ACQUIRING, Reason.ACQUIRED)])
    log.on_step(Tick(), [RoleChanged("app", Role.HOLDING, Reason.ACQUIRED)])
    log.on_step(StepDownAsked("app", 5.0, note="why"), [RoleChanged("app", Role.LOSING, Reason.STEP_DOWN)])
    log.on_step(Tick(), [RoleChanged("app", Role.RESTING)])
    log.on_step(Tick(), [RoleChanged("other", Role.ACQUIRING, Reason.ADOPTED)])
    told = [(each.get("former_role"), each["role"], each.get("note")) for _, each in found]
    assert told == [
        ("waiting", "acquiring", None),
        ("acquiring", "holding", None),
        ("holding", "losing", "why"),
        ("losing", "resting", None),
        (None, "acquiring", None),
    ]


# --- the transitions of earlier processes --------------------------------------------------------------


class Process:
    """A daemon's log and history, with a clock that the test sets."""

    def __init__(self) -> None:
        self.now = NOON
        self.history = History(lambda: self.now, lambda: self.now - NOON + 50.0)
        self.written = Written()
        self.on_step = Facts(lambda: self.now, self.written.log.on_step, self.history.on_step).on_step
        self.events: list[dict[str, Any]] = []
        self.written.log.keep = lambda name, fields: self.events.append(self.history.events.add(name, fields))

    def does(self, after_s: float, event: Any, *actions: Any) -> None:
        self.now += after_s
        self.on_step(event, actions)

    def runs(
        self, event: str, hook: str, took_s: float, *, ok: bool = True, reason: Reason, id_: str
    ) -> None:
        context = HookContext(event, "app", "k", reason, id_)
        start = StartHook(Hook(hook, Command(("true",)), 30.0), 1, context)
        self.does(0.0, Tick(), start)
        self.does(took_s, HookEnded(start, ok, "exit 0" if ok else "exit 1"))

    def becomes(self, role: Role, reason: str = "") -> None:
        self.does(0.0, Tick(), RoleChanged("app", role, reason))

    def shown(self) -> list[Any]:
        return shown(self.history)


def shown(history: History) -> list[Any]:
    """Return the transitions with their hooks as a page shows them, except those under way."""
    found = history.of("app").transitions
    return [
        (
            each.event, each.reason, round(each.at, 2), each.id,
            each.duration_s and round(each.duration_s, 2),
            [(one.hook, one.number, one.ok, one.duration_s and round(one.duration_s, 2), one.detail)
             for one in each.attempts],
        )
        for each in found
    ]  # fmt: skip


def a_life() -> Process:
    process = Process()
    process.written.log.line("info", "started", pid=1)
    process.runs("change", "on_change[0]", 0.5, reason=Reason.INITIAL, id_="i-app-change-1")
    process.becomes(Role.ACQUIRING, Reason.ACQUIRED)
    process.runs("acquire", "on_acquire[0]", 1.0, ok=False, reason=Reason.ACQUIRED, id_="s-acquire")
    process.runs("acquire", "on_acquire[1]", 2.0, reason=Reason.ACQUIRED, id_="s-acquire")
    process.becomes(Role.HOLDING, Reason.ACQUIRED)
    process.now += 100.0
    process.becomes(Role.LOSING, Reason.LEASE_EXPIRED)
    process.runs("lose", "on_lose[0]", 0.25, ok=False, reason=Reason.LEASE_EXPIRED, id_="s-lose")
    process.runs("lose-failure", "on_lose_failure[0]", 3.0, reason=Reason.LOSE_FAILED, id_="s-lose-failure")
    process.becomes(Role.WAITING)
    return process


def next_history(process: Process, *, after_s: float) -> History:
    """Return the history of the next process, which begins ``after_s`` later and has read the events."""
    now = process.now + after_s
    past, history = Replay(), History(lambda: now, lambda: 7.0)
    for event in json.loads(process.history.events.body())["events"]:
        past.event(event)
    past.history.end_all()
    history.events.prepend(past.history.events)
    history.recall("app", past.history.of("app").transitions)
    return history


def test_the_next_process_shows_the_transitions_of_the_one_before() -> None:
    process = a_life()
    history = next_history(process, after_s=60.0)
    assert shown(history) == process.shown() and len(process.shown()) == 4
    assert history.events.body() == process.history.events.body()


def test_a_transition_that_a_crash_cut_is_over() -> None:
    process = a_life()
    process.becomes(Role.ACQUIRING, Reason.ACQUIRED)
    process.now += 9.0
    process.written.log.line("info", "started", pid=2)
    newest = shown(next_history(process, after_s=1.0))[0]
    assert (newest[0], newest[4]) == ("acquire", 9.0)


def test_a_hook_that_goes_on_with_an_earlier_transition_counts_from_its_begin() -> None:
    process = a_life()
    history = next_history(process, after_s=60.0)
    (failure,) = [each for each in history.of("app").transitions if each.event == "lose-failure"]
    clock_now, wall_now = 7.0, process.now + 60.0
    assert clock_now - failure.began == pytest.approx(wall_now - failure.at, abs=0.01)


@pytest.mark.parametrize(
    "broken",
    [
        {"time": "yesterday", "event": "role"},
        {"time": when(NOON), "event": "role", "item": "app", "role": "king"},
        {"time": when(NOON), "event": "hook-failed", "item": "app"},
        {"time": when(NOON), "event": "hook-succeeded", "item": "app", "event_kind": "lose", "attempt": "x"},
        {"time": when(NOON), "event": "run-ended", "item": "app", "duration_s": {}},
    ],
)
def test_an_event_of_another_version_makes_no_transition(broken: dict[str, Any]) -> None:
    past = Replay()
    past.event(broken)
    assert list(past.history.of("app").transitions) == [] and len(listed(past.history.events)) == 1
