"""Two nodes behind a balancer: real supervisors, tiny real applications, clients without a pause."""

import http.client
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.consul.elections.scene import Scene
from tests.support.background import Worker
from tests.support.consul import HOST, Agent, free_ports
from tests.support.supervisor import ROOT
from tests.system.programs.application import server
from tests.system.programs.haproxy import Backend

PAUSE_S = 0.01
CLIENT_TIMEOUT_S = 5.0


class BalancedScene(Scene):
    """An election on nodes a and b, whose supervisors listen on the ports in ``nodes``."""

    def __init__(self, agent: Agent, folder: Path, name: str) -> None:
        super().__init__(agent, folder, name)
        ports = free_ports(4)
        self.nodes_of = {"a": Backend("a", ports[0], ports[1]), "b": Backend("b", ports[2], ports[3])}
        self._starting = ""

    @property
    def places(self) -> Sequence[Backend]:
        return tuple(self.nodes_of.values())

    def config(
        self, items: Mapping[str, object], consul: Mapping[str, object] | None = None
    ) -> dict[str, object]:
        listen = f"{HOST}:{self.nodes_of[self._starting].http_port}"
        return {**super().config(items, consul), "http": {"listen": listen}}

    def election(self, node: str, **changes: object) -> dict[str, object]:
        self._starting = node
        return super().election(node, **changes)

    def application(self, node: str) -> dict[str, object]:
        port = str(self.nodes_of[node].application_port)
        exec_ = [sys.executable, "-m", "tests.system.programs.application", node, port]
        return {"exec": exec_, "cwd": str(ROOT), "stop_timeout": "300ms"}

    def serve_always(self, stack: ExitStack) -> None:
        """Run the applications of both nodes until the stack is closed, whichever node leads."""
        for node in self.places:
            stack.enter_context(server(node.name, node.application_port))


class Reached(NamedTuple):
    """A client's request, in seconds of CLOCK_BOOTTIME; ``node`` is blank when no node answered."""

    began_at: float
    node: str


class Clients(Worker):
    """Clients that send requests while the ``with`` block runs, each over a new connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reached: list[Reached] = []
        super().__init__()

    def all(self) -> list[Reached]:
        return list(self._reached)

    def answered(self, node: str) -> list[float]:
        """Return when the requests began that this node answered."""
        return [reached.began_at for reached in self.all() if reached.node == node]

    def _work(self) -> None:
        while not self._ended.wait(PAUSE_S):
            began_at = time.clock_gettime(time.CLOCK_BOOTTIME)
            self._reached.append(Reached(began_at, ask(self._port)))


def ask(port: int, path: str = "/") -> str:
    """Return the node that answers; blank when none does."""
    connection = http.client.HTTPConnection(HOST, port, timeout=CLIENT_TIMEOUT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode().strip()
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()
