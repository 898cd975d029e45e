"""Three Consul servers, and three nodes with a client agent each, beside which programs run.

The cluster starts and ends them, and keeps supervised programs alive while a test waits. ``faults.py`` breaks
it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeVar

from tests.system.cluster.consul import ConsulNode
from tests.system.cluster.network import Network
from tests.system.cluster.supervised import Supervised

SERVERS = ("s1", "s2", "s3")
CLIENTS = ("a", "b", "c")
T = TypeVar("T")

LOOK_EVERY_S = 0.1  # two cores carry six agents and the tools that measure
PATIENCE_S = 120.0  # agents that were cut off look for each other every 30 s


class Cluster:
    """Agents that know each other, with a leader among them: ``with Cluster(folder) as cluster``."""

    def __init__(
        self,
        folder: Path,
        gossip: Mapping[str, object] | None = None,
        clients: Sequence[str] = CLIENTS,
    ) -> None:
        self.folder, self._names = folder, clients
        self._gossip = gossip or {}
        self.network = Network()
        self.servers: dict[str, ConsulNode] = {}
        self.clients: dict[str, ConsulNode] = {}
        self.programs: list[Supervised] = []

    def __enter__(self) -> Self:
        self.network.__enter__()
        try:
            self._start()
        except BaseException:
            self.network.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.network.__exit__(*error)
        for process in (*self.programs, *self.clients.values(), *self.servers.values()):
            if process.running:
                process.wait()  # killed with its network, so there is nothing to stop

    def _start(self) -> None:
        voters = [f"10.77.0.{number}" for number in range(1, len(SERVERS) + 1)]
        for name in SERVERS:
            self.servers[name] = ConsulNode(
                self.network, self.folder / name, name, True, voters, self._gossip
            )
        for name in self._names:
            self.clients[name] = ConsulNode(
                self.network, self.folder / name, name, False, voters, self._gossip
            )
        for agent in (*self.servers.values(), *self.clients.values()):
            agent.start()
        self.wait_whole()

    def wait_whole(self) -> None:
        """Wait until every agent answers consistent reads, and every server has a vote.

        Autopilot removes a server that gossip finds dead, and gives it a vote 10 s after it is back.
        """
        self.until(lambda: all(agent.answers for agent in self._agents()), "every agent answers")
        self.until(lambda: self.server.voters == len(SERVERS), "every server has a vote")

    def _agents(self) -> list[ConsulNode]:
        return [*self.servers.values(), *self.clients.values()]

    @property
    def server(self) -> ConsulNode:
        """A server that answers; raises TimeoutError when none does."""
        return self.until(
            lambda: next((server for server in self.servers.values() if server.answers), None),
            "a server answers",
        )

    def leading_server(self) -> ConsulNode:
        def leading() -> ConsulNode | None:
            address = self.server.leader_address
            return next((server for server in self.servers.values() if server.address == address), None)

        return self.until(leading, "Consul has a leader")

    def supervise(self, program: Supervised) -> None:
        """Start the program and keep it alive from now on."""
        self.programs.append(program)
        program.start()

    def pass_time(self, length_s: float) -> None:
        """Wait, and meanwhile restart supervised programs that have ended."""
        over_at = time.monotonic() + length_s
        while (left_s := over_at - time.monotonic()) > 0:
            for program in self.programs:
                program.look()
            time.sleep(min(LOOK_EVERY_S, left_s))

    def until(self, condition: Callable[[], T | None], what: str) -> T:
        """Return the first true value of the condition; raise TimeoutError with ``what`` when none comes."""
        give_up_at = time.monotonic() + PATIENCE_S
        while not (value := condition()):
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"not within {PATIENCE_S:g} s: {what}")
            self.pass_time(LOOK_EVERY_S)
        return value
