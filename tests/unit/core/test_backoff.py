"""When a key becomes free few of many waiters try for it at once, and a lone waiter tries as well."""

import random
from dataclasses import replace
from itertools import count

import pytest

from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core.contender.state import Contender
from supervisor.core.lock import backoff
from supervisor.core.lock.election import LAG_S_MAX, ElectionLock
from tests.unit.core.play import ACQUIRE, CREATE, INFO, OURS, READ, RIVAL, WATCH, WON, Play, behind, contender

OTHER = o.KeyView(9000, "other", b"them", 3, 9000, 4)
GUARD_S = 15.002  # the lock-delay of ``behind``'s rival, and Consul's slack


def held(low: float, high: float = 1.0) -> o.KeyView:
    """Return a view of the rival's key, at an index whose hash is in this range."""
    index = next(index for index in count(10) if low <= backoff.hash_to_unit(0.0, index) < high)
    return replace(RIVAL, index=index, modify_index=index)


def freed(play: Play) -> o.KeyView:
    """Return the view of this play's key after its holder has released it."""
    view = play.contender.lock.view
    assert isinstance(view, o.KeyView)
    return replace(view, index=view.index + 1, session=None, modify_index=view.modify_index + 1)


def lock_of(play: Play) -> ElectionLock:
    lock = play.contender.lock
    assert isinstance(lock, ElectionLock)
    return lock


def with_attempt_probability(play: Play, attempt_probability: float) -> Contender:
    """Return the play's contender with this attempt probability, as lost races leave it."""
    return replace(play.contender, lock=replace(lock_of(play), attempt_probability=attempt_probability))


def one_of_many(attempt_probability: float, low: float, high: float = 1.0) -> Play:
    """Play a contender with this attempt probability behind a rival; the next hash is in this range."""
    play = behind()
    play.contender = with_attempt_probability(play, attempt_probability)
    rival = held(low, high)
    play.does(0.5, WATCH, rival, f"watch {rival.index}")
    return play


def watched(view: o.KeyView) -> str:
    return f"watch {view.index}"


def watched_by_us(view: o.KeyView) -> str:
    return f"acquire s, {watched(view)}"


def wait_s(play: Play) -> float:
    """Return how much of the contender's back-off is left."""
    return lock_of(play).backoff_s - (play.now - lock_of(play).opens_at)


def lag_s(play: Play) -> float:
    return float(play.last(WATCH).lag_s)


# --- when a contender tries ----------------------------------------------------------------------------


def test_a_contender_that_never_lost_a_race_tries_at_once() -> None:
    play = behind()
    play.does(0.5, WATCH, held(0.99), watched(held(0.99)))
    assert lag_s(play) == 0.0
    free = freed(play)
    play.does(1.0, WATCH, free, watched_by_us(free))


def test_a_contender_whose_hash_is_above_its_attempt_probability_backs_off_for_milliseconds() -> None:
    play = one_of_many(0.25, 0.45, 0.55)
    free, lagged_s = freed(play), lag_s(play)
    play.does(1.0, WATCH, free, watched(free))
    assert play.deadline == pytest.approx(1.0 + wait_s(play))
    assert 0.013 < lagged_s + wait_s(play) < 0.017
    assert lag_s(play) == 0.0, "the free key is watched without delay"
    play.does(play.deadline, "acquire s")


def test_a_key_that_a_rival_takes_during_the_back_off_is_not_tried_for() -> None:
    play = one_of_many(0.25, 0.45, 0.55)
    free = freed(play)
    play.does(1.0, WATCH, free, watched(free))
    play.does(1.005, WATCH, OTHER, f"{watched(OTHER)}, info other")
    play.passes(9.0)
    assert play.times(ACQUIRE) == []


def test_the_hash_is_another_each_time_that_the_key_is_free() -> None:
    play, late = one_of_many(1.0, 0.0), held(0.45, 0.55)
    free = freed(play)
    play.does(1.0, WATCH, free, watched_by_us(free))
    play.does(1.005, ACQUIRE, o.LostRace(), "read")
    play.does(1.01, READ, late, "")
    play.does(1.02, WATCH, late, watched(late))
    free = freed(play)
    play.does(2.0, WATCH, free, watched(free))
    assert 2.0 < play.deadline < 2.02


def test_a_contender_whose_session_comes_late_does_not_back_off() -> None:
    """When the session comes, the key has been free for longer than any back-off."""
    play, rival = Play(contender()), held(0.9)
    play.contender = with_attempt_probability(play, backoff.ATTEMPT_PROBABILITY_MIN)
    play.does(0.0, "create, watch 0 consistently")
    play.does(0.1, WATCH, rival, f"{watched(rival)}, info rival")
    play.does(0.15, INFO, o.SessionInfo(15.0), "")
    free = freed(play)
    play.does(0.2, WATCH, free, watched(free))
    play.does(0.4, CREATE, o.Created("s"), "acquire s")


def test_a_contender_that_will_back_off_delays_its_watch_by_less_than_its_back_off() -> None:
    """Contenders with a shorter back-off try first, and the next watch still shows in time that one holds."""
    assert lag_s(one_of_many(0.25, 0.0, 0.25)) == 0.0
    assert 0.0 < lag_s(one_of_many(0.25, 0.45, 0.55)) < 0.01
    assert lag_s(one_of_many(backoff.ATTEMPT_PROBABILITY_MIN, 0.9)) == LAG_S_MAX


def test_a_holder_watches_its_key_without_delay() -> None:
    play = one_of_many(0.25, 0.0, 0.25)
    play.does(1.0, WATCH, freed(play), watched_by_us(freed(play)))
    play.does(1.01, ACQUIRE, WON, "start up#1: acquired, acquiring")
    for index in range(7, 40):  # with every hash
        ours = replace(OURS, index=index, modify_index=index, lock_index=0)
        play.on(1.1 + index / 100, WATCH, ours)
        assert lag_s(play) == 0.0


# --- how the attempt probability changes ---------------------------------------------------------------


def test_a_lost_race_decreases_the_attempt_probability() -> None:
    play = behind()
    free = freed(play)
    play.does(1.0, WATCH, free, watched_by_us(free))
    play.does(1.01, ACQUIRE, o.LostRace(), "read")
    assert lock_of(play).attempt_probability == 0.25
    play.does(1.02, READ, OTHER, "info other")
    assert lock_of(play).attempt_probability == 0.25


def test_a_rival_that_rewrites_its_value_decreases_the_attempt_probability_once() -> None:
    play = one_of_many(0.25, 0.5)
    free = freed(play)
    play.does(1.0, WATCH, free, watched(free))
    play.does(1.005, WATCH, OTHER, f"{watched(OTHER)}, info other")
    rewritten = replace(OTHER, index=9001, modify_index=9001)
    play.does(1.02, WATCH, rewritten, watched(rewritten))
    assert lock_of(play).attempt_probability == 0.0625


def test_a_release_that_was_not_seen_keeps_the_attempt_probability() -> None:
    play = one_of_many(0.25, 0.5)
    play.does(1.0, WATCH, OTHER, f"{watched(OTHER)}, info other")
    assert lock_of(play).attempt_probability == 0.25


def test_the_attempt_probability_has_a_minimum() -> None:
    assert backoff.decrease(backoff.ATTEMPT_PROBABILITY_MIN) == backoff.ATTEMPT_PROBABILITY_MIN


@pytest.mark.parametrize(("ok", "after"), [(True, 1.0), (False, 0.0625)], ids=["held", "failed"])
def test_a_tenure_resets_the_attempt_probability_unless_on_acquire_failed(ok: bool, after: float) -> None:
    play = one_of_many(0.25, 0.0, 0.25)
    free = freed(play)
    play.does(1.0, WATCH, free, watched_by_us(free))
    play.does(1.01, ACQUIRE, WON, "start up#1: acquired, acquiring")
    play.ends(1.1, "holding" if ok else "start down#1: acquire-failed, losing", ok=ok)
    if ok:
        play.hears(1.2, e.StepDownAsked("n", 5.0), "start down#1: step-down, losing")
    play.ends(1.3, f"release s, {'resting' if ok else 'waiting'}")
    assert lock_of(play).attempt_probability == after


# --- while a lock-delay may last -------------------------------------------------------------------------


def test_a_contender_with_the_lowest_attempt_probability_tries_when_its_back_off_ends() -> None:
    play = one_of_many(backoff.ATTEMPT_PROBABILITY_MIN, 0.9)
    free = freed(play)
    play.does(1.0, WATCH, free, watched(free))
    assert play.contender.lock.opens_at == 1.0 - LAG_S_MAX
    assert 0.08 - LAG_S_MAX < wait_s(play) < backoff.BACKOFF_MAX_S - LAG_S_MAX
    play.does(play.deadline, "acquire s")


def test_after_a_refusal_the_next_attempt_waits_for_lock_delay_and_back_off() -> None:
    play = one_of_many(0.25, 0.45, 0.55)
    free = freed(play)
    play.does(1.0, WATCH, free, watched(free))
    turn_at = play.deadline
    play.does(turn_at, "acquire s")
    play.does(1.02, ACQUIRE, o.LockDelayed(), "")
    play.passes(turn_at + GUARD_S - 0.001)
    assert play.times(READ) == []
    play.does(turn_at + GUARD_S + 0.001, "read")


def test_a_key_that_a_read_shows_free_counts_as_free_since_the_answer() -> None:
    """The read may have been sent long before its answer, so the lock-delay counts from the answer."""
    play = behind()
    play.contender = replace(play.contender, lock=play.contender.lock.read_by(1.0))
    play.does(1.0, "read")
    play.does(1.5, READ, freed(play), "acquire s")
    assert play.contender.lock.opens_at == 1.5


# --- many contenders ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", [5, 50, 200, 1000])
def test_after_some_hand_overs_few_of_many_contenders_try(many: int) -> None:
    """A contender with a back-off shorter than a hand-over tries before it can learn of the winner."""
    dice = random.Random(many)
    spreads = [dice.random() for _ in range(many)]
    probability = [1.0] * many
    tried = []
    for index in range(40):
        waits = [
            backoff.backoff_s(probability[each], backoff.hash_to_unit(spreads[each], index))
            for each in range(many)
        ]
        first = min(waits)
        tried.append(sum(wait < first + backoff.FIRST_BACKOFF_S for wait in waits))
        won = dice.choice([each for each in range(many) if waits[each] == first])
        lost = [
            each
            for each in range(many)
            if probability[each] < 1.0 or waits[each] < first + backoff.FIRST_BACKOFF_S
        ]
        for each in lost:
            probability[each] = backoff.decrease(probability[each])
        probability[won] = 1.0
    assert tried[0] == many
    assert sum(tried[20:]) / 20 < 3 + many / 100


def test_hashes_are_spread_evenly_over_contenders_and_over_indexes() -> None:
    dice = random.Random(1)
    of_spreads = [backoff.hash_to_unit(dice.random(), 12) for _ in range(4000)]
    of_indexes = [backoff.hash_to_unit(0.3, index) for index in range(4000)]
    for hashes in (of_spreads, of_indexes):
        for tenth in range(10):
            assert 300 < sum(tenth / 10 <= each < (tenth + 1) / 10 for each in hashes) < 500


def test_the_longest_back_off_is_that_of_the_lowest_attempt_probability() -> None:
    assert backoff.backoff_s(backoff.ATTEMPT_PROBABILITY_MIN, 1.0) == pytest.approx(backoff.BACKOFF_MAX_S)
    assert backoff.BACKOFF_MAX_S < 0.1 < 1.2 * backoff.BACKOFF_MAX_S
