"""Scenes: on the worker's shared agent, or on an agent of the test's own that it may freeze or kill."""

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.elections.scene import Scene
from tests.support.consul import Agent

MakeScene = Callable[[Agent], AbstractContextManager[Scene]]

_failed = pytest.StashKey[bool]()
_scenes = pytest.StashKey[list[Scene]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows what all nodes logged; a scene that failed already is not judged again."""
    report = yield
    if report.failed and call.when == "call":
        item.stash[_failed] = True
    if report.failed:
        for scene in item.stash.get(_scenes, []):
            report.sections.append(("scene", scene.account()))
    return report


@pytest.fixture
def make_scene(tmp_path: Path, unique: str, request: pytest.FixtureRequest) -> MakeScene:
    """``with make_scene(agent) as scene:``: at the end of the block all is stopped and judged."""

    @contextmanager
    def staged(agent: Agent) -> Iterator[Scene]:
        made = Scene(agent, tmp_path / "nodes", unique)
        request.node.stash.setdefault(_scenes, []).append(made)
        try:
            yield made
            if not request.node.stash.get(_failed, False):
                made.end()
        finally:
            made.close()

    return staged


@pytest.fixture
def scene(shared_agent: Agent, make_scene: MakeScene) -> Iterator[Scene]:
    """Supervisors on the shared agent."""
    with make_scene(shared_agent) as made:
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
