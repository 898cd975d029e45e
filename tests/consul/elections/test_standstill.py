"""A supervisor that SIGSTOP stops: it then checks its lease first, and begins nothing on old news."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.consul.elections.scene import Scene, boottime
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
