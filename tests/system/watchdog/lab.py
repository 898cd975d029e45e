"""The lab: a Consul on this host, and machines of which two contend for a key."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Self

from tests.support.consul import Agent
from tests.support.proxy import Proxy
from tests.support.supervisor import until
from tests.system.watchdog.image import make_image
from tests.system.watchdog.machine import Line, Machine, boottime

HOST = "10.0.2.2"  # this host, for a machine
I6300ESB, SOFTDOG = "/dev/watchdog0", "/dev/watchdog1"  # in the order in which their modules are loaded
STATE, DATA = "/state", "/data"  # each a file system of its own
STOP = "application stop"


class Node:
    """A machine with a supervisor, and a proxy of its own between that and Consul.

    contacts: when each consistent read of the key came by, in seconds of the host's clock.
    """

    def __init__(self, machine: Machine, proxy: Proxy) -> None:
        self.machine = machine
        self.proxy = proxy
        self.contacts: list[float] = []
        self.begin = 0  # the line of the console at which the present supervisor was started
        self.broken = False  # whether no other scene can use this machine
        proxy.change(self._noted, "GET", "/leader?consistent")

    def start(self, settings: Mapping[str, Any]) -> None:
        """Start a supervisor with this file, and keep it alive from then on."""
        self.begin = len(self.machine.console)
        consul = {"address": f"http://{HOST}:{self.proxy.port}"}
        file = {"consul": consul, "log": {"format": "json"}, **settings}
        self.machine.type(f"echo {shlex.quote(json.dumps(file))} >/etc/supervisor.yaml")
        self.machine.type("keep >/dev/ttyS0 2>&1 &")

    @property
    def console(self) -> Sequence[Line]:
        """What the console has shown since the start of this supervisor."""
        return self.machine.console[self.begin :]

    def see(self, pattern: str, after: int = 0) -> None:
        """Return when the console shows the pattern in a line of this supervisor behind the first ones."""
        self.machine.see(pattern, self.begin + after)

    def stop(self) -> None:
        """Stop the supervisor in order, and wait until it has ended."""
        self.machine.type("kill $(cat /run/supervisor.pid)")
        self.see("the supervisor has stopped")

    def _noted(self, body: bytes) -> bytes:
        self.contacts.append(boottime())
        return body


class Duel:
    """Two nodes that contend for one key: ``old`` holds it, and ``new`` waits for it.

    last_contact: the last contact of ``old``, once its session has ended.
    """

    def __init__(self, agent: Agent, name: str, old: Node, new: Node) -> None:
        self.old = old
        self.new = new
        self.key = f"service/{name}/leader"
        self.last_contact: float | None = None
        self._agent = agent

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Return when the first node holds, and the other one waits."""
        self.old.start(settings)
        self.old.see("I act")
        self.new.start(settings)
        self.new.see('"event": "started"')
        self.old.contacts.clear()
        until(lambda: self.old.contacts, "the holder confirms its lock")

    def destroy_session(self) -> None:
        """End the session of the holder, so that a rival comes as early as Consul lets one come."""
        self.last_contact = self.old.contacts[-1]
        entry = self._agent.kv_get(self.key)
        assert entry and entry["Session"], "somebody holds"
        self._agent.session_destroy(entry["Session"])


class Lab:
    """A Consul, and machines that scenes take and give back: ``with Lab(folder) as lab``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._image = make_image(folder)
        self._numbers = count(1)
        self._free: list[Node] = []
        self._exits = ExitStack()
        self._agent = self._exits.enter_context(Agent(folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._exits.close()

    @contextmanager
    def duel(self) -> Iterator[Duel]:
        """Yield two nodes without a supervisor; a node that is whole afterwards serves the next scene."""
        nodes = [self._free.pop() if self._free else self._new() for _ in range(2)]
        for node in nodes:
            node.machine.see("booted in")
        yield Duel(self._agent, f"scene-{next(self._numbers)}", *nodes)
        for node in nodes:
            if node.broken or node.machine.reset_at:
                node.machine.close()
            else:
                node.stop()
                self._free.append(node)

    def _new(self) -> Node:
        proxy = self._exits.enter_context(Proxy(self._agent.host, self._agent.port))
        machine = Machine(f"node-{next(self._numbers)}", self._image, self._folder)
        self._exits.callback(machine.close)
        return Node(machine, proxy)
