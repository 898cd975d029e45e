"""Where many wait for one key few try, and one that is left alone tries, too."""

import random
from dataclasses import replace
from itertools import count

import pytest

from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core.contender import Contender
from supervisor.core.lock import backoff
from supervisor.core.lock.election import LAG_S_MAX, ElectionLock
from tests.unit.core.play import (
    ACQUIRE,
    CREATE,
    INFO,
    OURS,
    READ,
    RIVAL,
    WATCH,
    WON,
    Play,
    behind,
    contender,
)

OTHER = o.KeyView(9000, "other", b"them", 3, 9000, 4)
GUARD_S = 15.002  # the lock-delay of ``behind``'s rival, and Consul's slack


def held(low: float, high: float = 1.0) -> o.KeyView:
    """By the rival, since an index at which a play draws a number between these."""
    index = next(index for index in count(10) if low <= backoff.hash_to_unit(0.0, index) < high)
    return replace(RIVAL, index=index, modify_index=index)


def freed(play: Play) -> o.KeyView:
    """By whoever holds it in this play."""
    view = play.contender.lock.view
    assert isinstance(view, o.KeyView)
    return replace(view, index=view.index + 1, session="", modify_index=view.modify_index + 1)


def less_eager(play: Play, attempt_probability: float) -> Contender:
    """Return the contender as it is after lost races."""
    key = play.contender.lock
    assert isinstance(key, ElectionLock)
    return replace(play.contender, lock=replace(key, attempt_probability=attempt_probability))


def one_of_many(attempt_probability: float, low: float, high: float = 1.0) -> Play:
    """Play a contender that has lost races, behind a rival; the next number drawn is between these."""
    play = behind()
    play.contender = less_eager(play, attempt_probability)
    rival = held(low, high)
    play.does(0.5, WATCH, rival, f"watch {rival.index}")
    return play


def attempt_probability(play: Play) -> float:
    key = play.contender.lock
    return float(getattr(key, "attempt_probability"))  # noqa: B009  # of an election's lock alone


def watched(view: o.KeyView) -> str:
    return f"watch {view.index}"


def watched_by_us(view: o.KeyView) -> str:
    return f"acquire s, {watched(view)}"


def wait_s(play: Play) -> float:
    """How long after it has looked this one leaves the free key to others."""
    key = play.contender.lock
    return float(getattr(key, "backoff_s")) - (play.now - key.free_since)  # noqa: B009


def lag_s(play: Play) -> float:
    return float(play.last(WATCH).lag_s)


# --- who tries when ------------------------------------------------------------------------------------


def test_who_never_lost_a_race_tries_at_once_whatever_it_draws() -> None:
    play = behind()
    play.does(0.5, WATCH, held(0.99), watched(held(0.99)))
    assert lag_s(play) == 0.0
    free = freed(play)
    play.does(1.0, WATCH, free, watched_by_us(free))


def test_who_draws_less_than_its_eagerness_tries_at_once() -> None:
    play = one_of_many(0.25, 0.2, 0.25)
    free = freed(play)
    play.does(1.0, WATCH, free, watched_by_us(free))


def test_who_draws_more_leaves_the_key_to_others_for_some_milliseconds() -> None:
    play = one_of_many(0.25, 0.45, 0.55)
    free, lagged_s = freed(play), lag_s(play)
    play.does(1.0, WATCH, free, watched(free))
    assert play.deadline == pytest.approx(1.0 + wait_s(play))
    assert 0.013 < lagged_s + wait_s(play) < 0.017
    play.does(play.deadline, "acquire s")


def test_what_another_has_taken_meanwhile_is_not_tried_for() -> None:
    play = one_of_many(0.25, 0.45, 0.55)
    free = freed(play)
    play.does(1.0, WATCH, free, watched(free))
    play.does(1.005, WATCH, OTHER, f"{watched(OTHER)}, info other")
    play.passes(9.0)
    assert play.times(ACQUIRE) == []


def test_each_time_that_the_key_is_free_is_drawn_anew() -> None:
    play, late = one_of_many(1.0, 0.0), held(0.45, 0.55)
    free = freed(play)
    play.does(1.0, WATCH, free, watched_by_us(free))
    play.does(1.005, ACQUIRE, o.LostRace(), "read")
    play.does(1.01, READ, late, "")
    play.does(1.02, WATCH, late, watched(late))
    free = freed(play)
    play.does(2.0, WATCH, free, watched(free))
    assert 2.0 < play.deadline < 2.02


def test_who_may_try_only_later_is_not_in_step_with_others() -> None:
    """Its session comes when the key has been free for a while, and all that wait have tried."""
    play, rival = Play(contender()), held(0.9)
    play.contender = less_eager(play, backoff.ATTEMPT_PROBABILITY_MIN)
    play.does(0.0, "create, watch 0 consistently")
    play.does(0.1, WATCH, rival, f"{watched(rival)}, info rival")
    play.does(0.15, INFO, o.SessionInfo(15.0), "")
    free = freed(play)
    play.does(0.2, WATCH, free, watched(free))
    play.does(0.4, CREATE, o.Created("s"), "acquire s")


def test_who_leaves_it_to_others_looks_a_little_later_but_before_its_turn() -> None:
    """So late that those before it have done, and so early that the watch can tell that they have."""
    assert lag_s(one_of_many(0.25, 0.0, 0.25)) == 0.0
    assert 0.0 < lag_s(one_of_many(0.25, 0.45, 0.55)) < 0.01
    assert lag_s(one_of_many(backoff.ATTEMPT_PROBABILITY_MIN, 0.9)) == LAG_S_MAX


def test_who_has_seen_it_free_looks_at_once_whether_it_was_taken() -> None:
    play = one_of_many(0.25, 0.45, 0.55)
    free = freed(play)
    play.does(1.0, WATCH, free, watched(free))
    assert lag_s(play) == 0.0


def test_a_holder_looks_at_once() -> None:
    play = one_of_many(0.25, 0.0, 0.25)
    play.does(1.0, WATCH, freed(play), watched_by_us(freed(play)))
    play.does(1.01, ACQUIRE, WON, "start up#1: acquired, acquiring")
    for index in range(7, 40):  # whatever it draws
        ours = replace(OURS, index=index, modify_index=index, lock_index=0)
        play.on(1.1 + index / 100, WATCH, ours)
        assert lag_s(play) == 0.0


# --- what is learned -----------------------------------------------------------------------------------


def test_a_lost_race_lessens_the_eagerness() -> None:
    play = behind()
    free = freed(play)
    play.does(1.0, WATCH, free, watched_by_us(free))
    play.does(1.01, ACQUIRE, o.LostRace(), "read")
    assert attempt_probability(play) == 0.25
    play.does(1.02, READ, OTHER, "info other")
    assert attempt_probability(play) == 0.25


def test_so_does_another_that_was_first_while_this_one_waited() -> None:
    play = one_of_many(0.25, 0.45, 0.55)
    free = freed(play)
    play.does(1.0, WATCH, free, watched(free))
    play.does(1.005, WATCH, OTHER, f"{watched(OTHER)}, info other")
    assert attempt_probability(play) == 0.0625


def test_the_same_winner_counts_once_whatever_it_writes() -> None:
    play = one_of_many(0.25, 0.5)
    free = freed(play)
    play.does(1.0, WATCH, free, watched(free))
    play.does(1.005, WATCH, OTHER, f"{watched(OTHER)}, info other")
    rewritten = replace(OTHER, index=9001, modify_index=9001)
    play.does(1.02, WATCH, rewritten, watched(rewritten))
    assert attempt_probability(play) == 0.0625


def test_a_holder_that_nobody_saw_give_it_up_teaches_nothing() -> None:
    play = one_of_many(0.25, 0.5)
    play.does(1.0, WATCH, OTHER, f"{watched(OTHER)}, info other")
    assert attempt_probability(play) == 0.25


def test_eagerness_has_a_least() -> None:
    assert backoff.decrease(backoff.ATTEMPT_PROBABILITY_MIN) == backoff.ATTEMPT_PROBABILITY_MIN


def test_a_try_that_the_lock_delay_refuses_is_no_lost_race() -> None:
    play = behind()
    free = freed(play)
    play.does(1.0, WATCH, free, watched_by_us(free))
    play.does(1.01, ACQUIRE, o.LockDelayed(), "")
    assert attempt_probability(play) == 1.0


@pytest.mark.parametrize(("ok", "after"), [(True, 1.0), (False, 0.0625)], ids=["held", "failed"])
def test_who_has_held_is_eager_again_unless_it_failed(ok: bool, after: float) -> None:
    play = one_of_many(0.25, 0.0, 0.25)
    free = freed(play)
    play.does(1.0, WATCH, free, watched_by_us(free))
    play.does(1.01, ACQUIRE, WON, "start up#1: acquired, acquiring")
    play.ends(1.1, "holding" if ok else "start down#1: acquire-failed, losing", ok=ok)
    if ok:
        play.hears(1.2, e.StepDownAsked("n", 5.0), "start down#1: step-down, losing")
    play.ends(1.3, f"release s, {'resting' if ok else 'waiting'}")
    assert attempt_probability(play) == after


# --- while a lock-delay may last -------------------------------------------------------------------------


def test_the_key_may_be_guarded_so_who_waits_for_long_tries_once_and_is_refused() -> None:
    play = one_of_many(backoff.ATTEMPT_PROBABILITY_MIN, 0.9)
    free = freed(play)
    play.does(1.0, WATCH, free, watched(free))
    assert play.contender.lock.free_since == 1.0 - LAG_S_MAX
    assert 0.08 - LAG_S_MAX < wait_s(play) < backoff.BACKOFF_MAX_S - LAG_S_MAX
    play.does(play.deadline, "acquire s")


def test_who_would_try_soon_does_so_and_then_in_its_turn_after_the_lock_delay() -> None:
    play = one_of_many(0.25, 0.45, 0.55)
    free = freed(play)
    play.does(1.0, WATCH, free, watched(free))
    turn_at = play.deadline
    play.does(turn_at, "acquire s")
    play.does(1.02, ACQUIRE, o.LockDelayed(), "")
    play.passes(turn_at + GUARD_S - 0.001)
    assert play.times(READ) == []
    play.does(turn_at + GUARD_S + 0.001, "read")


def test_a_read_does_not_tell_since_when_the_key_is_free() -> None:
    """It may have been asked for long before: the lock-delay is counted from its answer."""
    play = behind()
    play.contender = replace(play.contender, lock=play.contender.lock.read_by(1.0))
    play.does(1.0, "read")
    play.does(1.5, READ, freed(play), "acquire s")
    assert play.contender.lock.free_since == 1.5


# --- of any number few -------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", [5, 50, 200, 1000])
def test_of_any_number_few_try_after_some_hand_overs(many: int) -> None:
    """Whoever waits for less than a hand-over takes has tried by the time that it hears of another."""
    dice = random.Random(many)
    spreads = [dice.random() for _ in range(many)]
    eager = [1.0] * many
    tried = []
    for index in range(40):
        waits = [
            backoff.backoff_s(eager[who], backoff.hash_to_unit(spreads[who], index)) for who in range(many)
        ]
        first = min(waits)
        tried.append(sum(wait < first + backoff.FIRST_BACKOFF_S for wait in waits))
        won = dice.choice([who for who in range(many) if waits[who] == first])
        lost = [
            who for who in range(many) if eager[who] < 1.0 or waits[who] < first + backoff.FIRST_BACKOFF_S
        ]
        for who in lost:
            eager[who] = backoff.decrease(eager[who])
        eager[won] = 1.0
    assert tried[0] == many
    assert sum(tried[20:]) / 20 < 3 + many / 100


def test_what_a_contender_draws_is_spread_evenly_over_herds_and_over_occasions() -> None:
    dice = random.Random(1)
    herds = [backoff.hash_to_unit(dice.random(), 12) for _ in range(4000)]
    times = [backoff.hash_to_unit(0.3, index) for index in range(4000)]
    for drawn in (herds, times):
        for tenth in range(10):
            assert 300 < sum(tenth / 10 <= each < (tenth + 1) / 10 for each in drawn) < 500


def test_the_longest_wait_is_that_of_the_least_eager() -> None:
    assert backoff.backoff_s(backoff.ATTEMPT_PROBABILITY_MIN, 1.0) == pytest.approx(backoff.BACKOFF_MAX_S)
    assert backoff.BACKOFF_MAX_S < 0.1 < 1.2 * backoff.BACKOFF_MAX_S
