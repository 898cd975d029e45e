"""Scenes on the worker's shared agent, or on an agent of the test's own that it may freeze or kill.

They are scenes of elections, unless a folder or module has a ``scene_class`` of its own.
"""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import pytest

from tests.consul.elections.scene import Scene
from tests.support.consul import Agent
from tests.support.guarded import EACH_WAY, Guarded, guarded_agent
from tests.support.staging import staged

S = TypeVar("S", bound=Scene)
MakeScene = Callable[[Agent], AbstractContextManager[S]]


@pytest.fixture
def scene_class() -> type[Scene]:
    return Scene


@pytest.fixture
def make_scene(
    scene_class: type[S], tmp_path: Path, unique: str, request: pytest.FixtureRequest
) -> MakeScene[S]:
    """Return a context manager, ``with make_scene(agent) as scene``, whose end judges the scene."""
    return lambda agent: staged(scene_class(agent, tmp_path / "nodes", unique), request)


@pytest.fixture
def scene(shared_agent: Agent, make_scene: MakeScene[S]) -> Iterator[S]:
    """Return supervisors on the shared agent."""
    with make_scene(shared_agent) as made:
        yield made


@pytest.fixture
def either_scene(either_agent: Agent, make_scene: MakeScene[S]) -> Iterator[S]:
    """Return supervisors on the shared agent, and in a second run on one of its client agents."""
    with make_scene(either_agent) as made:
        yield made


@pytest.fixture
def own_scene(persistent_agent: Agent, make_scene: MakeScene[S]) -> Iterator[S]:
    """Return supervisors on an agent that this test may stop, kill and freeze, and that keeps its state."""
    with make_scene(persistent_agent) as made:
        yield made


@pytest.fixture
def dev_scene(agent: Agent, make_scene: MakeScene[S]) -> Iterator[S]:
    """Return supervisors on an agent that this test may stop, and that then loses all its data."""
    with make_scene(agent) as made:
        yield made


@pytest.fixture(params=EACH_WAY)
def guarded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Guarded]:
    """Return an agent of this test alone that denies by default."""
    with guarded_agent(tmp_path, request.param) as agent:
        yield agent


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 256 KiB for this test alone."""
    path = tmp_path / "disk"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(path)], check=True)
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)
