"""The judge of tenures: it reports faulty lines that were written by hand, and accepts right ones."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.tenures import (
    KILLED,
    Record,
    Tenure,
    most_at_once,
    overlaps,
    parse,
    read_records,
    tenures,
    told_line,
    unfinished,
    wrong_numbers,
    wrong_tokens,
)

ROOM_S = 5.0
ITEM = "item"
HANDED_OVER = """\
10.00 a acquire-begin A 7 acquired
10.10 a acquire-end A 7 acquired
20.00 a lose-begin A 7 session-invalidated
20.10 a lose-end A 7 session-invalidated
26.00 b acquire-begin B 9 acquired
26.10 b acquire-end B 9 acquired
"""


def by_hand(text: str) -> list[Record]:
    """Read a short form: ``AT NODE EVENT-STAGE SESSION TOKEN REASON SLOT``; ``AT NODE STAGE`` of a test."""
    return [replace(_record(*line.split()), line=n) for n, line in enumerate(text.splitlines())]


def _record(
    at: str, node: str, what: str, session: str = "", token: str = "0", reason: str = "", slot: str = ""
) -> Record:
    if not session:
        return Record(what, None, float(at), node, "")
    event, _, stage = what.rpartition("-")
    stage, _, code = stage.partition("=")  # end=1: the hook failed
    code = code or ("0" if stage == "end" else "")
    record = Record(
        stage, int(code) if code else None, float(at), node, event, ITEM, event, reason, session, int(token)
    )
    return replace(record, slot=slot)


def found(text: str, room_s: float | None = ROOM_S) -> list[Tenure]:
    return tenures(by_hand(text), ITEM, room_s)


def both(text: str, room_s: float | None = ROOM_S) -> list[tuple[str, str]]:
    """Return the pairs that act at once, after a check that the two ways to count agree."""
    seen = found(text, room_s)
    assert bool(overlaps(seen)) is (most_at_once(seen) > 1)
    return [(first.node, second.node) for first, second in overlaps(seen)]


def without(what: str, text: str = HANDED_OVER) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if what not in line)


# --- which node acts when ------------------------------------------------------------------------


@pytest.mark.parametrize("room_s", [ROOM_S, None])
def test_a_hand_over_in_order_is_no_overlap(room_s: float | None) -> None:
    first, second = found(HANDED_OVER, room_s)
    assert not both(HANDED_OVER, room_s)
    assert (first.node, first.session, first.token, first.lost) == ("a", "A", 7, True)
    assert (first.begin.at, first.end.at, second.begin.at, second.lost) == (10.0, 20.1, 26.0, False)


def test_an_overlap_inside_a_third_tenure_is_counted() -> None:
    text = "10.00 a acquire-begin A 7\n11.00 b acquire-begin B 8\n"
    text += "12.00 b lose-end B 8\n13.00 c acquire-begin C 9\n"
    assert both(text) == [("a", "b"), ("a", "c")]
    assert most_at_once(found(text)) == 2, "of three, never all"


def test_the_judge_counts_the_tenures_that_act_at_once() -> None:
    text = "".join(
        f"1{number}.00 {node} acquire-begin {node} {number}\n" for number, node in enumerate("abc")
    )
    assert most_at_once(found(text)) == 3
    assert most_at_once(found(text + "14.00 a lose-end a 0\n15.00 d acquire-begin d 5\n")) == 3
    assert most_at_once(found(text + "14.00 d acquire-begin d 5\n15.00 a lose-end a 0\n")) == 4
    assert most_at_once([]) == 0


def test_lines_of_other_items_and_of_on_change_do_not_count() -> None:
    text = HANDED_OVER + "15.00 b change-begin X 0\n"
    assert found(text) == found(HANDED_OVER)
    assert not tenures(by_hand(HANDED_OVER), "other", ROOM_S)


A, B, ENDS = "10 a acquire-begin A 7", "26 b acquire-begin B 9", "20.1 a lose-end A 7"
DIED = f"{A}; 12 a killed"
CRASHED = "31 a lose-end A 7 crashed"
LATE = f"{A}; 20 a lose-begin A 7; 26.5 a lose-end A 7 crashed; {B}"


@pytest.mark.parametrize("lines", [
    f"{A}; 20 a lose-begin A 7; 20.05 b acquire-begin B 9; {ENDS}",
    f"{A}; {B}",
    f"{A}; 11 b acquire-begin B 8; 11.1 b lose-end B 8; 12 a lose-end A 7",
    # The clock is cut to hundredths, so the order of lines is finer; a hook may read it early and write late.
    f"{A}; 20.1 b acquire-begin B 9; {ENDS}",
    f"{A}; {ENDS}; 20.05 b acquire-begin B 9",
    # An on_acquire that was killed at its start has left no line.
    "20 a lose-begin A 7; 20.05 b acquire-begin B 9; 20.2 a lose-end A 7",
    f"{A}; {ENDS}; 20.2 b acquire-begin B 9; 20.3 a lose-begin A 7; 20.4 a lose-end A 7",
])  # fmt: skip
@pytest.mark.parametrize("room_s", [ROOM_S, None])  # fmt: skip
def test_two_that_act_at_once_are_found(lines: str, room_s: float | None) -> None:
    assert both(lines.replace("; ", "\n"), room_s) == [("a", "b")]


@pytest.mark.parametrize(("lines", "overlap"), [
    (f"{A}; {ENDS}; 20.1 b acquire-begin B 9", False),
    # Only a successful on_lose ends a tenure.
    (f"{A}; 20 a lose-begin A 7; {B}", True),
    (f"{A}; 20 a lose-begin A 7; 20.1 a lose-end=1 A 7; {B}", True),
    # A killed node acts to the end of its last room and no longer, or of its on_lose if that comes first.
    (f"{DIED}; 16.99 b acquire-begin B 9", True),
    (f"{DIED}; 17.01 b acquire-begin B 9", False),
    (f"{DIED}; 13 a lose-begin A 7; 13.1 a lose-end A 7 crashed; 13.2 b acquire-begin B 9", False),
    (f"{DIED}; 19 b acquire-begin B 9; {CRASHED}", False),  # a stated limit
    (f"{DIED}; 19 b acquire-begin B 9; {CRASHED}; 31.5 a killed", False),  # the second death was another's
    # An adopted tenure goes on as without the death; a hook that outlived its supervisor adopts nothing.
    (f"{DIED}; {B}; 31 a lose-end A 7 lease-expired", True),
    (f"{DIED}; 18 a acquire-begin A 7 adopted; {B}", True),
    (f"{DIED}; 18 a acquire-end A 7 acquired; {B}", False),
    # The newest death counts if the tenure survived older ones; an earlier one or another's changes nothing.
    (f"{DIED}; 30 a killed; 34 b acquire-begin B 9; 36 a lose-end A 7 crashed", True),
    (f"{DIED}; 30 a killed; 35.01 b acquire-begin B 9; 36 a lose-end A 7 crashed", False),
    (f"9 a killed; {LATE}", True),
    (f"{LATE}; 11 b killed", True),
    (f"9 a killed; {A}; {B}", True),
])  # fmt: skip
def test_a_node_acts_until_its_on_lose_has_succeeded_or_its_last_room_is_over(
    lines: str, overlap: bool
) -> None:
    assert both(lines.replace("; ", "\n")) == ([("a", "b")] if overlap else [])


@pytest.mark.parametrize(("lines", "overlap"), [
    (f"{A}; 20 a lose-begin A 7; {B}", False),  # a hook that TERM ends leaves no other line
    (f"{A}; 20.1 a lose-failure-begin A 7; {B}", False),
    (f"{A}; 26.05 a lose-failure-begin A 7; {B}", True),
    (f"{DIED}; 12.1 b acquire-begin B 9", False),
    (f"11.9 b acquire-begin B 9; {A}; 12 c killed", True),
    (f"{DIED}; 12.1 b acquire-begin B 9; 40 a lose-begin A 7 crashed", True),
    ("9 a acquire-begin A 7; 9.5 a lose-begin A 7; 12 a killed; 9.8 b acquire-begin B 9", False),
    (f"{DIED}; 12.1 b acquire-begin B 9; 14 a killed", False),  # that death was another tenure's
])  # fmt: skip
def test_in_a_scene_any_line_of_on_lose_or_a_death_ends_a_tenure(lines: str, overlap: bool) -> None:
    """A scene that breaks more than this reports it itself."""
    assert both(lines.replace("; ", "\n"), None) == ([("a", "b")] if overlap else [])


# --- slots ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", []),
        ("4.00 b acquire-begin B 8 acquired 1\n", []),
        ("4.00 b acquire-begin B 8 acquired 0\n", ["a and b act with number 0"]),
        ("5.00 a lose-end A 7 shutdown 0\n6.00 b acquire-begin B 8 acquired 0\n", []),
        ("5.00 a lose-end A 7 shutdown 1\n", ["a got the numbers ('0', '1') in one tenure"]),
        ("4.00 b acquire-begin B 8 acquired 3\n", ["b got the numbers ('3',) in one tenure"]),
        ("4.00 b acquire-begin B 8 acquired\n", ["b got the numbers ('',) in one tenure"]),
    ],
)
def test_a_number_that_two_have_or_that_changes_is_reported(text: str, wrong: list[str]) -> None:
    assert wrong_numbers(found(f"3.00 a acquire-begin A 7 acquired 0\n{text}"), 3) == wrong


# --- tokens and on_lose --------------------------------------------------------------------------


def test_a_token_that_does_not_grow_is_reported() -> None:
    assert not wrong_tokens(found(HANDED_OVER))
    assert not wrong_tokens(found(HANDED_OVER), slots=True)
    for token in (6, 7):
        told = [f"token {token} of b came after 7 of a"]
        fell = found(HANDED_OVER.replace("B 9", f"B {token}"))
        assert wrong_tokens(fell) == wrong_tokens(fell, slots=True) == told


def test_a_token_below_that_of_any_earlier_tenure_is_reported() -> None:
    text = HANDED_OVER + "27.00 b lose-end B 9 shutdown\n28.00 c acquire-begin C 8\n"
    assert wrong_tokens(found(text)) == ["token 8 of c came after 9 of b"]


def test_a_holder_of_a_slot_may_begin_after_a_holder_with_a_later_token() -> None:
    text = "10.00 a acquire-begin A 8\n11.00 b acquire-begin B 7\n"
    assert wrong_tokens(found(text)) == ["token 7 of b came after 8 of a"]
    assert not wrong_tokens(found(text), slots=True)
    assert wrong_tokens(found(text.replace("B 7", "B 8")), slots=True) == ["token 8 of b came after 8 of a"]


def test_a_tenure_whose_on_acquire_wrote_no_line_begins_with_the_death() -> None:
    text = "10.00 a killed\n11.00 b acquire-begin B 9\n12.00 a lose-begin A 7 crashed\n"
    assert not wrong_tokens(found(text), slots=True)
    assert both(text) == [("a", "b")]


@pytest.mark.parametrize("event", ["acquire-end A 7", "lose-begin A 7", "lose-end A 7"])
def test_a_token_that_changes_within_a_tenure_is_reported(event: str) -> None:
    text = HANDED_OVER.replace(event, event.replace("7", "8"))
    assert wrong_tokens(found(text)) == ["a got the tokens (7, 8) in one tenure"]


def test_a_tenure_without_its_on_lose_is_reported() -> None:
    assert [tenure.node for tenure in unfinished(found(HANDED_OVER, None))] == ["b"]
    assert [tenure.node for tenure in unfinished(found(without("lose"), None))] == ["a", "b"]


def test_tenures_are_in_the_order_of_their_begins_for_any_order_of_lines() -> None:
    text = "10.05 b acquire-begin B 8\n10.00 a acquire-begin A 7\n"
    assert [tenure.node for tenure in found(text)] == ["a", "b"] and both(text) == [("a", "b")]


# --- lines ---------------------------------------------------------------------------------------


def test_a_line_that_is_still_being_written_does_not_count(tmp_path: Path) -> None:
    line = told_line(KILLED, "a", 12.0)
    assert parse(line) == parse(line + line[:-1])
    assert parse(line) == [Record(KILLED, None, 12.0, "a", "")]
    assert [record.line for record in parse(line + line)] == [0, 1]
    assert read_records(tmp_path / "none") == []
