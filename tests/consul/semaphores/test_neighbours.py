"""Keys that other clients write below the prefix: no hook and no slot of ours may suffer from them."""

import json

import pytest

from supervisor.adapters.runtime.clock import boottime
from tests.consul.semaphores.scene import FLAGS, PRUNE_DELAY_S, SlotScene
from tests.support.supervisor import until
from tests.support.turns import first_now

BODIES = {
    "half a letter": b'{"Node":"\\ud800"}',
    "very deep": b"[" * 990 + b"]" * 990,
    "no JSON": b"\xff\x00",
}
VALUE = b"x" * 512 * 1024  # the largest that Consul takes
COUNT = 13  # a third more in a response


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


# --- more than a response may hold -----------------------------------------------------------------


def fill(scene: SlotScene) -> None:
    scene.leaves = True
    for number in range(COUNT):
        assert scene.agent.kv_put(f"{scene.name}/data{number}", VALUE)


def empty(scene: SlotScene) -> None:
    for number in range(COUNT):
        scene.agent.kv_delete(f"{scene.name}/data{number}")


@pytest.mark.long
def test_data_that_is_too_large_to_read_is_reported_with_a_remedy(scene: SlotScene) -> None:
    fill(scene)
    a = scene.node("a")
    line = until(lambda: a.lines("consul-silent", item=scene.name), "it is told")[0]
    assert f"the keys below {scene.name}/ are too large to be read" in line["why"]
    assert "delete what is neither .lock nor the key of a session" in line["why"]
    empty(scene)
    a.wait_line("role", role="holding")


@pytest.mark.long
def test_a_holder_goes_on_beside_too_much_data(scene: SlotScene) -> None:
    """Its own key and .lock are read alone, so a holder learns of a loss long before its lease is over."""
    scene.lasting()
    a = scene.holder("a")
    fill(scene)
    until(lambda: a.lines("consul-silent", item=scene.name, kinds=["watch slots"]), "it is told")
    assert scene.holders() == ["a"]
    scene.agent.kv_delete(scene.contender_key("a"))
    until(lambda: scene.calls("a") == ["acquire acquired", "lose key-deleted"], "it is told of its key")
    empty(scene)
    scene.excuse("a")
