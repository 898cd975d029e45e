"""python -m bench soak: two supervisors with a hundred elections, disturbed for an hour.

Not one of the rows of the table: it takes its time. The soak itself, and what it judges, is
``tests.system.soak``; ``make test-soak`` is the same for five minutes.
"""

from collections.abc import Sequence

from tests.system.soak.__main__ import main as soak

NAME = "soak"
MINUTES = 60.0


def main(arguments: Sequence[str]) -> int:
    """One soak; the exit code."""
    return soak(arguments, minutes=MINUTES)
