"""Scenes of semaphores: on the worker's shared agent, or on one of the test's own."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.consul.semaphores.scene import SlotScene
from tests.support.consul import Agent
from tests.support.staging import reported, staged

MakeScene = Callable[[Agent], AbstractContextManager[SlotScene]]

pytest_runtest_makereport = pytest.hookimpl(wrapper=True)(reported)


@pytest.fixture
def make_scene(tmp_path: Path, unique: str, request: pytest.FixtureRequest) -> MakeScene:
    """``with make_scene(agent) as scene:``: at the end of the block all is stopped and judged."""
    return lambda agent: staged(SlotScene(agent, tmp_path / "nodes", unique), request)


@pytest.fixture
def scene(shared_agent: Agent, make_scene: MakeScene) -> Iterator[SlotScene]:
    """Supervisors on the shared agent."""
    with make_scene(shared_agent) as made:
        yield made
