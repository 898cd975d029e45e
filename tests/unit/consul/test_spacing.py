"""A question that is asked at each change is asked at once for the first ones, then some times a second."""

import pytest

from supervisor.consul.spacing import BURST, EVERY_S, Spacing


def test_the_first_changes_in_a_row_wait_for_nothing() -> None:
    spacing = Spacing()
    assert [spacing.wait_s(7.0) for _ in range(BURST)] == [0.0] * BURST
    assert spacing.wait_s(7.0) == pytest.approx(EVERY_S)


def test_what_changes_without_pause_is_asked_for_so_many_times_a_second() -> None:
    spacing, now, asked = Spacing(), 0.0, 0
    while now < 10.0:
        now += spacing.wait_s(now)
        asked += 1
    assert asked == pytest.approx(10.0 / EVERY_S + BURST, abs=2)


def test_after_a_calm_second_the_next_changes_wait_for_nothing_again() -> None:
    spacing = Spacing()
    for _ in range(2 * BURST):
        spacing.wait_s(0.0)
    assert [spacing.wait_s(2 * BURST * EVERY_S) for _ in range(BURST)] == [0.0] * BURST


def test_changes_now_and_then_never_wait() -> None:
    spacing = Spacing()
    assert not any(spacing.wait_s(at * 1.01 * EVERY_S) for at in range(1000))
