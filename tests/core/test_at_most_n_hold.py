"""Whatever order things happen in, no more than the limit act; each scene as far as STATES_MAX states.

All states that there are: ``python -m tests.core.crowd``.
"""

import functools

import pytest

from tests.core.crowd import SCENES, Crowd, Scene, Walked

STATES_MAX = 6_000  # of each scene, the nearest to the beginning first


@functools.cache
def walked(scene: Scene) -> Walked:
    return Crowd(scene).walk(STATES_MAX)


def test_names_of_scenes_are_unique() -> None:
    names = [scene.name for scene in SCENES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name.replace(" ", "-"))
def test_no_order_of_events_lets_more_than_the_limit_hold(scene: Scene) -> None:
    """A failure tells the shortest way to the broken promise."""
    seen = walked(scene)
    assert seen.complete or seen.states >= STATES_MAX
    assert seen.most == scene.limit


def test_what_slots_are_about_occurs() -> None:
    """Each step, race and loss that only a semaphore knows, in one walk or another."""
    names = ("one: crashes, deletes", "two for one: ends", "two for one: stops")
    shown = set[str]().union(*(walked(scene).shown for scene in SCENES if scene.name in names))
    steps = {"Enroll", "TakeSlot", "Leave", "ReadSlots", "WatchSlots", "ReadKey", "Seated", "Raced"}
    assert shown >= steps | {"up: acquired", "up: adopted", "down: slot-removed", "down: key-deleted"}
