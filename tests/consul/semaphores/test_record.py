"""The record of the slots, ``.lock``, in each state that a node may find or an operator may leave."""

import json
import signal
import time
from typing import Any

import pytest

from supervisor.adapters.runtime.clock import boottime
from tests.consul.semaphores.scene import FLAGS, PRUNE_DELAY_S, ROOM_S, TICK_S, SlotScene
from tests.support.supervisor import until

GARBAGE: dict[str, dict[str, Any]] = {
    "no JSON": {"value": b"garbage"},
    "no Limit": {"value": b'{"Holders":{}}'},
    "a Limit of 0": {"value": b'{"Limit":0,"Holders":{}}'},
    "no names of sessions": {"value": b'{"Limit":3,"Holders":[1]}'},
    "half a letter": {"value": b'{"Limit":3,"Holders":{"\\ud800":true}}'},
    "names of other keys": {"value": b'{"Limit":3,"Holders":{"..":true,"a//b":true,".lock":true}}'},
    "too deep": {"value": b'{"Limit":3,"Holders":{},"Deep":' + b"[" * 40 + b"]" * 40 + b"}"},
    "flags of another": {"value": b'{"Limit":3,"Holders":{}}', "flags": 42},
    "flags of a lock": {"value": b"", "flags": 3304740253564472344},
}
QUIET_S = 1.5  # how long nothing happens, where nothing may


def put(scene: SlotScene, kind: str) -> bytes:
    found = dict(GARBAGE[kind])
    value: bytes = found.pop("value")
    assert scene.put_lock(value, **found)
    return value


def held_as_lock(scene: SlotScene) -> str:
    """Lock the record with another session, as ``consul lock`` without -n does; its content stays."""
    entry = scene.agent.kv_get(scene.key)
    session = scene.agent.session_create(TTL="60s", LockDelay="0s", Name=f"{scene.name}-other")
    value = b"" if entry is None else entry["Value"]
    assert scene.agent.kv_put(scene.key, value, acquire=session, flags=FLAGS)
    return session


@pytest.mark.long
@pytest.mark.parametrize("kind", [*GARBAGE, "held as a lock"])
def test_a_record_that_is_no_semaphores_is_reported_and_left_alone(scene: SlotScene, kind: str) -> None:
    other = held_as_lock(scene) if kind == "held as a lock" else ""
    value = b"" if other else put(scene, kind)
    before = scene.agent.kv_get(scene.key)
    a = scene.node("a")
    line = a.wait_line("notice")
    assert line["level"] == "warning" and ".lock is no semaphore's and is left alone" in line["why"]
    time.sleep(QUIET_S)
    assert scene.agent.kv_get(scene.key) == before and (before or {})["Value"] == value
    assert not scene.records(event="acquire") and not scene.contenders()
    if other:
        scene.agent.session_destroy(other)
    scene.agent.kv_delete(scene.key)
    scene.wait_holders("a")
    a.wait_line("notice-over")


def test_an_empty_record_with_the_flags_of_a_semaphore_is_new(scene: SlotScene) -> None:
    assert scene.put_lock(b"")
    scene.holder("a")
    assert scene.lock() == {
        "Limit": 3,
        "Holders": {scene.session_of("a"): True},
        "PruneDelay": "4s",
        "Slots": {scene.session_of("a"): 0},
    }


@pytest.mark.long
def test_a_deleted_record_is_a_loss_and_is_made_again_after_the_prune_delay(scene: SlotScene) -> None:
    scene.full()
    deleted_at = boottime()
    scene.agent.kv_delete(scene.key)
    lost = {node: scene.wait(node=node, event="lose", stage="begin") for node in "abc"}
    assert {each.reason for each in lost.values()} == {"slot-removed"}
    assert all(each.time_left is not None and each.time_left > 1 for each in lost.values())
    until(lambda: len(scene.lock().get("Holders", {})) == 3, "three hold again")

    def begun() -> list[float]:
        return [r.at for r in scene.records(event="acquire", stage="begin") if r.at > deleted_at]

    assert min(until(begun, "on_acquire of the first")) >= deleted_at + PRUNE_DELAY_S - TICK_S
    assert scene.lock()["Limit"] == 3
    scene.next_begin("d")
    assert scene.calls("d") == ["acquire acquired"], "it stood in line before them"


@pytest.mark.long
def test_a_put_by_hand_that_leaves_no_flags_costs_no_node_its_slot(scene: SlotScene) -> None:
    """`consul kv put` knows no flags, and the next write of a contender restores them."""
    scene.full()
    assert scene.put_lock(json.dumps({**scene.lock(), "Limit": 4}).encode(), flags=0)
    time.sleep(ROOM_S)
    assert sorted(scene.holders()) == ["a", "b", "c"]
    assert not scene.records(event="lose")
    assert scene.nodes["a"].stop() == 0
    scene.wait_holders("b", "c", "d")
    entry = scene.agent.kv_get(scene.key)
    assert entry is not None and entry["Flags"] == FLAGS


@pytest.mark.long
def test_a_holder_by_the_requests_of_consuls_guide_counts(scene: SlotScene) -> None:
    """Consul's guide sets no flags, neither on the contender key nor on the record."""
    scene.limit = 1
    session = scene.agent.session_create(TTL="60s", LockDelay="0s", Behavior="delete", Name="by-hand")
    assert scene.agent.kv_put(f"{scene.name}/{session}", b"", acquire=session)
    assert scene.put_lock(json.dumps({"Limit": 1, "Holders": [session]}).encode(), cas=0, flags=0)
    a = scene.waiter("a")
    time.sleep(PRUNE_DELAY_S + QUIET_S)
    assert scene.holders() == [session] and not a.lines("notice")
    ended_at = boottime()
    scene.agent.session_destroy(session)
    assert scene.next_begin("a").at >= ended_at + PRUNE_DELAY_S - TICK_S


@pytest.mark.long
def test_a_lower_limit_evicts_no_holder_and_counts_from_the_next_slot_on(scene: SlotScene) -> None:
    a, b, _, d = scene.full()
    scene.edit(Limit=2)
    assert "limit is 3 here and 2 in Consul: the smaller counts" in d.wait_line("notice")["why"]
    a.wait_line("notice")
    assert a.stop() == 0
    time.sleep(QUIET_S)
    scene.wait_holders("b", "c")
    assert b.stop() == 0
    scene.wait_holders("c", "d")
    assert scene.lock()["Limit"] == 2
    assert scene.calls("c") == ["acquire acquired"]


@pytest.mark.long
def test_fields_of_other_programs_survive_our_writes(scene: SlotScene) -> None:
    a, *_ = scene.full()
    ticket = {"by": "ops", "why": ["rebuild", 7, None, 1.5]}
    scene.edit(Ticket=ticket, note="kept")
    assert a.stop() == 0
    scene.wait_holders("b", "c", "d")
    lock = scene.lock()
    assert (lock["Ticket"], lock["note"], lock["Limit"]) == (ticket, "kept", 3)
    scene.stop()
    lock = scene.lock()
    assert (lock["Ticket"], lock["note"], lock["Holders"]) == (ticket, "kept", {})


@pytest.mark.long
def test_a_list_of_holders_is_read_and_becomes_a_map(scene: SlotScene) -> None:
    a, *_ = scene.full()
    scene.edit(Holders=list(scene.lock()["Holders"]))
    assert isinstance(scene.lock()["Holders"], list)
    edited_at = boottime()
    until(lambda: boottime() > edited_at + ROOM_S + 1, "the room of before the edit is over")
    assert all(scene.calls(node) == ["acquire acquired"] for node in "abc") and not scene.calls("d")
    assert a.stop() == 0
    scene.wait_holders("b", "c", "d")
    holders = scene.lock()["Holders"]
    assert isinstance(holders, dict) and set(holders.values()) == {True}


@pytest.mark.long
def test_the_longest_prune_delay_of_the_contenders_counts(scene: SlotScene) -> None:
    """The file says 4 s, and the record has the longer one."""
    *_, c, _ = scene.full()
    scene.overlap = True  # c is frozen, so its on_lose does not run in time
    scene.edit(PruneDelay="7s")
    c.signal(signal.SIGSTOP)
    destroyed_at = boottime()
    scene.agent.session_destroy(scene.session_of("c"))
    assert scene.next_begin("d").at >= destroyed_at + 7 - TICK_S
    c.signal(signal.SIGCONT)
    scene.wait(node="c", event="lose", stage="end")
