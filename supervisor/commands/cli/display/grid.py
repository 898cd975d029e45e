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
    natural = [
        max([width(column.title), *(width(row[at]) for row in rows)]) for at, column in enumerate(columns)
    ]
    least = [
        size if each.least is None else min(each.least, size)
        for each, size in zip(columns, natural, strict=True)
    ]
    shown = list(range(len(columns)))
    while room is not None and sum(least[at] + len(GAP) for at in shown) - len(GAP) > room:
        dropped = max(shown, key=lambda at: columns[at].rank)
        if columns[dropped].rank == 0:
            break
        shown.remove(dropped)
    widths = [natural[at] for at in shown]
    if room is not None:
        inner = room - len(GAP) * (len(shown) - 1)
        widths = shrink_to_fit(widths, [least[at] for at in shown], inner) or widths
    lines = [
        GAP.join(pad(row[at], size) for at, size in zip(shown, widths, strict=True)).rstrip()
        for row in [[column.title for column in columns], *rows]
    ]
    return [fit(line, room) for line in lines]
