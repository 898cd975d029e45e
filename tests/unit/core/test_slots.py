"""Semaphores, step by step: the line, a slot, and how many slots there are."""

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as req
from supervisor.core.settings import CandidateCheck
from tests.unit.core import slot_play as s
from tests.unit.core.play import SILENCE, UP, Play, hook

# --- in line, and a slot ----------------------------------------------------------------------------


def test_below_an_empty_prefix_one_request_writes_contender_key_and_record() -> None:
    play = s.waiting()
    play.does(0.2, s.WATCH, s.EMPTY, "enroll s as 3: s, watch 5")
    play.does(0.3, s.ENROLL, s.SEATED, "start up#1: acquired, acquiring")
    request = play.last(s.ENROLL)
    assert (request.prefix, request.index, request.value) == ("p", 0, b"me")
    assert request.slot_record == req.SlotRecord(3, ("s",), 30.0, numbers=(("s", 0),))
    assert play.last(a.StartHook).context.fencing_token == 61
    assert play.last(a.StartHook).context.kind == "semaphore"


@pytest.mark.parametrize(("before", "pause_s"), [(1, 0.2), (3, 0.6), (40, 2.0)])
def test_a_waiter_lets_the_waiters_before_it_in_line_try_first(before: int, pause_s: float) -> None:
    play = s.full()
    line = [f"o{number}" for number in range(4, 4 + before)]
    play.on(1.0, s.WATCH, s.view("o1", "o2", *line, "s", at=s.lock("o1", "o2")))
    assert not play.times(s.TAKE)
    play.passes(0.999 + pause_s)
    assert not play.times(s.TAKE)
    play.under_way = [r for r in play.under_way if not isinstance(r, s.READ)]
    while not play.times(s.TAKE) and play.now < 5:
        play.happens(max(play.now, play.deadline), e.Tick())
        for request in [r for r in play.under_way if isinstance(r, s.READ)]:
            play.happens(play.now, e.Answered(request, s.view("o1", "o2", *line, "s", at=s.lock("o1", "o2"))))
    assert play.times(s.TAKE)[0] == pytest.approx(1.0 + pause_s, abs=0.01)


@pytest.mark.parametrize(("before", "lag_s"), [(0, 0.0), (2, 0.0), (3, 0.06), (10, 0.2), (40, 0.5)])
def test_a_waiter_that_cannot_be_next_delays_its_watch(before: int, lag_s: float) -> None:
    """As many waiters as there are slots may be next, and the waiters behind them leave Consul to them."""
    line = [f"o{number}" for number in range(4, 4 + before)]
    play = s.full()
    play.on(1.0, s.WATCH, s.view("o1", "o2", "o3", *line, "s", at=s.lock("o1", "o2", "o3")))
    assert play.last(s.WATCH).lag_s == pytest.approx(lag_s)


def test_the_answer_of_a_delayed_watch_counts_as_older_news() -> None:
    """The free slot justifies an attempt for that much less time."""
    line = [f"o{number}" for number in range(4, 44)]
    play = s.full()
    play.on(1.0, s.WATCH, s.view("o1", "o2", "o3", *line, "s", at=s.lock("o1", "o2", "o3")))
    play.on(2.0, s.WATCH, s.view("o1", "o2", *line, "s", at=s.lock("o1", "o2", index=70), index=70))
    assert play.contender.lock.seen_free_at == pytest.approx(1.5)


def test_a_holder_watches_without_delay_in_any_place_of_the_line() -> None:
    play = s.holding()
    line = [f"o{number}" for number in range(1, 41)]
    play.on(2.0, s.WATCH, s.view(*line, "s", at=s.lock("s", index=61), index=70))
    assert play.last(s.WATCH).lag_s == 0.0


def test_the_first_waiter_in_line_takes_a_free_slot_at_once() -> None:
    """o90 stands behind us, because its key was made after ours."""
    play = s.full()
    play.does(
        1.0, s.WATCH, s.view("o1", "o2", "s", "o90", at=s.lock("o1", "o2")), "take s as 3: o1 o2 s, watch 60"
    )


def test_a_newcomer_joins_the_line_and_lets_the_waiter_before_it_try_first() -> None:
    """A place in line that was free before gives no head start for the slot."""
    play = s.waiting()
    play.does(0.2, s.WATCH, s.view("o1", "o2", "o4", at=s.lock("o1", "o2")), "enroll s, watch 60")
    play.on(2.0, s.ENROLL, o.SlotWritten(o.KeyIndexes(50, 50, 1), None))
    assert play.contender.lock.try_at == pytest.approx(2.2)


def test_a_lost_race_for_a_slot_is_followed_by_a_read_before_the_next_attempt() -> None:
    play = s.full()
    play.on(1.0, s.WATCH, s.view("o1", "o2", "s", at=s.lock("o1", "o2")))
    assert "read" in Play.says(play.on(1.1, s.TAKE, o.LostRace()))
    play.on(1.2, s.READ, s.view("o1", "o2", "o4", "s", at=s.lock("o1", "o2", "o4", index=70)))
    play.passes(3.0)
    assert len(play.times(s.TAKE)) == 1


def test_attempts_after_races_lost_in_a_row_are_further_and_further_apart() -> None:
    play = s.full()
    play.on(1.0, s.WATCH, s.view("o1", "o2", "s", at=s.lock("o1", "o2")))
    for number in range(12):
        play.on(play.now + 0.001, s.TAKE, o.LostRace())
        shown = s.view("o1", "o2", "s", at=s.lock("o1", "o2", index=70 + number))
        while len(play.times(s.TAKE)) == number + 1:
            for request in [r for r in play.under_way if isinstance(r, s.READ)]:
                play.happens(play.now, e.Answered(request, shown))
            if len(play.times(s.TAKE)) == number + 1:
                play.happens(max(play.now, play.deadline), e.Tick())
    times = play.times(s.TAKE)
    pauses = [after - before for before, after in zip(times, times[1:], strict=False)]
    assert pauses[0] == pytest.approx(0.026, abs=0.01) and pauses[-1] == pytest.approx(1.0, abs=0.1)


def test_a_slot_that_a_late_write_takes_is_ours_once_a_read_shows_it() -> None:
    play = s.full()
    play.on(1.0, s.WATCH, s.view("o1", "o2", "s", at=s.lock("o1", "o2")))
    play.on(4.0, s.TAKE, SILENCE)
    shown = s.view("o1", "o2", "s", at=s.lock("o1", "o2", "s", index=66, numbers={"s": 1}))
    assert "read" in Play.says(play.on(4.1, s.WATCH, shown))
    assert "start up#1" in Play.says(play.on(4.2, s.READ, shown))
    assert play.last(a.StartHook).context.slot == 1


# --- limits -----------------------------------------------------------------------------------------


def test_the_smaller_limit_of_file_and_record_counts() -> None:
    play = s.in_line(s.view("o1", "o2", at=s.lock("o1", "o2", limit=2)))
    assert play.role == "waiting" and not play.times(s.TAKE)
    told = Play.says(play.on(1.0, s.WATCH, s.view("o1", "s", at=s.lock("o1", limit=2))))
    assert told.startswith("take s as 2: o1 s")


def test_a_larger_limit_in_the_record_is_neither_used_nor_changed() -> None:
    play = s.in_line(s.view("o1", "o2", "o3", at=s.lock("o1", "o2", "o3", limit=5)))
    assert not play.times(s.TAKE)
    play.on(1.0, s.WATCH, s.view("o1", "o2", "s", at=s.lock("o1", "o2", limit=5)))
    assert play.last(s.TAKE).slot_record.limit == 5


def test_a_limit_that_differs_is_reported_until_it_agrees() -> None:
    play = s.waiting()
    told = Play.says(play.on(0.2, s.WATCH, s.view("o1", "o2", at=s.lock("o1", "o2", limit=2))))
    assert "notice: limit is 3 here and 2 in Consul" in told
    play.on(0.3, s.ENROLL, o.SlotWritten(o.KeyIndexes(50, 50, 1), None))
    assert "no notice" in Play.says(
        play.on(1.0, s.WATCH, s.view("o1", "o2", "o3", "s", at=s.lock("o1", "o2", "o3")))
    )


def test_a_lower_limit_evicts_nobody() -> None:
    play = s.holding()
    shown = s.view("o1", "s", at=s.lock("o1", "s", limit=1, index=70), index=70)
    told = Play.says(play.on(2.0, s.WATCH, shown))
    assert "start" not in told and play.role == "holding"


# --- on_change --------------------------------------------------------------------------------------


def test_on_change_does_not_report_an_unreadable_record() -> None:
    play = s.full(on_change=(UP,))
    play.happens(0.4, e.HookEnded(play.last(a.StartHook), ok=True))
    before = len(play.times(a.StartHook))
    play.on(1.0, s.WATCH, o.SlotsView(70, o.LockKey(9, 70, None, "it is no JSON"), ()))
    assert len(play.times(a.StartHook)) == before


def test_on_change_reports_the_holders() -> None:
    play = s.waiting(on_change=(UP,))
    play.on(0.2, s.WATCH, s.view("o1", "o2", at=s.lock("o1", "o2")))
    context = play.last(a.StartHook).context
    assert (context.reason, [holder.session for holder in context.holders]) == ("initial", ["o1", "o2"])
    play.happens(0.3, e.HookEnded(play.last(a.StartHook), ok=True))
    count = len(play.times(a.StartHook))
    play.on(0.4, s.WATCH, s.view("o1", "o2", "o9", at=s.lock("o1", "o2", index=61)))
    assert len(play.times(a.StartHook)) == count, "a new waiter is no change"
    play.on(0.5, s.WATCH, s.view("o1", "o9", at=s.lock("o1", index=62)))
    assert play.last(a.StartHook).context.reason == "leader-changed"


def test_a_check_gets_the_holders_that_were_observed_last() -> None:
    check = CandidateCheck(hook("check", 3.0), interval_s=5.0, rise=2, fall=3)
    play = Play(s.semaphore(candidate_check=check))
    play.happens(0.0, e.Tick())
    play.happens(0.2, e.HookEnded(play.last(a.StartHook), ok=True))
    play.on(0.3, s.WATCH, s.view("o1", "o2", at=s.lock("o1", "o2")))
    play.passes(5.0)
    assert [holder.session for holder in play.last(a.StartHook).context.holders] == ["o1", "o2"]
