"""Rows of cells as lines of a terminal: columns that shrink, and those that a narrow terminal leaves out."""

from collections.abc import Sequence
from typing import NamedTuple

from supervisor.commands.cli.display.text import fit, pad, shrink_to_fit, width

GAP = "  "


class Column(NamedTuple):
    """A column of a grid."""

    title: str
    least: int | None = None  # the width below which the column is useless. None: it is never truncated
    rank: int = 0  # the column with the largest rank is the first that a narrow terminal leaves out. 0: never


def grid(columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int | None) -> list[str]:
    """Return the titles and the rows, as lines of at most ``room`` columns. None: as wide as they are.

    rows: escaped text, one cell for each column.
    """
    shown = list(range(len(columns)))
    natural = [
        max([width(column.title), *(width(row[at]) for row in rows)]) for at, column in enumerate(columns)
    ]
    while (widths := _widths(columns, natural, shown, room)) is None:
        dropped = max(shown, key=lambda at: columns[at].rank)
        if columns[dropped].rank == 0:
            widths = [natural[at] for at in shown]
            break
        shown.remove(dropped)
    lines = [
        GAP.join(pad(row[at], size) for at, size in zip(shown, widths, strict=True)).rstrip()
        for row in [[column.title for column in columns], *rows]
    ]
    return [fit(line, room) for line in lines]


def _widths(
    columns: Sequence[Column], natural: Sequence[int], shown: Sequence[int], room: int | None
) -> list[int] | None:
    """Return the widths of the shown columns. None: they do not fit."""
    wanted = [natural[at] for at in shown]
    if room is None:
        return wanted
    least = [natural[at] if (size := columns[at].least) is None else min(size, natural[at]) for at in shown]
    return shrink_to_fit(wanted, least, room - len(GAP) * (len(shown) - 1))
