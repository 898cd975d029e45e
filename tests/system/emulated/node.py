"""A machine with a supervisor, and machines that one scene after another uses."""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from tests.support.consul import Client
from tests.system.emulated.acts import acts
from tests.system.emulated.image import make_image
from tests.system.emulated.lan import Lan
from tests.system.emulated.machine import Line, Machine

HOST = "10.0.2.2"  # this host, for a machine
STATE, DATA = "/state", "/data"  # each a file system of its own
STOP = "application stop"

N = TypeVar("N", bound="Node")


class Node:
    """A machine with a supervisor.

    consul: the address at which the supervisor finds Consul.
    """

    def __init__(self, machine: Machine, consul: str) -> None:
        self.machine = machine
        self.begin = self.stamped = (
            0  # the lines of console and stamps at which the present supervisor was started
        )
        self.broken = False  # whether no other scene can use this machine
        self._consul = consul

    def start(self, settings: Mapping[str, Any], *, again: bool = False) -> None:
        """Start a supervisor with this file, and keep it alive from then on.

        again: what the machine has shown before still counts.
        """
        if not again:
            self.begin, self.stamped = len(self.machine.console), len(self.machine.stamps)
        file = {"consul": {"address": self._consul}, "log": {"format": "json"}, **settings}
        self.machine.type(f"echo {shlex.quote(json.dumps(file))} >/etc/supervisor.yaml")
        self.machine.type("keep >/dev/ttyS0 2>&1 &")

    @property
    def console(self) -> Sequence[Line]:
        """What the console has shown since the start of this supervisor."""
        return self.machine.console[self.begin :]

    @property
    def stamps(self) -> Sequence[Line]:
        """What its application and its hooks have said since then."""
        return self.machine.stamps[self.stamped :]

    def see_act(self, after: int = 0) -> None:
        """Return when the application has acted, in a stamp behind the first ones."""
        self.machine.wait(lambda: bool(acts(self.stamps[after:])), "an act")

    def see(self, pattern: str, after: int = 0) -> None:
        """Return when the console shows the pattern in a line of this supervisor behind the first ones."""
        self.machine.see(pattern, self.begin + after)

    def stop(self) -> None:
        self.machine.type("kill $(cat /run/supervisor.pid)")
        self.see("the supervisor has stopped")
        self.machine.type(f"rm -rf {STATE}/* /run/consul-supervisor")


class Duel(Generic[N]):
    """Two nodes that contend for one key: ``old`` holds it, and ``new`` waits for it."""

    def __init__(self, agent: Client, key: str, old: N, new: N) -> None:
        self.agent = agent
        self.key = key
        self.old = old
        self.new = new

    def destroy_session(self) -> None:
        """End the session of the holder, as an operator may."""
        entry = self.agent.kv_get(self.key)
        assert entry and entry["Session"], "somebody holds"
        self.agent.session_destroy(entry["Session"])


class Machines:
    """Machines that scenes take and give back: ``with Machines(folder) as machines``."""

    def __init__(self, folder: Path, *programs: Path) -> None:
        self.folder = folder
        self._image = make_image(folder, *programs)
        self._numbers = count(1)
        self._free: list[Machine] = []
        self._exits = ExitStack()
        self._lan = self._exits.enter_context(Lan())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._exits.close()

    @contextmanager
    def nodes(self, many: int, made: Callable[[Machine], N]) -> Iterator[list[N]]:
        """Yield nodes without a supervisor; a node that is whole afterwards serves the next scene."""
        machines = [self._free.pop() if self._free else self.new() for _ in range(many)]
        for machine in machines:
            machine.see("booted in")
        nodes = [made(machine) for machine in machines]
        yield nodes
        for node in nodes:
            if node.broken or node.machine.is_off or node.machine.reset_at:
                node.machine.close()
            else:
                node.stop()
                self._free.append(node.machine)

    def new(self) -> Machine:
        machine = Machine(next(self._numbers), self._image, self.folder, self._lan)
        self._exits.callback(machine.close)
        return machine
