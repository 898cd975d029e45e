"""How far a round over every order of events goes: some way in `make test`, to its end in `make test-long`.

The walks are breadth-first, so the shorter round has looked at all states to which the fewest events lead.
``DEPTH=3`` in the environment makes the shorter rounds three times as long, as `make mutants` does.
"""

import os
from math import inf

import pytest

DEPTH = int(os.environ.get("DEPTH", "1"))
ENOUGH = 150 * DEPTH  # states: about a second for each walk, and its ``shows`` occur within them

rounds = pytest.mark.parametrize(
    "enough", [pytest.param(ENOUGH, id="the-first"), pytest.param(inf, id="all", marks=pytest.mark.long)]
)
