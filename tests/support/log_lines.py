"""The log lines that docs/logs.md promises, which every test that runs a supervisor checks."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from tests.support.pages import ROOT, rows

PAGE = ROOT / "docs" / "logs.md"
ALWAYS = frozenset({"time", "level", "event"})


class Promise(NamedTuple):
    """The levels that a line of this name may have, and its fields."""

    levels: frozenset[str]
    fields: frozenset[str]


@cache
def promises() -> Mapping[str, Promise]:
    """Return the promises by name of event, in the page's order."""
    promised = {}
    for event, levels, fields, _, _ in rows(PAGE, "event"):
        grouped = [named for group, named in _groups().items() if f"*{group}*" in fields]
        promised[event.strip("`")] = Promise(
            frozenset(re.findall(r"\w+", levels)), frozenset(re.findall(r"`(\w+)`", fields)).union(*grouped)
        )
    return promised


@cache
def _groups() -> dict[str, frozenset[str]]:
    """Return the fields of each group to which the page gives a name."""
    listed = re.findall(r"^- \*(.+)\*: (.*)$", PAGE.read_text(), re.MULTILINE)
    return {group: frozenset(re.findall(r"`(\w+)`", fields)) for group, fields in listed}


def undocumented(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return all events, fields and levels of these lines that the page does not promise."""
    found = []
    for line in lines:
        promise = promises().get(line["event"])
        if promise is None:
            found.append(f"the event {line['event']}")
            continue
        found += [f"{field} of {line['event']}" for field in line.keys() - ALWAYS - promise.fields]
        if line["level"] not in promise.levels:
            found.append(f"{line['event']} as {line['level']}")
    return found
