"""The product's short times, as long as a test waits: on a busy machine they would fail a hook that is sound."""

import pytest

from supervisor.hooks import command, privileges
from tests.support.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def long_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "KILL_GRACE_S", PATIENCE_S)
    monkeypatch.setattr(privileges, "LOOKUP_S", PATIENCE_S)
