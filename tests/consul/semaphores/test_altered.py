"""A proxy changes the request for a session: such a session gets no place in line and no slot."""

import pytest

from tests.consul.semaphores.scene import SlotScene


@pytest.mark.long
def test_a_slot_is_taken_only_with_a_session_as_requested(scene: SlotScene) -> None:
    """With behavior release, for example, the contender key of a dead node would stay for ever."""
    rule = scene.proxy.change(lambda body: body.replace(b'"delete"', b'"release"'), "PUT", "/session/create")
    a = scene.node("a", consul={"address": scene.proxy.url})
    line = a.wait_line("session-altered", item=scene.name)
    assert line["why"].startswith("behavior release instead of delete")
    assert not a.lines("request", kind="join semaphore") and not scene.agent.kv_get(scene.key)
    rule.release()
    a.wait_line("role", role="holding")
    assert scene.calls("a") == ["acquire acquired"]
