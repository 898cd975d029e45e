"""The lab: a Consul for each scene, and machines of which two contend for a key.

The client agent of a machine runs on this host, because qemu's own network carries no gossip to the host. It
ends, stops and is cut off together with its machine, as if it ran inside.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from supervisor.adapters.runtime.clock import boottime
from tests.support.consul import Agent
from tests.support.supervisor import until
from tests.system.emulated import node
from tests.system.emulated.machine import SEEN_S, Machine
from tests.system.fence.device import Device, Manner


class Node(node.Node):
    """A machine with a supervisor, and a client agent of its own."""

    def __init__(self, machine: Machine, agent: Agent) -> None:
        super().__init__(machine, agent.port)
        self.agent = agent

    def off(self) -> None:
        self.machine.power_off()
        self.agent.kill()

    def kill(self) -> None:
        self.machine.close()
        self.agent.kill()

    def cut(self) -> None:
        """Cut the machine off from everything."""
        self.machine.order("set_link", name="net", up=False)
        self.agent.freeze()

    def pause(self) -> None:
        """Stop the machine with its clocks."""
        self.machine.order("stop")
        self.agent.freeze()

    def resume(self) -> None:
        if not self.machine.is_off:
            self.agent.thaw()
            self.machine.order("cont")


class Duel(node.Duel[Node]):
    """A duel; ``lost_at``: when ``old`` was struck. None: not yet, or by nothing that ends a session."""

    lost_at: float | None = None

    def __init__(self, server: Agent, device: Device, old: Node, new: Node) -> None:
        super().__init__(server, "service/app/leader", old, new)
        self.device = device

    def begin(self, settings: Callable[[str], Mapping[str, Any]]) -> None:
        """Return when the first node holds, and the other one waits; ``settings`` makes the file of each."""
        self.old.start(settings(self.old.machine.name))
        self.old.see('"role": "holding"')
        self.old.see("I act")
        self.new.start(settings(self.new.machine.name))
        self.new.see('"event": "started"')
        until(self._contends, "the other node has a session", SEEN_S)

    def _contends(self) -> bool:
        return any(session["Node"] == self.new.machine.name for session in self.agent.sessions())

    def strike(self, blow: Callable[[], object]) -> None:
        """Strike the holder, whose machine no other scene can use."""
        self.old.broken = True
        blow()
        self.lost_at = boottime()

    def destroy_session(self) -> None:
        super().destroy_session()
        self.lost_at = boottime()


@contextmanager
def prepared(machines: node.Machines, gossip: Mapping[str, object], manner: Manner) -> Iterator[Duel]:
    """Yield two nodes without a supervisor; ``gossip`` are settings of all agents."""
    folder = Path(mkdtemp(prefix="scene-", dir=machines.folder))
    with ExitStack() as exits:
        # Not -dev, which has a gossip of its own.
        server = exits.enter_context(Agent(folder / "server", persistent=True, config=gossip))

        def made(machine: Machine) -> Node:
            config = {"node_name": machine.name, **gossip}
            agent = Agent(folder / machine.name, servers=server, leave_on_terminate=True, config=config)
            return Node(machine, exits.enter_context(agent))

        with machines.pair(made) as (old, new):
            with Device(manner, {each.machine.name: each.off for each in (old, new)}) as device:
                yield Duel(server, device, old, new)
