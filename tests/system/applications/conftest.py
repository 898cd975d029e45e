"""The stage of one test, on a Consul of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.consul import Agent
from tests.system.applications.stage import Stage


@pytest.fixture
def stage(agent: Agent, tmp_path: Path) -> Iterator[Stage]:
    """Yield the stage of one test; at the end its processes are ended, the youngest first."""
    with Stage(agent, tmp_path / "stage") as made:
        yield made
