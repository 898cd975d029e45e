"""A promise beside a measurement: a figure is kept within the allowance, and none is broken."""

import pytest

from supervisor.rehearsal.drill.promises import ALLOWANCE_S, Judge


@pytest.mark.parametrize(
    ("measured_s", "kept"),
    [(6.9, True), (7.0 + ALLOWANCE_S, True), (7.1 + ALLOWANCE_S, False), (None, False)],
)
def test_a_time_has_a_longest_length(measured_s: float | None, kept: bool) -> None:
    judge = Judge()
    judge.at_most("failover", 7.0, measured_s)
    (promise,) = judge.promises
    assert promise.promised == "at most 7s" and promise.kept is kept


@pytest.mark.parametrize(("measured_s", "kept"), [(0.5, True), (0.4, False), (None, False)])
def test_a_shortest_length_allows_nothing(measured_s: float | None, kept: bool) -> None:
    judge = Judge()
    judge.at_least("margin", 0.5, measured_s)
    assert [promise.kept for promise in judge.promises] == [kept]


def test_a_promise_without_a_figure_says_what_was_found() -> None:
    judge = Judge()
    judge.yes("on_lose succeeds", kept=False, otherwise="stop: exit 1")
    judge.yes("on_lose succeeds", kept=True, otherwise="stop: exit 1")
    assert [promise.measured for promise in judge.promises] == ["stop: exit 1", "yes"]
