"""When the application of a machine acted, by its stamps, and for how long two acted at once."""

import re
from collections.abc import Sequence

from tests.system.emulated.machine import Line

EVERY_S = 0.1  # how often an application says that it acts


def acts(stamps: Sequence[Line]) -> list[float]:
    """Return the times at which an application said that it acts, oldest first."""
    return [line.at for line in stamps if re.search(r"I act with token \d+$", line.text)]


def together_s(old: Sequence[float], new: Sequence[float]) -> float:
    """Return for how long both acted: from when the new one began to when the old one ended."""
    late = [at for at in old if new and at >= new[0]]
    return late[-1] - late[0] + EVERY_S if late else 0.0
