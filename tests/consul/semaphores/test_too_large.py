"""More data below a prefix than a response may hold, which any client with the right to write can cause."""

import pytest

from tests.consul.semaphores.scene import SlotScene
from tests.support.supervisor import until

VALUE = b"x" * 512 * 1024  # the largest that Consul takes
COUNT = 13  # a third more in a response


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
