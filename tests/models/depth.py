"""How far a round over every order of events goes: some way in `make test`, several times as far in
`make test-long`, and to its end in `make test-orders`.

The walks are breadth-first, so a shorter round has looked at all states to which the fewest events lead.
``DEPTH=8`` in the environment makes the shorter rounds eight times as long, as `make mutants` does.
"""

import os
from math import inf

import pytest

DEPTH = int(os.environ.get("DEPTH", "1"))
ENOUGH = 52 * DEPTH  # states: a quarter of a second for each walk, and its ``shows`` occur within them

TO_THE_END = (pytest.mark.long, pytest.mark.orders)
rounds = pytest.mark.parametrize(
    "enough",
    [
        pytest.param(ENOUGH, id="the-first"),
        pytest.param(9 * ENOUGH, id="more", marks=pytest.mark.long),
        pytest.param(inf, id="all", marks=TO_THE_END),
    ],
)
