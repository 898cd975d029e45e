"""No fault lets a rival that obeys only Consul act beside our application."""

import pytest

from tests.models.depth import ENOUGH, rounds
from tests.models.two_holders_model import LONG, WALKS, RivalWalk, explore


def test_names_of_the_walks_beside_a_rival_are_unique() -> None:
    names = [walk.name for walk in (*WALKS, *LONG)]
    assert len(names) == len(set(names))


@rounds
@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.name.replace(" ", "-"))
def test_no_order_of_events_lets_two_act_at_once(walk: RivalWalk, enough: float) -> None:
    """A failure prints the shortest way to the broken promise."""
    assert explore(walk, enough).states >= ENOUGH
