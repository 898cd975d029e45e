"""A figure, its limit and its verdict, and the table that shows them. Pure."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

HEADINGS = ("row", "figure", "value", "unit", "limit", "verdict")
_RIGHT = ("value", "limit")


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table.

    limit: a value up to this one is good. None: reported only.
    at_least: a value below this one is not good either.
    """

    row: str
    what: str
    value: float
    unit: str
    limit: float | None = None
    at_least: float = float("-inf")

    @property
    def missed(self) -> bool:
        """Whether the value is beyond its limit."""
        return self.limit is not None and not self.at_least <= self.value <= self.limit

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of the line as text, in the order of HEADINGS."""
        limit = "" if self.limit is None else f"≤ {self.limit:g}"
        limit = limit if self.at_least == float("-inf") else f"{self.at_least:g} to {self.limit:g}"
        verdict = "" if self.limit is None else "MISSED" if self.missed else "ok"
        return (self.row, self.what, _number(self.value), self.unit, limit, verdict)


def median_and_p95(
    row: str, what: str, samples: Sequence[float], unit: str, limit: float | None = None
) -> list[Figure]:
    """Return the median and the 95th percentile of one series. The limit is that of the median."""
    return [
        Figure(row, f"{what}, median of {len(samples)}", statistics.median(samples), unit, limit),
        Figure(row, f"{what}, p95", p95(samples), unit),
    ]


def p95(samples: Sequence[float]) -> float:
    """Return the smallest sample that at least 95 % of the samples do not exceed."""
    ordered = sorted(samples)
    return ordered[-(-95 * len(ordered) // 100) - 1]


def plain_table(figures: Iterable[Figure]) -> str:
    """Return the table with columns padded by blanks, for a terminal."""
    rows = [HEADINGS, *(figure.cells for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(_padded(row, widths)).rstrip() for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def markdown_table(figures: Iterable[Figure]) -> str:
    """Return the table in Markdown, for a document."""
    ruler = ("---:" if heading in _RIGHT else "---" for heading in HEADINGS)
    rows = [HEADINGS, tuple(ruler), *(figure.cells for figure in figures)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _padded(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    padded = zip(HEADINGS, row, widths, strict=True)
    return [text.rjust(width) if heading in _RIGHT else text.ljust(width) for heading, text, width in padded]


def _number(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() or abs(value) >= 100 else f"{value:.2f}"
