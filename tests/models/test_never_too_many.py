"""No fault lets more contenders of a semaphore act than its limit allows."""

import pytest

from tests.models.depth import DEPTH, TO_THE_END
from tests.models.semaphore_model import WALKS, SemaphoreWalk, explore

# The table that the model prints goes further, because most walks have no end for which a test could wait.
ENOUGH = (
    250 * DEPTH,
    pytest.param(1_200, marks=pytest.mark.long),
    pytest.param(15_000, marks=TO_THE_END),
)

# What these have to show needs more states.
FURTHER = {"two for one: ends": 2, "two for two: numbers dropped": 2}


@pytest.mark.parametrize("enough", ENOUGH)
@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.name.replace(" ", "-"))
def test_no_order_of_events_lets_more_act_than_the_limit(walk: SemaphoreWalk, enough: int) -> None:
    """No two that act have one number, and all slots must be in use at some time.

    A failure prints the shortest way to the broken promise.
    """
    _, crowd = explore(walk, FURTHER.get(walk.name, 1) * enough)
    assert crowd.most == walk.limit
    assert walk.shows <= crowd.kinds
    assert walk.numbers <= crowd.numbers
