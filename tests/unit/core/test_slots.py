"""Semaphores: in line, a slot, and how many there are; told to the core step by step."""

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as req
from supervisor.core.settings import CandidateCheck
from tests.unit.core.play import CREATE, SILENCE, UP, Play, hook
from tests.unit.core.slot_play import (
    EMPTY,
    ENROLL,
    READ,
    SEATED,
    TAKE,
    TAKEN,
    WATCH,
    full,
    holding,
    in_line,
    lock,
    semaphore,
    view,
    waiting,
)

# --- in line, and a slot ----------------------------------------------------------------------------


def test_in_an_empty_folder_the_key_and_the_record_are_made_in_one_step() -> None:
    play = waiting()
    play.does(0.2, WATCH, EMPTY, "enroll s as 3: s, watch 5")
    play.does(0.3, ENROLL, SEATED, "start up#1: acquired, acquiring")
    request = play.last(ENROLL)
    assert (request.prefix, request.index, request.value) == ("p", 0, b"me")
    assert request.roster == req.Roster(3, ("s",), 30.0)
    assert play.last(a.StartHook).context.fencing_token == 61
    assert play.last(a.StartHook).context.kind == "semaphore"


def test_a_free_slot_that_nobody_waits_for_is_taken_in_one_step() -> None:
    play = waiting()
    play.does(0.2, WATCH, view("o1", at=lock("o1")), "enroll s as 3: o1 s, watch 60")
    assert play.last(ENROLL).index == 60


def test_where_all_slots_are_taken_one_stands_in_line() -> None:
    play = waiting()
    play.does(0.2, WATCH, view("o1", "o2", "o3", at=lock("o1", "o2", "o3")), "enroll s, watch 60")
    play.does(0.3, ENROLL, o.SlotWritten(o.KeyIndexes(50, 50, 1), None), "")
    assert play.role == "waiting" and play.deadline > 4


def test_a_slot_that_gets_free_goes_to_the_first_in_line_at_once() -> None:
    play = full()
    play.does(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")), "take s as 3: o1 o2 s, watch 60")
    play.does(1.1, TAKE, TAKEN, "start up#1: acquired, acquiring")


@pytest.mark.parametrize(("before", "pause_s"), [(1, 0.2), (3, 0.6), (40, 2.0)])
def test_who_stands_further_behind_lets_those_before_try_first(before: int, pause_s: float) -> None:
    play = full()
    line = [f"o{number}" for number in range(4, 4 + before)]
    play.on(1.0, WATCH, view("o1", "o2", *line, "s", at=lock("o1", "o2")))
    assert not play.times(TAKE)
    play.passes(0.999 + pause_s)
    assert not play.times(TAKE)
    play.under_way = [r for r in play.under_way if not isinstance(r, READ)]
    while not play.times(TAKE) and play.now < 5:
        play.happens(max(play.now, play.deadline), e.Tick())
        for request in [r for r in play.under_way if isinstance(r, READ)]:
            play.happens(play.now, e.Answered(request, view("o1", "o2", *line, "s", at=lock("o1", "o2"))))
    assert play.times(TAKE)[0] == pytest.approx(1.0 + pause_s, abs=0.01)


@pytest.mark.parametrize(("before", "lag_s"), [(0, 0.0), (2, 0.0), (3, 0.06), (10, 0.2), (40, 0.5)])
def test_who_cannot_be_next_looks_a_little_later(before: int, lag_s: float) -> None:
    """As many as there are slots may be next at once; those behind leave Consul to them."""
    line = [f"o{number}" for number in range(4, 4 + before)]
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "o3", *line, "s", at=lock("o1", "o2", "o3")))
    assert play.last(WATCH).lag_s == pytest.approx(lag_s)


def test_what_is_looked_at_later_is_news_of_before() -> None:
    """It justifies a try for so much less time."""
    line = [f"o{number}" for number in range(4, 44)]
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "o3", *line, "s", at=lock("o1", "o2", "o3")))
    play.on(2.0, WATCH, view("o1", "o2", *line, "s", at=lock("o1", "o2", index=70), index=70))
    assert play.contender.lock.free_at == pytest.approx(1.5)


def test_a_holder_looks_at_once_whoever_stands_before_it() -> None:
    play = holding()
    line = [f"o{number}" for number in range(1, 41)]
    play.on(2.0, WATCH, view(*line, "s", at=lock("s", index=61), index=70))
    assert play.last(WATCH).lag_s == 0.0


def test_who_comes_late_is_in_nobodys_way() -> None:
    """o90 stands behind us: its key was made after ours."""
    play = full()
    play.does(1.0, WATCH, view("o1", "o2", "s", "o90", at=lock("o1", "o2")), "take s as 3: o1 o2 s, watch 60")


def test_who_comes_when_another_waits_stands_in_line_and_lets_it_try_first() -> None:
    """That a place in line was to be had before is no head start for the slot."""
    play = waiting()
    play.does(0.2, WATCH, view("o1", "o2", "o4", at=lock("o1", "o2")), "enroll s, watch 60")
    play.on(2.0, ENROLL, o.SlotWritten(o.KeyIndexes(50, 50, 1), None))
    assert play.contender.lock.try_at == pytest.approx(2.2)


def test_a_lost_race_is_read_anew_before_the_next_try() -> None:
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")))
    assert "read" in Play.says(play.on(1.1, TAKE, o.LostRace()))
    play.on(1.2, READ, view("o1", "o2", "o4", "s", at=lock("o1", "o2", "o4", index=70)))
    play.passes(3.0)
    assert len(play.times(TAKE)) == 1


def test_races_in_a_row_are_further_and_further_apart() -> None:
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")))
    for number in range(12):
        play.on(play.now + 0.001, TAKE, o.LostRace())
        shown = view("o1", "o2", "s", at=lock("o1", "o2", index=70 + number))
        while len(play.times(TAKE)) == number + 1:
            for request in [r for r in play.under_way if isinstance(r, READ)]:
                play.happens(play.now, e.Answered(request, shown))
            if len(play.times(TAKE)) == number + 1:
                play.happens(max(play.now, play.deadline), e.Tick())
    times = play.times(TAKE)
    pauses = [after - before for before, after in zip(times, times[1:], strict=False)]
    assert pauses[0] == pytest.approx(0.026, abs=0.01) and pauses[-1] == pytest.approx(1.0, abs=0.1)


def test_a_slot_that_a_late_write_brings_is_ours_by_the_read_that_shows_it() -> None:
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")))
    play.on(4.0, TAKE, SILENCE)
    shown = view("o1", "o2", "s", at=lock("o1", "o2", "s", index=66))
    assert "read" in Play.says(play.on(4.1, WATCH, shown))
    assert "start up#1" in Play.says(play.on(4.2, READ, shown))


def test_a_contender_key_that_is_gone_is_made_anew() -> None:
    play = full()
    assert "enroll s" in Play.says(play.on(1.0, WATCH, view("o1", "o2", "o3", at=lock("o1", "o2", "o3"))))


# --- limits -----------------------------------------------------------------------------------------


def test_the_smaller_of_file_and_record_counts() -> None:
    play = in_line(view("o1", "o2", at=lock("o1", "o2", limit=2)))
    assert play.role == "waiting" and not play.times(TAKE)
    told = Play.says(play.on(1.0, WATCH, view("o1", "s", at=lock("o1", limit=2))))
    assert told.startswith("take s as 2: o1 s")


def test_more_in_the_record_than_in_the_file_is_not_used_and_not_changed() -> None:
    play = in_line(view("o1", "o2", "o3", at=lock("o1", "o2", "o3", limit=5)))
    assert not play.times(TAKE)
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2", limit=5)))
    assert play.last(TAKE).roster.limit == 5


def test_a_difference_is_noticed_and_its_end_too() -> None:
    play = waiting()
    told = Play.says(play.on(0.2, WATCH, view("o1", "o2", at=lock("o1", "o2", limit=2))))
    assert "notice: limit is 3 in the file and 2 in Consul" in told
    play.on(0.3, ENROLL, o.SlotWritten(o.KeyIndexes(50, 50, 1), None))
    assert "no notice" in Play.says(
        play.on(1.0, WATCH, view("o1", "o2", "o3", "s", at=lock("o1", "o2", "o3")))
    )


def test_a_lower_limit_evicts_nobody() -> None:
    play = holding()
    shown = view("o1", "s", at=lock("o1", "s", limit=1, index=70), index=70)
    told = Play.says(play.on(2.0, WATCH, shown))
    assert "start" not in told and play.role == "holding"


# --- on_change --------------------------------------------------------------------------------------


def test_on_change_is_not_told_of_a_record_that_says_nothing_of_who_holds() -> None:
    play = full(on_change=(UP,))
    play.happens(0.4, e.HookEnded(play.last(a.StartHook), ok=True))
    before = len(play.times(a.StartHook))
    play.on(1.0, WATCH, o.SlotsView(70, o.LockKey(9, 70, None, "it is no JSON"), ()))
    assert len(play.times(a.StartHook)) == before


def test_on_change_is_told_the_holders() -> None:
    play = waiting(on_change=(UP,))
    play.on(0.2, WATCH, view("o1", "o2", at=lock("o1", "o2")))
    context = play.last(a.StartHook).context
    assert (context.reason, [holder.session for holder in context.holders]) == ("initial", ["o1", "o2"])
    play.happens(0.3, e.HookEnded(play.last(a.StartHook), ok=True))
    count = len(play.times(a.StartHook))
    play.on(0.4, WATCH, view("o1", "o2", "o9", at=lock("o1", "o2", index=61)))
    assert len(play.times(a.StartHook)) == count, "who only waits is nobody's news"
    play.on(0.5, WATCH, view("o1", "o9", at=lock("o1", index=62)))
    assert play.last(a.StartHook).context.reason == "leader-changed"


def test_a_check_is_told_the_holders_that_were_seen_last() -> None:
    check = CandidateCheck(hook("check", 3.0), interval_s=5.0, rise=2, fall=3)
    play = Play(semaphore(candidate_check=check))
    play.happens(0.0, e.Tick())
    play.on(0.1, CREATE, o.Created("s"))
    play.happens(0.2, e.HookEnded(play.last(a.StartHook), ok=True))
    play.on(0.3, WATCH, view("o1", "o2", at=lock("o1", "o2")))
    play.passes(5.0)
    assert [holder.session for holder in play.last(a.StartHook).context.holders] == ["o1", "o2"]
