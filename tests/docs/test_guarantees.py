"""guarantees.md is made from its table, and each test that it names exists."""

import ast
import functools

import pytest

from docs import guarantees
from tests.support.pages import ROOT

PROMISES = list(guarantees.promises())
NAMED = sorted({test for promise in PROMISES for test in promise["tests"]})


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise["promise"])
def test_each_promise_has_a_reason_and_a_test(promise: guarantees.Promise) -> None:
    assert promise.keys() == {"promise", "why", "tests"}
    assert promise["why"].endswith(".") and promise["tests"]


def test_each_promise_occurs_once() -> None:
    assert len({promise["promise"] for promise in PROMISES}) == len(PROMISES)


@functools.cache
def functions(path: str) -> set[str]:
    """Return the functions of a module, without methods."""
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("named", NAMED)
def test_each_named_test_exists(named: str) -> None:
    path, _, function = named.partition("::")
    assert function.startswith("test_") and function in functions(path)
