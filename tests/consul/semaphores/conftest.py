"""Scenes of semaphores."""

import pytest

from tests.consul.semaphores.scene import SlotScene


@pytest.fixture
def scene_class() -> type[SlotScene]:
    """Return the class of which scenes are made."""
    return SlotScene
