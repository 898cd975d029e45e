"""Keys that other clients write below the prefix: no hook and no slot of ours may suffer from them."""

import json

import pytest

from tests.consul.elections.scene import boottime
from tests.consul.semaphores.scene import FLAGS, PRUNE_DELAY_S, SlotScene
from tests.support.supervisor import until
from tests.support.turns import first_now

BODIES = {
    "half a letter": b'{"Node":"\\ud800"}',
    "very deep": b"[" * 990 + b"]" * 990,
    "no JSON": b"\xff\x00",
}


def neighbour(scene: SlotScene, body: bytes, below: str = "") -> str:
    """Make a contender key by hand, and return its session, which ends with the agent."""
    scene.leaves = True
    session = scene.agent.session_create(Name="by-hand", TTL="60s", Behavior="delete", LockDelay="0s")
    assert scene.agent.kv_put(f"{scene.name}/{below}{session}", body, acquire=session, flags=FLAGS)
    return session


@pytest.mark.parametrize("kind", first_now(BODIES))
def test_our_hooks_run_beside_a_neighbour_with_any_name(scene: SlotScene, kind: str) -> None:
    a = scene.holder("a")
    other = neighbour(scene, BODIES[kind])
    told = len(scene.records(node="a", event="change"))
    scene.edit(Holders={**scene.lock()["Holders"], other: True})
    until(lambda: len(scene.records(node="a", event="change")) > told, "a hears of it")
    assert a.stop() == 0
    assert scene.calls("a") == ["acquire acquired", "lose shutdown"]


@pytest.mark.long
def test_long_values_of_neighbours_cost_no_node_its_slot(scene: SlotScene) -> None:
    """Each value is within the limit of Consul, and all of them in one list are 2 MiB and more."""
    scene.holder("a")
    for _ in range(5):
        neighbour(scene, json.dumps({"Node": "x" * 300_000}).encode())
    ends_at = boottime() + PRUNE_DELAY_S + 1
    until(lambda: boottime() > ends_at, "a lease is over that was not renewed")
    assert scene.calls("a") == ["acquire acquired"]


@pytest.mark.long
def test_another_semaphore_below_the_prefix_is_ignored(scene: SlotScene) -> None:
    neighbour(scene, b'{"PruneDelay":"60s"}', below="deep/")
    scene.holder("a")
    assert scene.calls("a") == ["acquire acquired"]
