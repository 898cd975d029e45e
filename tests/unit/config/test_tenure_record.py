"""The value of ``<key>/.tenure``: what is written can be read, and nothing else reaches a hook."""

import json

import pytest

from supervisor.config.formats.tenure_record import decoded, encoded
from supervisor.core.claim.record import UNREADABLE, State, TenureRecord
from supervisor.core.frozen import replace
from supervisor.core.settings import Place

PLACE = Place("machine uuid", "db1", "boot")
RECORD = TenureRecord("5f0e-1", State.STOPPING, 12.5, 3.0, "bmc ü", "n1", PLACE, 7, 0.5, 3, 2.5)


def test_a_record_comes_back_as_it_was() -> None:
    assert decoded(encoded(RECORD), 3) == RECORD
    assert decoded(encoded(replace(RECORD, token=0)), 3) == replace(RECORD, token=3)


def test_fields_of_later_versions_are_ignored_and_no_lock_delay_is_longer_than_26_hours() -> None:
    fields = json.loads(encoded(RECORD)) | {"more": 1, "lock_delay": "27h"}
    assert decoded(json.dumps(fields).encode(), 3) == replace(RECORD, lock_delay_s=26 * 3600.0)


@pytest.mark.parametrize(
    "change",
    [
        {"session": "a/b"},
        {"session": 1},
        {"state": "asleep"},
        {"lock_delay": 12},
        {"lock_delay": "soon"},
        {"target": "db1\nrm -rf /"},
        {"target": "x" * 256},
        {"node": None},
        {"token": -1},
        {"token": True},
        {"serial": "1"},
        {"waited": 3},
    ],
    ids=str,
)
def test_a_field_that_breaks_its_rule_makes_the_record_unreadable(change: dict[str, object]) -> None:
    assert decoded(json.dumps(json.loads(encoded(RECORD)) | change).encode(), 3) == UNREADABLE


@pytest.mark.parametrize("value", [b"", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"session": "s"}'])
def test_another_value_is_unreadable(value: bytes) -> None:
    assert decoded(value, 3) == UNREADABLE
