"""No fault lets two contenders act at once, whatever becomes of records, machines and fences."""

import pytest

from tests.models.depth import rounds
from tests.models.guard_model import WALKS, GuardWalk, explore


@rounds
@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.name.replace(" ", "-"))
def test_behind_the_guard_two_never_act(walk: GuardWalk, enough: float) -> None:
    """A failure prints the shortest way to the broken promise.

    From each state the model goes on to a holder, so each costs twice as much as one of another walk.
    """
    walked = explore(walk, enough / 2)
    assert walked.complete or walked.states >= enough / 2
