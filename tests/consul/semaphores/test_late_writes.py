"""Writes of a slot that Consul applies late, or whose responses are lost, and requests that a proxy changes.

A proxy stands between node a and Consul; all other nodes talk to Consul directly.
"""

import re
import signal
from typing import Any

import pytest

from supervisor.adapters.runtime.clock import boottime
from tests.consul.semaphores.scene import PRUNE_DELAY_S, TICK_S, SlotScene
from tests.support.supervisor import Supervisor, until

pytestmark = pytest.mark.long  # `make test-long`: the tests wait for writes that come late

STEP: dict[str, Any] = {"method": "PUT", "path": "/txn"}
IN_LINE: dict[str, Any] = {**STEP, "body": b'"lock"'}
TAKE: dict[str, Any] = {**STEP, "body": b'"check-session"'}
LEAVE: dict[str, Any] = {**STEP, "body": b'"delete"'}


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


def test_a_late_acquire_of_a_slot_that_another_node_has_takes_nothing(scene: SlotScene) -> None:
    in_line(scene)
    rule = scene.proxy.hold("request", **TAKE)
    assert scene.nodes["b"].stop() == 0
    rule.wait_caught()
    scene.holder("c")
    rule.release()
    assert scene.holders() == ["c"] and not scene.calls("a")
    assert scene.nodes["c"].stop() == 0
    scene.wait_holders("a")


def test_a_late_acquire_of_a_node_that_has_stopped_takes_nothing(scene: SlotScene) -> None:
    """The contender key is gone with the node, and the transaction checks that key."""
    a = in_line(scene)
    rule = scene.proxy.hold("request", **TAKE)
    assert scene.nodes["b"].stop() == 0
    rule.wait_caught()
    assert a.stop() == 0
    rule.release()
    assert scene.holders() == [] and not scene.contenders() and not scene.calls("a")


def test_a_node_that_is_stopped_soon_after_its_start_gives_back_the_slot_that_it_held(
    scene: SlotScene,
) -> None:
    patient = {"session": {"ttl": "60s"}, "prune_delay": "60s"}  # a read waits for its answer for long
    a = scene.holder("a", consul={"address": scene.proxy.url}, **patient)
    a.kill()
    reads = scene.proxy.hold("answer", "GET", "/kv/")
    a.start()
    reads.wait_caught()
    a.signal(signal.SIGTERM)
    a.wait_line("stopping")
    reads.release()
    assert a.wait() == 0
    assert scene.holders() == [] and not scene.contenders()


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


def give_up(scene: SlotScene) -> Supervisor:
    """Let node a take a slot, fail, and give the slot back while its process goes on."""
    return start(scene, on_acquire=[scene.hook("a", "acquire", "exit 1")], rejoin_delay="1m")


@pytest.mark.parametrize("stage", ["request", "answer"])
def test_an_unanswered_leave_is_repeated_and_its_late_twin_harms_no_holder(
    scene: SlotScene, stage: str
) -> None:
    scene.limit = 1
    rule = scene.proxy.hold("request" if stage == "request" else "answer", **LEAVE, times=1)
    give_up(scene)
    rule.wait_caught()
    scene.node("b")
    scene.wait_holders("b")
    until(lambda: not scene.sessions_of("a"), "a's session is destroyed")
    rule.release()
    assert scene.holders() == ["b"]
    assert scene.calls("a") == ["acquire acquired", "lose acquire-failed"]


# --- a proxy changes what a node asks and hears ------------------------------------------------------


def test_a_slot_is_taken_only_with_a_session_as_requested(scene: SlotScene) -> None:
    """With behavior release, for example, the contender key of a dead node would stay for ever."""
    rule = scene.proxy.change(lambda body: body.replace(b'"delete"', b'"release"'), "PUT", "/session/create")
    a = scene.node("a", consul={"address": scene.proxy.url})
    line = a.wait_line("session-altered", item=scene.name)
    assert line["why"].startswith("behavior release instead of delete")
    assert not a.lines("request", kind="join semaphore") and not scene.agent.kv_get(scene.key)
    rule.release()
    a.wait_line("role", role="holding")
    assert scene.calls("a") == ["acquire acquired"]


def test_a_lie_about_a_holder_that_lives_does_not_free_its_slot(scene: SlotScene) -> None:
    """The waiter takes the holder for vanished, and its transaction says so to Consul, which knows better."""
    scene.limit = 1
    scene.holder("b")
    held = re.compile(b'"Session": ?"%s"' % scene.session_of("b").encode())
    rule = scene.proxy.lie(
        lambda part: held.sub(lambda found: b'"Session' + found[0][len(b'"Session') :].upper(), part),
        "GET",
        f"/kv/{scene.name}",
    )
    began = boottime()
    a = scene.node("a", consul={"address": scene.proxy.url})
    until(lambda: len(a.lines("request", kind="take slot")) >= 3, "a tries for the slot", 6 * PRUNE_DELAY_S)
    assert boottime() - began > PRUNE_DELAY_S
    assert scene.holders() == ["b"] and not scene.calls("a")
    rule.release()
    scene.nodes["b"].stop()
    scene.wait_holders("a")
