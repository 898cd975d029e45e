"""Promises that hold of an election and of a semaphore with one slot."""

import signal

import pytest

from supervisor.adapters.runtime.clock import boottime
from tests.consul.elections.crash import crash, flag_of
from tests.consul.elections.scene import LASTING_OVER_S, Scene
from tests.consul.semaphores.scene import SlotScene
from tests.support.supervisor import until


class OneSlotScene(SlotScene):
    """A scene of a semaphore with one slot, so that every node without it waits."""

    limit = 1


each_kind = pytest.mark.parametrize(
    "scene_class", [Scene, pytest.param(OneSlotScene, marks=pytest.mark.long)], ids=["election", "semaphore"]
)


@each_kind
@pytest.mark.long
def test_a_holder_that_crashed_is_adopted_without_a_hook(scene: Scene) -> None:
    """An upgrade is no failover: session and token stay, no hook runs, and b never holds."""
    scene.lasting()
    a = scene.leader("a")
    scene.waiter("b")
    session, held = scene.session_of("a"), scene.agent.kv_get(scene.key)
    crash(scene, "a")
    began_at = boottime()
    a.start()
    until(lambda: len(a.lines("role", role="holding")) == 2, "it holds again")
    assert scene.session_of("a") == session
    assert scene.calls("a") == ["acquire acquired"] and scene.calls("b") == []
    scene.nodes["b"].wait_line("request", kind="renew session")
    until(lambda: boottime() > began_at + LASTING_OVER_S, "the lease of before the crash is over")
    assert scene.session_of("a") == session and scene.agent.kv_get(scene.key) == held
    assert a.stop() == 0
    assert scene.calls("a") == ["acquire acquired", "lose shutdown"]
    scene.wait(node="b", event="acquire", stage="end", exit=0)


@each_kind
def test_a_crash_in_on_lose_runs_it_again_before_the_lock_is_released(scene: Scene) -> None:
    flag = flag_of(scene)
    a = scene.leader("a", on_lose=[scene.hook("a", "lose", f"test -e {flag} && sleep 300; :")])
    b = scene.waiter("b")
    a.signal(signal.SIGTERM)
    scene.wait(node="a", event="lose", stage="begin")
    crash(scene, "a")
    flag.unlink()
    a.start()
    until(lambda: scene.calls("b") == ["acquire acquired"], "b holds")
    assert scene.calls("a") == ["acquire acquired", "lose shutdown", "lose shutdown"]
    ended = scene.wait(node="a", event="lose", stage="end")
    assert ended.at <= scene.wait(node="b", event="acquire", stage="begin").at
    assert b.running


@pytest.mark.long
@pytest.mark.parametrize("lost", ["held", "reset"])
@each_kind
def test_a_first_write_without_an_answer_begins_a_tenure(scene: Scene, lost: str) -> None:
    """The write is the acquire of a key, or the first transaction of a slot that is free."""
    lose = scene.proxy.hold if lost == "held" else scene.proxy.reset
    rule = lose("answer", method="PUT", path="/txn", body=b'"lock"', times=1)
    a = scene.node("a", consul={"address": scene.proxy.url})
    a.wait_line("role", role="holding")
    rule.release()
    entry = scene.agent.kv_get(scene.key)
    assert entry is not None and scene.wait(event="acquire").token == entry["ModifyIndex"]
    assert a.stop() == 0
    assert scene.calls("a") == ["acquire acquired", "lose shutdown"]
    scene.leader("b")
