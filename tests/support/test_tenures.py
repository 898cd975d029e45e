"""The judge of tenures: it reports faulty lines that were written by hand, and accepts right ones."""

from pathlib import Path

import pytest

from tests.support.by_hand import ITEM, by_hand
from tests.support.tenures import (
    KILLED,
    Record,
    Tenure,
    beyond_limit,
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
HANDED_OVER = """\
10.00 a acquire-begin A 7 acquired
10.10 a acquire-end A 7 acquired
20.00 a lose-begin A 7 session-invalidated
20.10 a lose-end A 7 session-invalidated
26.00 b acquire-begin B 9 acquired
26.10 b acquire-end B 9 acquired
"""
DIED = """\
10.00 a acquire-begin A 7 acquired
12.00 a killed
"""


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


@pytest.mark.parametrize("room_s", [ROOM_S, None])
def test_a_rival_that_begins_before_on_lose_has_ended_is_an_overlap(room_s: float | None) -> None:
    *lines, lose_ended, began, _ = HANDED_OVER.splitlines(keepends=True)
    text = "".join([*lines, began.replace("26.00", "20.05"), lose_ended])
    assert both(text, room_s) == [("a", "b")]


@pytest.mark.parametrize("room_s", [ROOM_S, None])
def test_a_rival_that_begins_while_another_holds_is_an_overlap(room_s: float | None) -> None:
    assert both(without("lose"), room_s) == [("a", "b")]
    text = (
        "10.00 a acquire-begin A 7\n11.00 b acquire-begin B 8\n11.10 b lose-end B 8\n12.00 a lose-end A 7\n"
    )
    assert both(text, room_s) == [("a", "b")]


def test_an_overlap_by_the_clock_alone_or_by_the_order_of_lines_alone_counts() -> None:
    """The clock is cut to hundredths, so the order of lines is finer; a hook may read the clock early and
    write late.
    """
    together = HANDED_OVER.replace("26.00 b", "20.10 b")
    *lines, lose_ended, began, _ = together.splitlines(keepends=True)
    assert not both(together)
    assert both("".join([*lines, began, lose_ended])) == [("a", "b")]
    assert both(HANDED_OVER.replace("26.00 b", "20.05 b")) == [("a", "b")]


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


def test_an_on_lose_without_an_on_acquire_acts_while_it_runs() -> None:
    """An on_acquire that was killed at its start has left no line."""
    late = "20.05 b acquire-begin B 9 acquired\n20.20 a lose-end A 7 shutdown\n"
    assert both("20.00 a lose-begin A 7 shutdown\n" + late) == [("a", "b")]
    assert both("20.00 a lose-begin A 7 shutdown\n" + late, None) == [("a", "b")]


def test_lines_of_other_items_and_of_on_change_do_not_count() -> None:
    text = HANDED_OVER + "15.00 b change-begin X 0\n"
    assert found(text) == found(HANDED_OVER)
    assert not tenures(by_hand(HANDED_OVER), "other", ROOM_S)


# --- the end of a tenure -------------------------------------------------------------------------


@pytest.mark.parametrize("ended", ["", "20.10 a lose-end=1 A 7 session-invalidated\n"])
def test_only_a_successful_on_lose_ends_a_tenure(ended: str) -> None:
    text = HANDED_OVER.replace("20.10 a lose-end A 7 session-invalidated\n", ended)
    assert both(text) == [("a", "b")]
    assert [tenure.node for tenure in unfinished(found(text))] == ["a", "b"]


def test_the_last_of_several_attempts_ends_a_tenure() -> None:
    again = "20.30 a lose-begin A 7 session-invalidated\n20.40 a lose-end A 7 session-invalidated\n"
    began = "20.20 b acquire-begin B 9 acquired\n"
    assert both(without("b acquire") + began + again) == [("a", "b")]
    assert both(without("b acquire") + began + again, None) == [("a", "b")]


def test_in_a_scene_any_line_of_on_lose_ends_a_tenure() -> None:
    """A hook that TERM ends leaves no other line."""
    assert not both(without("lose-end"), None)
    failed = without("lose").replace("26.00 b", "20.10 a lose-failure-begin A 7 shutdown\n26.00 b")
    assert not both(failed, None)
    assert both(failed.replace("20.10", "26.05"), None) == [("a", "b")]


# --- killed supervisors --------------------------------------------------------------------------


def test_a_killed_node_acts_to_the_end_of_its_last_room_and_no_longer() -> None:
    assert both(DIED + "16.99 b acquire-begin B 9 acquired\n") == [("a", "b")]
    assert not both(DIED + "17.01 b acquire-begin B 9 acquired\n")


def test_a_killed_node_acts_to_the_end_of_its_on_lose_if_that_comes_first() -> None:
    lost = DIED + "13.00 a lose-begin A 7 crashed\n13.10 a lose-end A 7 crashed\n"
    assert not both(lost + "13.20 b acquire-begin B 9 acquired\n")
    late = DIED + "19.00 b acquire-begin B 9 acquired\n20.10 a lose-end A 7 crashed\n"
    assert not both(late), "its room was over at 17: a stated limit"
    assert not both(late + "20.50 a killed\n"), "the second death was another tenure's"


def test_an_adopted_tenure_goes_on_as_without_the_death() -> None:
    by_its_reason = DIED + "30.00 b acquire-begin B 9 acquired\n31.00 a lose-end A 7 lease-expired\n"
    assert both(by_its_reason) == [("a", "b")]
    by_its_hook = DIED + "18.00 a acquire-begin A 7 adopted\n30.00 b acquire-begin B 9 acquired\n"
    assert both(by_its_hook) == [("a", "b")]
    ended = DIED + "18.00 a acquire-end A 7 acquired\n30.00 b acquire-begin B 9 acquired\n"
    assert not both(ended), "a hook that outlived its supervisor adopts nothing"


def test_a_node_that_is_back_within_the_room_acts_until_its_on_lose_has_ended() -> None:
    began = "30.00 b acquire-begin B 9 acquired\n31.00 a lose-end A 7 crashed\n"
    assert both(f"{DIED}16.99 a started\n{began}") == [("a", "b")]
    assert not both(f"{DIED}17.00 a started\n{began}")
    assert not both(f"{DIED}16.99 c started\n{began}")
    assert not both(f"{DIED}16.99 a started\n20.00 a killed\n{began}"), "the second process died"


def test_the_newest_death_counts_if_the_tenure_survived_older_ones() -> None:
    twice = DIED + "30.00 a killed\n34.00 b acquire-begin B 9 acquired\n36.00 a lose-end A 7 crashed\n"
    assert both(twice) == [("a", "b")]
    assert not both(twice.replace("34.00", "35.01"))


def test_an_earlier_death_or_one_of_another_node_changes_nothing() -> None:
    late = HANDED_OVER.replace("20.10 a lose-end", "26.50 a lose-end").replace(
        "session-invalidated", "crashed"
    )
    assert both("9.00 a killed\n" + late) == both(late + "11.00 b killed\n") == [("a", "b")]
    assert both("9.00 a killed\n" + without("lose")) == [("a", "b")]


def test_in_a_scene_a_death_or_the_on_lose_of_a_restart_ends_a_tenure() -> None:
    """A scene that breaks more than this reports it itself."""
    began = "12.10 b acquire-begin B 9 acquired\n"
    assert not both(DIED + began, None)
    assert both(began.replace("12.10", "11.90") + DIED.replace("a killed", "c killed"), None) == [("a", "b")]
    assert both(DIED + began + "40.00 a lose-begin A 7 crashed\n", None) == [("a", "b")]
    ended = DIED.replace("10.00 a", "9.00 a acquire-begin A 7\n9.50 a lose-begin A 7\n10.00 c")
    assert not both(ended + "9.80 b acquire-begin B 9\n", None), (
        "a tenure that was over before does not return"
    )
    assert not both(DIED + began + "14.00 a killed\n", None), "that death was another tenure's"


# --- slots ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("third", "limits", "wrong"),
    [
        ("C 12", [(0, 3)], ""),
        ("C 12", [(0, 2)], "3 act and 2 may: a since 10, b since 11, c since 12"),
        ("C 21", [(0, 3), (20, 2)], "3 act and 2 may: a since 10, b since 11, c since 21"),
        ("C 19", [(0, 3), (20, 2)], ""),  # taken before the limit was lowered, which evicts nobody
        ("C 12", [(0, 1), (11, 3)], "2 act and 1 may: a since 10, b since 11"),
        ("C 9", [(0, 3), (10, 2), (9, 1)], "3 act and 2 may: c since 9, a since 10, b since 11"),
    ],
)
def test_a_slot_beyond_the_limit_at_its_index_is_reported(
    third: str, limits: list[tuple[int, int]], wrong: str
) -> None:
    text = f"1.00 a acquire-begin A 10\n2.00 b acquire-begin B 11\n3.00 c acquire-begin {third}\n"
    last = next((each for each in reversed(beyond_limit(found(text), limits))), "")
    assert last.partition(" ")[2] == wrong
    assert not beyond_limit(found(f"{text}4.00 a lose-end A 10\n"), [(0, 3)])


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
