"""Whatever breaks: of all that contend for the slots of a semaphore, never more act than the limit says."""

import pytest

from tests.models.depth import DEPTH
from tests.models.semaphore_model import SCENES, Crowd, Scene

# The table that crowd.py prints goes further: there is no end of most scenes that a test could wait for.
ENOUGH = (750 * DEPTH, pytest.param(15_000, marks=pytest.mark.long))


def test_names_of_scenes_are_unique() -> None:
    names = [scene.name for scene in SCENES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("enough", ENOUGH)
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name.replace(" ", "-"))
def test_no_order_of_events_lets_more_act_than_the_limit(scene: Scene, enough: int) -> None:
    """And all slots are in use at some time. A failure tells the shortest way to the broken promise."""
    walked = Crowd(scene).walk(enough)
    assert walked.most == scene.limit
    assert scene.shows <= walked.kinds
