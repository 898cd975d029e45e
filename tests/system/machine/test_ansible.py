"""The example's role installs and changes a fleet of two booted machines, and no lock moves by itself."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.supervisor import until
from tests.system.machine.fleet import COMMAND, EVENTS, Fleet, events, hook
from tests.system.machine.fleet import variables as fleet_variables
from tests.system.machine.node import SESSION

FOLDER = "/etc/consul-supervisor"
SECRET = "6f1d0a3e-token"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield the fleet on which the tests of this module follow one another."""
    assert os.geteuid() == 0, "cannot boot a machine: this needs root"
    with Fleet(tmp_path_factory.mktemp("fleet")) as made:
        made.make_requirements()
        yield made


def variables(fleet: Fleet, acquired: str = "acquired", **more: Any) -> dict[str, Any]:
    """Return the variables of the fleet, which is installed by the hashes of its wheels."""
    requirements = str(fleet.folder / "requirements.txt")
    return fleet_variables(fleet, acquired, **{"consul_supervisor_requirements": requirements, **more})


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
    assert all("Read the configuration again" in fleet.log(name) for name in fleet.machines)
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
    fleet.machines[holder].did(f"{COMMAND} step-down app --for 1s")
    assert fleet.holder() == waiter
    assert events(fleet)[waiter] == ['acquired by supervised with two words, 100 % and a "']
    back = fleet.play(**variables(fleet, acquired="changed"))
    assert back.code == 0, back.text
    for machine in fleet.machines.values():
        machine.did(f"echo >{EVENTS}")


def test_another_wheel_than_that_of_the_hash_is_not_installed(fleet: Fleet, tmp_path: Path) -> None:
    other = tmp_path / fleet.wheel.name
    other.write_bytes(fleet.wheel.read_bytes() + b"\n")
    held, pids = fleet.held(), {name: fleet.pid(name) for name in fleet.machines}
    played = fleet.play(**variables(fleet, "changed", consul_supervisor_wheel=str(other)))
    assert played.code != 0 and "DO NOT MATCH THE HASHES" in played.text
    assert (fleet.held(), {name: fleet.pid(name) for name in fleet.machines}) == (held, pids)


def test_a_node_is_removed_after_it_has_handed_over(fleet: Fleet) -> None:
    holder = fleet.holder()
    (waiter,) = set(fleet.machines) - {holder}
    removed = fleet.play("--limit", holder, **variables(fleet, consul_supervisor_state="absent"))
    assert removed.code == 0, removed.text
    until(lambda: fleet.roles()[waiter] == "holding", "the other node has taken over")
    assert events(fleet)[holder][-1] == "lost"
    machine = fleet.machines[holder]
    assert machine.sh(f"systemctl cat consul-supervisor || {COMMAND}").returncode != 0
    assert machine.did("find / -xdev -name '*consul-supervisor*' -not -path '/tmp/*' -prune").split() == [
        *(FOLDER, "/var/lib/consul-supervisor")
    ]
    assert machine.read(f"{FOLDER}/consul-supervisor.yaml")
    gone = variables(fleet, consul_supervisor_state="absent", consul_supervisor_remove_data=True)
    assert fleet.play(**gone).code == 0
    for machine in fleet.machines.values():
        assert machine.did("find / -xdev -name '*consul-supervisor*' -not -path '/tmp/*' -prune") == ""
    again = fleet.play(**gone)
    assert again.code == 0 and {count.changed for count in again.counts.values()} == {0}, again.text
