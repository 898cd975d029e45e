"""The document of an election's tenures: what is told and what is there, and the next document."""

import json
from typing import Any

import pytest

from supervisor.core.outcomes import KeyView
from supervisor.daemon.fleet.tenures import (
    BYTES_MAX,
    GONE,
    SILENT,
    TENURES_MAX,
    ForeignHistory,
    document_of,
    with_tenures,
)

LOCK_FLAGS = 3304740253564472344


def at(minute: int) -> str:
    return f"2026-11-27T{14 + minute // 60:02}:{minute % 60:02}:00.000Z"


def tenure(token: int, **fields: Any) -> dict[str, Any]:
    """Return a tenure that began at the minute ``token``."""
    named = {"token": token, "node": f"n{token % 2}", "session": f"s{token}", "from": at(token)}
    return {**named, "to": None, "why": None, "by": None, "note": None, "guard": None, **fields}


def key(value: bytes, **fields: Any) -> KeyView:
    return KeyView(9, value=value, create_index=3, modify_index=9, **{"is_marked": False, **fields})


def told(*tenures: dict[str, Any], after: bytes = b"", missed: int = 0) -> bytes:
    return with_tenures(document_of(key(after) if after else KeyView(9)), tenures, missed)


def ends(value: bytes) -> list[tuple[int, str | None, str | None]]:
    found = json.loads(value)["tenures"]
    return [(each["token"], each["to"], each["why"]) for each in found]


def test_a_tenure_is_told_when_it_begins_and_when_it_ends() -> None:
    begun = told(tenure(1))
    assert ends(begun) == [(1, None, None)] and json.loads(begun)["count"] == 1
    ended = told(tenure(1, to=at(5), why="step-down", by="root", note="disk"), after=begun)
    assert ends(ended) == [(1, at(5), "step-down")] and json.loads(ended)["count"] == 1
    assert told(tenure(1), after=ended) == ended, "an old word changes nothing"


def test_a_successor_ends_what_has_no_end() -> None:
    """At the time at which it missed the former holder, and not before that one began."""
    begun = told(tenure(1))
    assert ends(told(tenure(9), after=begun))[1] == (1, at(9), SILENT)
    for minute, noted in ((7, at(7)), (0, at(1))):
        successor = tenure(9, **{GONE: ("s1", at(minute))})
        assert ends(told(successor, after=begun))[1] == (1, noted, SILENT)
    assert ends(told(tenure(9, **{GONE: ("s0", at(7))}), after=begun))[1] == (1, at(9), SILENT)
    assert b"gone" not in told(tenure(9, **{GONE: ("s1", at(7))}))


def test_the_word_of_a_node_counts_for_more_than_that_of_its_successor() -> None:
    noted = told(tenure(9), after=told(tenure(1)))
    own = told(tenure(1, to=at(8), why="lease-expired"), after=noted)
    assert ends(own) == [(9, None, None), (1, at(8), "lease-expired")]
    crashed = told(tenure(1, to=at(30), why="crashed", **{"from": at(29)}), after=noted)
    assert ends(crashed) == [(9, None, None), (1, at(9), SILENT)], "its process ended long before"
    assert json.loads(crashed)["tenures"][1]["from"] == at(1)


def test_two_writers_lose_nothing_in_any_order() -> None:
    first, second = tenure(1, to=at(2), why="step-down"), tenure(3)
    assert told(second, after=told(first)) == told(first, after=told(second)) == told(first, second)


def test_indexes_that_begin_anew_do_not_hide_what_is_newer() -> None:
    """As after the loss of Consul's data, when the key was brought back."""
    before = told(tenure(50, to=at(55), why="shutdown"))
    assert [each[0] for each in ends(told(tenure(2, **{"from": at(60)}), after=before))] == [2, 50]


def test_the_newest_fifty_are_kept_and_all_are_counted() -> None:
    value = b""
    for token in range(1, 71):
        value = told(tenure(token, to=at(token + 1), why="step-down"), after=value)
    tokens = [each[0] for each in ends(value)]
    assert tokens == list(range(70, 20, -1)) and len(tokens) == TENURES_MAX
    assert json.loads(value)["count"] == 70
    assert told(tenure(5), after=value) == value, "too old"
    assert json.loads(told(tenure(90), after=value, missed=7))["count"] == 78


def test_texts_and_the_whole_are_bounded() -> None:
    long = {name: "ä😀" * 10_000 for name in ("node", "why", "by", "note", "guard")}
    value = told(*(tenure(token, **long) for token in range(60)))
    assert 0.9 * BYTES_MAX < len(value) <= BYTES_MAX
    newest = json.loads(value)["tenures"][0]
    assert newest["token"] == 59 and {len(newest[name]) for name in long} == {200}
    assert told(tenure(1, note="\udc80")), "half of a pair has no bytes"


def test_fields_of_later_versions_survive() -> None:
    document = json.loads(told(tenure(1)))
    document["later"], document["tenures"][0]["colour"] = 7, "blue"
    after = json.loads(told(tenure(1, to=at(2), why="x"), tenure(3), after=json.dumps(document).encode()))
    assert after["later"] == 7 and after["tenures"][1]["colour"] == "blue"


GOOD = json.loads(told(tenure(1)))


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"precious",
        b"\xff",
        b"7",
        b"[]",
        b"null",
        b"[" * 50_000,
        b'{"version":1}',
        json.dumps(GOOD).encode()[:-1] + b',"later":' + b"[" * 500 + b"]" * 500 + b"}",
        json.dumps({**GOOD, "version": 2}).encode(),
        json.dumps({**GOOD, "count": "1"}).encode(),
        json.dumps({**GOOD, "tenures": {}}).encode()[:-2],
        json.dumps({**GOOD, "tenures": [7]}).encode(),
        json.dumps({**GOOD, "tenures": [{**GOOD["tenures"][0], "token": "1"}]}).encode(),
        json.dumps({**GOOD, "tenures": [{**GOOD["tenures"][0], "from": None}]}).encode(),
        json.dumps({**GOOD, "tenures": [{**GOOD["tenures"][0], "to": 5}]}).encode(),
        json.dumps({**GOOD, "tenures": GOOD["tenures"] * 51}).encode(),
        json.dumps(GOOD).encode() + b" " * BYTES_MAX,
    ],
)
def test_damage_and_foreign_content_are_refused(value: bytes) -> None:
    with pytest.raises(ForeignHistory, match="no history"):
        document_of(key(value))


def test_a_document_that_cannot_be_written_again_is_refused() -> None:
    """An exception would end each daemon that tells a tenure."""
    base = {"version": 1, "count": 0, "tenures": []}
    for bad in ({"count": 10**4299}, {"count": -1}, {"tenures": [tenure(10**4299)]}):
        with pytest.raises(ForeignHistory):
            document_of(key(json.dumps({**base, **bad}).encode()))
    with pytest.raises(ForeignHistory):
        document_of(key(json.dumps(base).encode("utf-16")))
    grows = b'{"version":1,"count":0,"tenures":[],"x":[' + b",".join([b"1e15"] * 12_000) + b"]}"
    almost_full = json.dumps({**base, "x": "x" * (BYTES_MAX - 100)}).encode()
    for no_room in (grows, almost_full):
        with pytest.raises(ForeignHistory):
            told(tenure(1), after=no_room)


def test_a_tenure_told_late_by_a_clock_ahead_ends_no_later_one() -> None:
    value = told(tenure(15), tenure(10, **{"from": at(16), "to": at(17)}))
    assert ends(value) == [(15, None, None), (10, at(17), None)]


@pytest.mark.parametrize("flags", [{"foreign_flags": 42}, {"is_marked": True}])
def test_a_key_with_flags_is_foreign(flags: dict[str, Any]) -> None:
    with pytest.raises(ForeignHistory, match="flags are not 0"):
        document_of(key(told(tenure(1)), **flags))
