"""The judge of the rounds is tested: each broken promise is reported, and a correct round is not."""

from dataclasses import replace

import pytest

from tests.consul.semaphores.verdict import Terms, Verdict, judged
from tests.support.by_hand import numbered
from tests.support.tenures import Record

TERMS = Terms("n", limit=2, room_s=3.0, idle_s_max=10.0, passed_max=2)


def hook(event: str, stage: str, at: float, who: str, token: int = 0, reason: str = "acquired") -> Record:
    """Return a line of a hook.

    ``who`` is node and session at once, and ``a2`` is the second tenure of node a.
    """
    code = 0 if stage == "end" else None
    return Record(stage, code, at, who[0], event, "n", event, reason, who, token)


def begin(at: float, who: str, token: int, reason: str = "acquired") -> Record:
    return hook("acquire", "begin", at, who, token, reason)


def over(at: float, who: str) -> Record:
    return hook("lose", "end", at, who)


def told(stage: str, at: float, node: str = "", *, token: int = 0, limit: int = 0) -> Record:
    return Record(stage, None, at, node, "", token=token, attempt=limit)


def verdict(*lines: Record, at: float | None = None) -> Verdict:
    """Return the verdict on these lines; a tenure ends with the token that it began with."""
    tokens = {line.session: line.token for line in reversed(lines) if line.session and line.token}
    whole = [replace(line, token=line.token or tokens.get(line.session, 0)) for line in lines]
    return judged(numbered(whole), TERMS, lines[-1].at if at is None else at)


TWO = (begin(1, "a", 10), begin(2, "b", 11))


def test_as_many_holders_as_the_limit_are_right() -> None:
    seen = verdict(*TWO, over(3, "a"), begin(3.1, "c", 12))
    assert not seen.broken and seen.most_at_once == 2 and seen.begun == {"a": 1, "b": 1, "c": 1}


def test_one_holder_more_than_the_limit_is_wrong() -> None:
    seen = verdict(*TWO, begin(3, "c", 12), over(4, "a"))
    assert seen.broken == ["3.00 3 act and 2 may: a since 10, b since 11, c since 12"]


def test_a_slot_taken_under_a_lower_limit_counts_although_a_later_one_was_not() -> None:
    lines = (told("limit", 0, token=5, limit=1), told("limit", 0.5, token=12, limit=2))
    assert verdict(*lines, begin(1, "c", 13), begin(2, "a", 10)).broken == []
    seen = verdict(*lines, begin(1, "c", 13), begin(2, "a", 10), begin(3, "b", 11), over(4, "c"))
    assert seen.broken[0] == "3.00 2 act and 1 may: a since 10, b since 11"


@pytest.mark.parametrize(("at", "wrong"), [(4.9, True), (5.1, False)])
def test_a_killed_holder_counts_to_the_end_of_its_room(at: float, wrong: bool) -> None:
    seen = verdict(*TWO, told("killed", 2.0, "a"), begin(at, "c", 12))
    assert bool(seen.broken) is wrong


def test_a_lower_limit_counts_for_later_slots_and_evicts_no_holder() -> None:
    lower = told("limit", 3, token=20, limit=1)
    assert not verdict(*TWO, lower, over(4, "a"), at=5).broken
    assert verdict(*TWO, lower, over(4, "a"), begin(5, "c", 21)).broken
    assert not verdict(*TWO, lower, over(4, "a"), begin(5, "c", 19)).broken, "taken before that"


def test_a_higher_limit_counts_from_its_index_and_not_beyond_that_of_the_files() -> None:
    lines = (told("limit", 0, token=5, limit=1), begin(1, "a", 10), begin(2, "b", 15))
    assert verdict(*lines).broken
    assert not verdict(*lines, told("limit", 2.1, token=14, limit=5)).broken
    assert verdict(told("limit", 0, token=5, limit=5), *TWO, begin(3, "c", 12)).broken


def test_each_slot_that_is_idle_too_long_is_wrong() -> None:
    freed = (*TWO, over(3, "a"), over(8, "b"))
    assert not verdict(*freed, begin(12, "c", 12), begin(17, "d", 13)).broken
    seen = verdict(*freed, begin(13.5, "c", 12), begin(17, "d", 13))
    assert seen.broken == ["13.50 a slot was idle for 10.50 s"] and seen.idle_s == 10.5
    assert verdict(*freed, at=20).broken, "and to the very end"


def test_a_slot_is_idle_from_the_kill_of_its_holder_until_the_adoption() -> None:
    killed = (*TWO, told("killed", 3, "a"), told("started", 4, "a"))
    assert verdict(*killed, at=14).broken
    assert not verdict(*killed, begin(4.5, "a", 10, "adopted"), at=30).broken
    assert verdict(*killed, begin(13.5, "a", 10, "adopted"), at=30).broken


def test_a_node_that_waits_for_a_deleted_record_waits_anew() -> None:
    freed = (*TWO, over(3, "a"), told("lock-deleted", 9, token=30))
    assert not verdict(*freed, begin(18, "c", 40)).broken


def test_a_slot_that_a_lower_limit_takes_away_is_not_idle() -> None:
    assert not verdict(*TWO, over(3, "a"), told("limit", 4, token=30, limit=1), at=60).broken


def passing(*, disturbed: bool = False, stopping: bool = False) -> Verdict:
    lines = [told("started", 0, "w"), *TWO]
    for number in range(3, 6):
        lines += [over(number, "ab"[number % 2] + ("" if number < 5 else "2"))]
        lines += [begin(number + 0.1, f"{'ab'[number % 2]}{number - 1}", 20 + number)]
        if disturbed and number == 4:
            lines += [told("disturbed", 4.5, "w")]
        if stopping and number == 4:
            lines += [told("stopping", 4.5, "w")]
    return verdict(*lines)


def test_a_node_that_is_passed_too_often_starves() -> None:
    seen = passing()
    assert seen.passed == 5 and seen.broken == ["5.10 w let 5 pass in 5.1 s"]


def test_a_node_that_was_disturbed_stands_at_the_end_of_the_line() -> None:
    assert not passing(disturbed=True).broken
    assert not passing(stopping=True).broken
