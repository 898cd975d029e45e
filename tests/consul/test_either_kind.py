"""What holds of an election and of a semaphore with one slot alike."""

import signal

import pytest

from tests.consul.elections.crash import crash, flag_of
from tests.consul.elections.scene import LASTING_OVER_S, Scene, boottime
from tests.consul.semaphores.scene import SlotScene
from tests.support.supervisor import until


class OneSlotScene(SlotScene):
    """So that whoever does not hold waits."""

    limit = 1


each_kind = pytest.mark.parametrize(
    "scene_class",
    [Scene, pytest.param(OneSlotScene, marks=pytest.mark.long)],
    ids=["election", "semaphore"],
)


@each_kind
def test_a_holder_that_crashed_is_adopted_without_a_hook(scene: Scene) -> None:
    """An upgrade without failover: same session, same token, no hook, and b never holds."""
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
def test_a_crash_in_on_lose_runs_it_again_and_only_then_gives_up(scene: Scene) -> None:
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
def test_a_first_write_whose_answer_is_lost_is_a_tenure_all_the_same(scene: Scene, lost: str) -> None:
    """The acquire of a key, or the step that stands in line and takes a slot at once."""
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
