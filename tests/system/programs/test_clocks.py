"""``lock --every`` by machines whose clocks are an hour ahead and an hour behind."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.adapters.runtime.clock import boottime
from tests.consul.locks.lockers import Lockers
from tests.consul.locks.machines import EVERY_S, run_on
from tests.support.consul import Agent


@pytest.fixture
def lockers(shared_agent: Agent, tmp_path: Path, unique: str) -> Iterator[Lockers]:
    """Return processes on the shared agent, of which none is left at the end."""
    made = Lockers(shared_agent, tmp_path, unique)
    yield made
    made.close()


@pytest.mark.parametrize("off_s", [3600, -3600])
def test_the_next_machine_is_due_when_it_has_seen_a_start_for_a_period(lockers: Lockers, off_s: int) -> None:
    assert run_on(lockers, "a").wait() == 0
    code, _, error = run_on(lockers, "b", off_s=off_s).end()
    seen_at = boottime()
    assert code == 1 and "not due before 4s have passed since this machine saw a start, 0" in error
    assert run_on(lockers, "a", every_s=600.0).wait() == 1
    time.sleep(max(0.0, seen_at + EVERY_S - boottime()))
    assert run_on(lockers, "b", off_s=off_s).wait() == 0
    assert [line.name for line in lockers.lines(what="begin")] == ["a", "b"]
    entry = lockers.agent.kv_get(lockers.key)
    assert entry is not None
    value = json.loads(entry["Value"])
    assert abs(value["Started"] - time.time() - off_s) < 60 and list(value["Seen"]) == ["boot-of-b"]
