"""Three bare machines of Debian 13 with a cluster of Consul: docs/start.md or the role makes an election.

`pytest -s` prints how long it took, from the package to the election that each machine shows.
"""

import shutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.support.pages import START, fenced
from tests.support.supervisor import until
from tests.system.machine.fleet import EXAMPLE, Fleet
from tests.system.machine.group import Group
from tests.system.machine.machine import TRIXIE, Machine
from tests.system.machine.node import UNIT
from tests.system.machine.packages import FOLDER, give_package, make_package
from tests.system.machine.pair import OF_THREE

SECTION = "On three nodes"
INSTALL_S = 300.0  # Python and its packages are installed as well
ELECTION_S = 60.0
PYTHON_FOR_ANSIBLE = "apt-get -q update && apt-get -q -y install --no-install-recommends python3 python3-apt"
PATCHED = "/srv/patched"  # the status of a node as its patch finds it
HOOK = {"exec": ["/bin/true"]}


class BareTrio(Group):
    """Machines ``one``, ``two`` and ``three``, each with a server of Consul and without Python."""

    addresses = OF_THREE
    servers = tuple(addresses)
    tree = TRIXIE


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_package(tmp_path_factory.mktemp("package") / "tree")


@pytest.fixture
def trio(package: Path, tmp_path: Path) -> Iterator[BareTrio]:
    with BareTrio(tmp_path) as made:
        for machine in made.machines.values():
            give_package(machine, package)
            assert machine.sh("command -v python3").returncode != 0
        yield made


class BareFleet(Fleet):
    """The machines of ``BareTrio``, managed by Ansible."""

    addresses = BareTrio.addresses
    servers = BareTrio.servers
    tree = TRIXIE

    def _build(self) -> None:
        Group._build(self)
        self._register()


def shows(machine: Machine, command: str, text: str) -> bool:
    """Return whether the output of this command begins with this text."""
    return machine.sh(command).stdout.startswith(text)


def test_the_commands_of_the_page_lead_from_bare_machines_to_an_election(trio: BareTrio) -> None:
    blocks = [block for block in fenced(START) if block.section == SECTION and block.language != "yaml"]
    each_node, any_node, shown = (block.text for block in blocks)
    began_at = time.monotonic()
    for machine in trio.machines.values():
        machine.did(f"cd /{FOLDER}\n{each_node}", within_s=INSTALL_S)
    for name, machine in trio.machines.items():
        until(partial(shows, machine, any_node, shown), f"all take part\n{trio.log(name)}", ELECTION_S)
    took_s = time.monotonic() - began_at
    print(f"\nfrom three bare machines to an election of three nodes: {took_s:.1f} s")
    print(trio.machines["one"].did(any_node), end="")

    leader = "consul-supervisor leader app"
    led = trio.machines["one"].did(leader)
    holder = next(name for name in trio.machines if f'"{name}"' in led)
    trio.machines[holder].did(f"systemctl stop {UNIT}")
    after = until(lambda: trio.machines[holder].sh(leader).stdout, "another leads", ELECTION_S)
    assert after != led


def test_the_role_leads_from_bare_machines_to_an_election_and_a_play_patches_them(
    package: Path, tmp_path: Path
) -> None:
    with BareFleet(tmp_path / "fleet") as fleet:
        began_at = time.monotonic()
        for machine in fleet.machines.values():
            machine.did(PYTHON_FOR_ANSIBLE, within_s=INSTALL_S)
        played = fleet.play(
            ansible_become=False,  # the machines have no sudo, and Ansible enters them as root
            consul_supervisor_deb=str(package),
            consul_supervisor_settings={"consul": {"address": "http://127.0.0.1:8500"}},
            consul_supervisor_elections={"app": {"on_acquire": [HOOK], "on_lose": [HOOK]}},
        )
        assert played.code == 0, played.text
        until(lambda: sorted(fleet.roles().values()) == ["holding", "waiting", "waiting"], "all take part")
        took_s = time.monotonic() - began_at
        print(f"\nby Ansible, from three bare machines to an election of three nodes: {took_s:.1f} s")

        shutil.copytree(EXAMPLE, fleet.folder / "ansible_collections/consul_supervisor/consul_supervisor")
        patch = tmp_path / "patch.yml"
        look = f"consul-supervisor status --json >{PATCHED}"
        patch.write_text(yaml.safe_dump([{"ansible.builtin.shell": look}]))
        began_at = time.monotonic()
        played = fleet.play(playbook="patch", ansible_become=False, patch_tasks=str(patch))
        print(f"drained, patched and back, one after the other: {time.monotonic() - began_at:.1f} s")
        assert played.code == 0, played.text
        for machine in fleet.machines.values():
            assert '"role":"paused"' in machine.read(PATCHED), "it was patched while it held nothing"
        assert sorted(fleet.roles().values()) == ["holding", "waiting", "waiting"]
