"""Consul is away for longer than any lock-delay, and a holder with `outage` acts on."""

import time
from typing import Any

import pytest

from tests.consul.elections.scene import ROOM_S, Scene
from tests.consul.elections.test_fence import LOST, fenced, leave_as_lost, record, shots
from tests.consul.elections.test_foreign_data import LOCK_FLAGS
from tests.consul.elections.test_outages import goes_on
from tests.support.supervisor import Supervisor, until

LONG_FLAGS = LOCK_FLAGS + 2
OUTAGE_S = 60.0
SILENCE_S = ROOM_S + 4.0


def lasting(scene: Scene, node: str, body: str = "exit 1", **more: Any) -> dict[str, Any]:
    """Return an election whose holder outlasts a silence of a minute, with a fence that does ``body``."""
    return {"fence": fenced(scene, node, body, after="5s", outage="1m"), "session": {"ttl": "10s"}, **more}


def waits_s(scene: Scene) -> float:
    """Return how long others wait by the tenure record."""
    said = record(scene)
    assert said is not None
    return float(said["lock_delay"].removesuffix("s"))


def holds(node: Supervisor, scene: Scene) -> bool:
    return node.ask("holds", scene.name).returncode == 0


@pytest.mark.parametrize("restarts", [False, True], ids=["", "restarts"])
def test_a_silence_longer_than_the_lock_delay_costs_nothing(own_scene: Scene, restarts: bool) -> None:
    """A supervisor that starts in the silence begins nothing, and goes on by its journal."""
    scene = own_scene
    scene.restarts = restarts
    a = scene.leader("a", **lasting(scene, "a"))
    scene.waiter("b", **lasting(scene, "b"))
    assert waits_s(scene) > OUTAGE_S
    entry = scene.agent.kv_get(scene.key)
    assert entry is not None and entry["Flags"] == LONG_FLAGS
    session = scene.session_of("a")
    scene.agent.stop()
    time.sleep(SILENCE_S)
    if restarts:
        a.kill()
        a.start()
        until(lambda: holds(a, scene), "a holds by its journal")
        time.sleep(SILENCE_S)
    assert holds(a, scene) and a.item()["role"] == "holding"
    scene.agent.start()
    goes_on(scene, "a")
    assert scene.session_of("a") == session and holds(a, scene)
    assert scene.calls("a") == ["acquire acquired"] and scene.calls("b") == [] and shots(scene) == []


def test_a_reload_gives_and_takes_the_longer_lease_without_a_failover(own_scene: Scene) -> None:
    scene = own_scene
    short: dict[str, Any] = {"session": {"ttl": "10s"}, "fence": fenced(scene, "a", "exit 1")}
    a = scene.leader("a", **short)
    short_s = waits_s(scene)
    long_ = scene.config({scene.name: scene.item("a", **lasting(scene, "a"))})
    a.rewrite(long_)
    assert a.ask("reload").returncode == 0
    until(lambda: waits_s(scene) > OUTAGE_S, "the record says so")
    scene.agent.stop()
    time.sleep(SILENCE_S)
    assert holds(a, scene)
    scene.agent.start()
    goes_on(scene, "a")
    a.rewrite(scene.config({scene.name: scene.item("a", **short)}))
    assert a.ask("reload").returncode == 0
    until(lambda: a.item()["lease_left_s"] < ROOM_S, "it believes by the lock-delay again")
    assert waits_s(scene) > OUTAGE_S > short_s, "the record does not get shorter in a tenure"
    assert scene.calls("a") == ["acquire acquired"]


def test_a_long_record_is_waited_for_and_an_operator_ends_that(scene: Scene) -> None:
    leave_as_lost(scene.agent, scene.key, flags=LONG_FLAGS, lock_delay="70s")
    a = scene.node("a", **lasting(scene, "a", "exit 1"))
    a.wait_line("role", role="acquiring")
    until(lambda: "waits for db7" in a.item()["reason"], "it has read the record")
    time.sleep(2 * ROOM_S)
    assert scene.calls("a") == []
    assert a.ask("confirm-off", scene.name, "--machine", "db7").returncode == 0
    assert scene.wait_leader() == "a"
    assert record(scene) != LOST and waits_s(scene) > OUTAGE_S


def test_a_consul_that_is_made_anew_shoots_nobody_and_goes_on_with_everybody(dev_scene: Scene) -> None:
    """The former holder has stopped, and says so in the new Consul."""
    scene = dev_scene
    scene.forgets = True
    a = scene.leader("a", **lasting(scene, "a", "true"))
    b = scene.waiter("b", **lasting(scene, "b", "true"))
    until(lambda: b.item()["leader"] and not b.item()["warnings"], "b has read the record")
    scene.agent.restart()
    scene.wait(node="a", event="lose", stage="end")
    assert scene.wait_leader() in ("a", "b")
    assert shots(scene) == [] and a.running
