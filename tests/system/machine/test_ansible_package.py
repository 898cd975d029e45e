"""The example's role installs the Debian package on two booted machines, and no lock moves by itself."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.supervisor import until
from tests.system.machine.fleet import COMMAND, EVENTS, Fleet, events
from tests.system.machine.fleet import variables as variables_of_venv
from tests.system.machine.packages import make_package


class PackagedFleet(Fleet):
    """A fleet, and the product as a Debian package."""

    package = Path()

    def _build(self) -> None:
        super()._build()
        self.package = make_package(self.folder / "package")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackagedFleet]:
    """Yield a fleet with a venv. The tests of this module follow one another on it."""
    assert os.geteuid() == 0, "cannot boot a machine: this needs root"
    with PackagedFleet(tmp_path_factory.mktemp("fleet")) as made:
        played = made.play(**variables_of_venv(made))
        assert played.code == 0, played.text
        made.holder()
        for machine in made.machines.values():
            machine.did(f"echo >{EVENTS}")
        yield made


def variables(fleet: PackagedFleet, **more: Any) -> dict[str, Any]:
    """Return the variables of the fleet, which is installed from the package."""
    return variables_of_venv(fleet, consul_supervisor_deb=str(fleet.package), **more)


def programs(fleet: Fleet) -> set[str]:
    """Return the commands by which the daemons run."""
    return {
        machine.did("systemctl show -P ExecStart consul-supervisor") for machine in fleet.machines.values()
    }


def test_a_package_takes_the_place_of_a_venv_without_a_failover(fleet: PackagedFleet) -> None:
    holder, held = fleet.holder(), fleet.held()
    pids = {name: fleet.pid(name) for name in fleet.machines}
    looked = fleet.play("--check", **variables(fleet))
    assert looked.code == 0, looked.text
    assert all("path=/opt/" in program for program in programs(fleet))
    played = fleet.play(**variables(fleet))
    assert played.code == 0, played.text
    assert all("path=/usr/bin/" in program for program in programs(fleet))
    assert all(fleet.pid(name) != pids[name] for name in fleet.machines)
    assert (fleet.holder(), fleet.held()) == (holder, held)
    assert list(events(fleet).values()) == [[""], [""]]
    for machine in fleet.machines.values():
        assert machine.did("ls /opt").split() == ["consul-supervisor-packages"]
    again = fleet.play(**variables(fleet))
    assert again.code == 0 and {count.changed for count in again.counts.values()} == {0}, again.text
    looked = fleet.play("--check", **variables(fleet))
    assert looked.code == 0 and {count.changed for count in looked.counts.values()} == {0}, looked.text


def test_an_upgrade_of_the_package_fails_nothing_over(fleet: PackagedFleet, tmp_path: Path) -> None:
    fleet.package = make_package(tmp_path / "newer", "99.0")
    holder, held = fleet.holder(), fleet.held()
    played = fleet.play(**variables(fleet))
    assert played.code == 0, played.text
    printed = [machine.did(f"{COMMAND} --version").split()[-1] for machine in fleet.machines.values()]
    assert printed == ["99.0", "99.0"]
    assert (fleet.holder(), fleet.held()) == (holder, held)
    assert list(events(fleet).values()) == [[""], [""]]


def test_the_package_is_removed_after_a_hand_over(fleet: PackagedFleet) -> None:
    holder = fleet.holder()
    (waiter,) = set(fleet.machines) - {holder}
    removed = fleet.play("--limit", holder, **variables(fleet, consul_supervisor_state="absent"))
    assert removed.code == 0, removed.text
    until(lambda: fleet.roles()[waiter] == "holding", "the other node has taken over")
    assert events(fleet)[holder] == ["", "lost"]
    machine = fleet.machines[holder]
    assert machine.sh("dpkg -L consul-supervisor | grep bin/").returncode != 0
    assert machine.sh(f"systemctl cat consul-supervisor || command -v {COMMAND}").returncode != 0
    assert machine.read("/etc/consul-supervisor/consul-supervisor.yaml")
