"""Consul is away: within the room nothing is lost, belief ends with the room, and later all goes on."""

import time

import pytest

from supervisor.adapters.runtime.clock import boottime
from tests.consul.elections.scene import ROOM_S, Scene
from tests.support.patience import patient
from tests.support.supervisor import until

pytestmark = pytest.mark.long

INTERVAL_S = 1.0  # between two consistent reads of a holder, with the figures of the scene
# Room 17.9 s, which is longer than an agent with a data directory takes to start.
ROOMY = {"ttl": "5s", "lock_delay": "20s"}
# Room 6.4 s: lock_delay - margin 0.5 s - kill_after of on_acquire 0.1 s - on_lose 1 s.
QUICK = {"ttl": "5s", "lock_delay": "8s", "confirm_every": "500ms"}
QUICK_INTERVAL_S = 0.5
QUICK_SILENCE_S = 6.4 - 2 * QUICK_INTERVAL_S


def goes_on(scene: Scene, node: str) -> None:
    """Check that this node receives news of Consul again: a change of the value reaches it.

    The holder replaces the value, at most once a minute.
    """

    def told() -> bool:
        scene.agent.kv_put(scene.key, b"after the outage")
        return "value-changed after the outage" in scene.told(node)

    until(told, f"{node} is told of the change")


def test_an_agent_that_restarts_within_room_costs_nothing(own_scene: Scene) -> None:
    scene = own_scene
    scene.leader("a", session=ROOMY)
    scene.waiter("b", session=ROOMY)
    session = scene.session_of("a")
    scene.agent.restart()
    goes_on(scene, "a")
    goes_on(scene, "b")
    assert scene.session_of("a") == session
    # An agent that has just started may not know a session yet; a waiter then makes another one.
    until(lambda: scene.session_of("b"), "b waits with a session")
    assert scene.calls("a") == ["acquire acquired"] and scene.calls("b") == []
    a = scene.nodes["a"]  # the agent answers with errors until it has a leader again
    until(lambda: a.lines("consul-silent") or a.lines("consul-fails"), "the outage is in the log")
    a.wait_line("consul-answers")
    assert a.stop() == 0
    assert scene.wait_leader() == "b"


def test_a_frozen_agent_ends_belief_when_room_ends(own_scene: Scene) -> None:
    """on_lose begins and ends while Consul is still frozen, and then the old session is destroyed."""
    scene = own_scene
    scene.leader("a")
    scene.waiter("b")
    session = scene.session_of("a")
    frozen_at = boottime()
    scene.agent.freeze()
    lost = scene.wait(node="a", event="lose", stage="begin")
    ended = scene.wait(node="a", event="lose", stage="end")
    assert scene.calls("b") == []
    scene.agent.thaw()
    assert (lost.reason, lost.session, lost.leader) == ("lease-expired", session, "")
    assert lost.at > frozen_at + ROOM_S - 2 * patient(INTERVAL_S)
    assert ended.time_left is not None and ended.time_left > 0
    scene.agent.wait_ready()
    scene.wait_leader()
    until(lambda: session not in {one["ID"] for one in scene.sessions()}, "the session is given up")
    until(lambda: scene.session_of("a"), "a has a new session")


@pytest.mark.parametrize("just", [False, True], ids=["short", "just the silence"])
def test_a_frozen_agent_that_thaws_within_room_costs_nothing(own_scene: Scene, just: bool) -> None:
    scene = own_scene
    scene.leader("a", session=QUICK if just else ROOMY)
    session = scene.session_of("a")
    scene.agent.freeze()
    if just:
        time.sleep(QUICK_SILENCE_S - patient(0.1))
    else:
        scene.nodes["a"].wait_line("exchange-failed", kind="read key")
    scene.agent.thaw()
    scene.agent.wait_ready()
    goes_on(scene, "a")
    assert scene.session_of("a") == session
    assert scene.calls("a") == ["acquire acquired"]


def test_a_holder_that_rides_an_outage_out_tells_since_when_and_until_when(own_scene: Scene) -> None:
    """A stop in the silence leaves the tenure record, tells of it, and the next start ends it."""
    scene = own_scene
    fence = {"shell": "false", "timeout": "5s", "exclusive": True, "outage": "1m"}
    a = scene.leader("a", fence=fence, session={"ttl": "10s"})
    assert until(lambda: a.item()["outage_s"], "belief counts by the record") == 60.0
    scene.agent.freeze()
    why = a.wait_line("outage", item=scene.name)["why"]
    item = a.item()
    acts = f"acts until {item['acts_until']} without it, then on_lose"
    assert why == f"Consul is silent since {item['silent_since']}; {acts}"
    assert why in item["warnings"] and item["record_s"] > 60.0
    until(lambda: a.item()["lease_runs_out"], "half of the room is over")
    time.sleep(ROOM_S / 2)
    assert a.item()["holds"] and why in a.item()["warnings"]
    scene.agent.thaw()
    scene.agent.wait_ready()
    a.wait_line("outage-over", item=scene.name)
    assert a.item()["silent_since"] is None and scene.calls("a") == ["acquire acquired"]
    scene.agent.freeze()
    assert a.stop() == 0
    assert a.wait_line("record-left", item=scene.name)["waits_s"] == item["record_s"]
    scene.agent.thaw()
    scene.agent.wait_ready()
    scene.restarts = True
    a.start()
    until(lambda: scene.calls("a").count("acquire acquired") == 2, "it holds again")
    assert a.stop() == 0 and scene.agent.kv_get(f"{scene.key}/.tenure") is None


def test_without_a_ttl_silence_ends_belief_and_no_other_node_leads(own_scene: Scene) -> None:
    scene = own_scene
    scene.leader("a", session={"ttl": "none"})
    scene.waiter("b", session={"ttl": "none"})
    scene.agent.freeze()
    lost = scene.wait(node="a", event="lose", stage="end")
    assert lost.reason == "lease-expired"
    scene.agent.thaw()
    scene.agent.wait_ready()
    scene.wait_leader()


def test_a_start_without_consul_waits_for_it(own_scene: Scene) -> None:
    """A starting Consul may apply a create whose client has given up, and the TTL ends that session."""
    scene = own_scene
    scene.agent.stop()
    a = scene.node("a", session={"ttl": "2s"})
    a.wait_line("exchange-failed", kind="create session")
    a.wait_line("exchange-failed", kind="watch key")
    assert a.running
    scene.agent.start()
    assert scene.wait_leader() == "a"
    scene.wait_no_orphan("a")


def test_an_agent_that_lost_all_its_data_is_a_loss_and_a_new_start(dev_scene: Scene) -> None:
    """A -dev agent keeps nothing over a restart, so the session and the key are gone."""
    scene = dev_scene
    scene.leader("a", session=ROOMY)
    scene.agent.restart()
    lost = scene.wait(node="a", event="lose", stage="begin")
    assert lost.reason in ("session-invalidated", "key-deleted")
    until(lambda: scene.calls("a")[2:], "a leads again")
    assert scene.calls("a") == ["acquire acquired", f"lose {lost.reason}", "acquire acquired"]
    scene.forgets = True


@pytest.mark.parametrize("fault", ["reset", "refuse", "silence"])
def test_a_fault_of_the_network_within_room_costs_nothing(scene: Scene, fault: str) -> None:
    a = scene.leader("a", consul={"address": scene.proxy.url}, session=ROOMY)
    session = scene.session_of("a")
    if fault == "silence":
        with scene.proxy.silence():
            a.wait_line("exchange-failed", kind="renew session")
            a.wait_line("exchange-failed", kind="read key")
    elif fault == "refuse":
        scene.proxy.refuse()
        a.wait_line("exchange-failed", kind="renew session")
        a.wait_line("exchange-failed", kind="read key")
        scene.proxy.accept()
    else:
        rules = [scene.proxy.reset("request"), scene.proxy.reset("answer")]
        a.wait_line("exchange-failed", kind="renew session")
        a.wait_line("exchange-failed", kind="read key")
        for rule in rules:
            rule.release()
    goes_on(scene, "a")
    assert scene.session_of("a") == session
    assert scene.calls("a") == ["acquire acquired"]


def test_silence_towards_one_node_hands_over_to_the_other_without_overlap(scene: Scene) -> None:
    """The other node leads once Consul has ended the session, and the silent node's on_lose ends before."""
    scene.leader("a", consul={"address": scene.proxy.url}, session={"ttl": "1s"})
    scene.waiter("b")
    with scene.proxy.silence():
        assert scene.wait(node="a", event="lose", stage="end").reason == "lease-expired"
        assert scene.wait_leader(but="a") == "b"
        time.sleep(0.1)
    scene.wait_told("a", "leader-changed b")
    until(lambda: scene.session_of("a"), "a has a new session")
    assert scene.calls("a") == ["acquire acquired", "lose lease-expired"]
