"""A finding of ``check --connect``: what is the case, and the remedy when something is wrong.

It never holds the token.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


class Level(StrEnum):
    """The grade of a finding. UNTOLD: Consul's answer does not show it."""

    OK = "ok"
    WARNING = "warning"
    UNTOLD = "cannot tell"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding."""

    what: str  # the thing that was checked, by its name in docs/commands.md
    level: Level
    text: str  # the fact that was found
    remedy: str = ""  # what to do. Blank: nothing
    item: str = ""  # the election or semaphore. Blank: the finding is about the agent or Consul


def together(found: Sequence[Finding]) -> list[Finding]:
    """Return the findings about one item: those of level OK joined to one, then each of another level."""
    right = [one for one in found if one.level is Level.OK]
    wrong = [one for one in found if one.level is not Level.OK]
    lines = [replace(right[0], text=", ".join(one.text for one in right))] if right else []
    return lines + wrong
