"""Which node acts: from its first hook until every hook of on_lose has ended."""

import pytest

from supervisor.core.settings import Command, ElectionSettings, Hook, SessionSettings
from supervisor.rehearsal.drill.recorders import RecordedRun
from supervisor.rehearsal.drill.tenures import ObservedTenure

HOOK = Hook("hook", Command(("a",)), 1.0)
ITEM = ElectionSettings(
    name="app", key="app", value=b"", session=SessionSettings("s"), on_acquire=(HOOK,), on_lose=(HOOK, HOOK)
)


@pytest.fixture
def tenure() -> ObservedTenure:
    return ObservedTenure(ITEM, "node-a", "session", 10.0)


def attempt(place: str, ended_at: float | None = None, code: int | None = 0) -> RecordedRun:
    return RecordedRun("node-a", place, "hook", "-", 1, 11.0, ended_at, None if ended_at is None else code)


def test_a_node_holds_once_on_acquire_has_succeeded(tenure: ObservedTenure) -> None:
    assert not tenure.acts and not tenure.holds
    tenure.attempts.append(attempt("on_acquire[0]"))
    assert tenure.acts and not tenure.holds
    tenure.attempts[0] = attempt("on_acquire[0]", 12.0)
    assert tenure.acts and tenure.holds


def test_a_node_acts_until_all_of_on_lose_has_ended(tenure: ObservedTenure) -> None:
    tenure.attempts += [attempt("on_acquire[0]", 12.0), attempt("on_lose[0]", 13.0)]
    assert tenure.acts and tenure.lost_at is None
    tenure.attempts.append(attempt("on_lose[1]"))
    assert tenure.acts
    tenure.attempts[-1] = attempt("on_lose[1]", 14.0)
    assert not tenure.acts and (tenure.lost_from, tenure.lost_at) == (11.0, 14.0)


def test_a_tenure_is_stuck_once_on_lose_has_failed_and_consul_still_shows_it(tenure: ObservedTenure) -> None:
    tenure.attempts += [attempt("on_lose[0]", 13.0), attempt("on_lose[1]", 14.0, code=1)]
    assert tenure.is_stuck
    tenure.freed_at = 15.0
    assert not tenure.is_stuck


def test_a_killed_supervisor_does_not_act(tenure: ObservedTenure) -> None:
    tenure.attempts.append(attempt("on_acquire[0]", 12.0))
    tenure.is_dead = True
    assert not tenure.acts and not tenure.holds
