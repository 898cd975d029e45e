"""A virtual address by examples/virtual-ip: it is on one machine at a time, and clients follow it at once.

Two machines, a client and Consul are plugged into one switch. The client's kernel would keep its neighbour
entries for an hour. It follows the address only because the machine announces it on the network.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.consul import BINARY
from tests.support.network import Machine, Network
from tests.support.program import Program
from tests.support.supervisor import Supervisor, until
from tests.system.applications.stage import EXAMPLES, SESSION, configuration

EXAMPLE = EXAMPLES / "virtual-ip" / "virtual-ip.yaml"
GREETER = (sys.executable, str(Path(__file__).with_name("greeter.py")))
CONSUL, VIRTUAL = "192.0.2.1", "192.0.2.100"
CONSUL_CONFIG = {"session_ttl_min": "1s", "performance": {"raft_multiplier": 1}, "log_level": "warn"}
BELIEVES = "echo 3600000 >/proc/sys/net/ipv4/neigh/eth0/base_reachable_time_ms"
EVENT = re.compile(rf"^\[(\S+)\] (Deleted )?.* inet {re.escape(VIRTUAL)}/32 ", re.MULTILINE)
SOME = 5  # number of answers


class Event(NamedTuple):
    """The kernel of a node has got the address, or has lost it."""

    at: str
    node: str
    got: bool


class Housed(Supervisor):
    def __init__(self, machine: Machine, folder: Path, config: Mapping[str, object]) -> None:
        super().__init__(folder, config)
        self._machine = machine

    def by_way_of(self) -> list[str]:
        return self._machine.inside()


class AddressNode:
    def __init__(self, machine: Machine, supervisor: Housed, watch: Path) -> None:
        self.machine = machine
        self.supervisor = supervisor
        self._watch = watch

    def events(self) -> list[Event]:
        """Return what the node's kernel reported about the virtual address."""
        found = EVENT.findall(self._watch.read_text())
        return [Event(at, self.machine.name, not deleted) for at, deleted in found]

    def leads(self) -> None:
        self.supervisor.wait_line("role", role="holding")


class VirtualAddress:
    """Consul, the nodes a and b, and a client that connects to the virtual address all the time."""

    def __init__(self, network: Network, folder: Path) -> None:
        self._network = network
        self._folder = folder
        self._exits = ExitStack()
        self.consul = network.plug("consul", CONSUL)
        (folder / "consul.json").write_text(json.dumps(CONSUL_CONFIG))
        agent = [str(BINARY), "agent", "-dev", "-client", CONSUL]
        self._start(self.consul, "agent", *agent, "-config-file", str(folder / "consul.json"))
        self.client = network.plug("client", "192.0.2.50")
        self.client.run("sh", "-c", BELIEVES)
        self._start(self.client, "asking", *GREETER, "ask", VIRTUAL)

    def two(self, replaced: Mapping[str, str] | None = None) -> tuple[AddressNode, AddressNode]:
        """Start both nodes; return when a leads and answers the client, and b waits."""
        a = self._node("a", "192.0.2.11", replaced or {})
        b = self._node("b", "192.0.2.12", replaced or {})
        a.supervisor.start()
        a.leads()
        b.supervisor.start()
        b.supervisor.wait_line("started")
        self.reaches(a)
        return a, b

    def reaches(self, node: AddressNode) -> None:
        """Wait until the client has got several answers in a row from this node."""
        seen, name = len(self.answers()), node.machine.name
        until(lambda: len(self.answers()[seen:]) >= SOME, f"answers\n{node.supervisor.log_tail()}")
        until(lambda: self.answers()[-SOME:] == [name] * SOME, f"{name} answers")
        assert self.client.known_mac(VIRTUAL) == node.machine.mac()

    def answers(self) -> list[str]:
        return [line.split()[1] for line in self._log("asking").splitlines() if line.count(" ") == 1]

    def gap_s(self) -> float:
        times = [float(line.split()[0]) for line in self._log("asking").splitlines()]
        return max(later - at for at, later in zip(times, times[1:], strict=False))

    def part(self, node: AddressNode, *, parted: bool = True) -> None:
        """Drop all packets between this node and Consul; the client still reaches both."""
        self._network.part(node.machine, self.consul, parted=parted)

    def die(self, node: AddressNode) -> None:
        self._network.unplug(node.machine)
        node.machine.power_off()
        node.supervisor.wait()

    def _node(self, name: str, address: str, replaced: Mapping[str, str]) -> AddressNode:
        machine = self._network.plug(name, address)
        self._start(machine, f"service-{name}", *GREETER, "serve", name)
        self._start(machine, f"watch-{name}", "ip", "-timestamp", "-tshort", "monitor", "address")
        config = configuration(EXAMPLE, replaced, SESSION)
        config["consul"] = {"address": f"http://{CONSUL}:8500"}
        supervisor = Housed(machine, self._folder / name, config)
        self._exits.callback(supervisor.close)
        return AddressNode(machine, supervisor, self._place(f"watch-{name}"))

    def _start(self, machine: Machine, name: str, *argv: str) -> None:
        self._exits.enter_context(Program(machine.inside(*argv), self._place(name)))

    def _place(self, name: str) -> Path:
        return self._folder / name / f"{name}.log"

    def _log(self, name: str) -> str:
        return self._place(name).read_text()

    def close(self) -> None:
        self._exits.close()


@pytest.fixture
def network() -> Iterator[Network]:
    with Network() as made:
        yield made


@pytest.fixture
def scene(network: Network, tmp_path: Path) -> Iterator[VirtualAddress]:
    """Yield the network with Consul and a client, without a node."""
    with closing(VirtualAddress(network, tmp_path)) as made:
        yield made


def assert_never_both(*nodes: AddressNode) -> None:
    """Assert by the reports of both kernels that at most one node had the address at any time."""
    having: set[str] = set()
    events = sorted(event for node in nodes for event in node.events())
    for event in events:
        having = having | {event.node} if event.got else having - {event.node}
        assert len(having) < 2, events
    assert {event.node for event in events} == {node.machine.name for node in nodes}, events


def test_a_stop_moves_the_address_and_the_client_knows_it(scene: VirtualAddress) -> None:
    a, b = scene.two()
    assert a.supervisor.stop() == 0
    assert not a.machine.has(VIRTUAL)
    scene.reaches(b)
    assert b.supervisor.stop() == 0
    assert_never_both(a, b)
    for node in (a, b):
        node.supervisor.assert_no_fault()
    print(f"virtual IP (stop): no answer for {scene.gap_s():.1f} s")


def test_the_address_of_a_machine_that_died_moves(scene: VirtualAddress) -> None:
    a, b = scene.two()
    scene.die(a)
    scene.reaches(b)
    print(f"virtual IP (crash): no answer for {scene.gap_s():.1f} s")


def test_a_node_that_is_cut_from_consul_drops_the_address_before_the_other_takes_it(
    scene: VirtualAddress,
) -> None:
    """Clients still reach the node: only the node itself can notice that it has lost the lead."""
    a, b = scene.two()
    scene.part(a)
    b.leads()
    assert not a.machine.has(VIRTUAL)
    scene.reaches(b)
    scene.part(a, parted=False)
    a.supervisor.wait_line("role", role="losing", reason="lease-expired")
    assert a.supervisor.stop() == 0
    assert_never_both(a, b)
    print(f"virtual IP (cut from Consul): no answer for {scene.gap_s():.1f} s")


def test_an_address_that_still_answers_is_not_taken_a_second_time(scene: VirtualAddress) -> None:
    """The supervisor is dead and is not started again, but its machine lives."""
    a, b = scene.two()
    a.supervisor.kill()
    refused = f"cannot take {VIRTUAL}: another machine on eth0 answers for it, or eth0 is down"
    b.supervisor.wait_line("hook-output", text=refused)
    scene.reaches(a)
    a.supervisor.start()
    b.supervisor.close()
    scene.reaches(a)
    assert [event.node for event in b.events()] == []


def test_a_node_that_cannot_drop_the_address_is_cut_off(scene: VirtualAddress) -> None:
    """Its on_lose looks for the address on an interface that does not exist, so the address stays."""
    a, b = scene.two({f"drop-address, {VIRTUAL}/32, eth0": f"drop-address, {VIRTUAL}/32, eth9"})
    assert a.supervisor.stop() == 0
    assert a.supervisor.lines("hook-failed", hook="drop")
    assert "state DOWN" in a.machine.run("ip", "link", "show", "dev", "eth0")
    scene.reaches(b)
