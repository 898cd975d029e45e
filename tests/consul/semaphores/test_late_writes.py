"""Steps to a slot, and out of it, that Consul applies seconds after we gave up, or whose answers are lost.

A proxy stands between node a and Consul; the others talk to Consul directly.
"""

from typing import Any

import pytest

from tests.consul.elections.scene import boottime
from tests.consul.semaphores.scene import PRUNE_DELAY_S, TICK_S, SlotScene
from tests.support.supervisor import Supervisor, until

pytestmark = pytest.mark.long  # `make test-long`: they wait for writes that come late

STEP: dict[str, Any] = {"method": "PUT", "path": "/txn"}
IN_LINE: dict[str, Any] = {**STEP, "body": b'"lock"'}
TAKE: dict[str, Any] = {**STEP, "body": b'"check-session"'}
LEAVE: dict[str, Any] = {**STEP, "body": b'"delete"'}


def start(scene: SlotScene, **changes: Any) -> Supervisor:
    """Node a, behind the proxy."""
    return scene.node("a", consul={"address": scene.proxy.url}, **changes)


def in_line(scene: SlotScene, **changes: Any) -> Supervisor:
    """Node a, behind the proxy and b, which has the only slot."""
    scene.limit = 1
    scene.holder("b")
    a = start(scene, **changes)
    until(lambda: scene.line() == ["a"], "a waits")
    return a


@pytest.mark.parametrize("lost", ["held", "reset"])
def test_a_slot_whose_taking_has_no_answer_is_ours_all_the_same(scene: SlotScene, lost: str) -> None:
    in_line(scene)
    lose = scene.proxy.hold if lost == "held" else scene.proxy.reset
    rule = lose("answer", **TAKE, times=1)
    assert scene.nodes["b"].stop() == 0
    scene.wait_holders("a")
    rule.release()
    assert scene.calls("a") == ["acquire acquired"]


def test_a_slot_that_is_taken_long_after_we_gave_up_is_ours_by_what_is_read(scene: SlotScene) -> None:
    in_line(scene)
    rule = scene.proxy.hold("request", **TAKE)
    assert scene.nodes["b"].stop() == 0
    rule.wait_caught(2)
    assert not scene.calls("a") and scene.holders() == []
    rule.release()
    scene.wait_holders("a")
    assert scene.calls("a") == ["acquire acquired"]


def test_a_late_try_for_a_slot_that_another_has_meanwhile_takes_nothing(scene: SlotScene) -> None:
    in_line(scene)
    rule = scene.proxy.hold("request", **TAKE)
    assert scene.nodes["b"].stop() == 0
    rule.wait_caught()
    scene.holder("c")
    rule.release()
    assert scene.holders() == ["c"] and not scene.calls("a")
    assert scene.nodes["c"].stop() == 0
    scene.wait_holders("a")


def test_a_late_try_of_one_that_has_stopped_takes_nothing(scene: SlotScene) -> None:
    """Its contender key is gone with it, and the transaction looks for that."""
    a = in_line(scene)
    rule = scene.proxy.hold("request", **TAKE)
    assert scene.nodes["b"].stop() == 0
    rule.wait_caught()
    assert a.stop() == 0
    rule.release()
    assert scene.holders() == [] and not scene.contenders() and not scene.calls("a")


def test_a_late_first_step_of_one_that_has_stopped_takes_a_slot_for_nobody(scene: SlotScene) -> None:
    """Nothing went before it, so nothing can refuse it: the slot is taken until its session has ended,
    and the prune delay after that."""
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
    """Node a takes a slot, fails, and gives it back while its process goes on."""
    return start(scene, on_acquire=[scene.hook("a", "acquire", "exit 1")], rejoin_delay="1m")


@pytest.mark.parametrize("stage", ["request", "answer"])
def test_an_unanswered_leave_is_repeated_and_its_late_twin_harms_nobody(scene: SlotScene, stage: str) -> None:
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


@pytest.mark.parametrize("stage", ["request", "answer"])
def test_a_leave_that_is_not_answered_at_the_stop_is_followed_by_the_destroy(
    scene: SlotScene, stage: str
) -> None:
    """Applied, the slot is free; not applied, it is free after the prune delay."""
    scene.limit = 1
    a = start(scene)
    a.wait_line("role", role="holding")
    scene.waiter("b")
    rule = scene.proxy.hold("request" if stage == "request" else "answer", **LEAVE)
    assert a.stop() == 0
    assert not scene.sessions_of("a")
    scene.wait_holders("b")
    rule.release()
    assert scene.holders() == ["b"]


def test_what_is_not_heard_at_all_is_ridden_out_for_the_room(scene: SlotScene) -> None:
    scene.limit = 1
    a = start(scene)
    a.wait_line("role", role="holding")
    scene.waiter("b")
    with scene.proxy.silence():
        lost = scene.wait(node="a", event="lose", stage="end")
    assert lost.reason == "lease-expired"
    assert scene.next_begin("b").at >= lost.at - 0.02
    until(lambda: scene.line() == ["a"], "a waits")
