"""Scenes: at the end of a test all its processes are stopped, judged and cleared away."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import pytest


class Stage(Protocol):
    """The processes of one test."""

    def end(self) -> None:
        """Stop what runs, then judge."""

    def close(self) -> None:
        """Leave nothing behind, even after a failure."""

    def account(self) -> str:
        """Return all that is known, for the text of a failure."""


S = TypeVar("S", bound=Stage)

_failed = pytest.StashKey[bool]()
_stages = pytest.StashKey[list[Stage]]()


def reported(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the logs of all nodes to the report of a failure, and note that the scene is not judged again."""
    report = yield
    if report.failed and call.when == "call":
        item.stash[_failed] = True
    if report.failed:
        for stage in item.stash.get(_stages, []):
            report.sections.append(("scene", stage.account()))
    return report


@contextmanager
def staged(made: S, request: pytest.FixtureRequest) -> Iterator[S]:
    """Stop and judge the scene at the end of the block."""
    node = request.node
    node.stash.setdefault(_stages, []).append(made)
    try:
        yield made
        if not node.stash.get(_failed, False):
            made.end()
    finally:
        made.close()
