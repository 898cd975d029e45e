"""Scenes: on the worker's shared agent, or on an agent of the test's own that it may freeze or kill."""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.elections.scene import Scene
from tests.support.consul import Agent

_failed = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows what all nodes logged; a scene that failed already is not judged again."""
    report = yield
    if report.failed and call.when == "call":
        item.stash[_failed] = True
        for scene in getattr(item, "funcargs", {}).values():
            if isinstance(scene, Scene):
                report.sections.append(("scene", scene.account()))
    return report


def _scene(agent: Agent, tmp_path: Path, unique: str, request: pytest.FixtureRequest) -> Iterator[Scene]:
    made = Scene(agent, tmp_path / "nodes", unique)
    try:
        yield made
        if not request.node.stash.get(_failed, False):
            made.end()
    finally:
        made.close()


@pytest.fixture
def scene(shared_agent: Agent, tmp_path: Path, unique: str, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """Supervisors on the shared agent."""
    yield from _scene(shared_agent, tmp_path, unique, request)


@pytest.fixture
def own_scene(
    persistent_agent: Agent, tmp_path: Path, unique: str, request: pytest.FixtureRequest
) -> Iterator[Scene]:
    """Supervisors on an agent that this test may stop, kill and freeze, and that keeps its state."""
    yield from _scene(persistent_agent, tmp_path, unique, request)


@pytest.fixture
def dev_scene(agent: Agent, tmp_path: Path, unique: str, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """Supervisors on an agent that this test may stop, and that then forgets everything."""
    yield from _scene(agent, tmp_path, unique, request)
