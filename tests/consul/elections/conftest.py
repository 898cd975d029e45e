"""Scenes: on the worker's shared agent, or on an agent of the test's own that it may freeze or kill."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.consul.elections.scene import Scene
from tests.support.consul import Agent
from tests.support.staging import reported, staged

MakeScene = Callable[[Agent], AbstractContextManager[Scene]]

pytest_runtest_makereport = pytest.hookimpl(wrapper=True)(reported)


@pytest.fixture
def make_scene(tmp_path: Path, unique: str, request: pytest.FixtureRequest) -> MakeScene:
    """``with make_scene(agent) as scene:``: at the end of the block all is stopped and judged."""
    return lambda agent: staged(Scene(agent, tmp_path / "nodes", unique), request)


@pytest.fixture
def scene(shared_agent: Agent, make_scene: MakeScene) -> Iterator[Scene]:
    """Supervisors on the shared agent."""
    with make_scene(shared_agent) as made:
        yield made


@pytest.fixture
def either_scene(either_agent: Agent, make_scene: MakeScene) -> Iterator[Scene]:
    """Supervisors on the shared agent, and then on a client agent of it."""
    with make_scene(either_agent) as made:
        yield made


@pytest.fixture
def own_scene(persistent_agent: Agent, make_scene: MakeScene) -> Iterator[Scene]:
    """Supervisors on an agent that this test may stop, kill and freeze, and that keeps its state."""
    with make_scene(persistent_agent) as made:
        yield made


@pytest.fixture
def dev_scene(agent: Agent, make_scene: MakeScene) -> Iterator[Scene]:
    """Supervisors on an agent that this test may stop, and that then forgets everything."""
    with make_scene(agent) as made:
        yield made
