"""The promises in ``guarantees.md``, made from ``guarantees.toml``.

    python -m docs.guarantees            prints them
    python -m docs.guarantees --write    puts them into guarantees.md

The table is the only source: correct mistakes there. A test runs this and compares.
"""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLE = Path(__file__).resolve().with_name("guarantees.toml")
PAGE = TABLE.with_suffix(".md")
BEGIN = "<!-- from here on `python -m docs.guarantees` writes -->\n"
END = "<!-- to here -->\n"

Promise = dict[str, Any]


def promises() -> Iterator[Promise]:
    """Yield the promises of the table, in its order."""
    for group in _groups():
        yield from group["promises"]


def reference() -> str:
    """Return a section for each group of promises, as Markdown."""
    return "\n".join(_section(group) for group in _groups())


def page(text: str) -> str:
    """Return the text of ``guarantees.md`` with the promises of the table."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{reference()}\n{END}{after}"


def _groups() -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = tomllib.loads(TABLE.read_text(encoding="utf-8"))["groups"]
    return groups


def _section(group: dict[str, Any]) -> str:
    return f"## {group['title']}\n\n" + "\n".join(_entry(promise) for promise in group["promises"])


def _entry(promise: Promise) -> str:
    tests = "".join(f"- `{test}`\n" for test in promise["tests"])
    return f"### {promise['promise']}\n\n{promise['why']}\n\n{tests}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write(reference())
