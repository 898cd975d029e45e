"""Short times of the product, made as long as a test waits: a busy machine would exceed them."""

import pytest

from supervisor.adapters.hooks import command, privileges
from tests.support.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def long_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "KILL_GRACE_S", PATIENCE_S)
    monkeypatch.setattr(privileges, "LOOKUP_S", PATIENCE_S)
