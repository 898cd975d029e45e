"""A proxy changes what a node asks and hears: no slot is taken that another node has."""

import re

import pytest

from tests.consul.elections.scene import boottime
from tests.consul.semaphores.scene import PRUNE_DELAY_S, SlotScene
from tests.support.supervisor import until


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


@pytest.mark.long
def test_a_lie_about_a_holder_that_lives_does_not_free_its_slot(scene: SlotScene) -> None:
    """The waiter takes the holder for vanished, and its transaction says so to Consul, which knows better."""
    scene.limit = 1
    scene.holder("b")
    held = re.compile(b'"Session": ?"%s"' % scene.session_of("b").encode())
    rule = scene.proxy.lie(
        lambda part: held.sub(lambda found: b'"Session' + found[0][len(b'"Session') :].upper(), part),
        "GET",
        f"/kv/{scene.name}",
    )
    began = boottime()
    a = scene.node("a", consul={"address": scene.proxy.url})
    until(lambda: len(a.lines("request", kind="take slot")) >= 3, "a tries for the slot", 6 * PRUNE_DELAY_S)
    assert boottime() - began > PRUNE_DELAY_S
    assert scene.holders() == ["b"] and not scene.calls("a")
    rule.release()
    scene.nodes["b"].stop()
    scene.wait_holders("a")
