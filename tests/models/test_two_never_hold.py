"""Whatever breaks: a rival that obeys only Consul never acts beside our application."""

import pytest

from tests.models.depth import ENOUGH, rounds
from tests.models.two_holders_model import LONG, SCENES, Scene, explore


def test_names_of_scenes_are_unique() -> None:
    names = [scene.name for scene in (*SCENES, *LONG)]
    assert len(names) == len(set(names))


@rounds
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name.replace(" ", "-"))
def test_no_order_of_events_lets_two_act_at_once(scene: Scene, enough: float) -> None:
    """A failure tells the shortest way to the broken promise."""
    assert explore(scene, enough).states >= ENOUGH
