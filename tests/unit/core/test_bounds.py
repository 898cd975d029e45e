"""Delays, retries and deadlines that stay bounded over a long life of a contender."""

from dataclasses import replace

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core.contender.lifecycle import REJOIN_DELAY_MAX_S
from supervisor.core.outcomes import Refused
from tests.unit.core import play as p


def test_after_a_loss_the_lock_delay_of_this_nodes_session_counts() -> None:
    play = p.behind()  # the rival's is 15 s, ours is 30 s
    play.does(1.0, p.WATCH, o.KeyView(10, None, b"", 3, 10, 2), "acquire s, watch 10")
    play.on(1.1, p.ACQUIRE, p.WON)
    play.ends(1.2, "holding")
    play.on(1.3, p.WATCH, o.KeyView(11))
    play.on(1.4, p.WATCH, o.KeyView(12))
    play.on(1.5, p.RENEW, o.SessionGone())
    play.ends(1.6, "release s, waiting")
    play.on(1.7, p.RELEASE, o.Done())
    play.happens(1.95, e.Tick())
    play.on(2.0, p.DESTROY, o.Done())
    play.happens(2.5, e.Tick())
    play.on(2.6, p.CREATE, o.Created("s2"))
    play.on(2.7, p.READ, o.KeyView(12))
    play.on(2.8, p.ACQUIRE, o.LockDelayed())
    assert play.contender.lock.try_at == pytest.approx(1.4 + 30.0, abs=0.01)


def test_the_delay_after_losses_by_this_nodes_own_fault_has_a_maximum() -> None:
    play = p.acquiring(on_lose=())
    play.contender = replace(play.contender, own_losses=5000)
    play.ends(0.4, "losing, release s, waiting", ok=False)
    assert play.contender.rejoin_at == pytest.approx(0.4 + REJOIN_DELAY_MAX_S)


def test_a_waiting_retry_of_on_change_sets_no_deadline_during_a_stop() -> None:
    play = p.waiting(on_change=(p.hook("told", retries=9),))
    play.does(0.2, p.WATCH, p.FREE, "acquire s, start told#1: initial, watch 5")
    initial = play.last(a.StartHook)
    play.on(0.3, p.ACQUIRE, p.WON)
    play.ends(0.4, "holding")
    play.hears(0.5, e.HookEnded(initial, ok=True), "start told#1: leader-changed")
    play.ends(0.5, "", ok=False)  # the hook ran for the newest state, so a retry waits
    play.happens(0.6, e.StopAsked())
    for second in range(1, 4):
        play.happens(0.6 + second, e.Tick())
        assert play.deadline > 0.6 + second


def test_a_release_that_consul_refuses_for_good_is_followed_by_the_destroy() -> None:
    play = p.holding(on_lose=())
    play.happens(1.0, e.StopAsked())
    play.does(1.1, p.RELEASE, Refused("413"), "")
    play.does(1.4, "destroy s")
