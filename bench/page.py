"""bench/measured.md: for each row the docstring of its module and its newest figures.

Only rows that have just been measured get new sections. The text before the first section is written by hand.
"""

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from bench.figures import Figure, markdown_table

PAGE = Path(__file__).resolve().with_name("measured.md")
_SECTION = re.compile(r"^## ", re.MULTILINE)


def section(name: str, measure: Callable[..., object], made: str, figures: Iterable[Figure]) -> str:
    """Return heading, description and table of one row. ``made``: the date and the machine."""
    return f"## {name}\n\n{words(measure)}\n\n{made}:\n\n{markdown_table(figures)}\n"


def words(measure: Callable[..., object]) -> str:
    """Return the description of a row, which is the docstring of its module."""
    said = sys.modules[measure.__module__].__doc__
    assert said is not None and said.startswith("Row: ")
    text = said.removeprefix("Row: ").strip().replace("``", "`")
    return text[0].upper() + text[1:]


def with_sections(page: str, sections: dict[str, str], order: Iterable[str]) -> str:
    """Return the page with these sections replaced or added, and all sections in this order."""
    head, *parts = _SECTION.split(page)
    known = {part.partition("\n")[0]: f"## {part.strip()}\n" for part in parts}
    known |= sections
    return "\n".join([head.rstrip() + "\n", *(known[name] for name in order if name in known)])
