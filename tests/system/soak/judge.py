"""Series of looks, the limit of each, and a line of figures.

The functions here are pure: they measure nothing. Limits are of three kinds. A figure that grows and shrinks
in the course of work is *flat* when the median of the run's last third is at most 5 % above that of the
second, or at most a slack of its own; the first third is the warm-up. A figure that is counted while
everything rests is *the same* each time. A figure with a bound of its own is *at most* that bound at every
look.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

GROWTH_MAX = 0.05
HEADING = f"{'figure':21}{'first':>6}{'2nd/3':>6}{'last/3':>7}{'max':>6}{'limit':>8}  "

Limit = Callable[["Series"], tuple[str, bool]]
"""The text of a limit for the plot, and whether the series keeps it."""


@dataclass(slots=True)
class Series:
    """One figure, as it was seen in the course of a run."""

    name: str
    limit: Limit
    values: list[float] = field(default_factory=list)

    @property
    def second(self) -> float:
        return statistics.median(self._third(1))

    @property
    def last(self) -> float:
        return statistics.median(self._third(2))

    @property
    def kept(self) -> bool:
        """Whether there are enough looks, and they keep the limit."""
        return len(self.values) >= 3 and self.limit(self)[1]

    def _third(self, number: int) -> Sequence[float]:
        count = len(self.values)
        return self.values[count * number // 3 : count * (number + 1) // 3]


def flat(slack: float) -> Limit:
    """Return the limit of a flat figure.

    ``slack``: the growth that is always allowed, for a reason that the caller gives.
    """

    def limit(series: Series) -> tuple[str, bool]:
        most = max(series.second * (1 + GROWTH_MAX), series.second + slack)
        return f"≤ {_short(most)}", series.last <= most

    return limit


def the_same(value: float) -> Limit:
    """Return the limit of a figure that has this value at every look."""
    return lambda series: (f"= {_short(value)}", all(seen == value for seen in series.values))


def as_at_first() -> Limit:
    """Return the limit of a figure that keeps its first value."""
    return lambda series: the_same(series.values[0])(series)


def at_most(value: float) -> Limit:
    """Return the limit of a figure that has at most this value at every look."""
    return lambda series: (f"≤ {_short(value)}", max(series.values) <= value)


def plot(all_series: Sequence[Series]) -> str:
    """Return a line for each series, below a heading."""
    return "\n".join([HEADING.rstrip(), *(_line(series) for series in all_series)])


def _line(series: Series) -> str:
    if len(series.values) < 3:
        return f"{series.name:21}  seen {len(series.values)} times: too few to judge  MISSED"
    cells = (series.values[0], series.second, series.last, max(series.values))
    widths = (6, 6, 7, 6)
    numbers = "".join(_short(cell).rjust(width) for cell, width in zip(cells, widths, strict=True))
    verdict = "ok" if series.kept else "MISSED"
    return f"{series.name:21}{numbers}{series.limit(series)[0]:>8}  {verdict}"


def _short(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() or value >= 1000 else f"{value:.1f}"
