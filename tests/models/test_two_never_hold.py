"""No fault lets a rival that obeys only Consul act beside our application."""

import pytest

from tests.models.depth import ENOUGH, rounds
from tests.models.two_holders_model import WALKS, RivalWalk, explore


@rounds
@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.name.replace(" ", "-"))
def test_no_order_of_events_lets_two_act_at_once(walk: RivalWalk, enough: float) -> None:
    """A failure prints the shortest way to the broken promise."""
    assert explore(walk, enough).states >= ENOUGH
