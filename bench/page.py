"""docs/performance.md: what each row measures, in the words of its module, and what it measured last.

Pure but for the file. Only the rows that have just been measured get new sections; what stands before
the first section is written by hand.
"""

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from bench.figures import Figure, markdown_table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
_SECTION = re.compile(r"^## ", re.MULTILINE)


def section(name: str, measure: Callable[..., object], made: str, figures: Iterable[Figure]) -> str:
    """Heading, words and table of one row; ``made``: when and on what machine."""
    return f"## {name}\n\n{words(measure)}\n\n{made}:\n\n{markdown_table(figures)}\n"


def words(measure: Callable[..., object]) -> str:
    """What this row says of itself."""
    said = sys.modules[measure.__module__].__doc__
    assert said is not None and said.startswith("Row: ")
    text = said.removeprefix("Row: ").strip().replace("``", "`")
    return text[0].upper() + text[1:]


def with_sections(page: str, sections: dict[str, str], order: Iterable[str]) -> str:
    """The page with these sections instead of those that it has; all in this order."""
    head, *parts = _SECTION.split(page)
    known = {part.partition("\n")[0]: f"## {part.strip()}\n" for part in parts}
    known |= sections
    return "\n".join([head.rstrip() + "\n", *(known[name] for name in order if name in known)])
