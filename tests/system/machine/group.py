"""Booted machines on one bridge, each with a Consul agent of its own.

The supervisor of each machine asks the agent of that machine.
"""

import json
import shutil
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from tests.support.consul import BINARY
from tests.support.supervisor import until
from tests.system.machine.machine import BOOKWORM, Machine
from tests.system.machine.node import CONSUL_CONFIG, CONSUL_UNIT, UNIT

ADDRESS_UNIT = """[Unit]
Before=network.target consul.service corosync.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/ip address add {}/24 dev host0
ExecStart=/usr/sbin/ip link set host0 up
[Install]
WantedBy=multi-user.target
"""


class Group:
    """Machines by their host names, which are the names of their nodes in Consul as well.

    addresses: the address of each machine.
    servers: the machines whose agent is a server of Consul; the first of them needs no other to start.
    tree: the Debian that the machines boot.
    """

    addresses: Mapping[str, str]
    servers: Sequence[str]
    tree = BOOKWORM

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.machines: dict[str, Machine] = {}
        self._bridge = f"br-{uuid.uuid4().hex[:8]}"
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        with self._exits:
            self._build()
            self._exits = self._exits.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exits.close()

    def _build(self) -> None:
        self._exits.callback(_run, "ip", "link", "delete", self._bridge)
        _run("ip", "link", "add", self._bridge, "type", "bridge", "mcast_snooping", "0")
        _run("ip", "link", "set", self._bridge, "up")
        for name in self.addresses:
            machine = Machine(self.folder / name, self._bridge, name, tree=self.tree)
            self.machines[name] = self._exits.enter_context(machine)
            self._connect(name)
            self._join(name)
        self.wait_whole()

    def wait_whole(self) -> None:
        """Return when each Consul agent takes all machines for alive."""

        def is_whole() -> bool:
            return all(self.alive(name) == {*self.addresses} for name in self.addresses)

        until(is_whole, "all are members of the cluster")

    def alive(self, seen_from: str) -> set[str]:
        """Return the machines that this one's Consul agent takes for alive."""
        said = self.machines[seen_from].sh("consul members").stdout
        return {line.split()[0] for line in said.splitlines() if " alive " in line}

    def log(self, name: str) -> str:
        return self.machines[name].sh(f"journalctl -o cat --no-pager -u {UNIT}").stdout

    def _connect(self, name: str) -> None:
        """Give the machine its address, at every boot anew."""
        machine = self.machines[name]
        machine.write("/etc/systemd/system/address.service", ADDRESS_UNIT.format(self.addresses[name]))
        machine.did("systemctl daemon-reload; systemctl enable -q --now address")

    def _join(self, name: str) -> None:
        """Install what makes the machine one of the cluster, which is Consul."""
        machine = self.machines[name]
        shutil.copy(BINARY, machine.root / "usr" / "local" / "bin" / "consul")
        machine.write("/etc/consul.d/consul.json", json.dumps(self._consul_config(name)))
        machine.write("/etc/systemd/system/consul.service", CONSUL_UNIT)
        machine.did("systemctl daemon-reload; systemctl enable -q --now consul")

    def _consul_config(self, name: str) -> dict[str, Any]:
        config = {
            **CONSUL_CONFIG,
            "bind_addr": self.addresses[name],
            "node_name": name,
            "server": name in self.servers,
            "bootstrap_expect": len(self.servers),
            "retry_join": [self.addresses[server] for server in self.servers if server != name],
            "retry_interval": "1s",
        }
        if name not in self.servers:
            del config["bootstrap_expect"]
        return config


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)
