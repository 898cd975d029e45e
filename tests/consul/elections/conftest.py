"""Fixtures of the elections' tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.consul.elections.scene import Scene
from tests.support.hung import local_disk


@pytest.fixture
def state_disk(scene: Scene) -> Iterator[Path]:
    """Mount a local disk, which is the state_dir of node a."""
    folder = scene.folder / "a" / "state"
    folder.mkdir(parents=True)
    with local_disk(folder):
        yield folder
