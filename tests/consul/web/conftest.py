"""Scenes whose nodes listen on any port of the loopback."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.consul.elections.scene import Scene
from tests.consul.semaphores.scene import SlotScene
from tests.support.consul import Agent
from tests.support.staging import reported, staged

MakeScene = Callable[[Agent], AbstractContextManager[Scene]]

pytest_runtest_makereport = pytest.hookimpl(wrapper=True)(reported)


class WebScene(Scene):
    """Elections."""

    def config(
        self, items: Mapping[str, object], consul: Mapping[str, object] | None = None
    ) -> dict[str, object]:
        """The content of a node's file."""
        return {**super().config(items, consul), "http": {"listen": "127.0.0.1:0"}}


class SlotWebScene(WebScene, SlotScene):
    """Semaphores."""


@pytest.fixture
def make_scene(tmp_path: Path, unique: str, request: pytest.FixtureRequest) -> MakeScene:
    """``with make_scene(agent) as scene:``: at the end of the block all is stopped and judged."""
    return lambda agent: staged(WebScene(agent, tmp_path / "nodes", unique), request)


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
def slots(
    shared_agent: Agent, tmp_path: Path, unique: str, request: pytest.FixtureRequest
) -> Iterator[SlotScene]:
    """Supervisors with a semaphore, on the shared agent."""
    with staged(SlotWebScene(shared_agent, tmp_path / "nodes", unique), request) as made:
        yield made
