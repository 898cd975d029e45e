"""The samples of a scrape: true of each item, its hooks, Consul and the daemon."""

import asyncio
import platform
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import prometheus_client
import pytest
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from supervisor import __version__
from supervisor.adapters.hooks.reasons import REASONS
from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.contender.creation import new_contender
from supervisor.core.contenders import Contenders
from supervisor.core.machines.tenure import REASON_WITHIN_S
from supervisor.core.settings import CandidateCheck, ItemSettings, SemaphoreSettings, SessionSettings
from supervisor.reporting.http_server import HttpRequest
from supervisor.reporting.telemetry.facts import Facts
from supervisor.reporting.telemetry.history import History
from supervisor.reporting.telemetry.metrics import SAMPLES_AT_ONCE, Metrics
from supervisor.reporting.telemetry.metrics.counters import COUNTED
from supervisor.reporting.telemetry.status import Status
from supervisor.reporting.web.routes import Routes
from tests.consul.web.test_status import no_fleet
from tests.support.pages import HOOKS, ROOT, rows
from tests.unit.core.play import FREE, RIVAL, ROOM_S, UP, WON, contender, hook

WALL = 1_700_000_000.0  # the time of day at the clock's 0
P = "consul_supervisor_"
BARE = contender(on_acquire=(), on_lose=())
SLOTS = SemaphoreSettings("s", "p/.lock", b"me", SessionSettings("ours"), limit=3)


class MeteredNode:
    """A node whose world is the test, which ends each request and each hook."""

    def __init__(self, *settings: ItemSettings) -> None:
        self.now = 0.0
        self.node = Contenders(new_contender(each, spread=0.0, instance="i") for each in settings)
        self.history = History(self.wall, self.clock)
        self.status = Status(self.node, self.history, node="vm1", consul="", path=None)
        self.metrics = Metrics(self.status, self.history)
        self.on_step = Facts(self.clock, self.history.on_step, self.metrics.counters.on_step).on_step
        self.under_way: list[r.Request] = []
        self.started: list[a.StartHook] = []
        self.happens(e.Tick())

    def clock(self) -> float:
        return self.now

    def wall(self) -> float:
        return WALL + self.now

    def happens(self, event: e.Event) -> list[a.Action]:
        """Take one step, and write each record at once."""
        actions = self.node.step(event, self.now)
        for action in actions:
            if isinstance(action, r.Request):
                self.under_way.append(action)
            elif isinstance(action, a.StartHook):
                self.started.append(action)
        self.on_step(event, actions)
        for action in actions:
            if isinstance(action, a.WriteRecord):
                self.happens(e.RecordWritten(action))
        return actions

    def answer(self, kind: type[r.Request], outcome: o.Outcome, item: str = "n") -> None:
        """Answer the newest request of this kind."""
        request = [each for each in self.under_way if isinstance(each, kind) and each.item == item][-1]
        self.under_way.remove(request)
        self.happens(e.Answered(request, outcome))

    def has_session(self) -> None:
        """Answer that the session was created, and that it is as requested."""
        self.answer(r.CreateSession, o.Created("s"))
        self.answer(r.RenewSession, o.SessionAlive())

    def hook_ends(self, *, ok: bool = True) -> None:
        """End the hook that began last."""
        self.happens(e.HookEnded(self.started.pop(), ok))

    def acquires(self) -> None:
        """Win the lock; on_acquire is under way, if there is one."""
        self.has_session()
        self.answer(r.WatchKey, FREE)
        self.answer(r.Acquire, WON)

    def loses(self) -> None:
        """Show a rival on the key; on_lose is under way, if there is one."""
        self.now += 3.0
        self.happens(e.Tick())
        self.answer(r.ReadKey, RIVAL)
        self.now += REASON_WITHIN_S
        self.happens(e.Tick())

    def scrape(self, accept: str = "") -> tuple[str, bytes]:
        """Return the content type and the body."""
        content_type, pieces = self.metrics.text(accept)
        return content_type, b"".join(pieces)

    def samples(self) -> Iterator[Any]:
        """Return all samples of a scrape."""
        for family in parse_text(self.scrape()[1].decode()):
            yield from family.samples

    def value(self, metric: str, /, **labels: str) -> float | None:
        """Return the sample of this metric (without its prefix) and these labels. None: there is none."""
        found = [
            each.value
            for each in self.samples()
            if each.name == P + metric and labels.items() <= each.labels.items()
        ]
        assert len(found) <= 1, f"{metric} {labels} are {len(found)} series"
        return found[0] if found else None


def transitions(scene: MeteredNode) -> dict[tuple[str, str], float]:
    """Return the transitions that were counted, by their event and reason."""
    samples = [each for each in scene.samples() if each.name == f"{P}transitions_total" and each.value]
    return {(each.labels["event"], each.labels["reason"]): each.value for each in samples}


def shown_roles(scene: MeteredNode) -> list[str]:
    return [each.labels["role"] for each in scene.samples() if each.name == f"{P}role" and each.value == 1]


# --- items -----------------------------------------------------------------------------------------


def test_all_series_of_an_item_begin_with_0() -> None:
    check = CandidateCheck(hook("candidate_check"))
    scene = MeteredNode(contender(on_change=(hook("on_change[0]"),), candidate_check=check), SLOTS)
    for name in ("holding", "lease_seconds", "leader_present", "stuck", "paused", "notice"):
        assert scene.value(name, name="n", kind="election") == 0, name
        assert scene.value(name, name="s", kind="semaphore") == 0, name
    for event in ("acquire", "lose"):
        for reason in REASONS[event]:
            transition = {"event": event, "reason": reason}
            assert scene.value("transitions_total", name="n", kind="election", **transition) == 0
            assert scene.value("transitions_total", name="s", kind="semaphore", **transition) == 0
    for event in ("acquire", "lose", "change", "check"):
        assert scene.value("hook_failures_total", name="n", event=event) == 0
        assert scene.value("hook_duration_seconds_count", name="n", event=event) == 0
    assert shown_roles(scene) == ["ineligible", "waiting"]


def test_the_number_of_series_is_that_of_the_metrics_page() -> None:
    daemon, election = series(), series(BARE) - series()
    semaphore, event = series(SLOTS) - series(), series(replace(BARE, on_lose=(UP,))) - series(BARE)
    told = (
        f"There are {election} of each election, {semaphore} of each semaphore, {event} more for each event "
        f"that it has hooks for, and {daemon} of the daemon."
    )
    assert told in " ".join((ROOT / "docs" / "metrics.md").read_text().split())


def series(*items: ItemSettings) -> int:
    return len(list(MeteredNode(*items).samples()))


def test_holding_is_1_from_the_end_of_on_acquire_to_the_end_of_the_lease() -> None:
    scene = MeteredNode(contender())
    scene.acquires()
    assert (scene.value("holding"), scene.value("leader_present")) == (0, 1)
    assert scene.value("lease_seconds") == scene.value("lease_room_seconds") == ROOM_S
    scene.hook_ends()
    assert (scene.value("holding"), shown_roles(scene)) == (1, ["holding"])
    scene.now = ROOM_S - 1
    assert (scene.value("holding"), scene.value("lease_seconds")) == (1, 1)
    scene.now = ROOM_S  # without a step at this time
    assert (scene.value("holding"), scene.value("lease_seconds")) == (0, 0)
    assert scene.value("lease_room_seconds") == ROOM_S


def test_an_observer_has_no_lease() -> None:
    scene = MeteredNode(contender(contend=False, on_acquire=(), on_lose=()))
    assert (scene.value("lease_room_seconds"), shown_roles(scene)) == (0, ["observer"])
    scene.answer(r.WatchKey, RIVAL)
    assert scene.value("leader_present") == 1


@pytest.mark.parametrize("settings", [contender(), BARE], ids=["with hooks", "without"])
def test_each_win_and_each_loss_of_the_lock_counts_once_by_its_reason(settings: ItemSettings) -> None:
    scene = MeteredNode(settings)
    scene.acquires()
    counted = {("acquire", "acquired"): 1.0}
    if settings.on_acquire:
        assert transitions(scene) == counted
        scene.hook_ends()
    assert transitions(scene) == counted
    scene.loses()
    counted |= {("lose", "lock-gone"): 1.0}
    if settings.on_lose:
        assert transitions(scene) == counted
        scene.hook_ends()
    assert transitions(scene) == counted
    assert scene.value("leader_present") == 1


def test_a_loss_whose_reason_becomes_known_later_counts_once() -> None:
    """The log has a second line then; a counter cannot take its count back."""
    scene = MeteredNode(contender())
    scene.acquires()
    scene.hook_ends()
    for reason in (a.Reason.LOCK_GONE, a.Reason.SESSION_INVALIDATED):
        scene.on_step(e.Tick(), [a.RoleChanged("n", a.Role.LOSING, reason)])
    assert transitions(scene) == {("acquire", "acquired"): 1, ("lose", "lock-gone"): 1}


def test_each_reason_of_an_acquisition_and_of_a_loss_has_a_series() -> None:
    """The page of hooks names the reasons of each event."""
    documented = {(event, re.sub("`", "", reason)) for reason, event, _ in rows(HOOKS, "reason")}
    counted = {(event, str(reason)) for event in COUNTED for reason in REASONS[event]}
    assert counted == {(event, reason) for event, reason in documented if event in COUNTED}


def test_a_scrape_shows_stuck_and_paused_items() -> None:
    scene = MeteredNode(contender())
    scene.happens(e.PauseAsked("n"))
    assert (scene.value("paused"), scene.value("stuck")) == (1, 0)
    scene = MeteredNode(contender())
    scene.acquires()
    scene.hook_ends()
    scene.happens(e.PauseAsked("n"))
    assert (scene.value("paused"), scene.value("holding")) == (1, 1)
    scene.happens(e.ResumeAsked("n"))
    scene.loses()
    scene.hook_ends(ok=False)
    assert (scene.value("paused"), scene.value("stuck"), scene.value("healthy")) == (0, 1, 0)


def test_a_scrape_shows_limits_and_holders_of_a_semaphore() -> None:
    scene = MeteredNode(SLOTS, contender())
    assert (scene.value("limit"), scene.value("effective_limit"), scene.value("holders")) == (3, 3, 0)
    assert scene.value("slot") == -1
    keys = (o.ContenderKey("x", "x", b"", 5, 1), o.ContenderKey("y", "", b"", 6, 1))
    lock = o.LockKey(4, 7, r.SlotRecord(limit=2, holders=("x", "y")))
    scene.answer(r.WatchSlots, o.SlotsView(7, lock, keys), "s")
    assert (scene.value("limit"), scene.value("effective_limit")) == (3, 2)
    assert (scene.value("holders"), scene.value("leader_present", name="s")) == (1, 1)
    assert (scene.value("notice", name="s"), scene.value("notice", name="n")) == (1, 0)


def test_the_series_of_an_item_end_with_the_item_and_return_with_0() -> None:
    scene = MeteredNode(contender(), SLOTS)
    scene.acquires()
    scene.hook_ends(ok=False)
    assert scene.value("hook_failures_total", name="n", event="acquire") == 1
    gone = scene.node.by_name.pop("n")
    assert not [each for each in scene.samples() if each.labels.get("name") == "n"]
    scene.node.by_name["n"] = replace(gone, tenure=None)
    assert scene.value("hook_failures_total", name="n", event="acquire") == 0
    assert scene.value("transitions_total", event="acquire", reason="acquired", name="n") == 0
    assert scene.value("hook_duration_seconds_count", name="n", event="acquire") == 0


# --- hooks -----------------------------------------------------------------------------------------


def test_attempts_of_hooks_are_timed_and_failures_counted() -> None:
    scene = MeteredNode(contender(on_acquire=(hook("up", retries=1),)))
    scene.acquires()
    scene.now = 0.75
    scene.hook_ends(ok=False)
    scene.now = 2.0
    scene.happens(e.Tick())
    scene.now = 2.25
    scene.hook_ends()
    assert scene.value("hook_failures_total", event="acquire") == 1
    assert scene.value("hook_failures_total", event="lose") == 0
    assert scene.value("hook_duration_seconds_count", event="acquire") == 2
    assert scene.value("hook_duration_seconds_sum", event="acquire") == 1.0
    buckets = {"0.1": 0, "0.5": 1, "1.0": 2, "60.0": 2, "+Inf": 2}
    for bound, count in buckets.items():
        assert scene.value("hook_duration_seconds_bucket", event="acquire", le=bound) == count, bound


def test_a_hook_that_the_daemon_killed_does_not_count_as_failed() -> None:
    scene = MeteredNode(contender())
    scene.acquires()
    scene.loses()
    scene.hook_ends(ok=False)
    assert scene.value("hook_failures_total", event="acquire") == 0
    assert scene.value("hook_duration_seconds_count", event="acquire") == 1
    scene.hook_ends(ok=False)
    assert scene.value("hook_failures_total", event="lose") == 1
    again = a.StartHook(UP, 1, a.HookContext("acquire", "n", "k", a.Reason.ACQUIRED, "t"))
    scene.on_step(e.Tick(), [again])
    scene.on_step(e.HookEnded(again, ok=False), [])
    assert scene.value("hook_failures_total", event="acquire") == 1


# --- Consul ----------------------------------------------------------------------------------------


def test_answers_are_timed_except_those_of_watches() -> None:
    scene = MeteredNode(contender())
    scene.now = 0.2
    scene.has_session()
    scene.now = 25.0
    scene.answer(r.WatchKey, RIVAL)
    assert scene.value("consul_request_duration_seconds_count", operation="write") == 1
    assert scene.value("consul_request_duration_seconds_sum", operation="write") == 0.2
    assert scene.value("consul_request_duration_seconds_count", operation="read") == 0
    assert scene.value("consul_request_duration_seconds_count", operation="renew") == 1
    assert scene.value("consul_request_duration_seconds_count", operation="watch") is None
    assert scene.value("consul_answered_timestamp_seconds") == WALL + 25.0
    scene.now = 40.0
    assert scene.value("consul_answered_timestamp_seconds") == WALL + 25.0


def test_a_request_without_an_answer_is_an_error_without_a_duration() -> None:
    scene = MeteredNode(contender())
    assert scene.value("consul_answered_timestamp_seconds") == 0
    scene.now = 3.0
    scene.answer(r.CreateSession, o.Unknown("no answer"))
    scene.answer(r.WatchKey, o.Unknown("no answer"))
    assert scene.value("consul_errors_total", operation="write", error="no-answer") == 1
    assert scene.value("consul_errors_total", operation="watch", error="no-answer") == 1
    assert scene.value("consul_errors_total", operation="write", error="denied") == 0
    assert scene.value("consul_request_duration_seconds_count", operation="write") == 0
    assert scene.value("consul_answered_timestamp_seconds") == 0


def test_a_scrape_shows_a_refused_token_until_consul_accepts_it() -> None:
    scene = MeteredNode(contender())
    assert scene.value("token_refused") == 0
    scene.answer(r.CreateSession, o.Denied("Permission denied"))
    assert (scene.value("token_refused"), scene.value("healthy")) == (1, 0)
    assert scene.value("consul_errors_total", operation="write", error="denied") == 1
    scene.now = 1.0
    scene.happens(e.Tick())
    scene.has_session()
    assert (scene.value("token_refused"), scene.value("healthy")) == (0, 1)


# --- the daemon ------------------------------------------------------------------------------------


def test_a_scrape_shows_a_refused_reload_until_one_succeeds() -> None:
    scene = MeteredNode(BARE)
    assert (scene.value("config_reload_success"), scene.value("config_loaded_timestamp_seconds")) == (1, WALL)
    scene.now = 5.0
    scene.metrics.reloaded(False)
    assert (scene.value("config_reload_success"), scene.value("config_loaded_timestamp_seconds")) == (0, WALL)
    scene.metrics.reloaded(True)
    assert scene.value("config_reload_success") == 1
    assert scene.value("config_loaded_timestamp_seconds") == WALL + 5.0


def test_the_time_for_which_the_loop_stood_still_is_counted() -> None:
    scene = MeteredNode(BARE)
    assert scene.value("event_loop_stalled_seconds_total") == 0
    scene.happens(e.Stalled(2.5))
    scene.happens(e.Stalled(4.0))
    assert scene.value("event_loop_stalled_seconds_total") == 6.5


def test_a_scrape_shows_the_versions_of_program_and_python() -> None:
    scene = MeteredNode()
    assert scene.value("build_info", version=__version__, python=platform.python_version()) == 1


def test_two_daemons_of_one_process_share_nothing() -> None:
    names = {family.name for family in prometheus_client.REGISTRY.collect()}
    one, other = MeteredNode(contender()), MeteredNode(contender())
    one.metrics.reloaded(False)
    assert other.value("config_reload_success") == 1
    assert {family.name for family in prometheus_client.REGISTRY.collect()} == names


def test_a_scrape_may_request_openmetrics() -> None:
    scene = MeteredNode(contender(), SLOTS)
    scene.acquires()
    scene.hook_ends()
    content_type, body = scene.scrape("application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert content_type.startswith("application/openmetrics-text; version=")
    names = {family.name for family in parse_openmetrics(body.decode())}  # type: ignore[no-untyped-call]
    assert {f"{P}holding", f"{P}transitions", f"{P}hook_duration_seconds", f"{P}build"} <= names
    content_type, _ = scene.scrape("text/html")
    assert content_type.startswith("text/plain; version=0.0.4")


@pytest.mark.parametrize(
    "accept", ["", "application/openmetrics-text;version=1.0.0"], ids=["text", "openmetrics"]
)
def test_the_pieces_of_a_scrape_are_small_and_complete(accept: str) -> None:
    """With any number of items the loop goes on after a few lines."""
    scene = MeteredNode(*(replace(contender(), name=f"n{number}", key=f"k{number}") for number in range(200)))
    encode, _ = choose_encoder(accept)
    whole = encode(scene.metrics)
    pieces = list(scene.metrics.text(accept)[1])
    body = b"".join(pieces)
    assert max(piece.count(b"\n") for piece in pieces) <= SAMPLES_AT_ONCE + 2
    assert body.endswith(b"# EOF\n") == bool(accept)
    process = {line for line in body.splitlines() if b"process_" in line}
    assert [line for line in body.splitlines() if line not in process] == whole.splitlines()


async def test_the_loop_goes_on_between_the_pieces_of_many_scrapes() -> None:
    """The loop runs all that is due between any two pieces of any scrape."""
    scene = MeteredNode(*(replace(contender(), name=f"n{number}", key=f"k{number}") for number in range(50)))
    routes = Routes(scene.status, scene.metrics, no_fleet)
    scrape = HttpRequest("GET", "/metrics", (), b"")
    pieces = len(list(scene.metrics.text()[1]))
    scrapes = [asyncio.create_task(routes.answer(scrape)) for _ in range(5)]
    turns = 0
    while not all(each.done() for each in scrapes):
        turns += 1
        await asyncio.sleep(0)
    assert {(each.result().status, bool(each.result().body)) for each in scrapes} == {(200, True)}
    assert turns >= 5 * pieces
