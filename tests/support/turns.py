"""Cases of one test of which `make test` runs the first, and `make test-long` the others."""

from collections.abc import Iterable

import pytest


def first_now(cases: Iterable[object]) -> list[object]:
    """Return the cases for ``parametrize``: all but the first are marked long."""
    first, *others = cases
    return [first, *(pytest.param(case, marks=pytest.mark.long) for case in others)]
