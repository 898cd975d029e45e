"""How far a round over every order of events goes: some way in `make test`, to its end in `make test-long`.

The walks are breadth-first, so the shorter round has looked at all that the fewest events lead to.
``DEPTH=2`` in the environment makes the shorter rounds twice as long: `make mutants` goes so far.
"""

import os
from math import inf

import pytest

DEPTH = int(os.environ.get("DEPTH", "1"))
ENOUGH = 250 * DEPTH  # states: a second or two for each walk, and all that a walk shows occurs within them

rounds = pytest.mark.parametrize(
    "enough",
    [pytest.param(ENOUGH, id="the-first"), pytest.param(inf, id="all", marks=pytest.mark.long)],
)
