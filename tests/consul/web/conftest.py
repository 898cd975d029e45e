"""Scenes whose nodes listen on any port of the loopback."""

from collections.abc import Mapping

import pytest

from tests.consul.elections.scene import Scene


class WebScene(Scene):
    """Scenes of elections."""

    def config(
        self, items: Mapping[str, object], consul: Mapping[str, object] | None = None
    ) -> dict[str, object]:
        return {**super().config(items, consul), "http": {"listen": "127.0.0.1:0"}}


@pytest.fixture
def scene_class() -> type[Scene]:
    return WebScene
