"""Two nodes of the ActiveMQ example on one machine: two loopback addresses, one folder as their storage."""

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import psutil

from tests.support.consul import free_ports
from tests.support.supervisor import Supervisor, kill_all, processes_of, until
from tests.system.applications.stage import EXAMPLES, Stage
from tests.system.applications.stomp import Address

EXAMPLE = EXAMPLES / "activemq"
HOSTS = {"a": "127.0.0.1", "b": "127.0.0.2"}
USER = "activemq"
STARTED_S = 60.0  # a JVM on a busy machine
LOCKED = "is locked by another server"  # written by a broker while it waits for the lock on its file


class BrokerNode:
    """One machine: its supervisor, and its broker while it leads."""

    def __init__(self, supervisor: Supervisor, address: Address, mark: str) -> None:
        self.supervisor = supervisor
        self.address = address
        self._mark = mark

    def brokers(self) -> list[psutil.Process]:
        """Return the JVMs of this node: one, or none."""
        return processes_of(self._mark)

    def said(self, text: str) -> bool:
        return any(text in line["text"] for line in self.supervisor.lines("hook-output"))

    def freeze(self) -> None:
        """Stop the machine, as a hypervisor may do for any length of time."""
        for process in self._all():
            process.suspend()

    def thaw(self) -> None:
        for process in self._all():
            process.resume()

    def die(self) -> None:
        kill_all(self._all())
        self.supervisor.wait()
        until(lambda: not self.brokers(), "the broker is gone")

    def _all(self) -> list[psutil.Process]:
        return [psutil.Process(self.supervisor.pid), *self.brokers()]


class Brokers:
    """Nodes a and b, not started; the end of the ``with`` block kills them and removes their folder.

    The folder is not one of pytest's, because the user activemq must be able to enter it. It also holds a
    copy of the example, because the example's README installs it there.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._ports = dict(zip(("openwire", "stomp"), free_ports(2), strict=True))

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="activemq-", dir="/tmp"))
        with ExitStack() as exits:
            exits.callback(shutil.rmtree, self._folder)
            exits.callback(self._end)
            self._install()
            self.a, self.b = self._node("a"), self._node("b")
            for node in (self.a, self.b):
                exits.callback(node.supervisor.close)
            self._exits = exits.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exits.close()

    def _install(self) -> None:
        self._folder.chmod(0o755)
        self.storage = self._folder / "storage"
        shutil.copytree(EXAMPLE, self._folder / "installed")
        self.storage.mkdir()
        (self.storage / "storage-is-here").touch()
        for path in (self.storage, self.storage / "storage-is-here"):
            shutil.chown(path, USER, USER)

    def _end(self) -> None:
        kill_all(processes_of(str(self._folder)))
        until(lambda: not processes_of(str(self._folder)), "nothing runs in the folder")

    @property
    def addresses(self) -> list[Address]:
        return [self.a.address, self.b.address]

    def _node(self, name: str) -> BrokerNode:
        local = self._folder / name
        local.mkdir()
        shutil.chown(local, USER, USER)
        environ = {
            "ACTIVEMQ_CONF": str(self._folder / "installed"),
            "ACTIVEMQ_SHARED": str(self.storage),
            "ACTIVEMQ_LOCAL": str(local),
            "ACTIVEMQ_ADDRESS": HOSTS[name],
            "ACTIVEMQ_OPENWIRE": str(self._ports["openwire"]),
            "ACTIVEMQ_STOMP": str(self._ports["stomp"]),
            "ACTIVEMQ_MEMORY": "-Xms64M -Xmx256M",
        }
        supervisor = self._stage.supervisor(
            name,
            self._folder / "installed" / "activemq.yaml",
            environ,
            replaced={"/srv/activemq/": f"{self.storage}/"},
            session={"ttl": "2s", "lock_delay": "15s"},
        )
        return BrokerNode(supervisor, (HOSTS[name], self._ports["stomp"]), f"-Dactivemq.local={local}")

    def led_by_a(self) -> None:
        """Wait until a leads with a broker that accepts clients, and b waits."""
        self.a.supervisor.start()
        self.wait_started(self.a)
        self.b.supervisor.start()
        self.b.supervisor.wait_line("role", role="waiting")

    def wait_started(self, node: BrokerNode) -> None:
        until(lambda: node.said("Connector stomp started"), node.supervisor.log_tail(), STARTED_S)
