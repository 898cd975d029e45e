"""``lock --every`` on a real Consul, by machines whose clocks are an hour ahead and an hour behind.

A machine is a boot id of its own, over which the kernel's is hidden, and a wall clock that libfaketime moves.
CLOCK_BOOTTIME is that of the real machine, as it is on each.
"""

import json
import os
import re
import time
from pathlib import Path

import pytest

from tests.consul.locks.lockers import LOCK_DELAY_S, SHORT, SLEEP, Locker, Lockers, boottime
from tests.support.supervisor import until

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
EVERY_S, PERIODS = 4.0, 20
NAMESPACE = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--mount", "--map-root-user")
OTHER_BOOT = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'


def run_on(
    lockers: Lockers, name: str, *options: str, off_s: int = 0, every_s: float = EVERY_S, body: str = ":"
) -> Locker:
    """Start ``lock --every`` on the machine of this name, whose clock is off by this much."""
    boot_id = lockers.records.parent / f"boot-{name}"
    boot_id.write_text(f"boot-of-{name}\n")
    environ = {} if FAKETIME is None else {"LD_PRELOAD": str(FAKETIME), "FAKETIME": f"{off_s:+d}s"}
    every = ("--every", f"{every_s:g}s", "--wait", "20s", "--verbose")
    before = (*NAMESPACE, "sh", "-c", OTHER_BOOT, str(boot_id))
    return lockers.start(
        *every, *options, name=name, body=body, before=before, environ={**environ, "DONT_FAKE_MONOTONIC": "1"}
    )


@pytest.mark.long
@pytest.mark.skipif(FAKETIME is None, reason="apt install libfaketime")
def test_a_job_runs_once_in_each_period_though_clocks_are_an_hour_off(lockers: Lockers) -> None:
    """Each machine has the same line in its crontab; in the middle one machine is gone for good."""
    off_s = {"right": 0, "ahead": 3600, "behind": -3600}
    gone = ""
    began_at = time.monotonic()
    for tick in range(PERIODS):
        if tick == PERIODS // 2:
            gone = lockers.lines(what="begin")[-1].name
        for locker in [run_on(lockers, name, off_s=off_s[name]) for name in off_s if name != gone]:
            assert locker.wait() in (0, 1)
        time.sleep(max(0.0, began_at + (tick + 1) * EVERY_S - time.monotonic()))
    starts = [line.at for line in lockers.lines(what="begin")]
    gaps = [after - before for before, after in zip(starts, starts[1:], strict=False)]
    assert min(gaps) >= EVERY_S * 0.9, gaps
    assert len(starts) >= PERIODS - 3, gaps


@pytest.mark.skipif(FAKETIME is None, reason="apt install libfaketime")
@pytest.mark.parametrize("off_s", [3600, -3600])
def test_the_next_machine_is_due_when_it_has_seen_a_start_for_a_period(lockers: Lockers, off_s: int) -> None:
    assert run_on(lockers, "a").wait() == 0
    code, _, error = run_on(lockers, "b", off_s=off_s).end()
    seen_at = boottime()
    assert code == 1 and "not due before 4s have passed since this machine saw a start, 0" in error
    assert run_on(lockers, "a").wait() == 1
    time.sleep(max(0.0, seen_at + EVERY_S - boottime()))
    assert run_on(lockers, "b", off_s=off_s).wait() == 0
    assert [line.name for line in lockers.lines(what="begin")] == ["a", "b"]
    entry = lockers.agent.kv_get(lockers.key)
    assert entry is not None
    value = json.loads(entry["Value"])
    assert abs(value["Started"] - time.time() - off_s) < 60 and list(value["Seen"]) == ["boot-of-b"]


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
