"""What an operator orders for the whole fleet, followed by real daemons on a real Consul."""

import json
import time
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from supervisor.daemon.fleet.order import Order, encoded, pause_key, step_down_key
from supervisor.reporting.telemetry.formatting import when
from tests.consul.conftest import MakeScene
from tests.consul.elections.scene import Scene
from tests.consul.elections.test_events import status
from tests.consul.elections.test_reload import reload
from tests.support.guarded import Guarded, write
from tests.support.supervisor import Supervisor, command, until

HOUR_S = 3600.0


def _is_over(node: Supervisor, times: int) -> bool:
    return len(node.lines("order-over")) == times


class Ordered(Scene):
    """A scene whose nodes follow the orders of a fleet of their own."""

    @property
    def prefix(self) -> str:
        """The prefix of the keys of this fleet."""
        return f"{self.name}-fleet"

    def config(self, items: Any, consul: Any = None) -> dict[str, object]:
        """Return the content of a node's file."""
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
        """Return when these nodes are paused everywhere."""
        until(lambda: all(self.item_of(node)["paused_everywhere"] for node in nodes), "the order is followed")

    def item_of(self, node: Supervisor) -> dict[str, Any]:
        """Return the item as the status of the node has it."""
        return dict(status(node)["items"][0])

    def put(self, order: Order) -> None:
        """Write the order of a pause."""
        self.agent.kv_put(pause_key(self.prefix, self.name), encoded(order))

    def order(self, *, ago_s: float = 0.0, for_s: float | None = None) -> Order:
        """Return the order of a pause that was given so long ago."""
        return Order(self.name, "ann@vm9", when(time.time() - ago_s), "upgrade", for_s)


@pytest.fixture
def scene_class() -> type[Scene]:
    """Return the class of which scenes are made."""
    return Ordered


def test_a_pause_everywhere_keeps_all_nodes_from_trying_until_it_is_taken_back(scene: Ordered) -> None:
    scene.restarts = True
    a, b = scene.leader("a"), scene.waiter("b")
    out = scene.done(b, "pause", "--everywhere", "--reason", "upgrade")
    assert "paused everywhere until `resume --everywhere`; who holds goes on" in out
    scene.wait_paused(a, b)
    assert scene.item_of(a)["holds"] and scene.item_of(b)["role"] == "paused"
    told = scene.item_of(b)["paused_everywhere"]
    assert told.startswith("paused everywhere by ") and told.endswith(": upgrade")
    assert told in " ".join(status(b)["warnings"])
    a.stop()
    a.start()
    until(lambda: len(a.lines("ordered")) == 2, "a process that starts follows the order")
    assert not scene.item_of(b)["leader"], "nobody has tried"
    assert "it stays paused everywhere" in scene.done(b, "resume")
    assert "in place of the order of" in scene.done(a, "pause", "--everywhere", "--for", "2h")
    until(lambda: " until " in scene.item_of(b)["paused_everywhere"], "the newer order is followed")
    assert "the pause everywhere of" in scene.done(b, "resume", "--everywhere")
    scene.wait_leader()
    assert scene.done(b, "resume", "--everywhere").endswith("it was not paused everywhere\n")


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


@pytest.mark.long
def test_no_process_that_starts_tries_before_it_knows_the_orders(scene: Ordered) -> None:
    scene.restarts = True
    scene.put(scene.order())
    for name in ("a", "b"):
        node = scene.node(name)
        for _ in range(5):
            node.wait_line("ordered")
            node.stop()
            node.start()
    time.sleep(1.0)
    assert not scene.records(hook="acquire")
    scene.agent.kv_delete(pause_key(scene.prefix, scene.name))
    scene.wait_leader()


@pytest.mark.long
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


@pytest.mark.long
def test_an_observer_gives_orders_and_one_about_another_key_is_ignored(scene: Ordered) -> None:
    a = scene.leader("a")
    b = scene.node("b", items={scene.name: {"key": scene.key, "contend": False}})
    assert "paused everywhere" in scene.done(b, "pause", "--everywhere", "--for", "1h")
    scene.wait_paused(a)
    scene.put(replace(scene.order(), key="another"))
    until(lambda: not scene.item_of(a)["paused_everywhere"], "it is about another key")
    assert "it is about another key" in " ".join(status(a)["warnings"])


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
    until(lambda: "is ignored" in " ".join(status(a)["warnings"]), "it is told")
    assert not a.lines("ordered")
    for entry in scene.agent.kv_list(f"{scene.prefix}/orders/"):
        scene.agent.kv_delete(entry["Key"])
    until(lambda: not status(a)["warnings"], "and told no more")


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
    assert scene.item_of(a)["holds"] and scene.item_of(a)["paused_everywhere"]


@pytest.mark.long
def test_a_right_that_is_taken_away_ends_no_order(guarded: Guarded, make_scene: MakeScene[Ordered]) -> None:
    """To a list it looks as if all orders were gone."""
    with make_scene(guarded) as scene:
        rules = write(scene.key) + 'session_prefix "" { policy = "write" }'
        rule = f'key_prefix "{scene.prefix}/orders/" {{ policy = "read" }}'
        made = guarded.token_of(rules + rule)
        a = scene.node("a", consul={"address": guarded.url, "token": made.secret})
        scene.wait_leader()
        scene.put(scene.order())
        scene.wait_paused(a)
        guarded.change(made, rules)
        scene.agent.kv_put(f"{scene.prefix}/orders/other", b"")
        until(lambda: rule in " ".join(status(a)["warnings"]), "what is missing is told")
        assert scene.item_of(a)["paused_everywhere"]
        guarded.change(made, rules + rule)
        scene.agent.kv_delete(pause_key(scene.prefix, scene.name))
        until(lambda: not scene.item_of(a)["paused_everywhere"], "the end is seen")


def sessions_of(scene: Ordered) -> list[str]:
    return [str(one["ID"]) for one in scene.agent.sessions() if one["Name"] == scene.name]


def holder_of(scene: Ordered) -> str:
    """Return the session that holds the key, once one does."""

    def session() -> str:
        entry = scene.agent.kv_get(scene.key)
        return str((entry or {}).get("Session") or "")

    return until(session, "a node holds")
