"""The hint of a waiter with a fence: a second watch in mode ``stale``, which is never evidence."""

from typing import Any

import pytest

from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.frozen import replace
from supervisor.core.lock import hint
from supervisor.core.settings import Fence
from tests.unit.core import play as p
from tests.unit.core.play import Play

FENCE = Fence(p.hook("fence", 20.0), after_s=1.0, exclusive=True)
NONE = o.TenureShown(6, 6, None)
FREED = replace(p.FREE, index=12, modify_index=12)
NEWER = o.Hinted(p.RIVAL.modify_index + 1, present=True)


def waiter() -> Play:
    """Return a waiter whose watch hangs from 0.5 s on."""
    play = Play(p.contender(fence=FENCE))
    play.happens(0.0, e.Tick())
    play.on(0.1, p.CREATE, o.Created("s"))
    play.on(0.2, r.WatchTenure, NONE)
    play.on(0.3, p.WATCH, p.RIVAL)
    play.on(0.4, p.INFO, o.SessionInfo(1.0))
    return play


def told(play: Play, now: float, outcome: o.Outcome) -> str:
    """Answer the newest hint, and return the actions that follow in words."""
    return play.says(play.happens(now, e.Answered(play.hints[-1], outcome)))


def test_a_waiter_asks_any_server_beside_its_watch_twice_a_minute() -> None:
    play = waiter()
    (first,) = play.hints
    assert (first.index, first.consistent, first.answerer) == (0, False, r.Answerer.SERVER)
    assert told(play, 0.5, o.Hinted(p.RIVAL.modify_index, present=True)) == ""
    assert len(play.hints) == 1, "two hints within a second"
    play.passes(1.4)
    first, second = play.hints
    assert (second.at, second.index, second.wait_s) == (first.at + hint.HINT_EVERY_S, 9, hint.HINT_WAIT_S)
    assert (first.timeout_s, second.timeout_s) == (hint.FIRST_S, hint.HINT_S)
    assert second.wait_s * (1 + 1 / 16) < min(30.0, second.timeout_s)
    told(play, second.at + 28.5, o.Hinted(9, present=True))
    play.passes(second.at + 29.9)
    assert len(play.hints) == 2, "a hint without a change is the reason for the next one after half a minute"
    play.passes(second.at + 30.0)
    assert len(play.hints) == 3


def test_what_a_hint_shows_is_read_and_the_watch_that_hangs_contradicts_nothing() -> None:
    play = waiter()
    assert told(play, 2.0, NEWER) == "read"
    before = play.contender.lock.view
    assert before == p.RIVAL, "the view is what a consistent answer has shown"
    assert play.contender.lock.index == p.RIVAL.index
    play.does(2.2, p.READ, FREED, "acquire s with record")
    play.does(2.3, p.WATCH, p.RIVAL, "watch 9")
    assert play.contender.lock.view == FREED


def test_a_watch_that_shows_the_same_leaves_nothing_to_read() -> None:
    play = waiter()
    told(play, 2.0, NEWER)
    play.on(2.1, p.READ, replace(p.RIVAL, index=10, modify_index=10))
    play.on(2.1, p.WATCH, replace(p.RIVAL, index=10, modify_index=10))
    reads = play.times(r.ReadKey)
    assert told(play, 2.2, o.Hinted(11, present=True)) == "", "one read a second"
    play.on(2.9, p.WATCH, replace(p.RIVAL, index=11, modify_index=11))
    play.passes(5.0)
    assert play.times(r.ReadKey) == reads


def test_the_answer_of_a_hint_is_read_when_a_hand_over_is_done() -> None:
    play = waiter()
    told(play, 1.0, o.Hinted(9, present=True))
    play.passes(1.5)
    first, second = play.hints
    assert first.lag_s == 0.0, "it is answered at once, and keeps others from being sent meanwhile"
    assert second.lag_s >= 0.04


def test_a_read_that_hangs_is_given_up_for_a_hint_and_its_late_answer_changes_nothing() -> None:
    play = waiter()
    told(play, 2.0, NEWER)
    late = play.pending(p.READ)
    told(play, 2.5, o.Hinted(11, present=True))
    play.passes(3.1, silent=True)
    assert play.times(r.ReadKey) == [2.0, 3.0], "a second read, beside the one that hangs"
    play.happens(3.2, e.Answered(late, p.FREE))
    assert play.contender.lock.view == p.RIVAL and not play.times(r.Acquire)


def test_a_server_that_always_shows_more_costs_one_read_a_second() -> None:
    play, answered = waiter(), 0
    for number in range(100):
        now = 2.0 + number / 5
        if answered < len(play.hints):
            answered = len(play.hints)
            told(play, now, o.Hinted(20 + number, present=True))
        play.happens(now, e.Tick())
        for each in [each for each in play.under_way if isinstance(each, r.ReadKey)]:
            play.happens(now, e.Answered(each, p.RIVAL))
    for times in (play.times(r.ReadKey), [each.at for each in play.hints]):
        assert len(times) > 10
        assert min(b - a for a, b in zip(times, times[1:], strict=False)) >= hint.HINT_EVERY_S - 1e-6


@pytest.mark.parametrize(
    ("outcome", "reads"),
    [
        (o.Hinted(8, present=True), False),  # a server that lags behind
        (o.Hinted(8, present=False), False),  # one that has not seen the key yet
        (o.Hinted(10, present=False), True),  # the key is deleted
        (p.SILENCE, False),
        (p.FORBIDDEN, False),
    ],
)
def test_only_what_is_newer_is_read(outcome: o.Outcome, reads: bool) -> None:
    play = waiter()
    told(play, 2.0, outcome)
    play.passes(3.0)
    assert bool(play.times(r.ReadKey)) == reads
    assert play.hints[-1].at >= play.hints[0].at + hint.HINT_EVERY_S


def test_the_index_of_an_absent_key_is_no_news() -> None:
    play = waiter()
    play.on(1.0, p.WATCH, o.KeyView(12))
    play.on(1.1, p.ACQUIRE, o.LostRace())
    play.on(1.2, p.READ, o.KeyView(12))
    before = play.times(r.ReadKey)
    told(play, 1.3, o.Hinted(40, present=False))
    play.passes(2.0)
    assert play.times(r.ReadKey) == before


def test_a_hint_that_falls_back_begins_anew() -> None:
    play = waiter()
    told(play, 1.5, o.Hinted(9, present=True))
    told(play, 3.0, o.Hinted(4, present=True))
    assert play.hints[-1].index == 0


@pytest.mark.parametrize("more", [{}, {"fence": FENCE, "contend": False}])
def test_without_a_fence_nobody_asks_for_a_hint(more: dict[str, Any]) -> None:
    play = Play(p.contender(**more))
    play.passes(30.0)
    assert play.hints == []


def test_a_holder_hears_that_it_has_lost_the_key_as_soon_as_those_who_would_shoot_it() -> None:
    play = waiter()
    play.on(1.0, p.WATCH, FREED)
    play.on(1.1, p.ACQUIRE, o.Won(3, 13, 4))
    play.ends(1.2, "holding")
    told(play, 2.0, o.Hinted(13, present=True))
    reads = play.times(r.ReadKey)
    told(play, 2.5, o.Hinted(14, present=True))
    assert play.times(r.ReadKey)[len(reads) :] == [2.5]
    assert play.contender.tenure is not None and play.contender.tenure.believes
    play.on(2.6, p.READ, o.KeyView(14, None, b"", 3, 14, 4, has_record_flags=True))
    assert not play.contender.tenure.believes
    asked = len(play.hints)
    play.passes(2.9)
    assert len(play.hints) == asked, "who has lost needs no hint"


def test_a_hint_is_no_answer_of_consul_s_leader() -> None:
    """A hint neither ends nor begins a pause that Consul's limits ask for."""
    play = waiter()
    play.on(0.45, p.WATCH, o.Throttled("429"))
    assert play.contender.throttle.reads == 1
    for outcome in (o.Hinted(9, present=True), p.SILENCE, o.Throttled("429")):
        told(play, play.now + 1.1, outcome)
        assert play.contender.throttle.reads == 1
