"""Semaphores: out of the record, out of line, and then the session."""

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from tests.unit.core.play import DESTROY, SILENCE, Play
from tests.unit.core.slot_play import LEAVE, READ, TAKE, TAKEN, WATCH, full, holding, lock, view


def left(play: Play) -> str:
    """What follows a stop, once on_lose is done."""
    play.happens(play.now, e.StopAsked())
    return Play.says(play.happens(play.now + 0.1, e.HookEnded(play.last(a.StartHook), ok=True)))


def test_leaving_takes_us_out_of_the_record_and_out_of_line_then_ends_the_session() -> None:
    play = holding()
    assert left(play).startswith("leave s as 3: ")
    assert play.last(LEAVE).index == 61 and play.last(LEAVE).roster.holders == ()
    play.on(1.5, LEAVE, o.Done())
    assert "destroy s" in Play.says(play.happens(1.8, e.Tick()))
    play.does(1.9, DESTROY, o.Done(), "stopped, finished")


def test_a_leave_that_meets_another_write_is_read_and_tried_again_even_at_a_stop() -> None:
    play = holding()
    left(play)
    assert "read" in Play.says(play.on(1.5, LEAVE, o.LostRace()))
    told = Play.says(play.on(1.6, READ, view("o1", "s", at=lock("s", "o1", index=80), index=80)))
    assert "leave s as 3: o1" in told and play.last(LEAVE).index == 80


def test_at_a_stop_a_silent_consul_is_asked_once() -> None:
    play = holding()
    left(play)
    play.on(1.5, LEAVE, o.LostRace())
    told = Play.says(play.on(4.6, READ, SILENCE))
    assert "leave s" in told
    assert play.last(LEAVE).roster is None, "the record is not as it was known: such a write would be in vain"
    play.passes(20.0, silent=True)
    assert play.role == "stopped"


def test_who_waits_leaves_the_line_when_it_stops() -> None:
    play = full()
    play.happens(1.0, e.StopAsked())
    assert play.last(LEAVE).roster is None
    play.on(1.1, LEAVE, o.Done())
    play.happens(1.4, e.Tick())
    play.does(1.5, DESTROY, o.Done(), "stopped, finished")


def test_who_is_paused_is_in_nobodys_way() -> None:
    play = full()
    assert "leave s" in Play.says(play.happens(1.0, e.PauseAsked("n")))
    play.on(1.1, LEAVE, o.Done())
    play.happens(1.4, e.Tick())
    play.on(1.5, DESTROY, o.Done())
    play.passes(10.0)
    assert play.role == "paused" and not play.contender.session.id
    assert "create" in Play.says(play.happens(10.0, e.ResumeAsked("n")))


@pytest.mark.parametrize("asked", [e.PauseAsked("n"), e.StopAsked()])
def test_a_slot_that_is_taken_when_nobody_wants_it_any_more_is_given_back(asked: e.Event) -> None:
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")))
    play.happens(1.05, asked)
    assert "leave s as 3: o1 o2" in Play.says(play.on(1.1, TAKE, TAKEN))


def test_whether_a_try_without_an_answer_has_taken_a_slot_is_found_out_before_leaving() -> None:
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")))
    play.happens(1.05, e.PauseAsked("n"))
    assert "leave" not in Play.says(play.on(4.0, TAKE, SILENCE))
    shown = view("o1", "o2", "s", at=lock("o1", "o2", "s", index=66), index=66)
    assert "leave s as 3: o1 o2" in Play.says(play.on(4.1, READ, shown))


def test_a_slot_that_a_late_write_brings_to_one_that_is_paused_is_given_back() -> None:
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")))
    play.on(4.0, TAKE, SILENCE)
    play.under_way = [r for r in play.under_way if not isinstance(r, READ)]
    shown = view("o1", "o2", "s", at=lock("o1", "o2", "s", index=66), index=66)
    play.happens(4.1, e.Answered(next(r for r in play.under_way if isinstance(r, WATCH)), shown))
    play.happens(4.1, e.PauseAsked("n"))
    told = Play.says(play.on(4.2, READ, shown))
    assert "leave s as 3: o1 o2" in told
