"""python -m bench soak: two supervisors with a hundred elections, disturbed for an hour.

This is no row of the table, because it takes an hour. ``tests.system.soak`` has the soak and its judgements,
and ``make test-soak`` runs it for five minutes.
"""

from collections.abc import Sequence

from tests.system.soak.__main__ import main as soak

NAME = "soak"
MINUTES = 60.0


def main(arguments: Sequence[str]) -> int:
    """Run one soak, and return the exit code."""
    return soak(arguments, minutes=MINUTES)
