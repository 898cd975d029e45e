"""Scenes on a stage: whatever a test does, at its end all is stopped, judged and cleared away."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import pytest


class Stage(Protocol):
    """Some processes of one test."""

    def end(self) -> None:
        """Stop what runs, then judge."""

    def close(self) -> None:
        """Leave nothing, whatever happened."""

    def account(self) -> str:
        """All that is known, for the text of a failure."""


S = TypeVar("S", bound=Stage)

_failed = pytest.StashKey[bool]()
_stages = pytest.StashKey[list[Stage]]()


def reported(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows what all nodes logged; a scene that failed already is not judged again."""
    report = yield
    if report.failed and call.when == "call":
        item.stash[_failed] = True
    if report.failed:
        for stage in item.stash.get(_stages, []):
            report.sections.append(("scene", stage.account()))
    return report


@contextmanager
def staged(made: S, request: pytest.FixtureRequest) -> Iterator[S]:
    """At the end of the block all is stopped and judged."""
    node = request.node
    node.stash.setdefault(_stages, []).append(made)
    try:
        yield made
        if not node.stash.get(_failed, False):
            made.end()
    finally:
        made.close()
