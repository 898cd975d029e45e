"""The command that ends a guard names the machine where that may act for more than a minute."""

from typing import Any

import pytest

from supervisor.core.frozen import replace
from supervisor.core.settings import Place
from supervisor.reporting.telemetry.item_warnings import confirms_off
from tests.unit.core.test_guard import RECORD, guarding

LONG_S = 60.1


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"lock_delay_s": LONG_S}, " --machine db1"),
        ({"lock_delay_s": LONG_S, "place": Place()}, " --machine n1"),
        ({"lock_delay_s": LONG_S, "place": Place(host="$(a)")}, " --machine '$(a)'"),
        ({"lock_delay_s": LONG_S, "place": Place(host="two words")}, ""),
        ({"lock_delay_s": LONG_S, "place": Place(), "node": None}, ""),
        ({"lock_delay_s": 60.0}, ""),
        (None, ""),
    ],
)
def test_a_machine_is_named_that_may_act_for_long(changes: dict[str, Any] | None, named: str) -> None:
    guard = guarding(None if changes is None else replace(RECORD, **changes)).contender.guard
    assert guard is not None and confirms_off("n", guard) == f"consul-supervisor confirm-off n{named}"
