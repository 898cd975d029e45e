"""Scenes whose nodes listen on any port of the loopback."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.consul.elections.scene import Scene
from tests.consul.semaphores.scene import SlotScene
from tests.support.consul import Agent
from tests.support.staging import staged


class WebScene(Scene):
    """Scenes of elections."""

    def config(
        self, items: Mapping[str, object], consul: Mapping[str, object] | None = None
    ) -> dict[str, object]:
        """Return the content of a node's file."""
        return {**super().config(items, consul), "http": {"listen": "127.0.0.1:0"}}


class SlotWebScene(WebScene, SlotScene):
    """Scenes of semaphores."""


@pytest.fixture
def scene_class() -> type[Scene]:
    """Return the class of which scenes are made."""
    return WebScene


@pytest.fixture
def slots(
    shared_agent: Agent, tmp_path: Path, unique: str, request: pytest.FixtureRequest
) -> Iterator[SlotScene]:
    """Return supervisors with a semaphore, on the shared agent."""
    with staged(SlotWebScene(shared_agent, tmp_path / "nodes", unique), request) as made:
        yield made
