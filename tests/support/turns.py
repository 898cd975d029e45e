"""Cases of one test of which `make test` runs the first, and `make test-long` the others."""

from collections.abc import Iterable

import pytest


def first_now(cases: Iterable[object]) -> list[object]:
    """Return the cases for ``parametrize``, tuples for several arguments: all but the first are long."""
    first, *others = cases
    values = (case if isinstance(case, tuple) else (case,) for case in others)
    return [first, *(pytest.param(*value, marks=pytest.mark.long) for value in values)]
