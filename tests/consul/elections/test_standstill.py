"""A supervisor that SIGSTOP stops: it then checks its lease first, and begins nothing on old news."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from supervisor.adapters.runtime.clock import boottime
from tests.consul.elections.scene import Scene
from tests.support.supervisor import Supervisor, until

LONG = {"session": {"lock_delay": "20s"}}  # a stop of some seconds is within its room


@contextmanager
def stopped(node: Supervisor) -> Iterator[None]:
    """Stop the supervisor while the block runs."""
    node.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        node.signal(signal.SIGCONT)


def passes(seconds: float) -> None:
    """Wait for this time on the clock of the lease."""
    end_at = boottime() + seconds
    until(lambda: boottime() >= end_at, "time passes")


@pytest.mark.long
def test_a_holder_that_was_stopped_beyond_its_room_runs_on_lose_first(scene: Scene) -> None:
    """Consul still guards the lock, because the lock-delay is longer than the stop."""
    a = scene.leader("a", on_lose=[scene.hook("a", "lose", timeout="10s")], **LONG)
    with stopped(a):
        passes(9.0)
    scene.wait(node="a", event="lose", stage="end")
    assert scene.calls("a")[:2] == ["acquire acquired", "lose lease-expired"]


@pytest.mark.long
def test_nothing_follows_an_on_acquire_that_ended_during_a_stop_on_old_news(scene: Scene) -> None:
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
