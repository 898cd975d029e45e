"""Nodes that stand in line, and nodes that leave it because they are paused, unfit, failing or stopped."""

from pathlib import Path

import pytest

from tests.consul.elections.test_operator import operate
from tests.consul.semaphores.scene import SlotScene
from tests.support.supervisor import until


def flag_of(scene: SlotScene, name: str) -> Path:
    """Return a file that a check looks for: the check succeeds while the file is there."""
    scene.folder.mkdir(parents=True, exist_ok=True)
    flag = scene.folder / name
    flag.touch()
    return flag


def checked(flag: Path) -> dict[str, object]:
    """Return the item of a node that is fit while the flag is there."""
    return {
        "candidate_check": {
            "exec": ["/usr/bin/test", "-e", str(flag)], "interval": "1s", "timeout": "900ms",
            "rise": 1, "fall": 1,
        }
    }  # fmt: skip


@pytest.mark.long
def test_pause_withdraws_the_contender_key_and_resume_stands_in_line_again(scene: SlotScene) -> None:
    a, _, _, d = scene.full()
    scene.waiter("e")
    key, session = scene.contender_key("d"), scene.session_of("d")
    assert operate(d, "pause", scene.name) == (0, "")
    scene.wait_gone(key, within_s=5)
    until(lambda: session not in scene.sessions_of("d"), "its session is gone", within_s=5)
    assert scene.line() == ["e"] and d.lines("role", role="paused")
    assert a.stop() == 0
    scene.wait_holders("b", "c", "e")
    assert operate(d, "resume", scene.name) == (0, "")
    until(lambda: scene.line() == ["d"], "d stands in line again", within_s=5)
    assert scene.nodes["b"].stop() == 0
    scene.wait_holders("c", "d", "e")


@pytest.mark.long
def test_a_paused_slot_holder_goes_on_holding_and_does_not_contend_again(scene: SlotScene) -> None:
    a, *_ = scene.full()
    assert operate(a, "pause", scene.name) == (0, "")
    scene.agent.session_destroy(scene.session_of("a"))
    scene.wait(node="a", event="lose", stage="end")
    a.wait_line("role", role="paused")
    scene.wait_holders("b", "c", "d")
    assert not scene.line() and scene.session_of("a") == ""
    assert scene.calls("a")[0] == "acquire acquired" and len(scene.calls("a")) == 2


@pytest.mark.long
def test_an_unfit_waiter_steps_out_of_line_and_comes_back_at_its_end(
    scene: SlotScene,
) -> None:
    flag = flag_of(scene, "fit")
    for node in "abc":
        scene.holder(node)
    d = scene.waiter("d", **checked(flag))
    scene.waiter("e")
    key = scene.contender_key("d")
    flag.unlink()
    scene.wait_gone(key, within_s=10)
    d.wait_line("role", role="ineligible")
    assert scene.line() == ["e"]
    flag.touch()
    until(lambda: scene.line() == ["e", "d"], "d stands in line again", within_s=10)
    assert scene.calls("d") == []


@pytest.mark.long
def test_an_unfit_holder_gives_its_slot_to_the_next_waiter(scene: SlotScene) -> None:
    flag = flag_of(scene, "fit")
    a = scene.holder("a", **checked(flag))
    scene.holder("b")
    scene.holder("c")
    scene.waiter("d")
    flag.unlink()
    lost = scene.wait(node="a", event="lose", stage="end")
    assert lost.reason == "unhealthy"
    scene.wait_holders("b", "c", "d")
    assert lost.at <= scene.next_begin("d").at + 0.02
    a.wait_line("role", role="ineligible")
    until(lambda: not scene.sessions_of("a"), "a has no session")


@pytest.mark.long
def test_a_node_that_fails_to_acquire_gives_the_slot_back_and_waits(scene: SlotScene) -> None:
    scene.limit = 1
    a = scene.node("a", on_acquire=[scene.hook("a", "acquire", "exit 1")], rejoin_delay="1m")
    scene.wait(node="a", event="lose", stage="end")
    scene.holder("b")
    assert scene.calls("a") == ["acquire acquired", "lose acquire-failed"]
    until(lambda: not scene.sessions_of("a"), "a has left")
    assert a.running and scene.holders() == ["b"]


@pytest.mark.long
def test_a_waiter_that_stops_leaves_the_line(scene: SlotScene) -> None:
    *_, d = scene.full()
    key = scene.contender_key("d")
    assert d.stop() == 0
    assert scene.agent.kv_get(key) is None and not scene.sessions_of("d")
    assert scene.calls("d") == []
