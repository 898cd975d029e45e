"""``lock`` excludes other ``lock`` processes, `consul lock` on P/.lock, and an election on the same key."""

import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.consul.locks.lockers import SLEEP, Lockers, is_alive
from tests.support.supervisor import Supervisor, until


def test_commands_of_one_key_never_overlap(either_lockers: Lockers) -> None:
    """Contention: eight processes, each of which acts for a moment."""
    lockers = either_lockers
    started = [lockers.start(name=f"n{number}", body="sleep 0.05") for number in range(8)]
    assert [locker.wait() for locker in started] == [0] * 8
    assert_never_more_than(1, lockers)
    assert Counter(line.what for line in lockers.lines()) == {"begin": 8, "end": 8}
    assert lockers.is_waiting(0)


def assert_never_more_than(limit: int, lockers: Lockers) -> None:
    """Check the order of begins and ends: the lines are in the order in which they were written."""
    acting = 0
    for line in lockers.lines():
        acting += 1 if line.what == "begin" else -1
        assert 0 <= acting <= limit, lockers.lines()


def test_consul_lock_cannot_hold_beside_lock(lockers: Lockers) -> None:
    holder = lockers.holder(key=f"{lockers.prefix}/.lock")
    assert lockers.consul_lock("-try=1s", prefix=lockers.prefix).wait() == 1
    assert lockers.lines("theirs") == []
    theirs = lockers.consul_lock("-child-exit-code", prefix=lockers.prefix)
    holder.signal(signal.SIGTERM)
    assert holder.wait() == 143 and theirs.wait() == 0
    (ours,), (begun,) = lockers.lines("a", "term"), lockers.lines("theirs", "begin")
    assert ours.at <= begun.at


@pytest.mark.parametrize(
    ("number", "code", "goes_on"),
    [
        (signal.SIGKILL, -signal.SIGKILL, True),
        (signal.SIGHUP, -signal.SIGHUP, True),
        (signal.SIGUSR1, 0, False),
    ],
)
def test_consul_lock_loses_signals_and_leaves_its_command(
    lockers: Lockers, number: signal.Signals, code: int, goes_on: bool
) -> None:
    """These are facts of `consul lock` 1.8.7 that docs/comparison.md names."""
    body = 'trap "note usr" USR1; until [ -e "$RECORDS.go" ]; do sleep 0.02; done'
    theirs = lockers.consul_lock(prefix=lockers.prefix, body=body)
    shell = lockers.wait_line("theirs", "begin").pid
    theirs.signal(number)
    if not goes_on:
        Path(f"{lockers.records}.go").touch()
    assert theirs.wait() == code
    assert is_alive(shell) is goes_on and not lockers.lines("theirs", "usr")


def test_lock_cannot_hold_beside_consul_lock(lockers: Lockers) -> None:
    key = f"{lockers.prefix}/.lock"
    theirs = lockers.consul_lock(
        prefix=lockers.prefix, body='until [ -e "$RECORDS.go" ]; do sleep 0.02; done'
    )
    lockers.wait_line("theirs", "begin")
    assert lockers.start("--wait", "0", key=key).end() == (1, "", "")
    waiter = lockers.start(key=key)
    until(lambda: any(each["Name"].endswith(key) for each in lockers.agent.sessions()), "it waits")
    Path(f"{lockers.records}.go").touch()
    assert theirs.wait() == 0 and waiter.end() == (0, "", "")
    (ended,), (begun,) = lockers.lines("theirs", "end"), lockers.lines("a", "begin")
    assert ended.at <= begun.at


@pytest.fixture
def election(lockers: Lockers, tmp_path: Path) -> Supervisor:
    """Return a supervisor, not started, of an election on the key of the test."""
    run = {"shell": "echo e begin 0 $$ >> $RECORDS; exec sleep 600"}
    session = {"name": f"{lockers.key} of app", "ttl": "3s", "lock_delay": "10s"}
    app = {"key": lockers.key, "session": session, "run": run}
    config = {"consul": {"address": lockers.agent.url}, "log": {"format": "json"}, "elections": {"app": app}}
    return Supervisor(tmp_path / "node", config, {"RECORDS": str(lockers.records)})


@pytest.mark.long
def test_an_election_and_lock_exclude_each_other(lockers: Lockers, election: Supervisor) -> None:
    holder = lockers.holder()
    with election:
        until(lambda: len(of_key(lockers)) == 2, "the supervisor waits")
        assert lockers.lines("e") == []
        holder.signal(signal.SIGTERM)
        assert holder.wait() == 143
        election.wait_line("role", role="holding")
        assert lockers.start("--wait", "0", name="b").end() == (1, "", "")
        waiter = lockers.start(name="b", body=SLEEP)
        until(lambda: lockers.is_waiting(1), "lock waits")
        assert election.stop() == 0
        lockers.wait_line("b", "begin")
        waiter.signal(signal.SIGTERM)
        assert waiter.wait() == 143


def of_key(lockers: Lockers) -> list[str]:
    names = [each["Name"] for each in lockers.agent.sessions()]
    return [name for name in names if lockers.key in name]


@pytest.mark.long
def test_a_semaphore_has_another_kind_of_key(lockers: Lockers) -> None:
    """Conflict of kinds: neither takes the key of the other for its own."""
    lockers.holder("-n", "2", key=lockers.prefix)
    code, _, error = lockers.start(name="b", key=f"{lockers.prefix}/.lock").end()
    assert code == 78 and "belongs to another program" in error
    lockers.holder(name="c", key=f"{lockers.key}/.lock")
    code, _, error = lockers.start("-n", "2", name="d", key=lockers.key).end()
    assert code == 78 and ".lock is no semaphore's" in error
    assert lockers.lines("b") == lockers.lines("d") == []
