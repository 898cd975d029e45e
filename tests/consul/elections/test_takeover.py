"""Three nodes and one key: the leader, the hooks at the end of a tenure, and the next leader."""

from typing import Any

import pytest

from supervisor.adapters.runtime.clock import boottime
from tests.consul.elections.scene import LOCK_DELAY_S, Scene
from tests.support.supervisor import until
from tests.support.tenures import Record
from tests.support.turns import first_now

TICK_S = 0.01  # /proc/uptime is cut to this


def next_leader(scene: Scene, after: str) -> Record:
    """Return the begin of the tenure after session ``after``, once all living nodes know the leader."""

    def begun() -> list[Record]:
        return [record for record in scene.records(event="acquire", stage="begin") if record.session != after]

    begin = until(begun, f"a tenure after {after}")[0]
    scene.wait(session=begin.session, event="acquire", stage="end")
    for node, supervisor in scene.nodes.items():
        if supervisor.running:
            scene.wait_told_leader(node, begin.node)
    return begin


def test_exactly_one_of_three_leads(scene: Scene) -> None:
    for node in "abc":
        scene.node(node)
    leader = scene.wait_leader()
    for node in "abc":
        scene.wait_told_leader(node, leader)
    entry = scene.agent.kv_get(scene.key)
    assert entry is not None and entry["Value"] == leader.encode()
    assert {node: scene.calls(node) for node in "abc" if scene.calls(node)} == {leader: ["acquire acquired"]}


@pytest.mark.long
def test_a_stop_hands_over_at_once(scene: Scene) -> None:
    """on_lose runs first, then the release, then the next node's hooks, and their facts fit together."""
    a, _, _ = scene.three()
    session = scene.session_of("a")
    assert scene.told("b") == scene.told("c") == ["initial a"]
    assert a.stop() == 0
    began = next_leader(scene, session)
    assert scene.calls("a") == ["acquire acquired", "lose shutdown"]
    assert scene.calls(began.node) == ["acquire acquired"]
    lost = scene.wait(node="a", event="lose", stage="end")
    assert (lost.leader, lost.previous_leader, lost.session) == ("", "a", session)
    assert (began.leader, began.previous_leader) == (began.node, "a")
    assert began.time_left is None and lost.time_left is not None and lost.time_left > 0
    assert began.transition != lost.transition


@pytest.mark.long
def test_after_kill_9_another_node_leads_once_consul_has_ended_the_session(scene: Scene) -> None:
    scene.three(session={"ttl": "2s"})
    session = scene.session_of("a")
    killed_at = boottime()
    scene.kill("a")
    began = next_leader(scene, session)
    assert scene.calls("a") == ["acquire acquired"]
    assert scene.calls(began.node) == ["acquire acquired"]
    assert began.at >= killed_at + LOCK_DELAY_S - TICK_S


@pytest.mark.long
@pytest.mark.parametrize("behavior", ["release", "delete"])
def test_a_destroyed_session_is_a_loss_and_the_lock_delay_guards_the_key(scene: Scene, behavior: str) -> None:
    """With the behavior delete the key goes with its session, which may become known first."""
    scene.three(session={"behavior": behavior})
    session = scene.session_of("a")
    destroyed_at = boottime()
    scene.agent.session_destroy(session)
    lost = scene.wait(node="a", event="lose", stage="begin")
    assert lost.reason in ("session-invalidated", *(["key-deleted"] if behavior == "delete" else []))
    assert (lost.session, lost.leader, lost.previous_leader) == (session, "", "a")
    began = next_leader(scene, session)
    assert began.at >= destroyed_at + LOCK_DELAY_S - TICK_S
    assert scene.calls("a")[:2] == ["acquire acquired", f"lose {lost.reason}"]


def shown(scene: Scene, value: str) -> dict[str, Any]:
    """Return the key if it has this value."""
    entry = scene.agent.kv_get(scene.key)
    return entry if entry is not None and entry["Value"] == value.encode() else {}


@pytest.mark.long
def test_a_plain_put_over_the_key_is_a_change_and_no_loss(scene: Scene) -> None:
    a, _, _ = scene.three()
    token = scene.wait(node="a", event="acquire").token
    before = scene.agent.kv_get(scene.key)
    assert before is not None and scene.agent.kv_put(scene.key, b"written by hand")
    back = until(lambda: shown(scene, "a"), "the holder has written its value again")
    assert (back["Session"], back["Flags"]) == (before["Session"], before["Flags"])
    assert "has written over the value" in a.wait_line("notice")["why"]
    assert scene.calls("a") == ["acquire acquired"]
    assert scene.agent.kv_put(scene.key, b"again")
    for node in "abc":
        scene.wait_told(node, "value-changed again")
    assert a.stop() == 0
    lost = scene.wait(node="a", event="lose", stage="end")
    assert (lost.reason, lost.token) == ("shutdown", token)
    assert scene.wait_leader(but="a")


@pytest.mark.long
def test_a_critical_check_ends_the_session_and_keeps_the_node_out_until_it_passes(
    either_scene: Scene,
) -> None:
    scene, check = either_scene, either_scene.name
    scene.register_check(check)
    a = scene.leader("a", session={"node_checks": [check]})
    session = scene.session_of("a")
    scene.set_check(check, "fail")
    scene.wait(node="a", event="lose", stage="end")
    a.wait_line("role", role="ineligible")
    assert "critical" in a.wait_line("not-eligible")["why"] and not a.lines("consul-fails")
    scene.set_check(check, "pass")
    began = next_leader(scene, session)
    assert scene.calls("a") == ["acquire acquired", "lose session-invalidated", "acquire acquired"]
    assert began.session != session


@pytest.mark.parametrize("behavior", first_now(["delete", "release"]))
def test_a_stop_keeps_value_and_flags_with_either_behavior(scene: Scene, behavior: str) -> None:
    """Consul deletes a key only when the session ends while it holds, and the release comes before that."""
    a = scene.leader("a", session={"behavior": behavior})
    held = scene.agent.kv_get(scene.key)
    assert a.stop() == 0
    left = scene.agent.kv_get(scene.key)
    assert held is not None and left is not None
    assert (left["Session"], left["Value"], left["Flags"]) == ("", b"a", held["Flags"])
