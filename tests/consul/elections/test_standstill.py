"""A supervisor that stands still (SIGSTOP): the lease is looked at first, and nothing begins on old news."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.consul.elections.scene import Scene, boottime
from tests.support.supervisor import Supervisor, until

LONG = {"session": {"lock_delay": "20s"}}  # a standstill of some seconds is within its room


@contextmanager
def stopped(node: Supervisor) -> Iterator[None]:
    """It gets no turn inside this block."""
    node.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        node.signal(signal.SIGCONT)


def passes(seconds: float) -> None:
    """So long, by the clock of the lease."""
    end_at = boottime() + seconds
    until(lambda: boottime() >= end_at, "time passes")


@pytest.mark.long
def test_a_holder_that_stood_still_within_its_lease_goes_on(scene: Scene) -> None:
    a = scene.leader("a", **LONG)
    with stopped(a):
        passes(2.6)
    a.wait_line("event-loop-stalled")
    passes(1.0)
    assert scene.calls("a") == ["acquire acquired"]


@pytest.mark.long
def test_a_holder_that_stood_still_beyond_its_room_runs_on_lose_before_anything_else(scene: Scene) -> None:
    """Consul still guards the lock: the lock-delay is longer than the standstill."""
    a = scene.leader("a", on_lose=[scene.hook("a", "lose", timeout="10s")], **LONG)
    with stopped(a):
        passes(9.0)
    scene.wait(node="a", event="lose", stage="end")
    assert scene.calls("a")[:2] == ["acquire acquired", "lose lease-expired"]


@pytest.mark.long
def test_a_session_that_ended_while_consul_stood_still_was_released_by_nobody(own_scene: Scene) -> None:
    """Both stand still, because a renewal that waits for Consul could keep the session alive."""
    scene = own_scene
    terms = {"ttl": "1s", "lock_delay": "20s"}
    a = scene.leader("a", session=terms, on_acquire=None, on_lose=None)
    session = scene.session_of("a")
    with stopped(a):
        scene.agent.freeze()
        passes(2.1)
        scene.agent.thaw()
        until(lambda: session not in {one["ID"] for one in scene.sessions()}, "the session has ended")
    a.wait_line("role", role="waiting")
    told = [(line["level"], line["reason"]) for line in a.lines("role", role="losing")]
    assert told in ([("warning", "session-invalidated")], [("warning", "lock-gone")])


@pytest.mark.long
def test_a_waiter_that_stood_still_takes_no_key_by_old_news(scene: Scene) -> None:
    """The key was free for a moment while it stood still, and is another's now."""
    a = scene.leader("a")
    b, c = scene.waiter("b"), scene.waiter("c")
    with stopped(b):
        assert a.stop() == 0
        assert scene.wait_leader(but="a") == "c"
        passes(2.6)
    b.wait_line("event-loop-stalled")
    scene.wait_told_leader("b", "c")
    assert scene.calls("b") == []
    assert c.running


@pytest.mark.long
def test_a_win_while_it_stands_still_begins_nothing_before_consul_says_so_again(
    scene: Scene,
) -> None:
    """Neither the try nor a read tells it before it is stopped."""
    held = scene.proxy.hold("answer", "PUT", "/v1/txn", times=1)
    unread = scene.proxy.hold("answer", "GET", f"/v1/kv/{scene.key}?consistent")
    a = scene.node("a", consul={"address": scene.proxy.url}, **LONG)
    held.wait_caught()
    with stopped(a):
        held.release()
        unread.release()
        passes(2.6)
    a.wait_line("role", role="holding")
    resumed = a.wait_line("event-loop-stalled")["time"]
    reads = [line["time"] for line in a.lines("request", kind="read key") if line["time"] >= resumed]
    began = a.lines("hook-started", event_kind="acquire")[0]["time"]
    assert reads and reads[0] <= began


@pytest.mark.long
def test_on_lose_that_runs_while_it_stands_still_is_followed_by_the_release(scene: Scene) -> None:
    a = scene.leader("a", on_lose=[scene.hook("a", "lose", "sleep 0.3")], **LONG)
    scene.waiter("b")
    a.signal(signal.SIGTERM)
    scene.wait(node="a", event="lose", stage="begin")
    with stopped(a):
        passes(2.6)
    assert a.wait() == 0
    assert scene.wait_leader(but="a") == "b"


@pytest.mark.long
def test_on_acquire_that_ended_while_it_stood_still_is_followed_by_nothing_on_old_news(scene: Scene) -> None:
    a = scene.node(
        "a", on_acquire=[scene.hook("a", "acquire", "sleep 0.5"), scene.hook("a", "second")], **LONG
    )
    scene.wait(node="a", hook="acquire", stage="begin")
    with stopped(a):
        passes(2.6)
    scene.wait(node="a", hook="second", stage="end")
    resumed = a.wait_line("event-loop-stalled")["time"]
    second = a.wait_line("hook-started", hook="on_acquire[1]")
    assert len(a.lines("hook-started", hook="on_acquire[1]")) == 1
    reads = [line["time"] for line in a.lines("request", kind="read key") if line["time"] >= resumed]
    assert reads and reads[0] <= second["time"]
