"""Writes of a slot that Consul applies after the supervisor gave up on them, or whose responses are lost.

A proxy stands between node a and Consul; all other nodes talk to Consul directly.
"""

from typing import Any

import pytest

from tests.consul.elections.scene import boottime
from tests.consul.semaphores.scene import PRUNE_DELAY_S, TICK_S, SlotScene
from tests.support.supervisor import Supervisor, until

pytestmark = pytest.mark.long  # `make test-long`: the tests wait for writes that come late

STEP: dict[str, Any] = {"method": "PUT", "path": "/txn"}
IN_LINE: dict[str, Any] = {**STEP, "body": b'"lock"'}
TAKE: dict[str, Any] = {**STEP, "body": b'"check-session"'}


def start(scene: SlotScene, **changes: Any) -> Supervisor:
    """Start node a behind the proxy."""
    return scene.node("a", consul={"address": scene.proxy.url}, **changes)


def in_line(scene: SlotScene, **changes: Any) -> Supervisor:
    """Start node b, which has the only slot, and then node a behind the proxy."""
    scene.limit = 1
    scene.holder("b")
    a = start(scene, **changes)
    until(lambda: scene.line() == ["a"], "a waits")
    return a


def test_a_late_acquire_of_a_node_that_has_stopped_takes_nothing(scene: SlotScene) -> None:
    """The contender key is gone with the node, and the transaction checks that key."""
    a = in_line(scene)
    rule = scene.proxy.hold("request", **TAKE)
    assert scene.nodes["b"].stop() == 0
    rule.wait_caught()
    assert a.stop() == 0
    rule.release()
    assert scene.holders() == [] and not scene.contenders() and not scene.calls("a")


def test_a_late_first_write_of_a_node_that_has_stopped_takes_a_slot_for_no_node(scene: SlotScene) -> None:
    """No earlier write makes Consul refuse it, so the slot is taken until the prune delay is over."""
    scene.limit = 1
    step = scene.proxy.hold("request", **IN_LINE)
    destroy = scene.proxy.hold("request", "PUT", "/session/destroy")
    a = start(scene, session={"ttl": "10s"})
    step.wait_caught()
    assert a.stop() == 0
    step.release()
    scene.waiter("b")
    assert len(scene.holders()) == 1 and not scene.records(event="acquire")
    destroy.release()
    destroyed_at = boottime()
    assert scene.next_begin("b").at >= destroyed_at + PRUNE_DELAY_S - 2 * 1.0 - TICK_S
    assert not scene.calls("a")
