"""One machine for the tests of a worker: each finds it clean."""

from collections.abc import Iterator

import pytest

from tests.system.machine.machine import Machine
from tests.system.machine.node import Node


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """Yield a booted machine with the product and a Consul in it."""
    folder = tmp_path_factory.mktemp("machine")
    with Machine(folder / "machine") as machine:
        node = Node(machine)
        node.install(folder)
        yield node


@pytest.fixture
def node(installed: Node) -> Node:
    """Return the installed machine, without anything of an earlier test."""
    installed.clean()
    return installed
