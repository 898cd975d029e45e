"""The example's role upgrades a fleet of two booted machines, and a node that is stuck ends the roll."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.supervisor import ROOT, until
from tests.system.machine.fleet import COMMAND, EVENTS, Fleet, events, variables
from tests.system.machine.node import SESSION


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet that the role has installed. The tests of this module follow one another on it."""
    assert os.geteuid() == 0, "cannot boot a machine: this needs root"
    with Fleet(tmp_path_factory.mktemp("fleet")) as made:
        played = made.play(**variables(made, acquired="changed"))
        assert played.code == 0, played.text
        made.holder()
        for machine in made.machines.values():
            machine.did(f"echo >{EVENTS}")
        yield made


def test_an_upgrade_takes_the_waiting_node_first_and_fails_nothing_over(fleet: Fleet, tmp_path: Path) -> None:
    fleet.wheel = newer(fleet, tmp_path)
    holder, held = fleet.holder(), fleet.held()
    (waiter,) = set(fleet.machines) - {holder}
    pids = {name: fleet.pid(name) for name in fleet.machines}
    faulty = {"app": {"session": SESSION, "on_aquire": []}}
    failed = fleet.play(**{**variables(fleet), "consul_supervisor_elections": faulty})
    assert failed.code != 0
    until(lambda: fleet.pid(waiter) not in (0, pids[waiter]), "what is installed runs")
    assert fleet.holder() == holder
    played = fleet.play(**variables(fleet, acquired="changed"))
    assert played.code == 0, played.text
    assert [fleet.machines[name].did(f"{COMMAND} --version").split()[-1] for name in fleet.machines] == [
        "99.0"
    ] * 2
    assert all(fleet.pid(name) != pids[name] for name in fleet.machines)
    assert started_at(fleet, waiter) < started_at(fleet, holder)
    assert (fleet.holder(), fleet.held()) == (holder, held)
    assert list(events(fleet).values()) == [[""], [""]]


def test_other_content_by_the_same_version_is_installed_and_runs(fleet: Fleet, tmp_path: Path) -> None:
    fleet.wheel = newer(fleet, tmp_path, "again")
    held, pids = fleet.held(), {name: fleet.pid(name) for name in fleet.machines}
    played = fleet.play(**variables(fleet, acquired="changed"))
    assert played.code == 0, played.text
    for name, machine in fleet.machines.items():
        assert fleet.pid(name) != pids[name]
        machine.did("grep -qr 'the same version, again' /opt/consul-supervisor/lib/python3*/site-packages")
    assert fleet.held() == held
    again = fleet.play(**variables(fleet, acquired="changed"))
    assert again.code == 0 and {count.changed for count in again.counts.values()} == {0}, again.text


def test_a_node_that_is_stuck_ends_the_roll(fleet: Fleet) -> None:
    """The other one, which waits, has had its turn; this one is not taken for settled."""
    holder, broken = fleet.holder(), variables(fleet, acquired="changed")
    broken["consul_supervisor_elections"]["app"]["on_lose"] = [{"exec": ["/bin/false"]}]
    assert fleet.play(**broken).code == 0
    fleet.machines[holder].sh(f"{COMMAND} step-down app --for 1s")
    until(lambda: fleet.roles()[holder] == "stuck", "it is stuck")
    absent = variables(fleet, acquired="changed", consul_supervisor_state="absent")
    kept = fleet.play("--limit", holder, **absent)
    assert kept.code != 0 and "End here if the stop has left something behind" in kept.text, kept.text
    fleet.machines[holder].did(f"{COMMAND} --version; systemctl enable --now consul-supervisor")
    until(lambda: fleet.roles()[holder] == "stuck", "it is stuck again")
    mended = variables(fleet, acquired="changed", consul_supervisor_settle_s=3)
    assert fleet.play(**mended).code != 0
    fleet.machines[holder].did(f"{COMMAND} recover app")
    until(lambda: "holding" in fleet.roles().values(), "one holds again")
    played = fleet.play(**variables(fleet, acquired="changed"))
    assert played.code == 0, played.text
    for machine in fleet.machines.values():
        machine.did(f"echo >{EVENTS}")


def test_the_failover_that_is_meant_runs_the_changed_hook(fleet: Fleet) -> None:
    holder = fleet.holder()
    (waiter,) = set(fleet.machines) - {holder}
    fleet.machines[holder].did(f"{COMMAND} step-down app --for 1s")
    assert fleet.holder() == waiter
    assert events(fleet) == {holder: ["", "lost"], waiter: ["", "changed"]}


def newer(fleet: Fleet, folder: Path, made: str = "newer") -> Path:
    """The same product by another version; ``made`` stands in it."""
    source = folder / "source"
    left_out = shutil.ignore_patterns(".git", ".venv", ".cache", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, source, symlinks=True, ignore=left_out)
    module = source / "supervisor" / "__init__.py"
    lines = module.read_text().splitlines()
    lines = ['__version__ = "99.0"' if line.startswith("__version__") else line for line in lines]
    lines.append(f"# the same version, {made}")
    module.write_text("\n".join(lines) + "\n")
    return fleet.make_wheel(made, source)


def started_at(fleet: Fleet, node: str) -> int:
    """When its supervisor's process began; both machines have the clock of this one."""
    unit = fleet.machines[node].did("systemctl show -P ExecMainStartTimestampMonotonic consul-supervisor")
    return int(unit)
