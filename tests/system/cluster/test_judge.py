"""The judge of the cluster says what is wrong with lines written by hand, and nothing when all is well."""

import pytest

from tests.system.cluster import judge
from tests.system.cluster.judge import Overlap, Tenure

ROOM_S, LOCK_DELAY_S = 5.0, 8.0
HANDED_OVER = """\
10.00 a acquire-begin A 7 acquired
10.10 a acquire-end A 7 acquired
20.00 a lose-begin A 7 session-invalidated
20.10 a lose-end A 7 session-invalidated
26.00 b acquire-begin B 9 acquired
26.10 b acquire-end B 9 acquired
"""
KILLED = """\
10.00 a acquire-begin A 7 acquired
12.00 a killed
"""


def tenures(text: str) -> list[Tenure]:
    return judge.tenures(judge.parse(text), ROOM_S)


def overlaps(text: str) -> list[Overlap]:
    return judge.overlaps(tenures(text), judge.parse(text), LOCK_DELAY_S)


def test_a_hand_over_in_order_has_a_gap_and_no_overlap() -> None:
    found = tenures(HANDED_OVER)
    assert not overlaps(HANDED_OVER)
    assert [gap.length_s for gap in judge.gaps(found)] == [pytest.approx(5.9)]
    assert judge.longest_gap_s(found, 0.0, 30.0) == pytest.approx(5.9)
    assert judge.longest_gap_s(found, 27.0, 30.0) == 0.0
    holder = judge.holder(found)
    assert holder is not None and (holder.node, holder.token, holder.lost) == ("b", 9, False)


def test_a_rival_that_begins_before_on_lose_has_ended_is_an_overlap() -> None:
    text = HANDED_OVER.replace("26.00 b", "20.05 b")
    (overlap,) = overlaps(text)
    assert overlap.length_s == pytest.approx(0.05) and not overlap.beyond_limits
    assert "b began at 20.05 (token 9), 0.05 s before a ended at 20.10 (token 7)" in str(overlap)


def test_a_holder_that_never_lost_overlaps_with_whoever_comes_next() -> None:
    text = "".join(line for line in HANDED_OVER.splitlines(keepends=True) if "lose" not in line)
    assert len(overlaps(text)) == 1


def test_an_on_lose_without_its_end_has_not_ended() -> None:
    text = "".join(line for line in HANDED_OVER.splitlines(keepends=True) if "lose-end" not in line)
    assert len(overlaps(text)) == 1


def test_the_order_of_the_lines_decides_within_one_reading_of_the_clock() -> None:
    """The clock is cut to hundredths; a file that is appended to tells more."""
    together = HANDED_OVER.replace("26.00 b", "20.10 b")
    *_, lose_ended, began, _ = lines = together.splitlines(keepends=True)
    assert not overlaps(together)
    assert len(overlaps("".join([*lines[:3], began, lose_ended]))) == 1


def test_two_tenures_of_one_node_must_not_overlap_either() -> None:
    assert len(overlaps(HANDED_OVER.replace("26.00 b", "20.00 a").replace("26.10 b", "26.10 a"))) == 1


def test_an_overlap_inside_a_third_tenure_is_counted_too() -> None:
    text = "10.00 a acquire-begin A 7\n11.00 b acquire-begin B 8\n"
    text += "12.00 b lose-end B 8\n13.00 c acquire-begin C 9\n"
    assert [(o.first.node, o.second.node) for o in overlaps(text)] == [("a", "b"), ("a", "c")]


# --- killed --------------------------------------------------------------------------------------


def test_a_killed_holder_holds_to_the_end_of_its_last_room_and_no_longer() -> None:
    assert len(overlaps(KILLED + "16.99 b acquire-begin B 9 acquired\n")) == 1
    assert not overlaps(KILLED + "17.01 b acquire-begin B 9 acquired\n")


def test_a_killed_holder_holds_to_the_end_of_its_on_lose_when_that_comes_first() -> None:
    lost = KILLED + "13.00 a lose-begin A 7 crashed\n13.10 a lose-end A 7 crashed\n"
    assert not overlaps(lost + "13.20 b acquire-begin B 9 acquired\n")
    late = KILLED + "19.00 b acquire-begin B 9 acquired\n20.10 a lose-end A 7 crashed\n"
    assert not overlaps(late), "its room was over at 17: a stated limit"


def test_an_adopted_tenure_goes_on_as_if_nobody_had_died() -> None:
    adopted = KILLED + "30.00 b acquire-begin B 9 acquired\n31.00 a lose-end A 7 lease-expired\n"
    (overlap,) = overlaps(adopted)
    assert overlap.length_s == pytest.approx(1.0)


def test_the_newest_death_counts_when_older_ones_were_survived() -> None:
    twice = KILLED + "30.00 a killed\n34.00 b acquire-begin B 9 acquired\n36.00 a lose-end A 7 crashed\n"
    (overlap,) = overlaps(twice)
    assert overlap.length_s == pytest.approx(1.0)


def test_a_death_before_or_of_another_node_changes_nothing() -> None:
    before = "9.00 a killed\n" + HANDED_OVER.replace("20.10 a lose-end", "26.50 a lose-end")
    other = HANDED_OVER.replace("20.10 a lose-end", "26.50 a lose-end") + "11.00 b killed\n"
    assert len(overlaps(before)) == len(overlaps(other)) == 1


# --- what else is judged -------------------------------------------------------------------------


@pytest.mark.parametrize(("at", "excused"), [(4.0, False), (15.0, True), (25.0, False)])
def test_only_the_first_lock_delays_after_a_restart_of_the_leading_server_are_beyond_the_limits(
    at: float, excused: bool
) -> None:
    text = HANDED_OVER.replace("26.00 b", "20.05 b") + f"{at:.2f} s1 leader-restarted\n"
    assert [overlap.beyond_limits for overlap in overlaps(text)] == [excused]


def test_a_token_that_does_not_grow_is_told() -> None:
    assert not judge.tokens_that_fell(tenures(HANDED_OVER))
    assert len(judge.tokens_that_fell(tenures(HANDED_OVER.replace("B 9", "B 7")))) == 1


def test_a_line_that_is_being_written_does_not_count_yet() -> None:
    assert len(judge.parse(HANDED_OVER + "27.00 b lose-be")) == len(judge.parse(HANDED_OVER))


def test_nobody_holds_before_the_first_line() -> None:
    assert judge.holder([]) is None and not list(judge.gaps([]))


def test_while_one_holds_the_end_of_another_leaves_no_gap() -> None:
    text = "10.00 a acquire-begin A 7\n11.00 b acquire-begin B 8\n12.00 b lose-end B 8\n"
    text += "30.00 a lose-end A 7\n31.50 c acquire-begin C 9\n"
    assert [(gap.begin, gap.end) for gap in judge.gaps(tenures(text))] == [(30.0, 31.5)]
