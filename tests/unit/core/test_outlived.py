"""Processes of a tenure that KILL has not ended: an ordered loss waits for them, another one does not end."""

from typing import Any

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core.frozen import replace
from supervisor.core.settings import Fence, Watchdog
from tests.unit.core import play as p
from tests.unit.core.test_guard import looking

LEFT, GONE = e.SurvivorsChanged("n", "KILL has not ended app (7)"), e.SurvivorsChanged("n", "")
FENCE: dict[str, Any] = {"fence": Fence(p.hook("fence"))}
WATCHDOG: dict[str, Any] = {"watchdog": Watchdog("/dev/watchdog", 10.0, required=False)}


def stopping(event: e.Event, **more: Any) -> p.Play:
    """Play until the run child of a tenure that is lost by an order has not ended by KILL at 2.5."""
    play = p.holding(run=p.RUN, **more)
    play.happens(2.0, event)
    play.hears(2.5, LEFT, "notice: KILL has not ended app (7)")
    play.hears(2.5, e.RunEnded(play.last(a.StartRun)), "")
    return play


def lost(reason: a.Reason, **more: Any) -> p.Play:
    """Play from the record of a loss, whose on_lose ends at 3.0 and leaves a process."""
    record = a.Record(a.Point.LOSING, "k", "s", 7, 3, 1, 0.0, leader=b"me", reason=reason)
    play = p.Play(p.contender(**more), record=record)
    assert f"start down#1: {reason}" in play.says(play.happens(0.1, LEFT))
    play.happens(3.0, e.HookEnded(play.last(a.StartHook), ok=True))
    return play


@pytest.mark.parametrize("event", [e.StopAsked(), e.StepDownAsked("n", 0.0), e.ItemRemoved("n")])
def test_on_lose_of_an_ordered_loss_waits_for_the_end_of_a_process(event: e.Event) -> None:
    play = stopping(event)
    play.passes(9.0)
    reason = play.contender.tenure.reason if play.contender.tenure else ""
    play.hears(9.0, GONE, f"start down#1: {reason}, no notice")
    assert play.says(play.happens(9.1, e.HookEnded(play.last(a.StartHook), ok=True))).startswith("release s")


def test_on_lose_waits_no_longer_than_losing_may_take_and_then_the_item_is_stuck() -> None:
    """The operator's word ends that, as every time."""
    play = stopping(e.StepDownAsked("n", 0.0))
    lose_time_s = play.contender.lease.lose_time_s
    play.passes(2.5 + lose_time_s - 0.01)
    assert play.role == "losing" and not play.last(a.StartHook).context.event == "lose"
    play.passes(2.5 + lose_time_s)
    play.ends(play.now, "stuck")
    play.happens(20.0, GONE)
    play.happens(20.1, LEFT)
    assert play.role == "stuck"
    assert "release s" in play.says(play.happens(20.2, e.RecoverAsked("n")))


@pytest.mark.parametrize("lost", ["taken", "session", "silence"])
def test_on_lose_does_not_wait_once_the_lock_is_lost(lost: str) -> None:
    play = stopping(e.StepDownAsked("n", 0.0), lock_delay_s=15.0)  # the room is 4.25 s
    if lost == "taken":
        play.on(3.0, p.WATCH, p.RIVAL)
    elif lost == "session":
        play.happens(3.4, e.Tick())
        play.on(3.5, p.RENEW, o.SessionGone())
        play.on(3.6, p.READ, p.ABSENT)
        play.passes(4.0)
    else:
        play.passes(4.44, silent=True)
        assert play.last(a.StartHook).context.event == "acquire"
        play.passes(4.46, silent=True)
    assert play.last(a.StartHook).context.event == "lose"


def test_a_process_that_is_left_after_the_lock_is_lost_delays_nothing() -> None:
    play = p.holding(run=p.RUN)
    play.hears(2.0, e.StepDownAsked("n", 0.0), "stop run, losing")
    play.on(2.1, p.WATCH, p.RIVAL)
    play.happens(2.5, LEFT)
    assert play.says(play.happens(2.5, e.RunEnded(play.last(a.StartRun)))).startswith("start down#1")


def test_a_lock_that_is_lost_during_on_lose_is_no_reason_to_be_stuck() -> None:
    play = stopping(e.StepDownAsked("n", 0.0))
    play.passes(2.5 + play.contender.lease.lose_time_s)
    play.on(play.now, p.WATCH, p.RIVAL)
    play.happens(play.now, e.HookEnded(play.last(a.StartHook), ok=True))
    assert play.contender.tenure is None


@pytest.mark.parametrize("more", [FENCE, WATCHDOG, {}])
def test_the_end_of_a_loss_is_not_on_record_before_that_of_its_process(more: dict[str, Any]) -> None:
    """So neither its tenure record says ended nor its watchdog is closed. Without both nothing waits."""
    play = lost(a.Reason.LEASE_EXPIRED, **more)
    assert (play.contender.tenure is None) is not bool(more)
    if more:
        assert play.records[-1].step is a.Point.LOSING and not play.times(p.RELEASE)
        play.happens(9.0, GONE)
    assert play.contender.tenure is None and play.records[-1].step is a.Point.SESSION
    assert play.times(p.RELEASE) == [9.0 if more else 3.0]


def test_a_stop_does_not_wait_for_the_end_of_a_process_after_a_loss() -> None:
    """Its record lets the next process wait for that."""
    play = lost(a.Reason.LEASE_EXPIRED, **FENCE)
    play.hears(4.0, e.StopAsked(), "stopped, finished, not clean")
    assert play.records[-1].step is a.Point.LOSING


def test_a_loss_that_waits_for_a_process_leaves_its_session_to_consul() -> None:
    """Another node may then hold after the lock-delay, although this one was only unfit."""
    play = lost(a.Reason.UNHEALTHY, **FENCE)
    renewals = len(play.times(p.RENEW))
    play.passes(30.0)
    assert len(play.times(p.RENEW)) == renewals and not play.times(p.RELEASE)


@pytest.mark.parametrize("order", [e.StopAsked(), e.StepDownAsked("n", 0.0), e.ItemRemoved("n")])
def test_on_lose_of_an_ordered_loss_waits_for_a_process_that_was_left_before_the_order(
    order: e.Event,
) -> None:
    play = p.holding()
    play.happens(1.5, LEFT)
    lose_time_s = play.contender.lease.lose_time_s
    play.happens(2.0, order)
    play.passes(2.0 + lose_time_s - 0.01)
    assert play.last(a.StartHook).context.event == "acquire"
    play.passes(2.0 + lose_time_s)
    assert play.last(a.StartHook).context.event == "lose"


def test_a_change_of_what_is_left_does_not_prolong_the_wait() -> None:
    play = stopping(e.StepDownAsked("n", 0.0))
    lose_time_s = play.contender.lease.lose_time_s
    play.passes(2.5 + lose_time_s - 0.01)
    play.happens(play.now, e.SurvivorsChanged("n", "KILL has not ended app (8)"))
    play.passes(2.5 + lose_time_s)
    assert play.last(a.StartHook).context.event == "lose"


def test_a_tenure_record_waits_for_a_process_also_without_the_fence_by_now() -> None:
    """The file has dropped the fence during the tenure, but others go by the record."""
    play = looking(lock_delay_s=30.0)
    play.on(0.2, p.WATCH, p.FREE)
    play.on(0.3, p.ACQUIRE, p.WON)
    play.ends(0.4, "holding")
    play.happens(0.5, e.SettingsChanged("n", replace(play.contender.settings, fence=None)))
    assert play.contender.settings.fence is None
    play.happens(0.6, LEFT)
    play.passes(play.contender.lease.room_s + 0.3, silent=True)
    play.happens(play.now + 1.0, e.HookEnded(play.last(a.StartHook), ok=True))
    assert play.contender.tenure is not None and play.records[-1].step is a.Point.LOSING
    play.happens(play.now + 1.0, GONE)
    assert play.contender.tenure is None
