"""Several nodes and three slots: the holders, the facts that hooks get, and the next holder."""

import json
import signal

import pytest

from supervisor.adapters.runtime.clock import boottime
from tests.consul.semaphores.scene import PRUNE_DELAY_S, TICK_S, SlotScene
from tests.support.supervisor import until


@pytest.mark.long
def test_three_of_five_hold_and_a_freed_slot_goes_to_the_first_in_line(scene: SlotScene) -> None:
    nodes = {node: scene.node(node) for node in "abcde"}
    until(lambda: len(scene.line()) == 2 and len(scene.holders()) == 3, "three hold, two wait")
    first, second = scene.line()
    holders = scene.holders()
    scene.wait_holders(*holders)
    assert nodes[holders[0]].stop() == 0
    scene.wait_holders(*holders[1:], first)
    assert nodes[holders[1]].stop() == 0
    scene.wait_holders(holders[2], first, second)
    assert not scene.line()
    left = scene.wait(node=holders[0], event="lose", stage="end")
    assert left.at <= scene.next_begin(first).at + TICK_S


@pytest.mark.long
def test_the_hooks_of_a_semaphore_get_its_facts(scene: SlotScene) -> None:
    scene.holder("a")
    taken = scene.agent.kv_get(scene.key)
    b = scene.holder("b")
    a_told = scene.wait(node="a", event="acquire", stage="begin")
    assert taken is not None and a_told.token == taken["ModifyIndex"]
    assert (a_told.kind, a_told.key, a_told.name) == ("semaphore", f"{scene.name}/.lock", scene.name)
    assert (a_told.session, a_told.leader, a_told.time_left) == (scene.session_of("a"), "", None)
    body = {"Value": "b", "PruneDelay": "4s"}
    began = scene.wait(node="b", event="acquire", stage="begin")
    assert {"session": scene.session_of("b"), "value": body} in json.loads(began.holders)
    assert len(json.loads(began.holders)) == 2
    session = scene.session_of("b")
    assert (a_told.slot, began.slot) == ("0", "1")
    assert scene.lock()["Slots"] == {scene.session_of("a"): 0, session: 1}
    assert b.stop() == 0
    lost = scene.wait(node="b", event="lose", stage="end")
    assert (lost.session, lost.token, lost.kind) == (session, began.token, "semaphore")
    assert lost.slot == "1"
    assert lost.time_left is not None and lost.time_left > 0


@pytest.mark.long
@pytest.mark.parametrize("behavior", ["delete", "release"])
def test_the_slot_of_a_holder_that_vanished_is_free_after_the_prune_delay(
    scene: SlotScene, behavior: str
) -> None:
    scene.leaves = behavior == "release"
    scene.full(session={"behavior": behavior})
    key, session = scene.contender_key("b"), scene.session_of("b")
    scene.kill("b")
    asked_at = [boottime()]

    def vanished() -> bool:
        asked_at.append(boottime())
        entry = scene.agent.kv_get(key)
        return entry is None or not entry["Session"]

    until(vanished, "Consul has ended the session")
    there_at = asked_at[-2]  # the holder went between the last two reads
    assert session in scene.lock()["Holders"]
    began = scene.next_begin("d")
    assert began.at >= there_at + PRUNE_DELAY_S - TICK_S
    assert sorted(scene.holders()) == ["a", "c", "d"]


@pytest.mark.long
@pytest.mark.parametrize("lost", ["session", "contender key"])
def test_a_holder_that_loses_by_an_operators_act_leaves_in_order(scene: SlotScene, lost: str) -> None:
    """The slot stays taken until on_lose has ended, and is then given back at once."""
    slow = [scene.hook("b", "lose", "sleep 0.4")]
    scene.holder("a")
    scene.holder("b", on_lose=slow)
    scene.holder("c")
    scene.waiter("d")
    session = scene.session_of("b")
    if lost == "session":
        scene.agent.session_destroy(session)
    else:
        scene.agent.kv_delete(scene.contender_key("b"))
    began = scene.wait(node="b", event="lose", stage="begin")
    assert began.session == session
    reasons = {"session": ("session-invalidated", "key-deleted"), "contender key": ("key-deleted",)}
    assert began.reason in reasons[lost]
    assert began.time_left is not None and 0 < began.time_left <= PRUNE_DELAY_S
    ended = scene.wait(node="b", event="lose", stage="end")
    taken = scene.next_begin("d")
    assert ended.at <= taken.at + TICK_S
    until(lambda: scene.line() == ["b"], "b stands in line again")
    assert scene.calls("b") == ["acquire acquired", f"lose {began.reason}"]


@pytest.mark.long
@pytest.mark.parametrize("lost", ["session", "contender key"])
def test_a_frozen_holder_that_loses_its_key_keeps_its_slot_for_the_prune_delay(
    scene: SlotScene, lost: str
) -> None:
    *_, c, d = scene.full()
    scene.overlap = True  # c is frozen, so its on_lose does not run in time
    key, session = scene.contender_key("c"), scene.session_of("c")
    c.signal(signal.SIGSTOP)
    lost_at = boottime()
    if lost == "session":
        scene.agent.session_destroy(session)
    else:
        scene.agent.kv_delete(key)
    began = scene.next_begin("d")
    assert began.at >= lost_at + PRUNE_DELAY_S - TICK_S
    c.signal(signal.SIGCONT)
    scene.wait(node="c", event="lose", stage="end")
    assert d.running
