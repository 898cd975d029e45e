"""The names and values in the environment and on standard input that scripts rely on."""

import json
import subprocess
from dataclasses import replace

import pytest

from supervisor.adapters.hooks.context import (
    ENV_STRING_BYTES_MAX,
    as_environment,
    as_json,
    base_environment,
    facts,
)
from supervisor.core.actions import Reason
from tests.processes.hooks.trial import CONTEXT


def test_a_hook_gets_the_note_as_it_was_given() -> None:
    told = facts(replace(CONTEXT, note="kernel update: ä $(x)"), attempt=1, node="n", now=0.0, at=0.0)
    assert as_environment(told)["CONSUL_SUPERVISOR_NOTE"] == told["note"] == "kernel update: ä $(x)"


def test_the_json_object_has_the_names_of_the_environment_and_keeps_numbers() -> None:
    given = facts(CONTEXT, attempt=2, node="node-1", now=100.0, at=0.0)
    seen = json.loads(as_json(given))
    names = [name.removeprefix("CONSUL_SUPERVISOR_").lower() for name in as_environment(given)]
    assert list(seen) == names
    assert (seen["lock_index"], seen["fencing_token"], seen["attempt"]) == (7, 4711, 2)
    assert seen["leader"] == "node-1"
    assert b"\n" not in as_json(facts(replace(CONTEXT, leader=b"a\nb"), attempt=1, node="n", now=0.0, at=0.0))


@pytest.mark.parametrize(("slot", "text"), [(0, "0"), (4, "4"), (None, "")])
def test_the_number_of_a_slot_is_blank_where_there_is_none(slot: int | None, text: str) -> None:
    given = facts(replace(CONTEXT, kind="semaphore", slot=slot), attempt=1, node="n", now=0.0, at=0.0)
    assert json.loads(as_json(given))["slot"] == slot
    assert as_environment(given)["CONSUL_SUPERVISOR_SLOT"] == text
    assert "slot" not in facts(CONTEXT, attempt=1, node="n", now=0.0, at=0.0), "an election has no slots"


@pytest.mark.parametrize(
    ("rival_at", "left"), [(112.3456, 12.345), (100.0, 0.0), (99.0, 0.0), (float("-inf"), 0.0)]
)
def test_time_left_is_rounded_down_and_never_negative(rival_at: float, left: float) -> None:
    context = replace(CONTEXT, event="lose", reason=Reason.LEASE_EXPIRED, rival_at=rival_at)
    given = facts(context, attempt=1, node="node-1", now=100.0, at=0.0)
    assert given["time_left"] == left
    assert as_environment(given)["CONSUL_SUPERVISOR_TIME_LEFT"] == str(left)


def test_a_missing_leader_is_null_in_json_and_blank_in_the_environment() -> None:
    given = facts(replace(CONTEXT, leader=None, previous_leader=None), attempt=1, node="n", now=0.0, at=0.0)
    assert json.loads(as_json(given))["leader"] is None
    assert as_environment(given)["CONSUL_SUPERVISOR_LEADER"] == ""
    assert as_environment(given)["CONSUL_SUPERVISOR_PREVIOUS_LEADER"] == ""


def test_a_value_that_is_not_utf_8_is_text_with_replacement_characters() -> None:
    given = facts(replace(CONTEXT, leader=b"caf\xe9 \xc3\xa9"), attempt=1, node="n", now=0.0, at=0.0)
    assert json.loads(as_json(given))["leader"] == "caf\ufffd é"
    assert as_environment(given)["CONSUL_SUPERVISOR_LEADER"] == "caf\ufffd é"


@pytest.mark.parametrize("value", [b"before\0after", b"x" * ENV_STRING_BYTES_MAX, "é".encode() * 65_536])
def test_a_value_that_fits_no_environment_is_only_in_the_json_object(value: bytes) -> None:
    given = facts(replace(CONTEXT, leader=value), attempt=1, node="n", now=0.0, at=0.0)
    assert "CONSUL_SUPERVISOR_LEADER" not in as_environment(given)
    assert json.loads(as_json(given))["leader"] == value.decode()


def test_the_longest_value_in_the_environment_is_the_longest_that_the_kernel_takes() -> None:
    name = "CONSUL_SUPERVISOR_LEADER"
    longest = b"x" * (ENV_STRING_BYTES_MAX - len(name) - 2)
    for value, passed in ((longest, True), (longest + b"x", False)):
        env = as_environment(facts(replace(CONTEXT, leader=value), attempt=1, node="n", now=0.0, at=0.0))
        assert (name in env) == passed
    subprocess.run(["/bin/true"], env={name: longest.decode()}, check=True)
    with pytest.raises(OSError, match="Argument list too long"):
        subprocess.run(["/bin/true"], env={name: longest.decode() + "x"}, check=True)


def test_variables_of_the_daemon_alone_are_not_inherited() -> None:
    withheld = {
        "NOTIFY_SOCKET": "/run/systemd/notify",
        "WATCHDOG_USEC": "10000000",
        "WATCHDOG_PID": "1",
        "CONSUL_HTTP_TOKEN": "secret",
        "CONSUL_HTTP_AUTH": "me:secret",
        "CONSUL_SUPERVISOR_LEADER": "of an outer supervisor",
    }
    kept = {
        "PATH": "/bin",
        "CONSUL_HTTP_ADDR": "http://127.0.0.1:8500",
        "CONSUL_HTTP_TOKEN_FILE": "/etc/token",
    }
    assert base_environment({**withheld, **kept}) == kept
