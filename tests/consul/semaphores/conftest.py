"""Scenes of semaphores."""

import pytest

from tests.consul.semaphores.scene import SlotScene


@pytest.fixture
def scene_class() -> type[SlotScene]:
    return SlotScene
