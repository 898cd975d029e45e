"""The numbers in the value of ``.lock``: only what is beyond doubt is a number."""

import json
from typing import Any

import pytest

from supervisor.config.formats.slot_record import decoded, encoded
from supervisor.core.requests import SlotRecord

RECORD = SlotRecord(3, ("a", "b"), 45.0, '{"Note":"kept"}', (("a", 1), ("b", None)))


def read(slots: Any, name: str = "Slots") -> dict[str, int | None]:
    return dict(
        decoded(json.dumps({"Limit": 2, "Holders": {"a": True, "b": 1}, name: slots}).encode()).numbers
    )


def test_numbers_come_back_as_they_were_and_an_unused_record_has_none() -> None:
    assert decoded(encoded(RECORD)) == RECORD
    assert json.loads(encoded(RECORD))["Slots"] == {"a": 1, "b": None}
    assert "Slots" not in json.loads(encoded(SlotRecord(3)))


@pytest.mark.parametrize(
    ("slots", "numbers"),
    [
        ({"a": 0, "b": 7}, {"a": 0, "b": 7}),  # of a limit that was larger
        ({"a": 0, "gone": 0}, {"a": 0}),
        ({"a": 1, "b": 1}, {}),
        ({"a": None, "b": None}, {"a": None, "b": None}),
        ({"a": True, "b": 1}, {"b": 1}),
        ({"a": -1, "b": 10_000}, {}),
        ({"a": 1.0, "b": "1"}, {}),
        ({"a": [1], "b": {}}, {}),
        ([0, 1], {}),
        (None, {}),
        (3, {}),
    ],
)
def test_a_number_counts_if_it_is_one_and_no_other_holder_has_it(
    slots: Any, numbers: dict[str, int | None]
) -> None:
    assert read(slots) == numbers == read(slots, "slots")
