"""The example's role on two booted machines, from their first to their last play: no lock moves by itself.

The tests follow one another: a venv is installed, changed and upgraded, the package takes its place,
and all is removed.
"""

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.supervisor import ROOT, until
from tests.system.machine.fleet import COMMAND, EVENTS, Fleet, Played, events, hook
from tests.system.machine.fleet import variables as fleet_variables
from tests.system.machine.node import SESSION, UNIT
from tests.system.machine.packages import make_package

FOLDER = "/etc/consul-supervisor"
SECRET = "6f1d0a3e-token"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    assert os.geteuid() == 0, "cannot boot a machine: this needs root"
    with Fleet(tmp_path_factory.mktemp("fleet")) as made:
        made.make_requirements()
        yield made


def variables(fleet: Fleet, acquired: str = "changed", **more: Any) -> dict[str, Any]:
    """Return the variables of the fleet, which is installed by the hashes of its wheels."""
    requirements = str(fleet.folder / "requirements.txt")
    return fleet_variables(fleet, acquired, **{"consul_supervisor_requirements": requirements, **more})


def played(fleet: Fleet, *options: str, **given: Any) -> Played:
    """Play the role with these variables, which must go well."""
    ran = fleet.play(*options, **given)
    assert ran.code == 0, ran.text
    return ran


def assert_settled(fleet: Fleet, given: dict[str, Any]) -> None:
    """Check that another play with these variables changes nothing, and that the check mode says so."""
    for options in ((), ("--check",)):
        ran = played(fleet, *options, **given)
        assert {count.changed for count in ran.counts.values()} == {0}, ran.text


def pids(fleet: Fleet) -> dict[str, int]:
    return {name: fleet.pid(name) for name in fleet.machines}


def roles(fleet: Fleet) -> tuple[str, str]:
    holder = fleet.holder()
    (waiter,) = set(fleet.machines) - {holder}
    return holder, waiter


def step_down(fleet: Fleet) -> tuple[str, str]:
    """Move the lock, and return the holder before it and the one after."""
    holder, waiter = roles(fleet)
    fleet.machines[holder].did(f"{COMMAND} step-down app --for 1s")
    assert fleet.holder() == waiter
    return holder, waiter


def ends_with(fleet: Fleet, command: str, code: int) -> bool:
    return fleet.machines["one"].sh(command).returncode == code


def forget_events(fleet: Fleet) -> None:
    for machine in fleet.machines.values():
        machine.did(f"echo >{EVENTS}")


def test_check_mode_changes_nothing(fleet: Fleet) -> None:
    looked = played(fleet, "--check", "--diff", **variables(fleet))
    assert all(count.changed for count in looked.counts.values())
    for machine in fleet.machines.values():
        assert not (machine.root / "opt/consul-supervisor").exists()
        assert not (machine.root / FOLDER.lstrip("/")).exists()


def test_a_fleet_is_installed_and_a_second_run_changes_nothing(fleet: Fleet) -> None:
    played(fleet, **variables(fleet, "acquired"))
    before = roles(fleet), fleet.held()
    assert_settled(fleet, variables(fleet, "acquired"))
    assert (roles(fleet), fleet.held()) == before
    assert sorted(events(fleet).values()) == [[], ["acquired"]]


def test_a_changed_hook_is_read_without_losing_leadership(fleet: Fleet) -> None:
    before = roles(fleet), fleet.held(), pids(fleet)
    played(fleet, **variables(fleet))
    assert (roles(fleet), fleet.held(), pids(fleet)) == before
    assert all("Read the configuration again" in fleet.log(name) for name in fleet.machines)
    assert sorted(events(fleet).values()) == [[], ["acquired"]]


def test_a_faulty_file_replaces_nothing_and_goes_no_further(fleet: Fleet) -> None:
    def files() -> list[str]:
        return [machine.read(f"{FOLDER}/consul-supervisor.yaml") for machine in fleet.machines.values()]

    (holder, waiter), before = roles(fleet), (fleet.held(), files())
    faulty = {"app": {"session": SESSION, "on_aquire": [hook("never")]}}
    refused = fleet.play(**{**variables(fleet), "consul_supervisor_elections": faulty})
    assert refused.code != 0
    assert "did you mean 'on_acquire'" in refused.text or "did you mean on_acquire" in refused.text
    assert refused.counts[waiter].failed == 1
    assert refused.counts.get(holder, refused.counts[waiter]).changed == 0
    assert (fleet.held(), files()) == before and fleet.holder() == holder


def test_a_drop_in_comes_and_goes_beside_a_holder(fleet: Fleet) -> None:
    held = fleet.held()
    drop_ins = {"other": {"elections": {"other": {"session": SESSION}}}}
    clash = {"clash": {"elections": {"app": {"session": SESSION}}}}
    refused = fleet.play(**variables(fleet, consul_supervisor_drop_ins=clash))
    assert refused.code != 0 and "consul-supervisor.yaml" in refused.text
    leader = f"{COMMAND} leader --key service/other/leader"
    for change, code in (
        ({"consul_supervisor_drop_ins": drop_ins}, 0),
        ({"consul_supervisor_drop_ins_absent": ["other"]}, 1),
    ):
        played(fleet, **variables(fleet, **change))
        until(partial(ends_with, fleet, leader, code), f"{leader} ends with {code}")
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
    assert SECRET not in played(fleet, "--diff", **given).text
    assert fleet.held() == held
    for name, machine in fleet.machines.items():
        assert machine.did(f"stat -c %U /proc/{fleet.pid(name)}").strip() == "supervised"
        assert machine.did(f"stat -c '%U %a' {FOLDER}/token") == "supervised 600\n"
        assert machine.did(f"systemctl show -P WatchdogUSec {UNIT}") == "8s\n"
    told = f"{COMMAND} leader --key service/app/leader --config {FOLDER}"
    assert fleet.machines["one"].did(told) == 'two words, 100 % and a "\n'
    _, waiter = step_down(fleet)
    assert events(fleet)[waiter] == ['acquired by supervised with two words, 100 % and a "']
    played(fleet, **variables(fleet))
    forget_events(fleet)


def test_another_wheel_than_that_of_the_hash_is_not_installed(fleet: Fleet, tmp_path: Path) -> None:
    other = tmp_path / fleet.wheel.name
    other.write_bytes(fleet.wheel.read_bytes() + b"\n")
    before = fleet.held(), pids(fleet)
    refused = fleet.play(**variables(fleet, consul_supervisor_wheel=str(other)))
    assert refused.code != 0 and "DO NOT MATCH THE HASHES" in refused.text
    assert (fleet.held(), pids(fleet)) == before


# --- upgrades ----------------------------------------------------------------------------------------


def newer(fleet: Fleet, folder: Path, made: str) -> dict[str, Any]:
    """Return the variables for a wheel of another version without hashes; ``made`` stands in it."""
    source = folder / "source"
    left_out = shutil.ignore_patterns(".git", ".venv", ".cache", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, source, symlinks=True, ignore=left_out)
    module = source / "supervisor" / "__init__.py"
    module.write_text(f"{module.read_text()}# the same version, {made}\n")
    fleet.wheel = fleet.make_wheel(made, source, "99.0")
    return fleet_variables(fleet, "changed")


def started_at(fleet: Fleet, node: str) -> int:
    """Return when its supervisor's process began; both machines have the clock of this one."""
    return int(fleet.machines[node].did(f"systemctl show -P ExecMainStartTimestampMonotonic {UNIT}"))


def versions(fleet: Fleet) -> set[str]:
    return {machine.did(f"{COMMAND} --version").split()[-1] for machine in fleet.machines.values()}


def test_an_upgrade_takes_the_waiting_node_first_and_fails_nothing_over(fleet: Fleet, tmp_path: Path) -> None:
    given = newer(fleet, tmp_path, "newer")
    (holder, waiter), held, before = roles(fleet), fleet.held(), pids(fleet)
    faulty = {"app": {"session": SESSION, "on_aquire": []}}
    assert fleet.play(**{**given, "consul_supervisor_elections": faulty}).code != 0
    until(lambda: fleet.pid(waiter) not in (0, before[waiter]), "what is installed runs")
    assert fleet.holder() == holder
    played(fleet, **given)
    assert versions(fleet) == {"99.0"}
    assert all(fleet.pid(name) != before[name] for name in fleet.machines)
    assert started_at(fleet, waiter) < started_at(fleet, holder)
    assert (fleet.holder(), fleet.held()) == (holder, held)
    assert list(events(fleet).values()) == [[""], [""]]


def test_other_content_by_the_same_version_is_installed_and_runs(fleet: Fleet, tmp_path: Path) -> None:
    given = newer(fleet, tmp_path, "again")
    held, before = fleet.held(), pids(fleet)
    played(fleet, **given)
    for name, machine in fleet.machines.items():
        assert fleet.pid(name) != before[name]
        machine.did("grep -qr 'the same version, again' /opt/consul-supervisor/lib/python3*/site-packages")
    assert fleet.held() == held
    assert_settled(fleet, given)


def test_a_node_that_is_stuck_ends_the_roll(fleet: Fleet) -> None:
    """The other one, which waits, has had its turn; this one is not taken for settled."""
    holder, given, broken = (
        fleet.holder(),
        fleet_variables(fleet, "changed"),
        fleet_variables(fleet, "changed"),
    )
    broken["consul_supervisor_elections"]["app"]["on_lose"] = [{"exec": ["/bin/false"]}]
    played(fleet, **broken)
    fleet.machines[holder].sh(f"{COMMAND} step-down app --for 1s")
    until(lambda: fleet.roles()[holder] == "stuck", "it is stuck")
    kept = fleet.play("--limit", holder, **given, consul_supervisor_state="absent")
    assert kept.code != 0 and "End here if the stop has left something behind" in kept.text, kept.text
    fleet.machines[holder].did(f"{COMMAND} --version; systemctl enable --now {UNIT}")
    until(lambda: fleet.roles()[holder] == "stuck", "it is stuck again")
    assert fleet.play(**given, consul_supervisor_settle_s=3).code != 0
    fleet.machines[holder].did(f"{COMMAND} recover app")
    until(lambda: "holding" in fleet.roles().values(), "one holds again")
    played(fleet, **given)
    forget_events(fleet)


def test_the_failover_that_is_meant_runs_the_changed_hook(fleet: Fleet) -> None:
    former, present = step_down(fleet)
    assert events(fleet) == {former: ["", "lost"], present: ["", "changed"]}
    forget_events(fleet)


FIND = "find / -xdev -name '*consul-supervisor*' -not -path '/tmp/*' -prune"


def test_a_node_is_removed_after_it_has_handed_over_and_may_come_back(fleet: Fleet) -> None:
    given, (holder, waiter) = fleet_variables(fleet, "changed"), roles(fleet)
    played(fleet, "--limit", holder, **given, consul_supervisor_state="absent")
    until(lambda: fleet.roles()[waiter] == "holding", "the other node has taken over")
    assert events(fleet)[holder] == ["", "lost"]
    machine = fleet.machines[holder]
    assert machine.sh(f"systemctl cat {UNIT} || {COMMAND}").returncode != 0
    assert machine.did(FIND).split() == [FOLDER, "/var/lib/consul-supervisor"]
    assert machine.read(f"{FOLDER}/consul-supervisor.yaml")
    played(fleet, **given)
    assert fleet.holder() == waiter
    forget_events(fleet)


# --- the Debian package --------------------------------------------------------------------------------


def test_a_package_takes_the_place_of_a_venv_and_is_upgraded_without_a_failover(
    fleet: Fleet, tmp_path: Path
) -> None:
    def programs() -> list[str]:
        return [machine.did(f"systemctl show -P ExecStart {UNIT}") for machine in fleet.machines.values()]

    before, running = (fleet.holder(), fleet.held()), pids(fleet)
    given = fleet_variables(fleet, "changed", consul_supervisor_deb=str(make_package(tmp_path / "now")))
    played(fleet, "--check", **given)
    assert all("path=/opt/" in program for program in programs())
    played(fleet, **given)
    assert all("path=/usr/bin/" in program for program in programs())
    assert all(fleet.pid(name) != running[name] for name in fleet.machines)
    for machine in fleet.machines.values():
        assert machine.did("ls /opt").split() == ["consul-supervisor-packages"]
    assert_settled(fleet, given)
    newest = make_package(tmp_path / "newer", "100.0")
    played(fleet, **{**given, "consul_supervisor_deb": str(newest)})
    assert versions(fleet) == {"100.0"}
    assert (fleet.holder(), fleet.held()) == before
    assert list(events(fleet).values()) == [[""], [""]]


def test_the_package_is_removed_after_a_hand_over_and_at_last_its_data(fleet: Fleet) -> None:
    given, (holder, waiter) = fleet_variables(fleet, consul_supervisor_state="absent"), roles(fleet)
    played(fleet, "--limit", holder, **given)
    until(lambda: fleet.roles()[waiter] == "holding", "the other node has taken over")
    assert events(fleet)[holder] == ["", "lost"]
    machine = fleet.machines[holder]
    assert machine.sh("dpkg -L consul-supervisor | grep bin/").returncode != 0
    assert machine.sh(f"systemctl cat {UNIT} || command -v {COMMAND}").returncode != 0
    assert machine.read(f"{FOLDER}/consul-supervisor.yaml")
    gone = {**given, "consul_supervisor_remove_data": True}
    played(fleet, **gone)
    assert fleet.machines[waiter].did(FIND) == ""
    again = played(fleet, **gone)
    assert {count.changed for count in again.counts.values()} == {0}, again.text
