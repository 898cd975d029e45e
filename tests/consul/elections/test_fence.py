"""An election with a fence, beside the tenure record of a machine that is not there any more."""

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from supervisor.adapters.runtime.clock import boottime
from tests.consul.elections.scene import LOCK_DELAY_S, Scene
from tests.consul.elections.test_foreign_data import LOCK_FLAGS, consul_lock
from tests.consul.web.reader import Reader
from tests.support.captured import captured
from tests.support.consul import Agent
from tests.support.supervisor import Supervisor, until
from tests.support.turns import first_now

GUARDED_FLAGS = LOCK_FLAGS + 1
LOST: dict[str, Any] = {
    "state": "acting", "lock_delay": "4s", "lose_time": "1s", "target": "bmc-7", "node": "n7", "host": "db7",
    "machine": "another", "boot": "b", "token": 0,
}  # fmt: skip


def fenced(scene: Scene, node: str, body: str = ":", **more: object) -> dict[str, object]:
    """Return the fence of a node, which records its facts in a file and does ``body``."""
    facts = " ".join(f"$CONSUL_SUPERVISOR_PREVIOUS_{each}" for each in ("TARGET", "NODE", "HOST"))
    shell = f'echo "{facts}" >>{scene.folder}/shots; {body}'
    return {
        "shell": shell,
        "timeout": "5s",
        "target": f"bmc-{node}",
        "after": "100ms",
        "exclusive": True,
        **more,
    }


def shots(scene: Scene) -> list[str]:
    file = scene.folder / "shots"
    return file.read_text().splitlines() if file.exists() else []


def lost_machine(scene: Scene, **record: Any) -> float:
    """Leave the key of the scene as a machine that is lost; return when Consul ended its session."""
    leave_as_lost(scene.agent, scene.key, GUARDED_FLAGS, **record)
    return boottime()


def leave_as_lost(agent: Agent, key: str, flags: int = GUARDED_FLAGS, **record: object) -> None:
    """Leave the key as a machine does that held it and is lost."""
    agent.session_destroy(hold_elsewhere(agent, key, flags, **record))


def hold_elsewhere(agent: Agent, key: str, flags: int = GUARDED_FLAGS, **record: object) -> str:
    """Hold the key as another machine does, and return its session."""
    session = agent.session_create(Name="lost", LockDelay="1ms")
    value = json.dumps({"session": session, **LOST, **record}).encode()
    lock = {"Verb": "lock", "Key": key, "Value": "", "Flags": flags, "Session": session}
    put = {"Verb": "set", "Key": f"{key}/.tenure", "Value": base64.b64encode(value).decode()}
    assert agent.txn([{"KV": lock}, {"KV": put}]).status == 200
    return session


def record(scene: Scene) -> dict[str, Any] | None:
    entry = scene.agent.kv_get(f"{scene.key}/.tenure")
    return None if entry is None else json.loads(entry["Value"])


def end_told(scene: Scene, node: str) -> str:
    """Return how the tenure before ended, as on_acquire of this node was told."""
    scene.wait(node=node, event="acquire", stage="end")
    return (scene.folder / f"end-{node}").read_text().strip()


def told(scene: Scene, node: str) -> dict[str, object]:
    body = f"echo $CONSUL_SUPERVISOR_PREVIOUS_END >{scene.folder}/end-{node}"
    return scene.hook(node, "acquire", body)


def with_fence(scene: Scene, node: str, body: str = ":", **more: object) -> dict[str, Any]:
    return {"fence": fenced(scene, node, body, **more), "on_acquire": [told(scene, node)]}


def test_the_next_holder_acts_once_the_machine_before_is_off(scene: Scene) -> None:
    lost_machine(scene)
    scene.node("a", **with_fence(scene, "a", "sleep 0.3"))
    assert end_told(scene, "a") == "fenced" and shots(scene) == ["bmc-7 n7 db7"]
    own = record(scene)
    assert own is not None and (own["session"], own["state"]) == (scene.session_of("a"), "acting")


@pytest.mark.parametrize("body", first_now(["exit 1", "sleep 60"]))
def test_a_fence_that_does_not_work_costs_the_lease_and_no_less(scene: Scene, body: str) -> None:
    lost_at = lost_machine(scene)
    scene.node("a", **with_fence(scene, "a", body))
    began = scene.wait(node="a", event="acquire", stage="begin")
    assert end_told(scene, "a") == "waited" and shots(scene)
    assert began.at >= lost_at + LOCK_DELAY_S
    scene.nodes["a"].wait_line("role", role="holding")
    item = scene.nodes["a"].item()
    assert item["last_error"]["over_at"] and "fence" not in " ".join(item["warnings"])
    metrics = Reader(scene.nodes["a"]).ask_socket("/metrics").body
    counted = r'hook_failures_total\{event="fence",kind="election",name="[^"]+"\} ([\d.]+)'
    assert float(re.findall(counted, metrics)[0]) == len(shots(scene)), "also the one that hung to the end"


def test_a_holder_that_lives_says_that_it_has_ended_and_is_not_shot(scene: Scene) -> None:
    scene.leader("a", **with_fence(scene, "a"), on_lose=[scene.hook("a", "lose", "sleep 0.5")])
    scene.waiter("b", **with_fence(scene, "b"))
    assert scene.nodes["a"].ask("pause", scene.name).returncode == 0
    scene.agent.session_destroy(scene.session_of("a"))
    ended = scene.wait(node="a", event="lose", stage="end")
    began = scene.wait(node="b", event="acquire", stage="begin")
    assert end_told(scene, "b") == "said" and shots(scene) == [] and ended.at <= began.at


def test_a_hand_over_in_order_leaves_neither_record_nor_flags(scene: Scene) -> None:
    a = scene.leader("a", **with_fence(scene, "a"))
    entry = scene.agent.kv_get(scene.key)
    assert entry is not None and entry["Flags"] == GUARDED_FLAGS
    assert a.stop() == 0
    entry = scene.agent.kv_get(scene.key)
    assert entry is not None and entry["Flags"] == LOCK_FLAGS and record(scene) is None
    scene.leader("b", **with_fence(scene, "b"))
    assert end_told(scene, "b") == "released"


@pytest.mark.long
def test_a_waiter_tells_for_whom_the_holder_waits_and_asks_for_nothing_at_rest(scene: Scene) -> None:
    session = hold_elsewhere(scene.agent, scene.key, lock_delay="8s")
    scene.waiter("a", value='{"Node": "a"}', **with_fence(scene, "a", "exit 1"))
    through = {"consul": {"address": scene.proxy.url}, "acquire_delay": "2s"}
    b = scene.waiter("b", **through, **with_fence(scene, "b", "exit 1"))

    def asked(part: str) -> int:
        return sum(part in each.target for each in scene.proxy.exchanges)

    def waits() -> str:
        return " ".join(each for each in b.item()["warnings"] if "has the key" in each)

    scene.agent.session_destroy(session)
    told = until(waits, "it tells")
    assert told.startswith(
        "a has the key, does not act yet, and waits for db7, which may still act: until 20"
    )
    assert told.endswith(f"if that machine is off: `consul-supervisor confirm-off {scene.name}` there")
    assert json.loads(b.item()["leader"]) == {"Node": "a"}
    scene.wait(node="a", event="acquire", stage="end")
    until(lambda: not waits(), "the guard is over")
    renewed, looks = asked("/renew"), asked("/.tenure")
    until(lambda: asked("/renew") > renewed + 3, "it rests")
    assert asked("/.tenure") == looks


@pytest.mark.long
def test_without_a_fence_in_its_file_a_node_waits_as_well_and_clears_up(scene: Scene) -> None:
    lost_at = lost_machine(scene)
    scene.node("a")
    began = scene.wait(node="a", event="acquire", stage="begin")
    assert began.at >= lost_at + LOCK_DELAY_S
    entry = scene.agent.kv_get(scene.key)
    assert entry is not None and entry["Flags"] == LOCK_FLAGS and record(scene) is None


@pytest.mark.long
def test_consul_lock_leaves_a_key_with_a_record_alone(scene: Scene) -> None:
    prefix = scene.key
    scene.key = f"{prefix}/.lock"
    lost_machine(scene)
    before = scene.agent.kv_get(scene.key)
    ran = captured([*consul_lock(scene, "-try=5s", prefix, "touch /nowhere")], timeout=60)
    assert ran.returncode == 1 and scene.agent.kv_get(scene.key) == before


@pytest.mark.long
def test_an_operator_ends_a_guard_that_time_does_not(scene: Scene) -> None:
    lost_machine(scene, lock_delay="1s")
    a = scene.node("a", **with_fence(scene, "a", "exit 1", required=True))
    until(lambda: len(shots(scene)) > 1, "the fence is tried again")
    assert not scene.calls("a")
    ran = a.ask("confirm-off", scene.name, "--reason", "unplugged")
    assert ran.returncode == 0, ran.stderr
    assert end_told(scene, "a") == "confirmed"
    given = a.wait_line("command", verb="confirm-off")
    assert given["note"] == "unplugged"
    ran = a.ask("confirm-off", scene.name)
    assert ran.returncode == 1 and "it waits for no machine to be off" in ran.stderr


def overwritten(scene: Scene, holder: str) -> None:
    """Have another client write over the key, and the holder repair it and its record."""
    assert scene.agent.kv_put(scene.key, b"theirs", flags=LOCK_FLAGS)
    until(lambda: (scene.agent.kv_get(scene.key) or {})["Flags"] == GUARDED_FLAGS, "the key is repaired")


def reloaded(scene: Scene, holder: str) -> None:
    """Have the holder write another value, and a record with a longer lose_time."""
    longer = slowly(scene, holder, "6s")
    reload(scene, scene.nodes[holder], scene.election(holder, **longer))
    until(lambda: (record(scene) or {})["lose_time"] > "6", "the record is longer")


def fenced_before(scene: Scene, holder: str) -> None:
    """Have the next holder win behind a machine that is lost and shot."""
    for name, node in scene.nodes.items():
        node.stop()
        node.rewrite(scene.config({scene.name: scene.election(name, **slowly(scene, name), on_change=None)}))
    lost_machine(scene)
    shot = len(shots(scene))
    for node in scene.nodes.values():
        node.start()
    until(lambda: len(shots(scene)) > shot, "the lost machine is shot")


def slowly(scene: Scene, node: str, timeout: str = "5s") -> dict[str, Any]:
    """Return an election whose on_lose takes longer than a fence leaves to a loser."""
    lose = scene.hook(node, "lose", "sleep 4", timeout=timeout)
    return {**with_fence(scene, node, after="2s"), "on_lose": [lose], "rejoin_delay": None}


@pytest.mark.long
@pytest.mark.parametrize("before", [lambda scene, holder: None, overwritten, reloaded, fenced_before])
def test_who_loses_says_so_whatever_it_wrote_before(
    scene: Scene, before: Callable[[Scene, str], None]
) -> None:
    """Twenty times a holder that lives loses its session, and the next one waits for its word."""
    scene.lasting()
    scene.leader("a", **slowly(scene, "a"))
    scene.waiter("b", **slowly(scene, "b"))
    for _ in range(5):
        before(scene, scene.wait_leader())
        holder = scene.wait_leader()
        shot, other = shots(scene), "b" if holder == "a" else "a"
        scene.agent.session_destroy(scene.session_of(holder))
        assert scene.wait_leader(but=holder) == other
        assert end_told(scene, other) == "said" and shots(scene) == shot, scene.nodes[holder].log_tail()


@pytest.mark.long
def test_a_fleet_is_changed_over_and_back_while_one_holds(scene: Scene) -> None:
    """The holder keeps its session through all of it, and the others never act."""
    scene.lasting()
    scene.three()
    session = scene.session_of("a")
    for exclusive in (False, True, False, None):
        for node in "abc":
            fence = None if exclusive is None else fenced(scene, node, exclusive=exclusive)
            reload(scene, scene.nodes[node], scene.election(node, fence=fence))
        assert scene.session_of("a") == session
        own = until(lambda: record(scene), "the holder has a record")  # which a reload does not wait for
        assert own is not None and (own["session"], own["target"]) == (session, "bmc-a")
    assert {node: scene.calls(node) for node in "abc"} == {"a": ["acquire acquired"], "b": [], "c": []}
    scene.nodes["a"].stop()
    assert scene.wait_leader() in "bc" and record(scene) is None and shots(scene) == []


def reload(scene: Scene, supervisor: Supervisor, item: dict[str, object]) -> None:
    supervisor.rewrite(scene.config({scene.name: item}))
    ran = supervisor.ask("reload")
    assert ran.returncode == 0, ran.stderr
