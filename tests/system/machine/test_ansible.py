"""The example's role installs, changes and upgrades a fleet of two booted machines.

No election fails over except where a change requires it.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.supervisor import ROOT, until
from tests.system.machine.fleet import ANSIBLE, COMMAND, EXAMPLE, WHEELS, Fleet

EVENTS = "/srv/events"
FOLDER = "/etc/consul-supervisor"
SECRET = "6f1d0a3e-token"
SESSION = {"ttl": "10s", "lock_delay": "30s"}


def hook(words: str) -> dict[str, str]:
    return {"shell": f"echo {words} >>{EVENTS}"}


def variables(fleet: Fleet, acquired: str = "acquired", **more: Any) -> dict[str, Any]:
    """Return the variables of a fleet with one election; its on_acquire records the line ``acquired``."""
    election = {"session": SESSION, "on_acquire": [hook(acquired)], "on_lose": [hook("lost")]}
    return {
        "consul_supervisor_wheel": str(fleet.wheel),
        "consul_supervisor_pip_environment": {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": WHEELS},
        "consul_supervisor_settings": {"consul": {"address": "http://127.0.0.1:8500"}},
        "consul_supervisor_elections": {"app": election},
        **more,
    }


def events(fleet: Fleet) -> dict[str, list[str]]:
    return {name: machine.read(EVENTS).splitlines() for name, machine in fleet.machines.items()}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield the fleet on which the tests of this module follow one another."""
    assert os.geteuid() == 0, "cannot boot a machine: this needs root"
    with Fleet(tmp_path_factory.mktemp("fleet")) as made:
        yield made


def test_check_mode_changes_nothing(fleet: Fleet) -> None:
    played = fleet.play("--check", "--diff", **variables(fleet))
    assert played.code == 0, played.text
    assert all(count.changed for count in played.counts.values())
    for machine in fleet.machines.values():
        assert not (machine.root / "opt/consul-supervisor").exists()
        assert not (machine.root / FOLDER.lstrip("/")).exists()


def test_a_fleet_is_installed_and_a_second_run_changes_nothing(fleet: Fleet) -> None:
    first = fleet.play(**variables(fleet))
    assert first.code == 0, first.text
    holder, held = fleet.holder(), fleet.held()
    again = fleet.play(**variables(fleet))
    assert again.code == 0, again.text
    assert {count.changed for count in again.counts.values()} == {0}, again.text
    looked = fleet.play("--check", **variables(fleet))
    assert looked.code == 0 and {count.changed for count in looked.counts.values()} == {0}, looked.text
    assert (fleet.holder(), fleet.held()) == (holder, held)
    assert sorted(events(fleet).values()) == [[], ["acquired"]]


def test_a_changed_hook_is_read_without_losing_leadership(fleet: Fleet) -> None:
    holder, held = fleet.holder(), fleet.held()
    pids = {name: fleet.pid(name) for name in fleet.machines}
    played = fleet.play(**variables(fleet, acquired="changed"))
    assert played.code == 0, played.text
    assert {name: fleet.pid(name) for name in fleet.machines} == pids
    assert (fleet.holder(), fleet.held()) == (holder, held)
    assert all('"event": "reloaded"' in fleet.log(name) for name in fleet.machines)
    assert sorted(events(fleet).values()) == [[], ["acquired"]]


def test_a_faulty_file_replaces_nothing_and_goes_no_further(fleet: Fleet) -> None:
    holder, held = fleet.holder(), fleet.held()
    (waiter,) = set(fleet.machines) - {holder}
    files = {
        name: machine.read(f"{FOLDER}/consul-supervisor.yaml") for name, machine in fleet.machines.items()
    }
    faulty = {"app": {"session": SESSION, "on_aquire": [hook("never")]}}
    played = fleet.play(**{**variables(fleet), "consul_supervisor_elections": faulty})
    assert played.code != 0
    assert "did you mean 'on_acquire'" in played.text or "did you mean on_acquire" in played.text, played.text
    assert played.counts[waiter].failed == 1
    assert played.counts.get(holder, played.counts[waiter]).changed == 0
    after = {
        name: machine.read(f"{FOLDER}/consul-supervisor.yaml") for name, machine in fleet.machines.items()
    }
    assert after == files
    assert (fleet.holder(), fleet.held()) == (holder, held)


def test_a_drop_in_comes_and_goes_beside_a_holder(fleet: Fleet) -> None:
    held = fleet.held()
    drop_ins = {"other": {"elections": {"other": {"session": SESSION}}}}
    clash = {"clash": {"elections": {"app": {"session": SESSION}}}}
    refused = fleet.play(**variables(fleet, "changed", consul_supervisor_drop_ins=clash))
    assert refused.code != 0 and "consul-supervisor.yaml" in refused.text
    played = fleet.play(**variables(fleet, "changed", consul_supervisor_drop_ins=drop_ins))
    assert played.code == 0, played.text
    leader = f"{COMMAND} leader --key service/other/leader"
    until(lambda: fleet.machines["one"].sh(leader).returncode == 0, "the other election has a leader")
    played = fleet.play(**variables(fleet, "changed", consul_supervisor_drop_ins_absent=["other"]))
    assert played.code == 0, played.text
    until(lambda: fleet.machines["one"].sh(leader).returncode == 1, "the other election has no leader")
    assert fleet.held() == held


def test_user_token_scripts_and_variables_are_installed_in_their_places(fleet: Fleet, tmp_path: Path) -> None:
    """The change needs a new process, which adopts the tenure of the process before it."""
    script = tmp_path / "recorded"
    script.write_text(f'#!/bin/sh\necho "$1 by $(id -un) with $WORDS" >>{EVENTS}\n')
    for machine in fleet.machines.values():
        machine.did(f"touch {EVENTS}; chmod 666 {EVENTS}")
    held = fleet.held()
    given = variables(fleet)
    given["consul_supervisor_elections"]["app"].update(
        value="${WORDS}", on_acquire=[{"exec": ["/usr/local/sbin/recorded", "acquired"]}]
    )
    given["consul_supervisor_settings"]["consul"]["token_file"] = f"{FOLDER}/token"
    given |= {
        "consul_supervisor_user": "supervised",
        "consul_supervisor_token": SECRET,
        "consul_supervisor_scripts": [str(script)],
        "consul_supervisor_environment": {"WORDS": 'two words, 100 % and a "'},
        "consul_supervisor_unit_drop_ins": {"hurry": "[Service]\nWatchdogSec=8s\n"},
    }
    played = fleet.play("--diff", **given)
    assert played.code == 0, played.text
    assert SECRET not in played.text
    assert fleet.held() == held
    for name, machine in fleet.machines.items():
        assert machine.did(f"stat -c %U /proc/{fleet.pid(name)}").strip() == "supervised"
        assert machine.did(f"stat -c '%U %a' {FOLDER}/token") == "supervised 600\n"
        assert machine.did("systemctl show -P WatchdogUSec consul-supervisor") == "8s\n"
    told = f"{COMMAND} leader --key service/app/leader --config {FOLDER}"
    assert fleet.machines["one"].did(told) == 'two words, 100 % and a "\n'
    holder = fleet.holder()
    (waiter,) = set(fleet.machines) - {holder}
    fleet.machines[holder].did(f"{COMMAND} step-down app")
    assert fleet.holder() == waiter
    assert events(fleet)[waiter] == ['acquired by supervised with two words, 100 % and a "']
    back = fleet.play(**variables(fleet, acquired="changed"))
    assert back.code == 0, back.text
    for machine in fleet.machines.values():
        machine.did(f"echo >{EVENTS}")


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
    """The waiting node was changed first; the stuck one does not count as settled."""
    holder, broken = fleet.holder(), variables(fleet, acquired="changed")
    broken["consul_supervisor_elections"]["app"]["on_lose"] = [{"exec": ["/bin/false"]}]
    assert fleet.play(**broken).code == 0
    fleet.machines[holder].sh(f"{COMMAND} step-down app --for 1s")
    until(lambda: fleet.roles()[holder] == "stuck", "it is stuck")
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
    fleet.machines[holder].did(f"{COMMAND} step-down app")
    assert fleet.holder() == waiter
    assert events(fleet) == {holder: ["", "lost"], waiter: ["", "changed"]}


def test_the_role_is_clean_by_the_rules_of_production() -> None:
    argv = [str(ANSIBLE / "ansible-lint"), "--offline", "--strict", "--profile", "production", "."]
    environ = {**os.environ, "PATH": f"{ANSIBLE}:{os.environ['PATH']}", "PYTHONWARNINGS": "", "NO_COLOR": "1"}
    ran = subprocess.run(
        argv, check=False, capture_output=True, text=True, cwd=EXAMPLE, env=environ, timeout=300
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Profile 'production' was required, and it passed" in ran.stdout + ran.stderr


def newer(fleet: Fleet, folder: Path, made: str = "newer") -> Path:
    """Make a wheel of this product as version 99.0; ``made`` distinguishes two such wheels."""
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
    """Return when the node's supervisor began; both machines have the clock of this computer."""
    unit = fleet.machines[node].did("systemctl show -P ExecMainStartTimestampMonotonic consul-supervisor")
    return int(unit)
