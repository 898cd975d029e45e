"""What others write below the prefix: nobody's hooks and nobody's slot may suffer from it."""

import json

import pytest

from tests.consul.elections.scene import boottime
from tests.consul.semaphores.scene import FLAGS, PRUNE_DELAY_S, SlotScene
from tests.support.supervisor import until

BODIES = {
    "half a letter": b'{"Node":"\\ud800"}',
    "very deep": b"[" * 990 + b"]" * 990,
    "no JSON": b"\xff\x00",
}


def neighbour(scene: SlotScene, body: bytes, below: str = "") -> str:
    """A contender by hand; its session, which ends with the agent."""
    scene.leaves = True
    session = scene.agent.session_create(Name="by-hand", TTL="60s", Behavior="delete", LockDelay="0s")
    assert scene.agent.kv_put(f"{scene.name}/{below}{session}", body, acquire=session, flags=FLAGS)
    return session


@pytest.mark.parametrize("kind", BODIES)
def test_whatever_a_neighbour_calls_itself_our_hooks_run(scene: SlotScene, kind: str) -> None:
    a = scene.holder("a")
    other = neighbour(scene, BODIES[kind])
    told = len(scene.records(node="a", event="change"))
    scene.edit(Holders={**scene.lock()["Holders"], other: True})
    until(lambda: len(scene.records(node="a", event="change")) > told, "a hears of it")
    assert a.stop() == 0
    assert scene.calls("a") == ["acquire acquired", "lose shutdown"]


@pytest.mark.long
def test_long_values_of_neighbours_cost_nobody_a_slot(scene: SlotScene) -> None:
    """Each is within what Consul takes; all in one list are 2 MiB and more."""
    scene.holder("a")
    for _ in range(5):
        neighbour(scene, json.dumps({"Node": "x" * 300_000}).encode())
    ends_at = boottime() + PRUNE_DELAY_S + 1
    until(lambda: boottime() > ends_at, "a lease is over that was not renewed")
    assert scene.calls("a") == ["acquire acquired"]


def test_another_semaphore_below_the_prefix_is_none_of_ours(scene: SlotScene) -> None:
    neighbour(scene, b'{"PruneDelay":"60s"}', below="deep/")
    scene.holder("a")
    assert scene.calls("a") == ["acquire acquired"]
