"""``/v1/fleet``: the other daemons as Consul's catalog shows them, asked of real daemons."""

import re
import socket
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml

from docs.page import fleet
from supervisor.daemon.fleet.catalog import KEPT_S
from tests.consul.elections.scene import Scene
from tests.consul.elections.test_presence import PresentScene
from tests.consul.web.conftest import WebScene
from tests.consul.web.reader import Reader
from tests.consul.web.test_pages import TYPES
from tests.support.consul import Agent
from tests.support.guarded import Guarded, write
from tests.support.pages import HTTP, rows
from tests.support.proxy import Proxy
from tests.support.supervisor import Supervisor, command, until

HOSTILE = '<img src=x onerror="hurt=1">'


class FleetScene(PresentScene, WebScene):
    """Scenes whose nodes listen and are in Consul's catalog."""

    def config(
        self, items: Mapping[str, object], consul: Mapping[str, object] | None = None
    ) -> dict[str, object]:
        found = super().config(items, consul)
        return {**found, "http": {"listen": "127.0.0.1:0", "public_url": "http://page.example/"}}


@pytest.fixture
def scene_class() -> type[Scene]:
    return FleetScene


def fleet_of(node: Supervisor) -> dict[str, Any]:
    """Return what the daemon tells of its fleet."""
    answer = Reader(node).ask("/v1/fleet")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    return dict(answer.json)


def of(node: Supervisor, status: str) -> list[dict[str, Any]]:
    """Return the nodes with this status of their checks."""
    return [each for each in fleet_of(node)["nodes"] if each["status"] == status]


def fields(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each path of the document with its type; the names of items stand as NAME."""
    if isinstance(value, dict):
        yield from [(path, "mapping")] if path.endswith("items") else []
        for name, part in value.items():
            yield from fields(part, f"{path}.{'NAME' if path.endswith('items') else name}".lstrip("."))
    elif isinstance(value, list):
        yield path, "list"
        for part in value:
            yield from fields(part, f"{path}[]")
    else:
        yield path, TYPES[type(value)]


def test_a_node_tells_of_all_nodes_and_of_no_foreign_instance(scene: FleetScene, shared_agent: Agent) -> None:
    a = scene.at("a", shared_agent)
    scene.wait_role(shared_agent, "holding")
    b = scene.at("b", shared_agent)
    scene.wait_role(shared_agent, "waiting")
    theirs = {"ID": scene.service, "Name": scene.service, "Meta": {"node": "theirs", "holding": scene.name}}
    shared_agent.call("PUT", "/agent/service/register", theirs)
    assert b.ask("pause", scene.name, "--reason", HOSTILE).returncode == 0
    scene.wait_role(shared_agent, "paused")
    told = fleet_of(a)
    parts = sorted((each["items"][scene.name] for each in told["nodes"]), key=lambda part: str(part["role"]))
    assert told["why"] is None and [part["role"] for part in parts] == ["holding", "paused"]
    assert parts[0]["detail"].startswith("token ") and HOSTILE in parts[1]["detail"]
    assert {each["page"] for each in told["nodes"]} == {"http://page.example/"}
    assert b.ask("resume", scene.name).returncode == 0
    scene.wait_role(shared_agent, "waiting")
    until(lambda: fleet_of(a) != told, "the answer is not kept for ever")
    shared_agent.call("PUT", f"/agent/service/deregister/{scene.service}")


def test_no_crowd_of_askers_makes_the_daemon_ask_consul_more_often(
    shared_agent: Agent, make_scene: Any
) -> None:
    """Some of them close their connection before they have an answer."""
    with Proxy(shared_agent.host, shared_agent.port) as proxy, make_scene(shared_agent) as scene:
        a = scene.node("a", consul={"address": proxy.url})
        scene.wait_role(shared_agent, "holding")
        assert not asked_of(proxy)
        began, port = time.monotonic(), Reader(a).port
        for _ in range(200):
            with socket.create_connection(("127.0.0.1", port)) as impatient:
                impatient.sendall(b"GET /v1/fleet HTTP/1.1\r\nHost: a\r\n\r\n")
        with ThreadPoolExecutor(20) as crowd:
            assert all(each["nodes"] for each in crowd.map(lambda _: fleet_of(a), range(40)))
        assert 1 <= len(asked_of(proxy)) <= 1 + (time.monotonic() - began) / KEPT_S


def asked_of(proxy: Proxy) -> list[str]:
    """Return the requests for all daemons."""
    return [each.target for each in proxy.exchanges if "/health/service/" in each.target]


def test_the_fields_are_those_of_the_docs(scene: FleetScene, shared_agent: Agent) -> None:
    """A node without a page, and one without a fleet, have null where another has text."""
    a = scene.at("a", shared_agent)
    scene.wait_role(shared_agent, "holding")
    found, made_up = set(fields(fleet_of(a))), set(fields(fleet()))
    assert {path for path, _ in found} == {path for path, _ in made_up}, "else the browser shows nothing real"
    assert Reader(a).status()["consul"]["fleet"] == scene.service
    config = yaml.safe_load(a.config_path.read_text())
    a.rewrite({**config, "http": {"listen": config["http"]["listen"]}})
    assert a.ask("reload").returncode == 0
    until(lambda: fleet_of(a)["nodes"][0]["page"] is None, "the page is gone")
    found |= set(fields(fleet_of(a)))
    a.rewrite({name: part for name, part in config.items() if name != "fleet"})
    assert a.ask("reload").returncode == 0
    without = fleet_of(a)
    assert without == {"version": 1, "why": "the configuration has no section fleet", "nodes": []}
    assert Reader(a).status()["consul"]["fleet"] is None
    found |= set(fields(without))
    table = rows(HTTP, "of the fleet")
    documented = {(path.strip("`"), each) for path, types, _ in table for each in re.split(" or ", types)}
    assert found == documented


def test_without_its_rights_a_fleet_says_which_are_missing_and_elections_go_on(
    guarded: Guarded, make_scene: Any
) -> None:
    with make_scene(guarded) as scene:
        own = write(scene.key) + 'session_prefix "" { policy = "write" }'
        rules = [
            f'service "{scene.service}" {{ policy = "write" }}',
            'key_prefix "consul-supervisor/history/" { policy = "write" }',
            'key_prefix "consul-supervisor/orders/" { policy = "list" }',
        ]
        made = guarded.token_of(own)
        a = scene.at("a", guarded, made.secret)
        a.wait_line("role", role="holding")
        until(
            lambda: all(rule in str(a.status()["warnings"]) for rule in rules),
            "the status says what is missing",
        )
        assert rules[0] in a.wait_line("presence")["why"]
        assert rules[1] in a.wait_line("history-failed", item=scene.name)["why"]
        checked = command("check", str(a.config_path), "--connect", environ={"WHO": "me"}).stdout
        reads = f'service "{scene.service}" {{ policy = "read" }}'
        assert all(f"give the token: {rule}" in checked for rule in (*rules, reads)), checked
        shows = f'service "{scene.service}" {{ policy = "read" }} node_prefix "" {{ policy = "read" }}'
        told = fleet_of(a)
        assert told["nodes"] == [] and shows in told["why"] and made.secret not in told["why"]
        page, _ = scene.members(a)
        assert f"Consul shows no node as the service {scene.service}" in page and "holder" in page
        for words, key in (
            (("pause", scene.name, "--everywhere"), 'key_prefix "consul-supervisor/orders/"'),
            (("history", scene.name), f'key "consul-supervisor/history/{scene.name}"'),
        ):
            done = command(*words, "--config", str(a.config_path), environ={"WHO": "me", **a.places})
            assert done.returncode == 69 and key in done.stderr
        assert Reader(a).status()["healthy"]
        guarded.change(made, " ".join([own, *rules, 'node_prefix "" { policy = "read" }']))
        scene.wait_role(guarded, "holding")
        until(lambda: not a.status()["warnings"] and fleet_of(a)["nodes"], "nothing is missing any more")
        assert [line["level"] for line in a.lines("presence")] == ["warning", "info"]
        a.wait_line("history-recovered")
        a.wait_line("orders-recovered")
        assert scene.calls("a") == ["acquire acquired"]


@pytest.mark.long
def test_a_consul_that_hangs_costs_its_asker_alone(agent: Agent, make_scene: Any) -> None:
    with make_scene(agent) as scene:
        a = scene.at("a", agent, session={"ttl": "20s", "lock_delay": "40s"}, environ={})
        scene.wait_role(agent, "holding")
        agent.freeze()
        told = fleet_of(a)
        assert Reader(a).ask(f"/leader/{scene.name}").status == 200
        agent.thaw()
        assert told["nodes"] == [] and "Consul does not show the service" in told["why"]
        until(lambda: fleet_of(a)["nodes"], "the nodes are shown")
