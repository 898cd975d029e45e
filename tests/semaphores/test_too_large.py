"""More below a prefix than an answer may hold: the log says what it is, and what to do."""

from tests.semaphores.scene import SlotScene

VALUE = b"x" * 512 * 1024  # the largest that Consul takes
COUNT = 13  # a third more in an answer


def test_what_is_too_large_to_be_read_is_named_with_its_remedy(scene: SlotScene) -> None:
    scene.leaves = True
    for number in range(COUNT):
        assert scene.agent.kv_put(f"{scene.name}/data{number}", VALUE)
    a = scene.node("a")
    why = a.wait_line("consul-silent", item=scene.name)["why"]
    assert f"the keys below {scene.name}/ are too large to be read" in why
    assert "delete what is neither .lock nor the key of a session" in why
    for number in range(COUNT):
        scene.agent.kv_delete(f"{scene.name}/data{number}")
    a.wait_line("role", role="holding")
