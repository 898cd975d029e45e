"""Which figures count as flat, and how they are shown."""

from collections.abc import Sequence

import pytest

from tests.system.soak.judge import Limit, Series, as_at_first, at_most, flat, plot, the_same

STEADY = [50.0] * 30
WARMED_UP = [30.0] * 10 + STEADY[10:]
LEAK = [50.0 + number * 0.5 for number in range(30)]
PEAK = [*STEADY[:25], 500.0, *STEADY[26:]]


def series(limit: Limit, values: Sequence[float]) -> Series:
    return Series("figure", limit, list(values))


@pytest.mark.parametrize("values", [STEADY, WARMED_UP, PEAK, LEAK[::-1]])
def test_a_figure_that_is_steady_after_its_warm_up_is_flat(values: Sequence[float]) -> None:
    """Values of the warm-up do not count, nor does a short peak."""
    assert series(flat(0.0), values).kept


def test_a_figure_that_grows_to_the_end_is_not_flat() -> None:
    """A figure that grows less than its slack is flat."""
    leak = series(flat(0.0), LEAK)
    assert not leak.kept and leak.last - leak.second == 5.0
    assert not series(flat(4.9), LEAK).kept
    assert series(flat(5.0), LEAK).kept


@pytest.mark.parametrize("limit", [the_same(3), as_at_first(), at_most(3)])
def test_a_figure_with_a_value_or_a_bound_keeps_it_at_every_look(limit: Limit) -> None:
    assert series(limit, [3, 3, 3]).kept
    assert not series(limit, [3, 3, 3, 4]).kept


@pytest.mark.parametrize("limit", [flat(100.0), the_same(1), as_at_first(), at_most(100)])
def test_a_bound_that_was_hardly_measured_is_not_kept(limit: Limit) -> None:
    few = series(limit, [1, 1])
    assert not few.kept and "too few" in plot([few])
