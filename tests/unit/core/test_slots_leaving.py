"""Semaphores: a contender leaves the record and the line, and then ends its session."""

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from tests.unit.core.play import DESTROY, SILENCE, Play
from tests.unit.core.slot_play import (
    LEAVE,
    OURS,
    READ,
    TAKE,
    TAKEN,
    WATCH,
    full,
    holding,
    lock,
    semaphore,
    view,
)


def left(play: Play) -> str:
    """Stop a holder, end its on_lose, and return the actions that follow."""
    play.happens(play.now, e.StopAsked())
    return Play.says(play.happens(play.now + 0.1, e.HookEnded(play.last(a.StartHook), ok=True)))


def test_a_holder_that_stops_leaves_record_and_line_before_its_session_ends() -> None:
    play = holding()
    assert left(play).startswith("leave s as 3: ")
    assert play.last(LEAVE).index == 61 and play.last(LEAVE).slot_record.holders == ()
    play.on(1.5, LEAVE, o.Done())
    assert "destroy s" in Play.says(play.happens(1.8, e.Tick()))
    play.does(1.9, DESTROY, o.Done(), "stopped, finished")


def test_a_leave_that_lost_a_race_is_repeated_after_a_read_even_at_a_stop() -> None:
    play = holding()
    left(play)
    assert "read" in Play.says(play.on(1.5, LEAVE, o.LostRace()))
    told = Play.says(play.on(1.6, READ, view("o1", "s", at=lock("s", "o1", index=80), index=80)))
    assert "leave s as 3: o1" in told and play.last(LEAVE).index == 80


def test_a_stop_sends_one_leave_without_the_record_to_a_silent_consul() -> None:
    play = holding()
    left(play)
    play.on(1.5, LEAVE, o.LostRace())
    told = Play.says(play.on(4.6, READ, SILENCE))
    assert "leave s" in told
    assert play.last(LEAVE).slot_record is None, (
        "a write of the record would fail, because the record has changed"
    )
    play.passes(20.0, silent=True)
    assert play.role == "stopped"


def test_a_waiter_that_is_paused_leaves_the_line() -> None:
    play = full()
    assert "leave s" in Play.says(play.happens(1.0, e.PauseAsked("n")))
    play.on(1.1, LEAVE, o.Done())
    play.happens(1.4, e.Tick())
    play.on(1.5, DESTROY, o.Done())
    play.passes(10.0)
    assert play.role == "paused" and not play.contender.session.id
    assert "create" in Play.says(play.happens(10.0, e.ResumeAsked("n")))


@pytest.mark.parametrize("asked", [e.PauseAsked("n"), e.StopAsked()])
def test_a_slot_that_is_won_after_a_pause_or_a_stop_is_given_back(asked: e.Event) -> None:
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")))
    play.happens(1.05, asked)
    assert "leave s as 3: o1 o2" in Play.says(play.on(1.1, TAKE, TAKEN))


@pytest.mark.parametrize("asked", [e.PauseAsked("n"), e.StopAsked()])
def test_a_waiter_reads_whether_its_last_attempt_won_before_it_leaves(asked: e.Event) -> None:
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")))
    play.happens(1.05, asked)
    assert "leave" not in Play.says(play.on(4.0, TAKE, SILENCE))
    shown = view("o1", "o2", "s", at=lock("o1", "o2", "s", index=66), index=66)
    assert "leave s as 3: o1 o2" in Play.says(play.on(4.1, READ, shown))


@pytest.mark.parametrize("shown", [OURS, SILENCE])
def test_a_process_that_is_stopped_before_it_has_read_anything_reads_once_before_it_leaves(
    shown: o.Outcome,
) -> None:
    record = a.Record(a.Point.HOLDING, "p/.lock", "s", 61, 50, 1, contact=1.0, leader=b"me")
    play = Play(semaphore(), record=record, now=2.0, recorded=semaphore())
    play.happens(2.0, e.Tick())
    assert "leave" not in left(play)
    assert "leave s" in Play.says(play.on(2.3, READ, shown))
    leave = play.last(LEAVE)
    assert leave.slot_record == (None if shown is SILENCE else r.SlotRecord(3, (), 30.0))


def test_a_slot_that_a_late_write_takes_for_a_paused_contender_is_given_back() -> None:
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")))
    play.on(4.0, TAKE, SILENCE)
    play.under_way = [each for each in play.under_way if not isinstance(each, READ)]
    shown = view("o1", "o2", "s", at=lock("o1", "o2", "s", index=66), index=66)
    play.happens(4.1, e.Answered(next(each for each in play.under_way if isinstance(each, WATCH)), shown))
    play.happens(4.1, e.PauseAsked("n"))
    told = Play.says(play.on(4.2, READ, shown))
    assert "leave s as 3: o1 o2" in told
