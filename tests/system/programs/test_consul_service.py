"""The leader as a service in Consul, by examples/consul-service/namenode.hcl.

A client that looks the service up gets the node that holds, or none.
"""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.adapters.runtime.clock import boottime
from tests.support import dns
from tests.support.captured import captured
from tests.support.consul import BINARY, Agent, free_ports
from tests.support.pages import ROOT
from tests.support.staging import staged
from tests.support.supervisor import until
from tests.system.programs.balanced import BalancedScene

EXAMPLE = ROOT / "examples" / "consul-service" / "namenode.hcl"
LEADER, ALL = "namenode-leader", "namenode"


class Catalog:
    """The services in Consul's catalog; ``apart``: nodes by the port of their application."""

    def __init__(self, agent: Agent, dns_port: int, apart: dict[int, str]) -> None:
        self._agent = agent
        self._dns_port = dns_port
        self._apart = apart

    def passing(self, service: str) -> set[str]:
        return self._listed(f"/health/service/{service}?passing")

    def known(self, service: str) -> set[str]:
        """Return the nodes that have the service, healthy or not."""
        return self._listed(f"/health/service/{service}")

    def _listed(self, path: str) -> set[str]:
        return {self._apart[entry["Service"]["Port"]] for entry in self._agent.call("GET", path).json()}

    def by_dns(self, service: str) -> set[str]:
        """Return the nodes that a query for SRV records names."""
        return {self._apart[port] for port in dns.ports(self._dns_port, f"{service}.service.consul")}


@pytest.fixture
def dns_port() -> int:
    return free_ports(1)[0]


@pytest.fixture
def scene(
    tmp_path: Path, dns_port: int, unique: str, request: pytest.FixtureRequest
) -> Iterator[BalancedScene]:
    """Yield two nodes whose services are registered with one agent."""
    with Agent(tmp_path / "consul", config={"ports": {"dns": dns_port}}) as agent:
        with staged(BalancedScene(agent, tmp_path / "nodes", unique), request) as made:
            yield made


def register(scene: BalancedScene) -> None:
    """Register the example's service on each node.

    The nodes share an agent here, so their services need ids of their own.
    """
    for node in scene.places:
        text = EXAMPLE.read_text().replace("8020", str(node.application_port))
        text = text.replace(
            "127.0.0.1:8555/leader/namenode", f"127.0.0.1:{node.http_port}/leader/{scene.name}"
        )
        text = re.sub(
            r'^    name = "(.*)"$', rf'    name = "\1"\n    id = "\1-{node.name}"', text, flags=re.M
        )
        file = scene.folder / f"namenode-{node.name}.hcl"
        file.write_text(text)
        argv = [str(BINARY), "services", "register", f"-http-addr={scene.agent.url}", str(file)]
        ran = captured(argv)
        assert ran.returncode == 0, ran.stderr


def test_an_agent_takes_the_example_as_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "namenode.hcl").write_text(EXAMPLE.read_text())
    (tmp_path / "agent.json").write_text('{"data_dir": "/nowhere", "bind_addr": "127.0.0.1"}')
    ran = captured([str(BINARY), "validate", str(tmp_path)])
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("how", ["stop", "kill", "freeze"])
def test_consul_names_the_leader_alone(scene: BalancedScene, dns_port: int, how: str) -> None:
    catalog = Catalog(scene.agent, dns_port, {node.application_port: node.name for node in scene.places})
    scene.folder.mkdir(exist_ok=True)
    register(scene)
    assert catalog.passing(LEADER) == set() and catalog.by_dns(LEADER) == set()
    scene.leader("a", run=scene.application("a"))
    scene.waiter("b", run=scene.application("b"))
    until(lambda: catalog.passing(LEADER) == {"a"}, "a is named")
    until(lambda: catalog.by_dns(LEADER) == {"a"}, "a is named by DNS")
    until(lambda: catalog.passing(ALL) == {"a"}, "of the application's own check, whose port b has closed")
    assert catalog.known(LEADER) == {"a", "b"}
    if how == "stop":
        assert scene.nodes["a"].stop() == 0
    elif how == "kill":
        scene.kill("a")
    else:
        scene.nodes["a"].signal(signal.SIGSTOP)
        until(lambda: catalog.passing(LEADER) == set(), "nobody is named while a is frozen")
        scene.nodes["a"].signal(signal.SIGCONT)
        # Node a may still hold, or may find that its lease is over and lose to b. The newest leader counts.
        until(lambda: catalog.passing(LEADER) == {scene.wait_leader()}, "who leads is named")
        return
    named: list[set[str]] = []

    def follows() -> bool:
        named.append(catalog.passing(LEADER))
        return named[-1] == {"b"}

    until(follows, "b is named", within_s=60)
    followed_s = boottime() - scene.records(node="b", event="acquire", stage="end")[0].at
    last_a = max((at for at, names in enumerate(named) if "a" in names), default=-1)
    assert named[last_a + 1 :] == [set()] * (len(named) - last_a - 2) + [{"b"}], named
    until(lambda: catalog.by_dns(LEADER) == {"b"}, "b is named by DNS")
    print(f"Consul ({how}): the new leader is named {followed_s:.2f} s after its on_acquire")
