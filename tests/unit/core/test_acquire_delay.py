"""acquire_delay: a node that is not preferred leaves a free key to others for that long."""

from dataclasses import replace

import pytest

from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core.lease import lease_of
from supervisor.core.lock.election import ElectionLock
from tests.unit.core import play as p

DELAY_S = 2.0
FREE_AGAIN = o.KeyView(12, None, b"them", 3, 12, 3)


def test_the_news_is_read_again_just_before_the_try() -> None:
    """The try then comes at its time, not a read later."""
    play = p.waiting(acquire_delay_s=DELAY_S)
    play.does(0.2, p.WATCH, p.FREE, "watch 5")
    assert play.deadline == pytest.approx(2.1)
    play.does(2.1, "read")
    play.does(2.15, p.READ, p.FREE, "")
    play.does(2.2, "acquire s")


def test_a_preferred_node_that_takes_the_key_ends_the_wait() -> None:
    play = p.behind(acquire_delay_s=DELAY_S)
    play.does(1.0, p.WATCH, FREE_AGAIN, "watch 12")
    play.does(1.1, p.WATCH, replace(p.RIVAL, index=13, modify_index=13, lock_index=4), "watch 13")
    play.passes(30.0)
    assert play.times(p.ACQUIRE) == []


def test_each_time_that_the_key_is_free_it_waits_anew() -> None:
    play = p.behind(acquire_delay_s=DELAY_S)
    play.does(1.0, p.WATCH, FREE_AGAIN, "watch 12")
    play.does(2.9, "read")
    play.does(2.95, p.WATCH, replace(p.RIVAL, index=13, modify_index=13, lock_index=4), "watch 13")
    play.does(3.5, p.WATCH, replace(FREE_AGAIN, index=14, modify_index=14, lock_index=4), "watch 14")
    lock = play.contender.lock
    assert isinstance(lock, ElectionLock)
    assert lock.try_at >= 3.5 + DELAY_S


def test_after_a_crash_the_delay_comes_on_top_of_the_lock_delay() -> None:
    play = p.behind(acquire_delay_s=DELAY_S)
    play.does(1.0, p.WATCH, FREE_AGAIN, "watch 12")
    play.does(2.9, "read")
    play.does(2.95, p.READ, FREE_AGAIN, "")
    play.does(3.0, "acquire s")
    play.does(3.1, p.ACQUIRE, o.LockDelayed(), "")
    assert play.contender.lock.try_at == pytest.approx(1.0 + 15.0 + DELAY_S, abs=0.01)


def test_a_node_that_starts_leaves_it_as_well() -> None:
    play = p.beginning(acquire_delay_s=DELAY_S)
    play.does(0.1, p.WATCH, p.FREE, "watch 5")
    play.does(0.2, p.CREATE, o.Created("s"), "")
    play.passes(3.0)
    assert play.times(p.ACQUIRE) == [pytest.approx(0.1 + DELAY_S)]


def test_a_key_that_has_been_free_for_longer_is_tried_for_at_once() -> None:
    play = p.beginning(acquire_delay_s=DELAY_S)
    play.does(0.1, p.WATCH, p.FREE, "watch 5")
    play.does(5.0, p.CREATE, o.Created("s"), "read")
    play.does(5.1, p.READ, p.FREE, "acquire s")


@pytest.mark.parametrize(("delay_s", "tries_at"), [(0.0, 1.0), (5.0, 5.2)])
def test_another_acquire_delay_of_the_file_counts_at_once(delay_s: float, tries_at: float) -> None:
    play = p.waiting(acquire_delay_s=DELAY_S)
    play.does(0.2, p.WATCH, p.FREE, "watch 5")
    done = play.happens(1.0, e.SettingsChanged("n", p.contender(acquire_delay_s=delay_s)))
    play.passes(6.0)
    assert play.times(p.ACQUIRE) == [pytest.approx(tries_at)], done


def test_the_failover_time_counts_it() -> None:
    usual, delayed = p.contender(), p.contender(acquire_delay_s=DELAY_S)
    assert lease_of(usual).failover_s == 2 * 9.0 + 30.0
    assert lease_of(delayed).failover_s == 2 * 9.0 + 30.0 + DELAY_S
    assert replace(lease_of(delayed), acquire_delay_s=0.0) == lease_of(usual), "it is no part of the lease"


def test_a_key_is_tried_for_only_in_the_state_that_the_settings_name() -> None:
    """``lock --every`` decides on a value for one state of the key."""
    play = p.waiting(only_index=-1)
    play.does(0.2, p.WATCH, p.FREE, "watch 5")
    play.happens(0.3, e.SettingsChanged("n", p.contender(only_index=FREE_AGAIN.modify_index)))
    assert play.times(p.ACQUIRE) == []
    play.does(0.4, p.WATCH, FREE_AGAIN, "acquire s, watch 12")
