"""How long ``lock`` waits, and which faults end the wait at once."""

import signal
import time
from pathlib import Path

import pytest

from tests.consul.locks.conftest import MakeLockers
from tests.consul.locks.lockers import SHORT, Lockers
from tests.support.consul import Agent, free_ports
from tests.support.proxy import Proxy
from tests.support.supervisor import until

pytestmark = pytest.mark.long


def test_without_a_wait_a_lock_that_is_held_ends_with_1_in_silence(either_lockers: Lockers) -> None:
    either_lockers.holder()
    tried = either_lockers.start("--wait", "0", name="b")
    assert tried.end() == (1, "", "")
    assert either_lockers.lines("b") == []
    until(lambda: either_lockers.is_waiting(1), "the session of the one that gave up is gone")


def test_verbose_names_the_holder(lockers: Lockers) -> None:
    lockers.holder()
    code, _, error = lockers.start("--wait", "0", "--verbose", name="b").end()
    assert code == 1
    assert f"cannot lock {lockers.key}: " in error and f"holds it with session {lockers.session()}" in error


def test_without_a_wait_a_free_lock_is_taken(lockers: Lockers) -> None:
    assert lockers.start("--wait", "0", argv=["true"]).end() == (0, "", "")
    assert lockers.start("--wait", "0s", argv=["true"]).end() == (0, "", "")


def test_without_a_wait_the_lock_delay_counts_as_held(lockers: Lockers) -> None:
    holder = lockers.holder(*SHORT)
    holder.signal(signal.SIGKILL)
    lockers.agent.session_destroy(lockers.session())
    assert lockers.start("--wait", "0", name="b").end() == (1, "", "")


def test_a_wait_ends_with_1_when_its_time_is_over(lockers: Lockers) -> None:
    lockers.holder()
    began = time.monotonic()
    waiter = lockers.start("--wait", "1s", name="b")
    assert waiter.end() == (1, "", "")
    assert time.monotonic() - began >= 1.0


def test_a_waiter_holds_as_soon_as_the_holder_releases(either_lockers: Lockers) -> None:
    holder = either_lockers.holder()
    waiter = either_lockers.start("--wait", "60s", name="b")
    until(lambda: either_lockers.is_waiting(2), "both have a session")
    holder.signal(signal.SIGTERM)
    assert holder.wait() == 143 and waiter.wait() == 0
    [ended, begun] = either_lockers.lines("a", "term") + either_lockers.lines("b", "begin")
    assert ended.at <= begun.at


@pytest.mark.parametrize("wait", ["0", "500ms"])
def test_an_unreachable_consul_ends_the_wait_with_69(lockers: Lockers, wait: str) -> None:
    (port,) = free_ports(1)
    environ = {"CONSUL_HTTP_ADDR": f"127.0.0.1:{port}"}
    code, _, error = lockers.start("--wait", wait, environ=environ).end()
    assert code == 69 and f"cannot lock {lockers.key}: no answer from Consul: " in error
    assert lockers.lines() == []


def test_a_wait_goes_on_until_consul_answers(persistent_agent: Agent, make_lockers: MakeLockers) -> None:
    lockers = make_lockers(persistent_agent)
    persistent_agent.stop()
    waiter = lockers.start(argv=["true"])
    until(lambda: "waiting on: no answer from Consul: " in waiter.error.read_text(), "it waits on")
    persistent_agent.start()
    code, _, error = waiter.end()
    assert code == 0 and error.count("\n") == 1


MISSING = ("500 Internal Server Error", "Missing node registration")


def test_a_wait_goes_on_while_the_agent_has_to_register_its_node(lockers: Lockers) -> None:
    """A reaper removed the node, and the agent registers it again within a minute."""
    with Proxy(lockers.agent.host, lockers.agent.port) as proxy:
        environ = {"CONSUL_HTTP_ADDR": proxy.url}
        rule = proxy.answer(*MISSING, "PUT", "/session/create", times=1)
        code, _, error = lockers.start("--wait", "60s", argv=["true"], environ=environ).end()
        assert code == 0 and rule.caught and "waiting on: no session yet: 500 Missing node" in error
        proxy.answer(*MISSING, "PUT", "/session/create")
        for wait in ("0", "1s"):
            code, _, error = lockers.start("--wait", wait, environ=environ).end()
            assert code == 69 and "no session yet: 500 Missing node registration" in error
            assert "`consul reload`" in error


def test_a_first_write_that_is_lost_ends_no_attempt(lockers: Lockers) -> None:
    with Proxy(lockers.agent.host, lockers.agent.port) as proxy:
        rule = proxy.answer("500 Internal Server Error", "rpc error making call: EOF", "PUT", times=1)
        tried = lockers.start("--wait", "0", argv=["true"], environ={"CONSUL_HTTP_ADDR": proxy.url})
        assert tried.end() == (0, "", "") and rule.caught


# --- faults -----------------------------------------------------------------------------------------------


def test_a_missing_right_ends_with_78(tmp_path: Path, make_lockers: MakeLockers) -> None:
    with Agent(tmp_path / "guarded", config={"acl": {"enabled": True, "default_policy": "deny"}}) as agent:
        lockers = make_lockers(agent)
        code, _, error = lockers.start().end()
    assert code == 78 and f"cannot lock {lockers.key}: " in error and "403" in error
    assert lockers.lines() == []


def test_a_key_of_another_program_is_left_alone(lockers: Lockers) -> None:
    lockers.agent.kv_put(lockers.key, b"precious", flags=7)
    code, _, error = lockers.start().end()
    why = "the key belongs to another program and is left alone: its flags are 7, not a lock's"
    remedy = "use another key, or delete this one if no program needs it"
    assert code == 78 and error == f"consul-supervisor: cannot lock {lockers.key}: {why}; {remedy}\n"
    entry = lockers.agent.kv_get(lockers.key)
    assert entry is not None and entry["Value"] == b"precious"


def test_a_lock_delay_that_leaves_no_room_is_refused_with_its_sum(lockers: Lockers) -> None:
    code, _, error = lockers.start("--lock-delay", "5s").end()
    assert code == 78
    assert "lock_delay 5s - margin 0.5s - run stop_timeout 5s = -0.5s" in error
    assert error.startswith("consul-supervisor: cannot end the command ")
    assert error.endswith("are needed; set --lock-delay to 8s or more\n")
    assert lockers.start("--lock-delay", "8s", argv=["true"]).wait() == 0


@pytest.mark.parametrize(
    "options",
    [
        ["--ttl", "500ms"],
        ["--ttl", "25h"],
        ["--lock-delay", "61s"],
        ["--wait", "5"],
        ["--on-lost", "HUP"],
        ["-n", "0"],
    ],
)
def test_a_value_out_of_bounds_is_wrong_usage(lockers: Lockers, options: list[str]) -> None:
    code, _, error = lockers.start(*options).end()
    assert code == 2 and options[0] in error
