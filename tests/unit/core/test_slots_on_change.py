"""Semaphores: on_change never reports that nobody holds because an answer shows less than there is."""

from dataclasses import replace
from typing import Any

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from tests.unit.core import slot_play as s
from tests.unit.core.play import CREATE, FORBIDDEN, Play, hook

TOLD = hook("told")
THERE = o.KeyView(5, None, b"{}", 3, 5, 0)  # no newer than the list that does not show it


def observer(**more: Any) -> Play:
    """Play an observer that began at 0 and awaits its first list."""
    play = Play(s.semaphore(contend=False, on_acquire=(), on_lose=(), on_change=(TOLD,), **more))
    play.does(0.0, "watch 0 consistently")
    return play


def told(play: Play) -> list[tuple[str, ...]]:
    """Return the holders that each run of on_change got."""
    starts = [action for _, action in play.log if isinstance(action, a.StartHook)]
    return [tuple(each.session for each in start.context.holders) for start in starts]


def test_an_empty_list_is_reported_once_a_read_confirms_that_the_record_is_gone() -> None:
    play = observer()
    play.does(0.1, s.WATCH, s.EMPTY, "watch 5, ask p/.lock")
    assert "start told#1: initial" in Play.says(play.on(0.2, s.ASK, s.GONE) + play.on(0.3, s.READ, s.EMPTY))
    assert told(play) == [()] and not play.contender.told_notice
    play.ends(0.4, "")
    play.does(0.5, s.WATCH, replace(s.EMPTY, index=6), "watch 6")


def test_a_list_that_hides_the_record_sets_a_notice_and_is_never_reported() -> None:
    play = observer()
    play.on(0.1, s.WATCH, s.EMPTY)
    play.on(0.2, s.ASK, THERE)
    play.on(0.3, s.READ, s.EMPTY)
    assert not told(play) and ".lock: may the token read all of it?" in play.contender.told_notice
    play.passes(20.0)
    assert len(play.times(s.ASK)) == 1
    play.on(21.0, s.WATCH, s.view("o1", at=s.lock("o1")))
    assert told(play) == [("o1",)] and not play.contender.told_notice


def test_an_observer_that_may_not_read_the_record_repeats_the_read_and_reports_nothing() -> None:
    play = observer()
    play.on(0.1, s.WATCH, s.EMPTY)
    for second in range(1, 10):
        play.happens(second, e.Tick())
        play.on(second + 0.1, s.ASK, FORBIDDEN)
    assert not told(play) and len(play.times(s.ASK)) == 9


def test_a_list_older_than_the_record_is_read_again() -> None:
    play = observer()
    play.on(0.1, s.WATCH, s.EMPTY)
    assert "read" in Play.says(play.on(0.2, s.ASK, replace(THERE, create_index=6, modify_index=6)))
    assert not play.contender.told_notice, "nothing is hidden"
    play.on(0.3, s.READ, s.view("o1", at=s.lock("o1")))
    assert told(play) == [("o1",)] and not play.contender.told_notice


def test_a_holder_that_the_list_hides_has_not_left() -> None:
    play = observer()
    both = s.view("o1", "o2", at=s.lock("o1", "o2"))
    play.on(0.1, s.WATCH, both)
    play.ends(0.2, "")
    play.on(0.3, s.WATCH, replace(both, index=61, contenders=(s.key("o1"),)))
    assert play.last(s.ASK).key == "p/o2" and told(play) == [("o1", "o2")]
    play.on(0.4, s.ASK, o.KeyView(61, "o2", b"me", 2, 2, 1))
    play.on(0.5, s.READ, replace(both, index=61, contenders=(s.key("o1"),)))
    assert told(play) == [("o1", "o2")] and "o2" in play.contender.told_notice


def test_a_vanished_holder_is_reported_once_a_read_confirms_it() -> None:
    play = observer()
    both = s.view("o1", "o2", at=s.lock("o1", "o2"))
    play.on(0.1, s.WATCH, both)
    play.ends(0.2, "")
    one = replace(both, index=61, contenders=(s.key("o1"),))
    play.on(0.3, s.WATCH, one)
    play.on(0.4, s.ASK, s.GONE)
    play.on(0.5, s.READ, one)
    assert told(play) == [("o1", "o2"), ("o1",)]


@pytest.mark.parametrize("paused", [False, True])
def test_a_contender_reports_no_sooner_than_an_observer(paused: bool) -> None:
    play = Play(s.semaphore(on_change=(TOLD,)), record=replace(a.EMPTY_RECORD, paused=paused))
    play.happens(0.0, e.Tick())
    if not paused:
        play.on(0.05, CREATE, o.Created("s"))
    play.on(0.1, s.WATCH, s.EMPTY)
    play.on(0.2, s.ASK, FORBIDDEN)
    assert not told(play)
    play.happens(0.8, e.Tick())
    play.on(0.9, s.ASK, s.GONE)
    play.on(1.0, s.READ, s.EMPTY)
    assert told(play) == [()]


def test_a_contender_without_on_change_does_not_read_the_record_alone() -> None:
    play = Play(s.semaphore())
    play.happens(0.0, e.Tick())
    play.on(0.05, CREATE, o.Created("s"))
    play.on(0.1, s.WATCH, s.EMPTY)
    assert not play.times(s.ASK)


FILTERED = replace(s.EMPTY, filtered=True)


def test_a_filtered_list_without_the_record_is_never_reported_as_empty() -> None:
    play = observer()
    assert play.says(play.on(0.1, s.WATCH, FILTERED)).startswith(
        "watch 5, ask p/.lock, notice: Consul leaves"
    )
    play.on(0.2, s.ASK, FORBIDDEN)
    assert not told(play) and "may not read" in play.contender.told_notice
    play.on(0.3, s.WATCH, s.view("o1", at=s.lock("o1")))
    assert told(play) == [("o1",)] and not play.contender.told_notice


def test_a_filtered_list_that_hides_no_holder_is_reported() -> None:
    """A read of the record decides, and a list with all holders is enough."""
    play = observer()
    play.on(0.1, s.WATCH, FILTERED)
    play.on(0.2, s.ASK, s.GONE)
    play.on(0.3, s.READ, FILTERED)
    assert told(play) == [()] and not play.contender.told_notice
    play = observer()
    play.on(0.1, s.WATCH, replace(s.view("o1", at=s.lock("o1")), filtered=True))
    assert told(play) == [("o1",)] and not play.contender.told_notice


def test_a_contender_creates_no_record_beside_one_that_may_be_hidden() -> None:
    play = Play(s.semaphore())
    play.happens(0.0, e.Tick())
    play.on(0.05, CREATE, o.Created("s"))
    assert play.says(play.on(0.1, s.WATCH, FILTERED)).startswith("enroll s, ask p/.lock, notice")


def test_while_the_slots_are_read_anew_the_record_is_not_asked_for_on_and_on() -> None:
    """A lost race has made the view void. The hidden slots appear when the list is complete again."""
    play = s.waiting(on_change=(TOLD,))
    assert "ask p/o2" in Play.says(play.on(0.2, s.WATCH, s.view("o1", at=s.lock("o1", "o2"))))
    assert "read" in Play.says(play.on(0.3, s.ENROLL, o.LostRace()))
    assert Play.says(play.on(0.4, s.ASK, s.GONE)) == ""
