"""``fleet``: each daemon in Consul's catalog, and ``members`` from it, with a client agent on each node."""

import asyncio
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from supervisor.adapters.consul.client import ConsulClient
from supervisor.adapters.consul.presence import RegisterPresence, TellPresence
from supervisor.adapters.runtime.clock import boottime
from supervisor.config import Config, ConsulSettings, FleetSettings, LogSettings
from supervisor.core.actions import Role, RoleChanged
from supervisor.core.events import Tick
from supervisor.core.outcomes import Done, Instance, Outcome
from supervisor.core.requests import ReadService, Request
from supervisor.core.settings import ServiceSettings
from supervisor.daemon.fleet.presence import WRITE_S, Presence
from supervisor.reporting.telemetry.fleet import FleetReport
from tests.consul.elections.scene import Scene
from tests.consul.elections.test_fence import lost_machine
from tests.consul.elections.test_service import Fleet, fleet, shared_fleet
from tests.support.consul import Agent
from tests.support.supervisor import Supervisor, command, until

__all__ = ["fleet", "shared_fleet"]  # fixtures
ROWS = ["holder", "paused", "waiting"]
FLAPS, FLAPS_S = 1500, 9.0
SEVERAL = 20  # passes of a check


class PresentScene(Scene):
    """A scene whose nodes are in Consul's catalog, and have sessions that no other node's file recognises."""

    @property
    def service(self) -> str:
        return self.name.replace("_", "-")[:50]

    def config(
        self, items: Mapping[str, object], consul: Mapping[str, object] | None = None
    ) -> dict[str, object]:
        return {**super().config(items, consul), "fleet": {"service": self.service}}

    def at(self, node: str, agent: Agent, token: str | None = None, **changes: Any) -> Supervisor:
        consul = {"address": agent.url, **({"token": token} if token else {})}
        how = {"session": {"name": "${WHO}"}, "environ": {"WHO": f"own name of {node}"}}
        return self.node(node, consul=consul, **{**how, **changes})

    def instances(self, agent: Agent) -> list[dict[str, Any]]:
        return list(agent.call("GET", f"/health/service/{self.service}").json())

    def wait_role(self, agent: Agent, role: str, count: int = 1) -> None:
        """Return when this many instances tell of an item with this role."""
        until(
            lambda: sum(role in each["Service"]["Meta"] for each in self.instances(agent)) == count,
            f"{count} {role} in the catalog",
        )

    def written_at(self, agent: Agent) -> str:
        """Return when the newest instance was written. Blank: there is none."""
        return max((str(each["Service"]["Meta"]["at"]) for each in self.instances(agent)), default="")

    def members(self, node: Supervisor) -> tuple[str, dict[str, Any]]:
        """Return what ``members`` prints for a person, and the item that it prints for a program."""
        words = ("members", self.name, "--config", str(node.folder / "config.yaml"))
        page = command(*words, environ={"COLUMNS": "500"}).stdout
        (item,) = json.loads(command(*words, "--json").stdout)["items"]
        return page, item


@pytest.fixture
def scene_class() -> type[Scene]:
    return PresentScene


@pytest.fixture
def present(shared_fleet: Fleet, make_scene: Any) -> Iterator[PresentScene]:
    """Return a scene on agents that no test stops."""
    with make_scene(shared_fleet.server) as scene:
        yield scene


def operate(node: Supervisor, *words: str) -> None:
    done = node.ask(*words)
    assert done.returncode == 0, done


def test_members_lists_each_node_with_its_role(present: PresentScene, shared_fleet: Fleet) -> None:
    """Their session names are only a variable, so nothing but the catalog shows who waits."""
    server = shared_fleet.server
    a = present.at("a", shared_fleet.agent("a"))
    present.wait_role(server, "holding")
    b, c = (present.at(node, shared_fleet.agent(node)) for node in "bc")
    present.wait_role(server, "waiting", 2)
    operate(c, "pause", present.name, "--reason", "its disk; is full")
    present.wait_role(server, "paused")
    page, item = present.members(a)
    assert page.startswith(f"{present.name}: election {present.key}, 1 holder, 1 candidate known\n")
    assert [line.split()[0] for line in page.splitlines()[3:6]] in (ROWS, [*ROWS[:1], *ROWS[:0:-1]])
    assert "paused by root (its disk, is full) since 20" in page
    nodes = {each["role"]: each for each in item["nodes"]}
    assert sorted(nodes) == ["holding", "paused", "waiting"] and len(item["members"]) == 1
    assert nodes["holding"]["session"] == item["members"][0]["session"] and not nodes["paused"]["session"]
    assert nodes["holding"]["detail"].startswith("token ") and nodes["holding"]["status"] == "passing"
    everything = command("status", "--cluster", "--config", str(a.folder / "config.yaml")).stdout
    assert "paused" in everything and "waiting" in everything
    assert a.stop() == 0
    b.wait_line("role", role="holding")
    until(lambda: len(present.instances(server)) == 2, "who stops in order goes at once")
    present.wait_role(server, "holding")


@pytest.mark.long
def test_a_node_that_was_killed_is_shown_as_silent(present: PresentScene, shared_fleet: Fleet) -> None:
    server = shared_fleet.server
    a = present.at("a", shared_fleet.agent("a"))
    present.wait_role(server, "holding")
    b = present.at("b", shared_fleet.agent("b"))
    present.wait_role(server, "waiting")
    present.kill("b")
    until(
        lambda: "critical" in [c["Status"] for each in present.instances(server) for c in each["Checks"]],
        "its check is critical",
        60.0,
    )
    page, item = present.members(a)
    (silent,) = (each for each in item["nodes"] if each["status"] == "critical")
    assert silent["role"] == "waiting" and "does not answer (TTL expired" in page
    assert [line.split()[0] for line in page.splitlines()[3:5]] == ["holder", "silent"]
    present.restarts = True
    b.start()
    until(
        lambda: "critical" not in present.members(a)[0] and "silent" not in present.members(a)[0],
        "it is back",
    )


def test_members_says_for_whom_a_node_waits(present: PresentScene, shared_fleet: Fleet) -> None:
    lost_machine(present, lock_delay="60s")
    a = present.at("a", shared_fleet.agent("a"), fence={"exec": ["false"], "exclusive": True})
    waits = re.compile(r": acquiring token \d+ waits for db7 until \d{4}-\S+Z\n")
    until(lambda: waits.search(present.members(a)[0]), "members says so")


def test_a_node_that_is_not_healthy_is_shown_as_such(present: PresentScene, shared_fleet: Fleet) -> None:
    agent = shared_fleet.agent("a")
    failing = [present.hook("a", "lose", "exit 1")]
    a = present.at("a", agent, on_lose=failing, candidate_check=None)
    a.wait_line("role", role="holding")
    a.ask("step-down", present.name)
    a.wait_line("role", role="stuck")

    def is_shown() -> bool:  # the role and the check are told of one after the other
        page, item = present.members(a)
        is_stuck = [node["role"] for node in item["nodes"]] == ["stuck"]
        return is_stuck and "stuck on_lose[0] failed" in page and "is not healthy" in page

    until(is_shown, "its check warns")
    operate(a, "recover", present.name)
    until(lambda: "is not healthy" not in present.members(a)[0], "its check passes")


def test_an_instance_of_another_program_is_left_alone(present: PresentScene, shared_fleet: Fleet) -> None:
    agent, present.restarts = shared_fleet.agent("a"), True
    a = present.at("a", agent)
    present.wait_role(shared_fleet.server, "holding")
    theirs = present.instances(shared_fleet.server)[0]["Service"]["ID"]
    assert a.stop() == 0
    agent.call("PUT", "/agent/service/register", {"ID": theirs, "Name": "theirs", "Port": 1})
    a.start()
    assert f"consul services deregister -id={theirs}" in a.wait_line("presence")["why"]
    assert theirs in a.status()["warnings"][0]
    assert a.stop() == 0
    assert agent.call("GET", f"/agent/service/{theirs}").json()["Service"] == "theirs"
    agent.call("PUT", f"/agent/service/deregister/{theirs}")


def test_a_reload_moves_the_instance(present: PresentScene, shared_fleet: Fleet) -> None:
    a = present.at("a", shared_fleet.agent("a"))
    present.wait_role(shared_fleet.server, "holding")
    config = yaml.safe_load(a.config_path.read_text())
    a.rewrite({**config, "fleet": {"service": f"{present.service}2"}, "http": {"listen": "127.0.0.1:0"}})
    operate(a, "reload")
    until(lambda: not present.instances(shared_fleet.server), "the former service is gone")
    found = f"/health/service/{present.service}2"
    until(lambda: shared_fleet.server.call("GET", found).json(), "the new one is there")
    a.rewrite({name: section for name, section in config.items() if name != "fleet"})
    operate(a, "reload")
    until(lambda: not shared_fleet.server.call("GET", found).json(), "no instance is left")


@pytest.mark.long
def test_the_instance_comes_back_when_the_agent_has_lost_it(fleet: Fleet, make_scene: Any) -> None:
    with make_scene(fleet.server) as scene:
        agent = fleet.agent("a")
        scene.at("a", agent, session={"ttl": "5s", "lock_delay": "20s"}, environ={})
        scene.wait_role(fleet.server, "holding")
        before = scene.written_at(fleet.server)
        agent.kill()
        for path in (agent.folder / "data" / "services", agent.folder / "data" / "checks"):
            shutil.rmtree(path)
            path.mkdir()
        agent.start()
        # Until then the servers may have none, for less time than between two looks.
        until(lambda: scene.written_at(fleet.server) > before, "it is written anew")
        scene.wait_role(fleet.server, "holding")
        assert scene.calls("a") == ["acquire acquired"]


# --- what it costs ---------------------------------------------------------------------------------


def config_of(url: str, service: str) -> Config:
    """Return the settings of a daemon in Consul's catalog."""
    return Config(ConsulSettings(url), LogSettings(), (), "/", fleet=FleetSettings(service, "p", 3600.0))


@pytest.mark.long
async def test_roles_that_flap_cost_one_write_in_two_seconds() -> None:
    """The last role is told in the end."""
    role, written = Role.WAITING, list[str]()

    async def ask(request: Request) -> Outcome:
        if isinstance(request, ReadService):
            return Instance.OURS if written else Instance.ABSENT
        if isinstance(request, RegisterPresence):
            written.append(str(request.service.meta))
        return Done()

    status = SimpleNamespace(problems=list, items=dict, parts=lambda: [("item", str(role), "")])
    shared: Any = SimpleNamespace(
        node="vm1", status=status, client=SimpleNamespace(ask=ask), clock=boottime, log=SimpleNamespace()
    )
    shared.history = SimpleNamespace(fleet=FleetReport())
    presence = Presence(config_of("http://h", "s"), shared)
    running, began_at = asyncio.create_task(presence.run()), boottime()
    for number in range(FLAPS):
        role = Role.HOLDING if number % 2 else Role.WAITING
        presence.on_step(Tick(), [RoleChanged("item", role)])
        await asyncio.sleep(FLAPS_S / FLAPS)
    async with asyncio.timeout(30 * WRITE_S):
        while str(role) not in written[-1]:
            await asyncio.sleep(0.05)
    running.cancel()
    assert 2 <= len(written) <= 2 + (boottime() - began_at) / WRITE_S


def test_passes_of_the_check_cost_the_servers_nothing(shared_fleet: Fleet, unique: str) -> None:
    """The agent may defer a change of the output; there is none here, and it would pass it on at once."""
    agent, of = shared_fleet.agent("a"), ServiceSettings(unique, unique.replace("_", "-")[:50])
    config = config_of(agent.url, of.name)

    async def passes() -> list[Any]:
        client = ConsulClient(config, lambda *said: None, boottime)
        frame = ("", boottime(), 60.0, of)
        assert await client.ask(RegisterPresence(*frame, 30.0, True, 3600.0)) == Done()
        assert await client.ask(TellPresence(*frame, True, "vm1: healthy")) == Done()
        seen = []
        for _ in range(SEVERAL):
            await asyncio.sleep(0.1)
            seen.append(agent.call("GET", f"/health/checks/{of.name}").json())
            assert await client.ask(TellPresence(*frame, True, "vm1: healthy")) == Done()
        await client.close()
        return seen

    seen = asyncio.run(passes())
    assert {check["ModifyIndex"] for checks in seen[3:] for check in checks} == {seen[-1][0]["ModifyIndex"]}
    agent.call("PUT", f"/agent/service/deregister/{unique}")
