"""``lock -n N PREFIX``: at most N commands at once."""

import signal
from collections import Counter

import pytest

from tests.consul.locks.lockers import SHORT, SLEEP, Lockers
from tests.consul.locks.test_exclusion import assert_never_more_than
from tests.support.supervisor import until

pytestmark = pytest.mark.long


def test_at_most_n_commands_act_at_once(either_lockers: Lockers) -> None:
    lockers = either_lockers
    started = [
        lockers.start("-n", "2", name=f"n{number}", key=lockers.prefix, body="sleep 0.1")
        for number in range(6)
    ]
    assert [locker.wait() for locker in started] == [0] * 6
    assert_never_more_than(2, lockers)
    assert Counter(line.what for line in lockers.lines()) == {"begin": 6, "end": 6}
    assert [entry["Key"] for entry in lockers.agent.kv_list(f"{lockers.prefix}/")] == [
        f"{lockers.prefix}/.lock"
    ]


def test_a_full_semaphore_ends_an_attempt_with_1(either_lockers: Lockers) -> None:
    lockers = either_lockers
    for name in ("a", "b"):
        lockers.holder("-n", "2", name=name, key=lockers.prefix)
    assert lockers.start("-n", "2", "--wait", "0", name="c", key=lockers.prefix).end() == (1, "", "")
    for limit in ("2", "3"):  # the record in Consul has the smaller limit
        attempt = lockers.start("-n", limit, "--wait", "0", "--verbose", name="c", key=lockers.prefix)
        code, _, error = attempt.end()
        assert code == 1 and "2 slots are taken, the limit is 2" in error
    assert lockers.lines("c") == []
    until(lambda: len(lockers.agent.kv_list(f"{lockers.prefix}/")) == 3, "only the holders have a key")


def test_a_record_of_another_program_is_reported_once(lockers: Lockers) -> None:
    lockers.agent.kv_put(f"{lockers.prefix}/.lock", b"precious", flags=7)
    code, _, error = lockers.start("-n", "3", "--wait", "0", key=lockers.prefix).end()
    assert code == 78 and error.count("is left alone") == error.count("\n") == 1


@pytest.mark.parametrize("how", ["session", "key", "record"])
def test_a_lost_slot_ends_the_command(lockers: Lockers, how: str) -> None:
    holder = lockers.holder("-n", "2", *SHORT, key=lockers.prefix)
    (session,) = [
        entry["Session"] for entry in lockers.agent.kv_list(f"{lockers.prefix}/") if entry["Session"]
    ]
    match how:
        case "session":
            lockers.agent.session_destroy(session)
        case "key":
            lockers.agent.kv_delete(f"{lockers.prefix}/{session}")
        case _:
            lockers.agent.kv_delete(f"{lockers.prefix}/.lock")
    code, _, error = holder.end()
    assert code == 1 and f"lost {lockers.prefix}/.lock (" in error
    lockers.assert_nothing_left()


def test_consul_lock_with_n_counts_the_same_slots(lockers: Lockers) -> None:
    ours = lockers.holder("-n", "2", key=lockers.prefix)
    theirs = lockers.consul_lock("-n=2", prefix=lockers.prefix, name="t1", body=SLEEP)
    lockers.wait_line("t1", "begin")
    assert lockers.consul_lock("-n=2", "-try=1s", prefix=lockers.prefix, name="t2").wait() == 1
    assert lockers.start("-n", "2", "--wait", "0", name="b", key=lockers.prefix).end() == (1, "", "")
    assert lockers.lines("t2") == lockers.lines("b") == []
    ours.signal(signal.SIGTERM)
    theirs.signal(signal.SIGTERM)
    assert ours.wait() == 143
    theirs.wait()


def test_one_slot_is_the_lock_of_consul_lock(lockers: Lockers) -> None:
    """By its -n=1, as without it: the key is no semaphore's, whoever comes first."""
    ours = lockers.holder("-n", "1", key=lockers.prefix)
    assert lockers.consul_lock("-n=1", "-try=1s", prefix=lockers.prefix, name="t1").wait() == 1
    ours.signal(signal.SIGTERM)
    assert ours.wait() == 143
    theirs = lockers.consul_lock("-n=1", prefix=lockers.prefix, name="t2", body=SLEEP)
    lockers.wait_line("t2", "begin")
    assert lockers.start("-n", "1", "--wait", "0", name="b", key=lockers.prefix).end() == (1, "", "")
    assert lockers.lines("t1") == lockers.lines("b") == []
    theirs.signal(signal.SIGTERM)
    theirs.wait()


def test_a_prefix_does_not_name_the_record(lockers: Lockers) -> None:
    code, _, error = lockers.start("-n", "2", key=f"{lockers.prefix}/.lock").end()
    assert code == 2 and "/.lock" in error
