"""Two booted machines with a Consul of their own between them, and Ansible before them.

They hang on a bridge. One runs Consul's server, the other a client agent; the supervisor of each asks
its own. The playbook, the role and the inventory's shape are those of the example, and
``ansible-playbook`` is the real one; only what it takes for ssh enters a machine's namespaces.
"""

import json
import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import yaml

from tests.machine.machine import Machine
from tests.machine.node import CONSUL_CONFIG, CONSUL_UNIT, UNIT
from tests.machine.wheels import make_wheels
from tests.support.consul import BINARY
from tests.support.supervisor import ROOT, until

EXAMPLE = ROOT / "examples" / "ansible"
ANSIBLE = ROOT / ".cache" / "ansible" / "bin"
ENTER = ROOT / "tests" / "machine" / "enter.sh"
COMMAND = "/opt/consul-supervisor/bin/consul-supervisor"
WHEELS = "/srv/wheels"
ADDRESSES = {"one": "10.20.30.1", "two": "10.20.30.2"}
PLAY_S = 300.0
COUNTS = re.compile(r"^(\w+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)


class Count(NamedTuple):
    """What a play came to on one node."""

    ok: int
    changed: int
    failed: int


class Played(NamedTuple):
    """A run of ansible-playbook: its exit code, what it wrote, and its counts by node."""

    code: int
    text: str
    counts: dict[str, Count]


class Fleet:
    """Machines ``one`` and ``two``; the first runs Consul's server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bridge = f"br-{uuid.uuid4().hex[:8]}"
        self._exits = ExitStack()
        self.machines: dict[str, Machine] = {}
        self.wheel = Path()

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
        self.wheel = self.make_wheel("wheels")
        self._exits.callback(_run, "ip", "link", "delete", self._bridge)
        _run("ip", "link", "add", self._bridge, "type", "bridge", "mcast_snooping", "0")
        _run("ip", "link", "set", self._bridge, "up")
        (self._folder / "machines").mkdir()
        for name in ADDRESSES:
            machine = Machine(self._folder / name, self._bridge)
            self.machines[name] = self._exits.enter_context(machine)
            (self._folder / "machines" / name).write_text(str(machine.leader))
            self._prepare(name)
        until(lambda: len(self._members()) == len(ADDRESSES), "both are members of the cluster")

    def make_wheel(self, folder: str, source: Path = ROOT) -> Path:
        """The product of that tree as a wheel, in a new folder with those of what it depends on."""
        make_wheels(self._folder / folder, source)
        (wheel,) = (self._folder / folder).glob("consul_supervisor-*.whl")
        return wheel

    def _prepare(self, name: str) -> None:
        """What an operator's machine has before Ansible comes: an address, Consul, a package index."""
        machine = self.machines[name]
        machine.did(f"ip address add {ADDRESSES[name]}/24 dev host0; ip link set host0 up")
        shutil.copytree(self.wheel.parent, machine.root / WHEELS.lstrip("/"))
        (machine.root / WHEELS.lstrip("/") / self.wheel.name).unlink()  # it comes with Ansible
        shutil.copy(BINARY, machine.root / "usr" / "local" / "bin" / "consul")
        role = {} if name == "one" else {"server": False, "retry_join": [ADDRESSES["one"]]}
        config = {**CONSUL_CONFIG, "bind_addr": ADDRESSES[name], "node_name": name, **role}
        if name != "one":
            del config["bootstrap_expect"]
        machine.write("/etc/consul.d/consul.json", json.dumps(config))
        machine.write("/etc/systemd/system/consul.service", CONSUL_UNIT)
        machine.did("systemctl daemon-reload; systemctl enable -q --now consul")

    def _members(self) -> list[str]:
        said = self.machines["two"].sh("consul members").stdout
        return [line for line in said.splitlines() if " alive " in line]

    # --- Ansible ----------------------------------------------------------------------------------

    def play(self, *options: str, **variables: Any) -> Played:
        """The example's playbook with these variables for all nodes."""
        inventory = self._folder / "inventory.yml"
        hosts = {"consul_supervisor": {"hosts": dict.fromkeys(ADDRESSES, {}), "vars": variables}}
        inventory.write_text(yaml.safe_dump(hosts))
        ran = subprocess.run(
            [str(ANSIBLE / "ansible-playbook"), "-i", str(inventory), "site.yml", *options],
            check=False,
            capture_output=True,
            text=True,
            cwd=EXAMPLE,
            env={**os.environ, **self._ansible_environ()},
            timeout=PLAY_S,
        )
        found = {m[1]: Count(int(m[2]), int(m[3]), int(m[5])) for m in COUNTS.finditer(ran.stdout)}
        return Played(ran.returncode, ran.stdout + ran.stderr, found)

    def _ansible_environ(self) -> Mapping[str, str]:
        return {
            "MACHINES": str(self._folder / "machines"),
            "ANSIBLE_CONFIG": str(EXAMPLE / "ansible.cfg"),
            "ANSIBLE_SSH_EXECUTABLE": str(ENTER),
            "ANSIBLE_SSH_TRANSFER_METHOD": "piped",
            "ANSIBLE_SSH_ARGS": "",
            "ANSIBLE_PIPELINING": "True",  # three times as quick
            "ANSIBLE_HOME": str(self._folder / "ansible"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "PYTHONWARNINGS": "",
        }

    # --- what an operator sees --------------------------------------------------------------------

    def roles(self) -> dict[str, str]:
        """By node what it is in the first election; blank where no daemon tells."""
        return {name: self._role(machine) for name, machine in self.machines.items()}

    def _role(self, machine: Machine) -> str:
        said = machine.sh(f"{COMMAND} status --json").stdout
        return str(json.loads(said)["items"][0]["role"]) if said else ""

    def holder(self) -> str:
        """The node that holds, once one does and the other waits."""
        until(lambda: sorted(self.roles().values()) == ["holding", "waiting"], f"one holds: {self.roles()}")
        return next(name for name, role in self.roles().items() if role == "holding")

    def held(self) -> tuple[str, str]:
        """The session that holds the first election, and its LockIndex; they change with each failover."""
        shown = self.machines["one"].did("consul kv get -detailed service/app/leader").splitlines()
        fields = dict(line.split(maxsplit=1) for line in shown if len(line.split()) == 2)
        return fields["Session"], fields["LockIndex"]

    def pid(self, node: str) -> int:
        """Of the supervisor's process."""
        return int(self.machines[node].did(f"systemctl show -P MainPID {UNIT}"))

    def log(self, node: str) -> str:
        """What its supervisor wrote."""
        return self.machines[node].sh(f"journalctl -o cat --no-pager -u {UNIT}").stdout


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)
