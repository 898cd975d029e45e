"""A pair of machines that Ansible manages.

The playbook, the role and the shape of the inventory are those of the example, and ``ansible-playbook`` is
the real one. Only its ``ssh`` is a fake, which enters a machine's namespaces.
"""

import json
import os
import re
import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from supervisor import __version__
from tests.support.captured import captured
from tests.support.supervisor import ROOT, until
from tests.system.machine.machine import Machine
from tests.system.machine.node import SESSION, UNIT
from tests.system.machine.pair import Pair
from tests.system.machine.wheels import make_wheels

EXAMPLE = ROOT / "examples" / "ansible"
ANSIBLE = ROOT / ".cache" / "ansible" / "bin"
ENTER = Path(__file__).with_name("enter.sh")
COMMAND = "consul-supervisor"
WHEELS = "/srv/wheels"
EVENTS = "/srv/events"
PLAY_S = 300.0
COUNTS = re.compile(r"^(\w+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)


class Count(NamedTuple):
    """Ansible's counts of one node in one play."""

    ok: int
    changed: int
    failed: int


class Played(NamedTuple):
    """A run of ansible-playbook: its exit code, its output, and its counts by node."""

    code: int
    text: str
    counts: dict[str, Count]


class Fleet(Pair):
    """A pair of machines, and the product as a wheel."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.wheel = Path()

    def _build(self) -> None:
        self.wheel = self.make_wheel("wheels")
        super()._build()
        self._register()
        for machine in self.machines.values():
            shutil.copytree(self.wheel.parent, machine.root / WHEELS.lstrip("/"))
            (machine.root / WHEELS.lstrip("/") / self.wheel.name).unlink()  # comes with Ansible

    def _register(self) -> None:
        """Let Ansible's ssh find the machines."""
        (self.folder / "machines").mkdir()
        for name, machine in self.machines.items():
            (self.folder / "machines" / name).write_text(str(machine.leader))

    def make_wheel(self, folder: str, source: Path = ROOT, version: str = __version__) -> Path:
        """Make a folder with wheels of that tree and of its dependencies; return the wheel of the product."""
        make_wheels(self.folder / folder, source, version)
        (wheel,) = (self.folder / folder).glob("consul_supervisor-*.whl")
        return wheel

    def make_requirements(self) -> Path:
        """Write requirements with the hash of each wheel, in the form of `make dist`, and return the file."""
        lines = []
        for wheel in sorted(self.wheel.parent.glob("*.whl")):
            name, version = wheel.name.split("-")[:2]
            lines.append(f"{name}=={version} --hash=sha256:{sha256(wheel.read_bytes()).hexdigest()}\n")
        file = self.folder / "requirements.txt"
        file.write_text("".join(lines))
        return file

    # --- Ansible ----------------------------------------------------------------------------------

    def play(self, *options: str, playbook: str = "site", **variables: Any) -> Played:
        """Run a playbook of the example with these variables for all nodes."""
        inventory = self.folder / "inventory.yml"
        hosts = {"consul_supervisor": {"hosts": dict.fromkeys(self.machines, {}), "vars": variables}}
        inventory.write_text(yaml.safe_dump(hosts))
        ran = captured(
            [str(ANSIBLE / "ansible-playbook"), "-i", str(inventory), f"playbooks/{playbook}.yml", *options],
            cwd=EXAMPLE,
            env={**os.environ, **self._ansible_environ()},
            timeout=PLAY_S,
        )
        found = {m[1]: Count(int(m[2]), int(m[3]), int(m[5])) for m in COUNTS.finditer(ran.stdout)}
        return Played(ran.returncode, ran.stdout + ran.stderr, found)

    def _ansible_environ(self) -> Mapping[str, str]:
        return {
            "MACHINES": str(self.folder / "machines"),
            "ANSIBLE_COLLECTIONS_PATH": str(self.folder),
            "ANSIBLE_CONFIG": str(EXAMPLE / "ansible.cfg"),
            "ANSIBLE_SSH_EXECUTABLE": str(ENTER),
            "ANSIBLE_SSH_TRANSFER_METHOD": "piped",
            "ANSIBLE_SSH_ARGS": "",
            "ANSIBLE_PIPELINING": "True",  # three times as quick
            "ANSIBLE_GATHERING": "smart",  # once a node, because no play changes a fact
            "ANSIBLE_CACHE_PLUGIN": "jsonfile",
            "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(self.folder / "facts"),
            "ANSIBLE_HOME": str(self.folder / "ansible"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "PYTHONWARNINGS": "",
        }

    # --- what an operator sees --------------------------------------------------------------------

    def roles(self) -> dict[str, str]:
        return {name: self._role(machine) for name, machine in self.machines.items()}

    def _role(self, machine: Machine) -> str:
        said = machine.sh(f"{COMMAND} status --json").stdout
        return str(json.loads(said)["items"][0]["role"]) if said else ""

    def holder(self) -> str:
        """Return the node that holds, as soon as one does and the other waits."""
        until(lambda: sorted(self.roles().values()) == ["holding", "waiting"], f"one holds: {self.roles()}")
        return next(name for name, role in self.roles().items() if role == "holding")

    def held(self) -> tuple[str, str]:
        """Return the session that holds the first election and its LockIndex; a failover changes both."""
        shown = self.machines["one"].did("consul kv get -detailed service/app/leader").splitlines()
        fields = dict(line.split(maxsplit=1) for line in shown if len(line.split()) == 2)
        return fields["Session"], fields["LockIndex"]

    def pid(self, node: str) -> int:
        return int(self.machines[node].did(f"systemctl show -P MainPID {UNIT}"))


def hook(words: str) -> dict[str, str]:
    return {"shell": f"echo {words} >>{EVENTS}"}


def variables(fleet: Fleet, acquired: str = "acquired", **more: Any) -> dict[str, Any]:
    """Return the role's variables for a fleet with one election.

    acquired: the words that its on_acquire puts on record.
    """
    election = {"session": SESSION, "on_acquire": [hook(acquired)], "on_lose": [hook("lost")]}
    return {
        "consul_supervisor_wheel": str(fleet.wheel),
        "consul_supervisor_pip_environment": {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": WHEELS},
        "consul_supervisor_settings": {"consul": {"address": "http://127.0.0.1:8500"}},
        "consul_supervisor_elections": {"app": election},
        **more,
    }


def events(fleet: Fleet) -> dict[str, list[str]]:
    """Return by node what hooks put on record, oldest first."""
    return {name: machine.read(EVENTS).splitlines() for name, machine in fleet.machines.items()}
