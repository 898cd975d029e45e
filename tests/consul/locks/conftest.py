"""The processes of ``lock`` that a test starts."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.consul.locks.lockers import Lockers
from tests.support.consul import Agent

MakeLockers = Callable[[Agent], Lockers]


@pytest.fixture
def make_lockers(tmp_path: Path, unique: str) -> Iterator[MakeLockers]:
    """Return a function that makes the processes of an agent, of which none is left at the end."""
    with ExitStack() as ends:

        def make(agent: Agent) -> Lockers:
            made = Lockers(agent, tmp_path, unique)
            ends.callback(made.close)
            return made

        yield make


@pytest.fixture
def lockers(shared_agent: Agent, make_lockers: MakeLockers) -> Lockers:
    """Return processes on the shared agent."""
    return make_lockers(shared_agent)


@pytest.fixture
def either_lockers(either_agent: Agent, make_lockers: MakeLockers) -> Lockers:
    """Return processes on the shared agent, and in a second run on a client agent of it."""
    return make_lockers(either_agent)
