"""What an operator orders for the whole fleet, followed by real daemons on a real Consul."""

import json
import random
import shutil
import signal
import time
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from supervisor.core.lock.base import WAIT_S
from supervisor.daemon.fleet.order import Order, encoded, pause_key, step_down_key
from supervisor.daemon.fleet.orders import UNANSWERED_MAX
from supervisor.reporting.telemetry.formatting import when
from tests.consul.conftest import MakeScene
from tests.consul.elections.scene import Scene
from tests.consul.elections.test_reload import reload
from tests.support.guarded import Guarded, write
from tests.support.patience import patient
from tests.support.supervisor import Supervisor, command, until

HOUR_S = 3600.0


def _is_over(node: Supervisor, times: int) -> bool:
    return len(node.lines("order-over")) == times


class Ordered(Scene):
    """A scene whose nodes follow the orders of a fleet of their own."""

    @property
    def prefix(self) -> str:
        return f"{self.name}-fleet"

    def config(self, items: Any, consul: Any = None) -> dict[str, object]:
        service = self.name.replace("_", "-")[:50]
        return {**super().config(items, consul), "fleet": {"prefix": self.prefix, "service": service}}

    def tell(self, node: Supervisor, *words: str) -> tuple[int, str, str]:
        """Run a command with the node's file, and return its code and output."""
        verb, *more = words
        done = command(verb, self.name, *more, "--config", str(node.config_path), environ=node.places)
        return done.returncode, done.stdout, done.stderr

    def done(self, node: Supervisor, *words: str) -> str:
        """Run a command that succeeds, and return its output."""
        code, out, error = self.tell(node, *words)
        assert code == 0, error
        return out

    def wait_paused(self, *nodes: Supervisor) -> None:
        until(lambda: all(node.item()["paused_everywhere"] for node in nodes), "the order is followed")

    def put(self, order: Order) -> None:
        self.agent.kv_put(pause_key(self.prefix, self.name), encoded(order))

    def order(self, *, ago_s: float = 0.0, for_s: float | None = None) -> Order:
        """Return the order of a pause that was given so long ago."""
        return Order(self.name, "ann@vm9", when(time.time() - ago_s), "upgrade", for_s)


@pytest.fixture
def scene_class() -> type[Scene]:
    return Ordered


def test_a_pause_everywhere_keeps_all_nodes_from_trying_until_it_is_taken_back(scene: Ordered) -> None:
    scene.restarts = True
    a, b = scene.leader("a"), scene.waiter("b")
    out = until(lambda: followed(scene, "pause"), "all follow")
    assert "paused everywhere until `resume --everywhere`" in out and "; who holds goes on" in out
    scene.wait_paused(a, b)
    assert a.item()["holds"] and b.item()["role"] == "paused"
    told = b.item()["paused_everywhere"]
    assert told.startswith("paused everywhere by ") and told.endswith(": upgrade")
    assert told in " ".join(b.status()["warnings"])
    a.stop()
    a.start()
    until(lambda: len(a.lines("ordered")) == 2, "a process that starts follows the order")
    assert not b.item()["leader"], "nobody has tried"
    assert "it stays paused everywhere" in scene.done(b, "resume")
    assert "in place of the order of" in "".join(scene.tell(a, "pause", "--everywhere", "--for", "2h")[1:])
    until(lambda: " until " in b.item()["paused_everywhere"], "the newer order is followed")
    assert "the pause everywhere of" in "".join(scene.tell(b, "resume", "--everywhere")[1:])
    scene.wait_leader()
    assert scene.done(b, "resume", "--everywhere").endswith("it was not paused everywhere\n")


def test_a_pause_everywhere_names_the_nodes_that_do_not_follow(scene: Ordered) -> None:
    """A node without fleet, and one that stands still: its session may lead, or holds."""
    a, b = scene.leader("a"), scene.waiter("b")
    config = scene.config({scene.name: scene.election("c", session={"name": f"{scene.name}-a"})})
    c = Supervisor(scene.folder / "c", {part: config[part] for part in config if part != "fleet"})
    scene.nodes["c"] = c
    c.start()
    until(lambda: len(scene.sessions_of("a")) == 2, "c waits")
    code, out, error = scene.tell(a, "pause", "--everywhere", "--for", "1h")
    assert (code, out) == (1, "") and "paused everywhere for 3600 s; " in error, error
    assert "within 5 s by " in error and "without fleet" in error and error.count("session") == 1, error
    assert c.stop() == 0
    assert "in place of the order of" in until(lambda: followed(scene, "pause"), "all follow")
    assert b.item()["paused_everywhere"] and a.item()["paused_everywhere"]
    [warning] = [each for each in b.status()["warnings"] if "paused everywhere" in each]
    assert not b.item()["warnings"] and warning.endswith(f"resume {scene.name} --everywhere` ends that")
    shown = command("members", scene.name, "--config", str(b.config_path), environ=b.places).stdout
    assert ": paused everywhere by " in shown and ": holding token " in shown and "paused paused" not in shown
    a.signal(signal.SIGSTOP)
    code, _, error = scene.tell(b, "resume", "--everywhere")
    a.signal(signal.SIGCONT)
    assert code == 1 and "the pause everywhere of" in error and "not followed within 5 s by " in error
    assert followed(scene, "resume")


def followed(scene: Ordered, verb: str) -> str:
    """Return the output of a command that all nodes have followed. Blank: on this machine not in time."""
    code, out, error = scene.tell(scene.nodes["a"], verb, "--everywhere", *["--reason=upgrade"])
    assert code == 0 or "not followed within" in error, error
    return out


@pytest.mark.long
def test_an_order_that_is_over_stays_over_and_its_key_goes(scene: Ordered) -> None:
    """Whether fleet is taken out and in, a snapshot is restored, or the process has another start."""
    scene.restarts = True
    a, key = scene.leader("a"), pause_key(scene.prefix, scene.name)
    before, timed = scene.order(), scene.order(ago_s=1.0, for_s=2.0)
    for times, order in enumerate((before, timed), start=1):
        scene.agent.kv_put(key, encoded(order))
        until(lambda: len(a.lines("ordered")) == times, "it is followed")  # noqa: B023
    until(lambda: len(a.lines("order-over")) == 1, "its time is over")
    config = scene.config({scene.name: scene.election("a")})
    a.rewrite({name: part for name, part in config.items() if name != "fleet"})
    assert reload(a)[0] == 0
    assert a.stop() == 0
    a.start()
    scene.wait_leader()
    a.rewrite(config)
    assert reload(a)[0] == 0
    scene.agent.kv_put(key, encoded(before))
    until(lambda: scene.agent.kv_get(key) is None, "what was replaced is deleted again")
    scene.agent.kv_put(key, encoded(timed))
    time.sleep(1.0)
    assert len(a.lines("ordered")) == 2 and not a.item()["paused_everywhere"]
    assert a.stop() == 0
    old = replace(timed, at=when(time.time() - HOUR_S - 60.0))
    kept = {scene.name: {"order": {**json.loads(encoded(old)), "index": 7}, "seen_at": old.at_s}}
    (a.state_dir / "orders.json").write_text(json.dumps(kept))  # as an earlier release has written it
    scene.agent.kv_put(key, encoded(old))
    a.start()
    until(lambda: scene.agent.kv_get(key) is None, "it is over for everybody, so its key is deleted")
    assert len(a.lines("ordered")) == 2


@pytest.mark.long
def test_the_key_of_a_pause_goes_when_the_last_node_has_seen_its_end(scene: Ordered) -> None:
    """Neither a node whose records are lost nor one that was off follows it anew."""
    scene.restarts = True
    a, key, other = scene.leader("a"), pause_key(scene.prefix, scene.name), f"{scene.prefix}/orders/other"
    scene.put(scene.order(for_s=patient(8.0)))
    scene.wait_paused(a)
    time.sleep(patient(4.0))
    b = scene.node("b")
    b.wait_line("ordered")
    until(partial(_is_over, a, 1), "it is over for a, which saw it first")
    scene.agent.kv_put(other, b"")  # wakes all
    time.sleep(1.0)
    assert scene.agent.kv_get(key) is not None and b.item()["paused_everywhere"]
    scene.agent.kv_delete(other)
    until(partial(_is_over, b, 1), "it is over for b")
    until(lambda: scene.agent.kv_get(key) is None, "its key goes")
    assert b.stop() == 0
    shutil.rmtree(b.state_dir)
    b.start()
    until(lambda: scene.sessions_of("b"), "b contends again")
    assert len(b.lines("ordered")) == 1


@pytest.mark.long
def test_each_node_counts_the_time_of_a_pause_from_when_it_saw_the_order(scene: Ordered) -> None:
    """The clock of the command may be an hour off. A process that starts knows what was over before."""
    scene.restarts = True
    scene.node("a")
    scene.node("b")
    nodes = list(scene.nodes.values())
    for number, ago_s in enumerate((0.0, HOUR_S - 60.0, -HOUR_S), start=1):
        scene.put(scene.order(ago_s=ago_s, for_s=2.0))
        for node in nodes:
            until(partial(_is_over, node, number), "the pause is over")
        scene.wait_leader()
    a = nodes[0]
    scene.put(scene.order(ago_s=HOUR_S + 60.0, for_s=30.0))
    ordered = len(a.lines("ordered"))
    a.stop()
    a.start()
    until(lambda: len(a.lines("started")) == 2, "a has started again")
    scene.wait_leader()
    time.sleep(1.0)
    assert len(a.lines("ordered")) == ordered, "an order that ended more than an hour ago is no order"
    scene.put(scene.order(for_s=3.0))
    until(lambda: len(a.lines("order-over")) == 4, "this one is over as well")
    a.stop()
    a.start()
    until(lambda: len(a.lines("started")) == 3, "a has started again")
    time.sleep(1.0)
    assert len(a.lines("ordered")) == ordered + 1, "an order that is over stays so"


def test_any_node_steps_the_holder_down_and_no_other_tenure(scene: Ordered) -> None:
    a, b = scene.leader("a"), scene.waiter("b")
    first = scene.session_of("a")
    other = encoded(Order("another", "ann@vm9", when(time.time())))
    scene.agent.kv_put(step_down_key(scene.prefix, first), other)
    code, out, error = scene.tell(b, "step-down", "--reason", "disk swap", "--for", "1s")
    assert code == 0 and "b holds it" in out and "a is asked to step down" in error, error
    assert a.wait_line("role", role="losing")["note"] == "disk swap"
    left = scene.agent.kv_list(f"{scene.prefix}/orders/")
    assert not left, "the command takes the order back"
    second = scene.session_of("b")
    order = encoded(Order(scene.name, "ann@vm9", when(time.time()), for_s=1.0))
    scene.agent.kv_put(step_down_key(scene.prefix, first), order)
    scene.agent.kv_put(step_down_key(scene.prefix, "no-session"), order)
    time.sleep(1.0)
    assert scene.session_of("b") == second and len(b.lines("ordered")) == 0
    assert scene.tell(a, "step-down", "--to", "nobody")[0] == 1
    key = step_down_key(scene.prefix, second)
    scene.agent.kv_put(key, order)  # as of a command that is killed
    until(lambda: scene.session_of("b") != second and scene.agent.kv_get(key) is None, "b deletes it")


@pytest.mark.long
def test_a_node_that_starts_before_consul_answers_knows_the_orders_first(scene: Ordered) -> None:
    scene.put(scene.order())
    scene.proxy.refuse()
    a = scene.node("a", consul={"address": scene.proxy.url})
    time.sleep(3.0)
    scene.proxy.accept()
    a.wait_line("ordered")
    time.sleep(2.0)
    assert not scene.records(hook="acquire")


@pytest.mark.long
@pytest.mark.parametrize("how", ["cut off", "frozen"])
def test_a_node_that_comes_back_reads_the_orders_before_it_tries(scene: Ordered, how: str) -> None:
    """A query that has waited while it was away may have ended before the order was given."""
    a = scene.leader("a")
    b = scene.node("b", consul={"address": scene.proxy.url})
    until(lambda: scene.sessions_of("b"), "b waits")
    if how == "cut off":
        scene.proxy.refuse()
    else:
        b.signal(signal.SIGSTOP)
    time.sleep(WAIT_S + 3.0)
    scene.put(scene.order())
    scene.wait_paused(a)
    assert a.ask("step-down", scene.name, "--for", "0s").returncode == 1, "nobody takes over"
    time.sleep(1.0)
    if how == "cut off":
        scene.proxy.accept()
    else:
        b.signal(signal.SIGCONT)
    b.wait_line("ordered")
    time.sleep(2.0)
    assert not scene.records(node="b", hook="acquire")


@pytest.mark.long
def test_elections_go_on_where_only_the_orders_hang(scene: Ordered) -> None:
    """As at a server that stands still with its machine. A query is repeated while others are answered."""
    scene.leader("a")
    b = scene.node("b", consul={"address": scene.proxy.url})
    until(lambda: scene.sessions_of("b"), "b waits")
    held = scene.proxy.hold("answer", path=f"{scene.prefix}/orders")
    scene.proxy.refuse()
    b.wait_line("consul-silent")
    scene.proxy.accept()
    assert scene.nodes["a"].stop() == 0
    until(lambda: b.lines("role", role="acquiring"), "b leads", within_s=40.0)
    assert len(held.caught) >= UNANSWERED_MAX
    held.release()


@pytest.mark.long
def test_an_observer_gives_orders_and_one_about_another_key_is_ignored(scene: Ordered) -> None:
    a = scene.leader("a")
    b = scene.node("b", items={scene.name: {"key": scene.key, "contend": False}})
    assert "paused everywhere" in "".join(scene.tell(b, "pause", "--everywhere", "--for", "1h")[1:])
    scene.wait_paused(a)
    scene.put(replace(scene.order(), key="another"))
    until(lambda: not a.item()["paused_everywhere"], "it is about another key")
    assert "it is about another key" in " ".join(a.status()["warnings"])


@pytest.mark.long
def test_any_node_hands_over_to_the_session_that_is_named(scene: Ordered) -> None:
    name = {"session": {"name": scene.name}}
    scene.leader("a", **name)
    b = scene.node("b", **name)
    until(lambda: len(sessions_of(scene)) == 2, "b waits")
    session = next(one for one in sessions_of(scene) if one != holder_of(scene))
    code, out, error = scene.tell(b, "step-down", "--to", session, "--for", "0s", "--quiet")
    assert (code, out, error) == (0, "", "")
    assert holder_of(scene) == session


@pytest.mark.long
def test_what_is_no_order_is_ignored_and_told(scene: Ordered) -> None:
    key = pause_key(scene.prefix, scene.name)
    bad = [b"", b"[1]", b"{}", b"\xff", b"{" * 10_000, json.dumps({"version": 2}).encode()]
    good = json.loads(encoded(scene.order(for_s=5.0)))
    changes = [
        {"item": "other"},
        {"for_s": -1},
        {"for_s": "1h"},
        {"at": "noon"},
        {"who": 1},
        {"version": 1.5},
    ]
    bad += [json.dumps(good | change).encode() for change in changes]
    for number, value in enumerate(bad):
        scene.agent.kv_put(f"{key}{number}" if number else key, value)
    a = scene.leader("a")
    until(lambda: "is ignored" in " ".join(a.status()["warnings"]), "it is told")
    assert not a.lines("ordered")
    for entry in scene.agent.kv_list(f"{scene.prefix}/orders/"):
        scene.agent.kv_delete(entry["Key"])
    until(lambda: not a.status()["warnings"], "and told no more")


@pytest.mark.long
def test_a_reload_begins_and_ends_to_follow_orders(scene: Ordered) -> None:
    scene.put(scene.order())
    a = scene.node("a")
    a.wait_line("ordered")
    config = scene.config({scene.name: scene.election("a"), "other": scene.election("a", key="k-other")})
    a.rewrite({name: part for name, part in config.items() if name != "fleet"})
    assert reload(a)[0] == 0
    scene.wait_leader()
    a.rewrite(config)
    assert reload(a)[0] == 0
    until(lambda: len(a.lines("ordered")) == 2, "orders are followed again")
    item, _ = a.status()["items"]
    assert item["holds"] and item["paused_everywhere"]


@pytest.mark.long
def test_without_the_right_elections_go_on_and_status_says_what_is_missing(
    guarded: Guarded, make_scene: MakeScene[Ordered]
) -> None:
    """A right that is taken away looks to a list as if all orders were gone, and ends none."""
    with make_scene(guarded) as scene:
        rules = write(scene.key) + 'session_prefix "" { policy = "write" }'
        made = guarded.token_of(rules)
        a = scene.node("a", consul={"address": guarded.url, "token": made.secret})
        scene.wait_leader()
        rule = f'key_prefix "{scene.prefix}/orders/" {{ policy = "list" }}'
        until(lambda: rule in " ".join(a.status()["warnings"]), "what is missing is told")
        checked = command("check", str(a.config_path), "--connect", environ=a.places).stdout
        assert f"give the token: {rule}" in checked, checked
        code, _, error = scene.tell(a, "pause", "--everywhere")
        assert code == 69 and f'key_prefix "{scene.prefix}/orders/"' in error, error
        guarded.change(made, rules + rule)
        scene.put(scene.order())
        scene.wait_paused(a)
        guarded.change(made, rules)
        scene.agent.kv_put(f"{scene.prefix}/orders/other", b"")
        until(lambda: rule in " ".join(a.status()["warnings"]), "what is missing is told again")
        assert a.item()["paused_everywhere"]
        guarded.change(made, rules + rule)
        scene.agent.kv_delete(pause_key(scene.prefix, scene.name))
        until(lambda: not a.item()["paused_everywhere"], "the end is seen")


ORDERS = 20
PAUSE_S = 3.0


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_no_order_is_lost_or_applied_twice_while_nodes_are_killed_cut_off_and_stopped(
    scene: Ordered, seed: int
) -> None:
    """Of three nodes one at a time has a fault, and b is behind a proxy that may fall silent."""
    scene.lasting()
    scene.restarts = True
    dice = random.Random(seed)
    for name in "abc":
        scene.node(name, consul={"address": scene.proxy.url if name == "b" else scene.agent.url})
    meant: dict[str, str] = {}  # by reason of a step-down, the session
    paused: dict[str, float] = {}  # by reason of a pause, when it was ordered
    for number in range(ORDERS):
        why, session = f"order {number}", holder_of(scene)
        if number % 2:
            paused[why] = time.time()
            scene.put(replace(scene.order(for_s=PAUSE_S), why=why))
            befall(scene, dice)
            time.sleep(PAUSE_S + 1.0)
            continue
        meant[why] = session
        order = Order(scene.name, "ann@vm9", when(time.time()), why, for_s=1.0)
        scene.agent.kv_put(step_down_key(scene.prefix, session), encoded(order))
        befall(scene, dice)
        until(partial(_has_gone, scene, session), f"{why}: the tenure of {session} ends")
    holder_of(scene)
    for node in scene.nodes.values():
        told = {line["note"]: line for line in node.lines("ordered") if line["verb"] != "step-down"}
        assert told.keys() == paused.keys(), "every node has seen every pause"
        for line in node.lines("ordered"):
            if line["note"] in paused:
                late_s = datetime.fromisoformat(line["time"]).timestamp() - paused[line["note"]]
                assert late_s < patient(PAUSE_S + 30.0), "a pause is not followed after its end"
    losses = [line for node in scene.nodes.values() for line in node.lines("role", role="losing")]
    for line in losses:
        if line.get("note"):
            assert line["session"] == meant[line["note"]], "no other tenure steps down"
    notes = [line["note"] for line in losses if line.get("note")]
    assert len(notes) == len(set(notes)) and len(notes) >= ORDERS // 4, notes


def sessions_of(scene: Ordered) -> list[str]:
    return [str(one["ID"]) for one in scene.agent.sessions() if one["Name"] == scene.name]


def befall(scene: Ordered, dice: random.Random) -> None:
    """Kill, stop or cut off a node, and let it come back."""
    name = dice.choice("abc")
    node = scene.nodes[name]
    match "silence" if name == "b" else dice.choice(("kill", "stop")):
        case "kill":
            time.sleep(dice.uniform(0.0, 0.5))
            scene.kill(name)
            node.start()
        case "stop":
            node.signal(signal.SIGSTOP)
            time.sleep(dice.uniform(0.5, 1.5))
            node.signal(signal.SIGCONT)
        case _:
            with scene.proxy.silence():
                time.sleep(dice.uniform(0.5, 2.0))


def holder_of(scene: Ordered) -> str:
    """Return the session that holds the key, once one does."""

    def session() -> str:
        entry = scene.agent.kv_get(scene.key)
        return str((entry or {}).get("Session") or "")

    return until(session, "a node holds")


def _has_gone(scene: Ordered, session: str) -> bool:
    entry = scene.agent.kv_get(scene.key)
    return (entry or {}).get("Session") != session
