"""The lock is not read while an attempt is young, because its own effect would be the first news."""

import pytest

from supervisor.core import outcomes as o
from supervisor.core.machines.session import ATTEMPT_QUIET_S
from tests.unit.core import play as elections
from tests.unit.core import slot_play as slots
from tests.unit.core.play import ACQUIRE, FREE, INFO, OURS, READ, RIVAL, SILENCE, WATCH, WON, Play

FREE_AGAIN = o.KeyView(12, None, b"them", 3, 12, 3)
OURS_LATER = o.KeyView(20, "s", b"me", 3, 20, 4)
TRIED_AT = 25.002
"""When a lock-delay of 15 s is over that began at 10."""


def hurried() -> Play:
    """Play until the acquire is sent at 0.2."""
    play = elections.waiting()
    play.hurries = False
    play.does(0.2, WATCH, FREE, "acquire s")
    return play


def watching() -> Play:
    """Play until an acquire is sent after a lock-delay, while the watch is under way."""
    play = elections.behind()
    play.hurries = False
    play.passes(9.9)
    play.does(10.0, WATCH, FREE_AGAIN, "acquire s")
    play.does(10.01, ACQUIRE, o.LockDelayed(), "")
    play.does(10.05, "watch 12")
    play.passes(24.9)
    play.does(24.902, "read")
    play.does(24.91, READ, FREE_AGAIN, "")
    play.does(TRIED_AT, "acquire s")
    return play


def test_the_hook_of_a_winner_begins_before_the_next_watch() -> None:
    play = hurried()
    play.does(0.21, ACQUIRE, WON, "start up#1: acquired, acquiring")
    assert play.deadline == pytest.approx(0.2 + ATTEMPT_QUIET_S)
    play.does(0.25, "watch 7 consistently")
    play.does(0.26, WATCH, OURS, "watch 7 consistently")


def test_a_silent_attempt_gets_its_watch_at_the_deadline() -> None:
    play = hurried()
    assert play.deadline == pytest.approx(0.2 + ATTEMPT_QUIET_S)
    play.does(0.249, "")
    play.does(0.25, "watch 5")
    play.does(0.3, WATCH, OURS, "read, watch 7")
    play.does(0.31, READ, OURS, "start up#1: acquired, acquiring")


def test_a_lost_race_is_read_at_once_and_watched_at_the_deadline() -> None:
    play = hurried()
    play.does(0.21, ACQUIRE, o.LostRace(), "read")
    play.does(0.22, READ, RIVAL, "info rival")
    play.does(0.23, INFO, o.SessionInfo(15.0), "")
    play.does(0.25, "watch 5")
    play.does(0.26, WATCH, FREE_AGAIN, "acquire s")  # it misses nothing, because it has an index


def test_a_watch_that_shows_a_young_attempt_causes_no_read_before_its_answer() -> None:
    play = watching()
    play.does(TRIED_AT + 0.001, WATCH, OURS_LATER, "")
    play.does(TRIED_AT + 0.002, ACQUIRE, o.Won(3, 20, 4), "start up#1: acquired, acquiring")
    play.does(TRIED_AT + ATTEMPT_QUIET_S, "watch 20 consistently")
    play.ends(TRIED_AT + 0.06, "holding")
    reads = len(play.times(READ))
    play.passes(TRIED_AT + 1.0)
    assert len(play.times(READ)) == reads, "the holder reads at its pace"


def test_a_watch_that_shows_a_silent_attempt_is_confirmed_by_a_read_at_the_deadline() -> None:
    play = watching()
    play.does(TRIED_AT + 0.001, WATCH, OURS_LATER, "")
    assert play.deadline == pytest.approx(TRIED_AT + ATTEMPT_QUIET_S)
    play.does(TRIED_AT + ATTEMPT_QUIET_S, "read, watch 20")
    play.does(TRIED_AT + 0.06, READ, OURS_LATER, "start up#1: acquired, acquiring")
    play.does(TRIED_AT + 0.07, ACQUIRE, SILENCE, "")


def test_a_rival_that_a_watch_shows_beside_a_young_attempt_is_believed_at_once() -> None:
    play = watching()
    play.does(TRIED_AT + 0.001, WATCH, o.KeyView(20, "rival", b"new", 3, 20, 4), "")
    assert not play.contender.lock.is_free
    play.does(TRIED_AT + ATTEMPT_QUIET_S, "watch 20")


def test_both_steps_to_a_slot_come_before_the_next_watch() -> None:
    play = slots.waiting()
    play.hurries = False
    play.does(0.2, slots.WATCH, slots.view("o1", at=slots.lock("o1")), "enroll s as 3: o1 s")
    play.does(0.21, slots.ENROLL, slots.SEATED, "start up#1: acquired, acquiring")
    play.does(0.25, "watch 61 consistently")
    play = slots.full()
    play.hurries = False
    shown = slots.view("o1", "o2", "s", at=slots.lock("o1", "o2"))
    play.does(1.0, slots.WATCH, shown, "take s as 3: o1 o2 s")
    play.does(1.01, slots.TAKE, slots.TAKEN, "start up#1: acquired, acquiring")
    play.does(1.05, "watch 61 consistently")
