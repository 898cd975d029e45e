"""A lost lock ends the command before a rival can hold."""

import signal
import time

import pytest

from supervisor.adapters.runtime.clock import boottime
from tests.consul.locks.conftest import MakeLockers
from tests.consul.locks.lockers import LOCK_DELAY_S, SHORT, SLEEP, Lockers, is_alive
from tests.support.consul import Agent
from tests.support.proxy import Proxy
from tests.support.supervisor import until

pytestmark = pytest.mark.long

SHORT_TERM = ("--ttl", "2s", "--lock-delay", "9s")  # room 3.5 s, and 5 s between TERM and KILL


def test_a_destroyed_session_ends_the_command_by_term(either_lockers: Lockers) -> None:
    lockers = either_lockers
    holder = lockers.holder(*SHORT_TERM)
    lockers.agent.session_destroy(lockers.session())
    code, _, error = holder.end()
    assert code == 1
    (why,) = [line for line in error.splitlines() if line.startswith("consul-supervisor: ")]
    assert why.endswith(f"lost {lockers.key} (session-invalidated): the command was ended: stopped")
    assert len(lockers.lines("a", "term")) == 1
    lockers.assert_nothing_left()


def test_a_command_that_ignores_term_is_killed_before_a_rival_holds(lockers: Lockers) -> None:
    holder = lockers.holder(*SHORT_TERM, body="trap '' TERM; note deaf; while :; do sleep 1; done")
    shell = lockers.wait_line("a", "deaf").pid
    lockers.start(*SHORT_TERM, name="b", body=SLEEP)
    until(lambda: lockers.is_waiting(2), "a rival waits")
    lockers.agent.session_destroy(lockers.session())
    code, _, error = holder.end()
    ended_at = boottime()
    assert code == 1 and "ignored TERM" in error and not is_alive(shell)
    assert ended_at < lockers.wait_line("b", "begin").at


def test_on_lost_kill_sends_no_term(lockers: Lockers) -> None:
    holder = lockers.holder(*SHORT)
    lockers.agent.session_destroy(lockers.session())
    assert holder.wait() == 1
    assert lockers.lines("a", "term") == lockers.lines("a", "end") == []
    lockers.assert_nothing_left()


@pytest.mark.parametrize("how", ["deleted", "released", "deleted and locked"])
def test_a_key_that_is_taken_away_ends_the_command(lockers: Lockers, how: str) -> None:
    """Nothing keeps a rival out then, so the command ends as soon as Consul reports the change."""
    holder, key, agent = lockers.holder(*SHORT), lockers.key, lockers.agent
    if how == "released":
        agent.release(key, lockers.session())
    else:
        agent.kv_delete(key)
    if how == "deleted and locked":
        agent.acquire(key, agent.session_create(TTL="60s"))
    code, _, error = holder.end()
    reason = "released-by-operator" if how == "released" else "key-deleted"
    assert code == 1 and f"lost {key} ({reason})" in error
    lockers.assert_nothing_left()


def test_a_command_that_ends_with_0_after_a_loss_is_no_success(lockers: Lockers) -> None:
    holder = lockers.holder(*SHORT_TERM, body=f"trap 'exit 0' TERM; note ready; {SLEEP}")
    lockers.wait_line("a", "ready")
    lockers.agent.session_destroy(lockers.session())
    assert holder.wait() == 1


def test_the_lock_is_renewed_for_longer_than_its_ttl(either_lockers: Lockers) -> None:
    """Renewal: Consul ends a session that is not renewed after 2 x TTL, which is 4 s here."""
    holder = either_lockers.holder(*SHORT, body="sleep 10")
    session = either_lockers.session()
    until(lambda: either_lockers.lines("a", "end"), "the command has ended by itself")
    assert holder.wait() == 0 and session


def test_a_silence_shorter_than_the_room_changes_nothing(
    persistent_agent: Agent, make_lockers: MakeLockers
) -> None:
    """Monitor retry: the command goes on while the server restarts."""
    lockers = make_lockers(persistent_agent)
    holder = lockers.holder("--ttl", "10s", body='until [ -e "$RECORDS.go" ]; do sleep 0.1; done')
    persistent_agent.restart()
    time.sleep(5)
    assert holder.process.poll() is None
    lockers.records.with_suffix(".go").touch()
    assert holder.end() == (0, "", "")
    assert lockers.session() == ""


def test_a_silent_consul_ends_the_command_before_a_rival_can_hold(
    lockers: Lockers,
) -> None:
    """Consul goes on for the rival, and is silent for the holder alone."""
    with Proxy(lockers.agent.host, lockers.agent.port) as proxy:
        holder = lockers.start(*SHORT_TERM, body=SLEEP, environ={"CONSUL_HTTP_ADDR": proxy.url})
        lockers.wait_line("a", "begin")
        lockers.start(*SHORT_TERM, name="b", body=SLEEP)
        until(lambda: lockers.is_waiting(2), "a rival waits")
        with proxy.silence():
            code, _, error = holder.end()
            begun = lockers.wait_line("b", "begin")
    (term,) = lockers.lines("a", "term")
    assert code == 1 and "(lease-expired)" in error
    assert "cannot release" in error and "free when the session expires" in error
    assert term.at < begun.at


def test_after_a_kill_a_rival_waits_for_the_ttl_and_the_lock_delay(lockers: Lockers) -> None:
    holder = lockers.holder(*SHORT)
    lockers.start(*SHORT, name="b", body=SLEEP)
    until(lambda: lockers.is_waiting(2), "a rival waits")
    at = boottime()
    holder.signal(signal.SIGKILL)
    lockers.assert_nothing_left_of("a")
    begun = lockers.wait_line("b", "begin")
    assert begun.at - at >= LOCK_DELAY_S
