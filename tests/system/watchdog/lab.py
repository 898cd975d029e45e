"""The lab: a Consul on this host, and machines of which two contend for a key."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Self

from supervisor.adapters.runtime.clock import boottime
from tests.support.consul import Agent
from tests.support.proxy import Proxy
from tests.support.supervisor import until
from tests.system.emulated import node
from tests.system.emulated.machine import Machine

I6300ESB, SOFTDOG = "/dev/watchdog0", "/dev/watchdog1"  # in the order in which their modules are loaded


class Node(node.Node):
    """A machine with a supervisor, and a proxy of its own between that and Consul.

    contacts: when each consistent read of the key came by, in seconds of the host's clock.
    """

    def __init__(self, machine: Machine, proxy: Proxy) -> None:
        super().__init__(machine, f"http://{node.HOST}:{proxy.port}")
        self.proxy = proxy
        self.contacts: list[float] = []
        proxy.change(self._noted, "GET", "/leader?consistent")

    def _noted(self, body: bytes) -> bytes:
        self.contacts.append(boottime())
        return body


class Duel(node.Duel[Node]):
    """A duel; ``last_contact``: the last one of ``old``, once its session has ended."""

    last_contact: float | None = None

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Return when the first node holds, and the other one waits."""
        self.old.start(settings)
        self.old.see_act()
        self.new.start(settings)
        self.new.see('"event": "started"')
        self.old.contacts.clear()
        until(lambda: self.old.contacts, "the holder confirms its lock")

    def destroy_session(self) -> None:
        """End the session of the holder, so that a rival comes as early as Consul lets one come."""
        self.last_contact = self.old.contacts[-1]
        super().destroy_session()


class Lab:
    """A Consul, and machines that scenes take and give back: ``with Lab(folder) as lab``."""

    def __init__(self, folder: Path) -> None:
        self._numbers = count(1)
        self._exits = ExitStack()
        self._machines = self._exits.enter_context(node.Machines(folder))
        self._agent = self._exits.enter_context(Agent(folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._exits.close()

    @contextmanager
    def duel(self) -> Iterator[Duel]:
        """Yield two nodes without a supervisor."""
        with ExitStack() as proxies:

            def made(machine: Machine) -> Node:
                proxy = proxies.enter_context(Proxy(self._agent.host, self._agent.port))
                return Node(machine, proxy)

            with self._machines.nodes(2, made) as nodes:
                yield Duel(self._agent, f"service/scene-{next(self._numbers)}/leader", *nodes)
