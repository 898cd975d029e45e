"""The status, made of values: the state at an instant, the history, and the data that must not be in it."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from supervisor.adapters.hooks.output import HookLine
from supervisor.config.formats.durations import format_duration
from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.actions import HookContext, Reason, Role, StartHook
from supervisor.core.beside.candidate_check import Health
from supervisor.core.contender.creation import new_contender
from supervisor.core.contenders import Contenders
from supervisor.core.lease import lease_of
from supervisor.core.lock.base import IDLE_PAUSE_S, WATCH_S
from supervisor.core.lock.election import ElectionLock, HolderSession
from supervisor.core.machines.tenure import Phase, Tenure
from supervisor.core.settings import Command, Hook, Run, SessionSettings
from supervisor.core.times import NEVER
from supervisor.reporting.http_server import HttpRequest
from supervisor.reporting.telemetry.facts import Facts
from supervisor.reporting.telemetry.formatting import DETAIL_CHARS_MAX, when
from supervisor.reporting.telemetry.history import DENIED_S, History
from supervisor.reporting.telemetry.item_history import ATTEMPTS_MAX, TRANSITIONS_MAX
from supervisor.reporting.telemetry.metrics import Metrics
from supervisor.reporting.telemetry.status import VALUE_BYTES_MAX, Status
from supervisor.reporting.web.routes import Routes
from tests.unit.core.play import ROOM_S, contender

NOON = 1_800_000_000.0  # a time of day, and the clock's zero
HOOK = Hook("on_acquire[0]", Command(("true",)), 5.0)
TENURE = Tenure("s", 7, 3, 2, 100.0, b"me", None, phase=Phase.HOLDING)


async def no_fleet() -> bytes:
    """Return what a daemon without a fleet tells of it."""
    return b"{}"


class Stage:
    """A daemon's status over one election ``n``, with a clock that is set."""

    def __init__(self, **changes: Any) -> None:
        self.now = 100.0
        one = new_contender(contender(), spread=0.0, instance="i")
        self.node = Contenders([replace(one, **changes)])
        self.history = History(lambda: NOON + self.now, lambda: self.now)
        self.happens = Facts(lambda: self.now, self.history.on_step).on_step
        self.status = self.new_status()
        self.routes = Routes(self.status, Metrics(self.status, self.history), no_fleet)

    def new_status(self) -> Status:
        return Status(self.node, self.history, node="vm", consul="", path=None)

    def change(self, **changes: Any) -> None:
        self.node.by_name["n"] = replace(self.node.by_name["n"], **changes)

    @property
    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.status.body())
        return found

    @property
    def item(self) -> dict[str, Any]:
        (found,) = self.told["items"]
        return dict(found)

    def code(self, target: str) -> int:
        return asyncio.run(self.routes.answer(HttpRequest("GET", target, (), b""))).status

    def body(self, target: str) -> str:
        answer = asyncio.run(self.routes.answer(HttpRequest("GET", target, (), b"")))
        return b"".join([answer.body] if isinstance(answer.body, bytes) else answer.body).decode()

    @property
    def metrics(self) -> str:
        return self.body("/metrics")

    def begins(
        self, event: str = "acquire", number: int = 1, *, hook: Hook = HOOK, attempt: int = 1
    ) -> StartHook:
        context = HookContext(event, "n", "k", Reason.ACQUIRED, f"t{number}-{event}")
        start = StartHook(hook, attempt, context)
        self.happens(e.Tick(), [start])
        return start

    def ends(self, start: StartHook, *, ok: bool = True, detail: str = "exit 0") -> None:
        self.happens(e.HookEnded(start, ok, detail), [])

    def becomes(self, role: Role, reason: str = "") -> None:
        self.happens(e.Tick(), [a.RoleChanged("n", role, reason)])

    def answers(self, outcome: o.Outcome) -> None:
        self.happens(e.Answered(r.ReadKey("n", self.now, 3.0, "k"), outcome), [])


# --- whether it holds ----------------------------------------------------------------------------


@pytest.mark.parametrize("phase", list(Phase))
def test_an_item_holds_in_the_phase_of_holding_and_in_no_other(phase: Phase) -> None:
    stage = Stage(tenure=replace(TENURE, phase=phase))
    held = phase is Phase.HOLDING
    assert stage.status.holds("n") is held and stage.item["holds"] is held
    assert stage.code("/leader/n") == stage.code("/holder/n") == (200 if held else 503)


def test_an_item_holds_to_the_end_of_the_lease_and_not_an_instant_longer() -> None:
    """The clock alone decides, without any event and with a cached status."""
    stage = Stage(tenure=TENURE)
    for after_s, held, code in ((0.0, True, 200), (ROOM_S - 0.001, True, 200), (ROOM_S, False, 503)):
        stage.now = 100.0 + after_s
        assert (stage.item["holds"], stage.code("/leader/n")) == (held, code)
        assert stage.item["lease_left_s"] == pytest.approx(ROOM_S - after_s, abs=0.001)
    stage.change(tenure=TENURE.confirmed(stage.now))
    assert stage.item["holds"] is True and stage.item["lease_left_s"] == ROOM_S


def test_a_fence_that_failed_is_no_news_once_the_guard_is_over() -> None:
    stage = Stage(tenure=TENURE)
    stage.becomes(Role.ACQUIRING, "acquired")
    stage.ends(stage.begins("fence"), ok=False, detail="exit 1")
    assert stage.item["last_error"]["over_at"] is None
    stage.becomes(Role.HOLDING, "acquired")
    assert stage.item["last_error"]["over_at"] and stage.item["warnings"] == []


def test_the_history_of_an_item_that_is_gone_from_the_file_is_dropped() -> None:
    """A new item of that name begins with an empty history; an item that stays keeps its own."""
    for wanted, kept in (("n", 1), ("other", 0)):
        stage = Stage()
        stage.becomes(Role.HOLDING, "acquired")
        stage.history.retain({wanted})
        assert len(stage.item["transitions"]) == kept


# --- history -------------------------------------------------------------------------------------


def test_a_status_is_that_of_the_moment_with_any_earlier_one_in_the_cache() -> None:
    """After each event the status equals one that is made without a cache."""
    stage = Stage()
    for _ in happenings(stage):
        stage.now += 0.25
        anew, kept = stage.new_status(), stage.told
        for history in stage.history._items.values():
            history.transitions_json = ""
        assert kept == json.loads(anew.body())


def happenings(stage: Stage) -> Iterator[None]:
    start = stage.begins()
    yield
    stage.change(tenure=replace(TENURE, phase=Phase.ACQUIRING))
    stage.becomes(Role.ACQUIRING, "acquired")
    yield
    stage.ends(start, ok=False, detail="exit 3")
    yield
    start = stage.begins(attempt=2)
    yield
    stage.ends(start)
    stage.becomes(Role.HOLDING, "acquired")
    yield
    change = stage.begins("change", 2)
    yield
    stage.ends(change, ok=False, detail="exit 1")
    yield
    stage.ends(stage.begins("change", 2, attempt=2))
    yield
    stage.answers(o.Unknown("refused"))
    yield
    stage.change(told_notice="limit is 3 here and 2 in Consul: the smaller counts")
    yield
    stage.change(paused_until=NEVER)
    yield
    stage.becomes(Role.LOSING, "lease-expired")
    yield
    stage.ends(stage.begins("lose", 3))
    yield
    stage.becomes(Role.WAITING)
    yield


def test_transitions_and_attempts_are_the_newest_and_bounded() -> None:
    stage = Stage()
    for number in range(TRANSITIONS_MAX + 5):
        for attempt in range(ATTEMPTS_MAX + 5):
            stage.ends(stage.begins("change", number, attempt=attempt))
    told = stage.item["transitions"]
    assert [each["transition"] for each in told] == [f"t{n}-change" for n in range(24, 4, -1)]
    assert [each["attempt"] for each in told[0]["hooks"]] == list(range(5, ATTEMPTS_MAX + 5))


def test_a_tenure_is_two_transitions_with_their_durations() -> None:
    stage = Stage()
    start = stage.begins()
    stage.becomes(Role.ACQUIRING, "acquired")
    stage.now += 2
    stage.ends(start)
    stage.becomes(Role.HOLDING, "acquired")
    stage.now += 10
    stage.becomes(Role.LOSING, "step-down")
    stage.now += 1
    lose = stage.begins("lose", 2)
    assert stage.item["transitions"][0]["duration_s"] is None
    stage.now += 3
    stage.ends(lose)
    stage.becomes(Role.WAITING)
    told = [(each["event"], each["duration_s"], len(each["hooks"])) for each in stage.item["transitions"]]
    assert told == [("lose", 4.0, 1), ("acquire", 2.0, 1)]
    assert stage.item["transitions"][0]["hooks"][0]["duration_s"] == 3.0


def test_a_tenure_without_hooks_has_two_transitions() -> None:
    stage = Stage()
    stage.becomes(Role.HOLDING, "acquired")
    stage.becomes(Role.WAITING)
    told = [(each["event"], each["reason"], each["hooks"]) for each in stage.item["transitions"]]
    assert told == [("lose", "", []), ("acquire", "acquired", [])]


def test_a_run_child_is_a_transition_that_fails_unless_its_end_was_requested() -> None:
    for asked in (True, False):
        stage = Stage()
        run = a.StartRun(contender_run(), HookContext("acquire", "n", "k", Reason.ACQUIRED, "s-run"))
        stage.happens(e.Tick(), [run])
        assert stage.item["transitions"][0]["hooks"][0]["result"] == "running"
        assert stage.item["last_hook"] is None
        stage.happens(e.Tick(), [a.StopRun(run)] if asked else [])
        stage.happens(e.RunEnded(run, "exit 1"), [])
        assert stage.item["transitions"][0]["hooks"][0]["result"] == ("ok" if asked else "failed")


def contender_run() -> Run:
    return Run(Command(("true",)))


def test_values_and_details_are_bounded_and_any_bytes_are_text() -> None:
    long = b"\xff" + b"x" * 5000
    view = o.KeyView(5, "s", long, 3, 5, 1)
    stage = Stage(lock=replace(Stage().node.by_name["n"].lock, view=view))
    stage.answers(view)
    assert stage.item["leader"] == "\ufffd" + "x" * (VALUE_BYTES_MAX - 1) + "…"
    stage.ends(stage.begins(), ok=False, detail='"' * 5000)
    assert stage.item["last_hook"]["detail"] == '"' * DETAIL_CHARS_MAX + "…"
    assert len(stage.item["last_error"]["text"]) == DETAIL_CHARS_MAX + 1


# --- errors and their end -------------------------------------------------------------------------


def test_an_error_of_silence_is_over_when_consul_answers() -> None:
    stage = Stage()
    stage.answers(o.Unknown("refused"))
    error = stage.item["last_error"]
    assert (error["text"], error["over_at"]) == ("Consul does not answer: refused", None)
    stage.now += 2
    stage.answers(o.KeyView(5))
    error = stage.item["last_error"]
    assert error["text"] == "Consul does not answer: refused"
    assert error["over_at"] == "2027-01-15T08:01:42.000Z"
    stage.now += 5
    stage.answers(o.KeyView(6))
    assert stage.item["last_error"] == error


def test_an_error_of_a_denied_request_is_over_when_a_request_of_that_kind_is_answered() -> None:
    stage = Stage()
    stage.answers(o.Denied("Permission denied"))
    stage.happens(
        e.Answered(r.RenewSession("n", stage.now, 3.0, "s", SessionSettings("ours")), o.SessionAlive()), []
    )
    error = stage.item["last_error"]
    assert (error["text"], error["over_at"]) == ("Consul refuses: Permission denied", None)
    stage.answers(o.KeyView(5))
    assert stage.item["last_error"]["over_at"] is not None


@pytest.mark.parametrize("event", ["acquire", "lose", "check"])
def test_an_error_of_a_hook_is_over_when_one_for_that_event_succeeds(event: str) -> None:
    stage = Stage()
    stage.ends(stage.begins(event), ok=False, detail="exit 1")
    stage.ends(stage.begins("change", 2))
    assert stage.item["last_error"]["over_at"] is None
    stage.ends(stage.begins(event, attempt=2))
    assert stage.item["last_error"]["over_at"] is not None


def test_an_error_of_a_record_is_over_when_a_record_is_written() -> None:
    stage = Stage()
    write = a.WriteRecord("n", a.EMPTY_RECORD, contender())
    stage.happens(e.RecordWritten(write, "no space left"), [])
    error = stage.item["last_error"]
    assert (error["text"], error["over_at"]) == ("cannot be recorded: no space left", None)
    stage.happens(e.RecordWritten(write, ""), [])
    assert stage.item["last_error"]["over_at"] is not None


# --- health --------------------------------------------------------------------------------------


def test_a_token_that_consul_does_not_know_is_red_once_that_has_lasted() -> None:
    """A server that has just started knows no token for some seconds."""
    stage = Stage()
    unknown = o.Denied("403 ACL not found: Consul does not know the token: or Consul has started")
    stage.answers(unknown)
    stage.now += 10.0
    stage.answers(unknown)
    assert stage.code("/healthz") == 200
    stage.now += 5.0
    stage.answers(unknown)
    assert stage.code("/healthz") == 503
    (trouble,) = stage.told["troubles"]
    assert trouble.startswith("Consul refuses the token: 403 ACL not found: it was deleted or mistyped")
    stage.answers(o.KeyView(5))
    stage.answers(unknown)
    assert stage.code("/healthz") == 200


def test_a_refused_token_is_red_until_it_is_accepted_or_not_needed_any_more() -> None:
    stage = Stage()
    stage.answers(o.Denied("Permission denied"))
    assert stage.code("/healthz") == 503 and stage.told["consul"]["token_refused"] is True
    stage.answers(o.Unknown("no answer"))
    assert stage.code("/healthz") == 503
    stage.answers(o.KeyView(5))
    assert stage.code("/healthz") == 200 and stage.told["consul"]["token_refused"] is False
    stage.answers(o.Denied("Permission denied"))
    stage.now += DENIED_S
    assert stage.code("/healthz") == 200


def test_one_denied_key_beside_readable_ones_stays_red() -> None:
    stage = Stage()
    stage.answers(o.Denied("Permission denied"))
    stage.happens(
        e.Answered(r.RenewSession("n", stage.now, 3.0, "s", SessionSettings("n")), o.SessionAlive()), []
    )
    assert stage.code("/healthz") == 503


def test_a_tenure_that_ended_in_silence_is_red_until_consul_answers() -> None:
    """Without a hook no role shows the reason. A loss that Consul reports is not red."""
    for reason, red in (("lease-expired", True), ("", True), ("step-down", False)):
        stage = Stage()
        stage.answers(o.KeyView(5))
        stage.becomes(Role.HOLDING, "acquired")
        stage.now += ROOM_S + 1 if red else 1
        if reason:
            stage.becomes(Role.LOSING, reason)
        stage.becomes(Role.WAITING)
        stage.answers(o.Unknown("silence"))
        assert stage.code("/healthz") == (503 if red else 200), reason
        stage.answers(o.KeyView(6))
        assert stage.code("/healthz") == 200


def test_only_an_answer_of_the_servers_shows_that_they_answer() -> None:
    """The agent alone answers whether this node is in maintenance mode, also when it has lost its servers."""
    stage = Stage()
    stage.answers(o.Unknown("refused"))
    assert stage.told["consul"]["answered_s_ago"] is None
    stage.answers(o.KeyView(5))
    cut_off_s = stage.node.by_name["n"].lease.cut_off_s
    for after_s, healthy in ((cut_off_s - 0.1, True), (cut_off_s + 0.1, False)):
        stage.now = 100.0 + after_s
        stage.answers(o.Failed("500 No cluster leader"))
        agent = r.ReadMaintenance("n", stage.now, 3.0)
        stage.happens(e.Answered(agent, o.InMaintenance()), [])
        assert stage.told["healthy"] is healthy and stage.told["consul"]["answered_s_ago"] == after_s
        assert stage.item["last_error"]["over_at"] is None
    assert stage.told["troubles"] == [
        "n cannot be taken over: Consul's servers have not answered for more than "
        + format_duration(cut_off_s)
    ]
    stage.answers(o.KeyView(6))
    assert stage.told["healthy"] is True


def test_a_watch_that_ends_unchanged_proves_nothing_about_the_time_after_a_failure() -> None:
    """A server that led when the watch began answers it by 200, also if it has been alone since."""
    stage = Stage()
    stage.answers(o.KeyView(5))
    watch = r.WatchKey("n", stage.now, 60.0, "k", 5, 30.0, False)
    stage.now += 10.0
    stage.answers(o.Failed("500 No cluster leader"))
    stage.now += 20.0
    stage.happens(e.Answered(watch, o.KeyView(5)), [])
    assert stage.told["healthy"] is False and stage.told["consul"]["answered_s_ago"] == 30.0
    later = replace(watch, at=stage.now)
    stage.now += 30.0
    stage.happens(e.Answered(later, o.KeyView(5)), [])
    assert stage.told["healthy"] is True and stage.told["consul"]["answered_s_ago"] == 0.0
    stage.answers(o.Failed("500 No cluster leader"))
    stage.happens(e.Answered(later, o.KeyView(6)), [])
    assert stage.told["consul"]["answered_s_ago"] == 0.0


def test_a_silence_without_a_request_is_no_trouble() -> None:
    """A waiter sends nothing while its watch waits."""
    stage = Stage()
    stage.answers(o.KeyView(5))
    stage.now += 1000.0
    assert stage.told["healthy"] is True


def test_a_leader_is_shown_for_as_long_as_it_may_still_be_one() -> None:
    view = o.KeyView(5, "s", b"them", 3, 5, 1)
    stage = Stage(lock=replace(Stage().node.by_name["n"].lock, view=view))
    stage.answers(view)
    seen_at = when(NOON + stage.now)
    one = stage.node.by_name["n"]
    shown_s = one.shown_s
    assert one.lease.failover_s == shown_s == 48.0
    short = replace(one, lease=replace(one.lease, ttl_s=1.0, lockout_s=5.0))
    assert short.shown_s == WATCH_S + IDLE_PAUSE_S  # the watch of a quiet lock answers no sooner
    for after_s, leader in ((shown_s, "them"), (shown_s + 0.001, None)):
        stage.now = 100.0 + after_s
        assert stage.item["leader"] == leader
        assert stage.item["leader_unknown_since"] == (None if leader else seen_at)
        assert f'leader_present{{kind="election",name="n"}} {float(leader is not None)}' in stage.metrics
    stage.answers(view)
    assert stage.item["leader"] == "them"


def test_a_long_lock_delay_of_the_holder_is_waited_for() -> None:
    """A rival of a dead holder may hold after twice the TTL and the lock-delay of the holder's session."""
    lock = Stage().node.by_name["n"].lock
    assert isinstance(lock, ElectionLock)
    lock = replace(lock, holder="s", holder_session=HolderSession("s", 60.0))
    one = Stage(lock=lock).node.by_name["n"]
    assert one.lease.ttl_s is not None and one.shown_s == 2 * one.lease.ttl_s + 60.0


def test_a_node_whose_lease_expired_names_nobody_until_consul_answers() -> None:
    """The newest answer still names this node."""
    view = o.KeyView(5, "s", b"me", 3, 5, 1)
    stage = Stage(lock=replace(Stage().node.by_name["n"].lock, view=view))
    stage.answers(view)
    stage.becomes(Role.LOSING, "lease-expired")
    assert stage.item["leader"] is None and stage.item["leader_unknown_since"] is not None
    stage.answers(view)
    assert stage.item["leader"] == "me" and stage.item["leader_unknown_since"] is None


def test_a_lease_that_runs_out_is_a_warning_and_never_an_error() -> None:
    """Time alone causes the warning, with a cached status as well, and an answer of Consul ends it."""
    stage = Stage(tenure=TENURE)
    lease = stage.node.by_name["n"].lease
    for silent_s, low in ((0.0, False), (lease.interval_s + 1, False), (ROOM_S / 2 + 0.1, True)):
        stage.now = 100.0 + silent_s
        assert stage.item["lease_runs_out"] is low
        assert [each.startswith("its lease runs out") for each in stage.item["warnings"]] == [True] * low
        assert stage.told["healthy"] is True and stage.code("/healthz") == 200
    stage.change(tenure=TENURE.confirmed(stage.now))
    assert (stage.item["lease_runs_out"], stage.item["warnings"]) == (False, [])


@pytest.mark.parametrize("lock_delay_s", [7.6, 10.0, 30.0, 60.0])
def test_no_lease_is_reported_to_run_out_while_reads_are_answered(lock_delay_s: float) -> None:
    """News is never older than an interval and the time that an answer may take."""
    settings = contender(lock_delay_s=lock_delay_s)
    stage = Stage(settings=settings, lease=lease_of(settings), tenure=TENURE)
    lease = stage.node.by_name["n"].lease
    stage.now = 100.0 + lease.interval_s + lease.exchange_s
    assert stage.item["lease_runs_out"] is False


def test_a_stuck_item_names_the_hook_that_failed_and_the_command() -> None:
    stage = Stage(tenure=replace(TENURE, phase=Phase.STUCK))
    then = "; see that nothing of it still acts, then run: consul-supervisor recover n"
    before = "n is stuck: on_lose failed before this process began, see the log of that time"
    assert stage.status.problems() == [f"{before}{then}"]
    hook = replace(HOOK, name="on_lose[0]")
    stage.ends(stage.begins("lose", hook=hook), ok=False, detail="exit 1")
    stage.becomes(Role.STUCK)
    assert stage.status.problems() == [f"n is stuck: on_lose[0] failed: exit 1{then}"]


def test_the_reason_of_a_loss_is_the_one_that_became_known_last() -> None:
    stage = Stage()
    for reason in ("lock-gone", "session-invalidated"):
        stage.becomes(Role.LOSING, reason)
    assert [each["reason"] for each in stage.item["transitions"]] == ["session-invalidated"]


@pytest.mark.parametrize(
    "changes", [{"rests_until": 110.0}, {"paused_until": NEVER}, {"ineligible": True}, {}], ids=str
)
def test_a_waiter_is_healthy(changes: dict[str, Any]) -> None:
    assert Stage(**changes).code("/healthz") == 200


def test_a_resting_item_shows_until_when_and_the_command_that_ends_the_rest() -> None:
    told = "rests until 2027-01-15T08:01:50.000Z after step-down; `consul-supervisor resume n` ends the rest"
    assert Stage(rests_until=110.0).item["warnings"] == [told]
    assert Stage(rests_until=99.0).item["warnings"] == []
    paused = ["paused: does not contend until resume"]
    assert Stage(paused_until=NEVER, rests_until=110.0).item["warnings"] == paused


def test_the_time_of_the_next_attempt_and_the_cause_are_shown_after_a_loss_of_our_own_making() -> None:
    stage = Stage(own_losses=1, rejoin_at=110.0)
    before = "does not contend before 2027-01-15T08:01:50.000Z, because"
    assert stage.item["warnings"] == [f"{before} it ended the last tenure itself"]
    stage.becomes(Role.LOSING, "run-exited")
    stage.becomes(Role.WAITING)
    assert stage.item["warnings"] == [f"{before} it ended the last tenure itself (run-exited)"]


# --- what an operator should know -----------------------------------------------------------------


def test_an_election_without_a_leader_says_so_and_why_this_node_does_not_contend() -> None:
    """The cause is the last line of the check, without the trace of a shell and the secrets of a URL."""
    stage = Stage(lock=replace(Stage().node.by_name["n"].lock, view=o.KeyView(5)), health=Health(fit=False))
    stage.answers(o.KeyView(5))
    unfit = "not fit, so this node does not contend: candidate_check"
    assert stage.item["warnings"] == ["nobody leads", f"{unfit} has not succeeded yet"]
    for wrote, told in {
        "replica is 40 s behind": ": replica is 40 s behind",
        "http://me:secret@h/x?token=secret timed out": ": http://…@h/x?… timed out",
        "x" * 500: f": {'x' * 200}",
        "+ curl -H secret": "",
    }.items():
        start = stage.begins("check")
        for text in (wrote, "+ exit 1", " "):
            stage.history.wrote(HookLine("n", "candidate_check", "t", "stderr", text))
        stage.ends(start, ok=False, detail="exit 1")
        assert stage.item["warnings"][1] == f"{unfit} failed: exit 1{told}"
    stage.ends(stage.begins("check"))
    assert stage.item["warnings"][1] == f"{unfit} has not succeeded yet"
    stage.history.wrote(HookLine("n", "on_lose[0]", "t", "stdout", "another hook's"))
    stage.change(health=Health(fit=True), ineligible=True)
    stage.happens(e.Answered(r.CreateSession("n", 1.0, 3.0, SessionSettings("n")), o.Ineligible("disk")), [])
    assert stage.item["warnings"] == ["nobody leads", "not fit, so this node does not contend: disk"]


def test_a_failed_hook_and_a_holder_that_nobody_knows_are_warnings() -> None:
    stage = Stage()
    stage.ends(stage.begins("change"), ok=False, detail="exit 7")
    stage.answers(o.Unknown("refused"))
    since = when(NOON + 100.0)
    assert stage.item["warnings"] == [f"who holds is unknown since {since}", "on_acquire[0] failed: exit 7"]
