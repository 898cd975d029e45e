"""Two booted machines with a Consul of their own.

They are connected by a bridge. One runs Consul's server, the other a client agent, and each supervisor uses
the agent on its own machine.
"""

import json
import shutil
import subprocess
import uuid
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.consul import BINARY
from tests.support.supervisor import until
from tests.system.machine.machine import Machine
from tests.system.machine.node import CONSUL_CONFIG, CONSUL_UNIT, UNIT

ADDRESS_UNIT = """[Unit]
Before=network.target consul.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/ip address add {}/24 dev host0
ExecStart=/usr/sbin/ip link set host0 up
[Install]
WantedBy=multi-user.target
"""
ADDRESSES = {"one": "10.20.30.1", "two": "10.20.30.2"}


class Pair:
    """Machines ``one`` and ``two``; the first runs Consul's server."""

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def _build(self) -> None:
        self._exits.callback(_run, "ip", "link", "delete", self._bridge)
        _run("ip", "link", "add", self._bridge, "type", "bridge", "mcast_snooping", "0")
        _run("ip", "link", "set", self._bridge, "up")
        for name in ADDRESSES:
            machine = Machine(self.folder / name, self._bridge)
            self.machines[name] = self._exits.enter_context(machine)
            _connect(machine, name)
            _install_consul(machine, name)
        until(lambda: len(self._members()) == len(ADDRESSES), "both are members of the cluster")

    def _members(self) -> list[str]:
        said = self.machines["two"].sh("consul members").stdout
        return [line for line in said.splitlines() if " alive " in line]

    def log(self, name: str) -> str:
        """Return the output of that machine's supervisor."""
        return self.machines[name].sh(f"journalctl -o cat --no-pager -u {UNIT}").stdout


def _connect(machine: Machine, name: str) -> None:
    """Give the machine its address, which is necessary after each boot."""
    machine.write("/etc/systemd/system/address.service", ADDRESS_UNIT.format(ADDRESSES[name]))
    machine.did("systemctl daemon-reload; systemctl enable -q --now address")


def _install_consul(machine: Machine, name: str) -> None:
    shutil.copy(BINARY, machine.root / "usr" / "local" / "bin" / "consul")
    role: dict[str, Any] = {} if name == "one" else {"server": False, "retry_join": [ADDRESSES["one"]]}
    config = {**CONSUL_CONFIG, "bind_addr": ADDRESSES[name], "node_name": name, **role}
    if name != "one":
        del config["bootstrap_expect"]
    machine.write("/etc/consul.d/consul.json", json.dumps(config))
    machine.write("/etc/systemd/system/consul.service", CONSUL_UNIT)
    machine.did("systemctl daemon-reload; systemctl enable -q --now consul")


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)
