"""``lock --every`` on a real Consul. Clocks that are off are in tests/system/programs/test_clocks.py."""

import re

import pytest

from tests.consul.locks.lockers import LOCK_DELAY_S, SHORT, SLEEP, Lockers
from tests.consul.locks.machines import run_on
from tests.support.supervisor import until


def test_a_job_is_not_due_until_a_period_after_its_start_was_seen(lockers: Lockers) -> None:
    assert run_on(lockers, "a", every_s=600.0).wait() == 0
    code, _, error = run_on(lockers, "b", every_s=600.0).end()
    assert code == 1 and "not due before 10m have passed since this machine saw a start, " in error
    assert run_on(lockers, "a", every_s=600.0).wait() == 1
    assert [line.name for line in lockers.lines(what="begin")] == ["a"]


@pytest.mark.long
def test_a_crash_in_the_middle_counts_as_a_start(lockers: Lockers) -> None:
    """The machine that waits has seen the start, though it gets its turn only after the lock-delay."""
    first = run_on(lockers, "a", *SHORT, body=SLEEP, every_s=60.0)
    lockers.wait_line("a", "begin")
    waiting = run_on(lockers, "b", *SHORT, every_s=60.0)
    until(lambda: lockers.is_waiting(2), "b waits")
    first.process.kill()
    code, _, error = waiting.end()
    seen = re.search(r"not due before 60s have passed since this machine saw a start, ([0-9.]+)s ago", error)
    assert code == 1 and seen is not None and float(seen[1]) >= LOCK_DELAY_S, error
    assert lockers.lines("b") == []


def test_no_period_without_one_start(lockers: Lockers) -> None:
    done = lockers.start("-n", "2", "--every", "5m")
    assert done.end() == (
        2,
        "",
        "consul-supervisor: cannot use --every with -n: a period has one start, remove one of the two\n",
    )
