"""The lab: machines of which two or three contend for a key, and one on which the servers of Consul run.

The client agent of a machine runs inside, so whatever happens to the machine happens to its agent.
"""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from supervisor.adapters.runtime.clock import boottime
from tests.support.consul import BINARY, HOST, Client, free_ports
from tests.support.supervisor import until
from tests.system.emulated import node
from tests.system.emulated.machine import NETWORK, SEEN_S, Machine
from tests.system.fence.device import Device, Manner

HTTP_PORT = 8500


class Agent:
    """An agent of Consul on a machine, as a server or a client."""

    def __init__(self, machine: Machine, name: str, servers: list[str], **config: object) -> None:
        self._machine, self._servers = machine, servers
        self._place = f"/run/agents/{name}"
        ports = {"http": HTTP_PORT, "dns": -1, "grpc": -1, "serf_wan": -1}
        given = {
            "node_name": name,
            "bind_addr": machine.address,
            "data_dir": f"{self._place}.data",
            "ports": ports,
        }
        joins = {
            "retry_interval": "1s",
            "disable_update_check": True,
            "log_level": "warn",
        }
        self._config = given | joins | config

    def start(self, *joins: str) -> None:
        """Start the agent, which looks for its peers at these addresses as well."""
        config = json.dumps({**self._config, "retry_join": [*self._servers, *joins]})
        self._machine.type(f"mkdir -p /run/agents; echo {shlex.quote(config)} >{self._place}.json")
        begun = f"consul agent -config-file {self._place}.json >>{self._place}.log 2>&1"
        self._machine.type(f"{begun} & echo $! >{self._place}.pid")

    def end(self, signal: str = "KILL") -> None:
        """Send the signal, and have the machine wait until the agent has ended."""
        pid = f"$(cat {self._place}.pid)"
        self._machine.type(f"kill -{signal} {pid}; while kill -0 {pid}; do usleep 100000; done 2>/dev/null")

    def remove(self) -> None:
        self.end()
        self._machine.type(f"rm -rf {self._place}.*")


class Servers(Client):
    """The servers of one scene, each by an address of its own on a machine that no scene harms."""

    def __init__(self, machine: Machine, numbers: list[int], gossip: Mapping[str, object]) -> None:
        self.ports = free_ports(len(numbers))
        super().__init__(HOST, self.ports[0])
        self.addresses = [f"{NETWORK}.1.{number}" for number in numbers]
        self._agents = []
        for number, address, port in zip(numbers, self.addresses, self.ports, strict=True):
            inside = HTTP_PORT + number
            own = {
                "bind_addr": address,
                "client_addr": "0.0.0.0",
                "server": True,
                "bootstrap_expect": len(numbers),
            }
            own["ports"] = {"http": inside, "dns": -1, "grpc": -1, "serf_wan": -1}
            quick = {"performance": {"raft_multiplier": 1}, **gossip}
            self._agents.append(Agent(machine, f"server-{number}", self.addresses, **own, **quick))
            machine.type(f"ip address add {address}/16 dev eth1")
            forward = f"hostfwd_add net tcp:{HOST}:{port}-:{inside}"
            machine.order("human-monitor-command", **{"command-line": forward})
            self._agents[-1].start()

    def know(self, *names: str) -> bool:
        """Return whether the servers have a leader, and know these nodes with their serfHealth."""
        try:
            alive = self.call("GET", "/health/state/passing?consistent")
        except OSError:
            return False
        return alive.status == 200 and {*names} <= {check["Node"] for check in alive.json()}

    @contextmanager
    def stopped(self, *clients: str) -> Iterator[None]:
        """Kill all servers for as long as the block takes; return as soon as they have a leader again.

        clients: the addresses of agents that the servers look for, as docs/operations.md advises.
        """
        for agent in self._agents:
            agent.end()
        until(lambda: not self._have_leader, "no server knows a leader", SEEN_S)
        yield
        for agent in self._agents:
            agent.start(*clients)
        until(lambda: self._have_leader, "the servers have a leader again", SEEN_S)

    @property
    def _have_leader(self) -> bool:
        for port in self.ports:
            with suppress(OSError):
                said = Client(HOST, port).call("GET", "/status/leader", timeout_s=1.0)
                if said.status == 200 and said.json():
                    return True
        return False

    def kill_leader(self) -> None:
        """Kill the leading server, and ask another one from then on."""
        leader = self.addresses.index(self.call("GET", "/status/leader").json().partition(":")[0])
        self._agents[leader].end()
        self.port = next(port for port in self.ports if port != self.ports[leader])

    def remove(self) -> None:
        for agent in self._agents:
            agent.remove()


class Node(node.Node):
    """A machine with a supervisor, and a client agent inside."""

    def __init__(self, machine: Machine, servers: list[str], gossip: Mapping[str, object]) -> None:
        super().__init__(machine, f"http://127.0.0.1:{HTTP_PORT}")
        self.agent = Agent(machine, machine.name, servers, leave_on_terminate=True, **gossip)
        self.agent.start()

    def stop(self) -> None:
        super().stop()
        self.agent.remove()

    def cut(self) -> None:
        """Cut the machine off from everything."""
        for network in ("net", "lan"):
            self.machine.order("set_link", name=network, up=False)

    def pause(self) -> None:
        """Stop the machine with its clocks."""
        self.machine.order("stop")

    def resume(self) -> None:
        if not self.machine.is_off:
            self.machine.order("cont")


class Duel(node.Duel[Node]):
    """A duel; ``lost_at``: when ``old`` was struck. None: not yet, or by nothing that ends a session.

    Where all servers were down, ``lost_at`` is when they were back, because nobody can take over before that.
    spare: a third node that waits as well. None: two contend.
    """

    lost_at: float | None = None

    def __init__(
        self, servers: Servers, device: Device, old: Node, new: Node, spare: Node | None = None
    ) -> None:
        super().__init__(servers, "service/app/leader", old, new)
        self.servers, self.device, self.spare = servers, device, spare

    def begin(self, settings: Callable[[str], Mapping[str, Any]]) -> None:
        """Return when the first node holds, and the others wait; ``settings`` makes the file of each."""
        self.settings = settings
        rest = [each for each in (self.new, self.spare) if each]
        names = [each.machine.name for each in (self.old, *rest)]
        until(lambda: self.servers.know(*names), "the servers know the agents of all machines", SEEN_S)
        self.old.start(settings(self.old.machine.name))
        self.old.see('"role": "holding"')
        self.old.see_act()
        for each in rest:
            each.start(settings(each.machine.name))
            each.see('"event": "started"')
        until(lambda: {*names} <= {*self._contenders()}, "the other nodes have sessions", SEEN_S)

    def _contenders(self) -> list[str]:
        """Return the machine of each session."""
        sessions = self.agent.call("GET", "/session/list?consistent")
        return [session["Node"] for session in sessions.json()] if sessions.status == 200 else []

    def strike(self, blow: Callable[[], object]) -> None:
        """Strike the holder, whose machine no other scene can use."""
        self.old.broken = True
        blow()
        self.lost_at = boottime()

    def find_successor(self) -> None:
        """Let ``new`` be the node that has the key once a node fences, and ``spare`` the other one."""
        until(lambda: self.device.asked, "a node fences", SEEN_S)
        holder = until(self._waiting_holder, "a waiting node has the key", SEEN_S)
        if self.spare and self.spare.machine.name == holder:
            self.new, self.spare = self.spare, self.new

    def _waiting_holder(self) -> str:
        """Return the name of the waiting node that has the key by now. Blank: none has it yet."""
        entry = self.agent.kv_get(self.key)
        holders = (each["Node"] for each in self.agent.sessions() if entry and each["ID"] == entry["Session"])
        return next((name for name in holders if name != self.old.machine.name), "")

    def lose_fencer(self) -> None:
        """Lose the machine that has the key and fences, so that the last one has to take over."""
        self.find_successor()
        assert self.spare, "a third node waits"
        self.new.broken = True
        self.new.machine.close()
        self.new, self.spare = self.spare, self.new

    def see_return(self, after: int) -> None:
        """Return when the machine of ``old`` has booted, in a line behind these, and takes part again."""
        machine, settings = self.old.machine, self.settings(self.old.machine.name)
        machine.see("booted in", after)
        self.old.agent.start()
        self.old.start(settings, again=True)

        def takes_part() -> bool:
            return self._contenders().count(machine.name) == len(settings["elections"])

        until(takes_part, f"{machine.name} takes part again", SEEN_S)

    def destroy_session(self) -> None:
        super().destroy_session()
        self.lost_at = boottime()


class Lab:
    """Machines that scenes take and give back, and the machine of all servers."""

    def __init__(self, folder: Path) -> None:
        self.machines = node.Machines(folder, BINARY)
        self._numbers = count(1)
        self._host = self.machines.new()

    @contextmanager
    def prepared(
        self, many: int, servers: int, gossip: Mapping[str, object], manner: Manner
    ) -> Iterator[Duel]:
        """Yield that many nodes without a supervisor; ``gossip`` are settings of all agents."""
        self._host.see("booted in")
        leading = Servers(self._host, [next(self._numbers) for _ in range(servers)], gossip)
        made = partial(Node, servers=leading.addresses, gossip=gossip)
        try:
            with self.machines.nodes(many, made) as nodes:
                machines = [node.machine for node in nodes]
                reboots = manner is Manner.REBOOTS
                switches = {each.name: each.reboot if reboots else each.power_off for each in machines}
                with Device(manner, switches) as device:
                    yield Duel(leading, device, *nodes)
        finally:
            leading.remove()
