"""A session of Consul from its creation to its end, and which requests are repeated without an answer."""

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from tests.unit.core import play as p


@pytest.mark.parametrize(
    ("outcome", "again_at", "role"),
    [
        (p.SILENCE, 0.6, "waiting"),
        (p.FORBIDDEN, 0.6, "waiting"),
        (o.Refused("Missing check 'x' registration"), 5.1, "waiting"),
        (o.Ineligible("Check 'x' is in critical state"), 1.1, "ineligible"),
    ],
)
def test_a_session_that_was_not_created_is_requested_again(
    outcome: o.Outcome, again_at: float, role: str
) -> None:
    play = p.beginning()
    play.on(0.1, p.CREATE, outcome)
    assert play.role == role
    assert play.deadline == pytest.approx(again_at)
    play.does(play.deadline, "create")
    play.on(play.now + 0.1, p.CREATE, o.Created("s"))
    assert play.role == "waiting"


def test_a_session_that_a_check_keeps_ending_is_created_once_a_second() -> None:
    play = p.behind()
    play.does(4.6, "renew s")
    play.does(4.7, p.RENEW, o.SessionGone(), "destroy s")
    play.does(4.8, p.DESTROY, o.Done(), "")
    play.does(5.7, "create")
    play.does(5.8, p.CREATE, o.Created("s2"), "")


def test_without_a_ttl_a_renewal_still_checks_that_the_session_lives() -> None:
    play = p.behind(ttl_s=None)
    play.passes(25.0)
    assert play.times(p.RENEW) == pytest.approx([10.1, 20.1])


@pytest.mark.parametrize("outcome", [p.SILENCE, p.FORBIDDEN], ids=["silence", "403"])
def test_a_failed_renewal_is_repeated_soon(outcome: o.Outcome) -> None:
    play = p.behind()
    play.does(4.6, "renew s")
    play.does(7.6, p.RENEW, outcome, "")
    play.does(8.1, "renew s")


def after_silence(shown: o.KeyView) -> p.Play:
    """Play until the first renewal after silence and its read are answered; the watch is still pending."""
    play = p.behind()
    play.does(4.6, "renew s")
    play.does(7.6, p.RENEW, p.SILENCE, "")
    play.does(8.1, "renew s")
    play.does(8.2, p.RENEW, o.SessionAlive(), "read")
    play.on(8.3, p.READ, shown)
    return play


def test_a_waiter_reads_after_each_renewal_while_its_watch_is_from_before_a_silence() -> None:
    """The watch may hang at a server that waits for the former leader, whose machine is lost."""
    play = after_silence(p.RIVAL)
    play.does(12.7, "renew s")
    play.does(12.8, p.RENEW, o.SessionAlive(), "read")
    play.does(12.9, p.READ, p.RIVAL, "")
    play.does(17.2, "renew s")
    play.does(17.3, p.RENEW, o.SessionAlive(), "read")
    play.does(17.4, p.READ, o.KeyView(10, None, b"them", 3, 10, 3), "acquire s")


def test_a_waiter_whose_watch_was_sent_after_the_silence_does_not_read() -> None:
    play = after_silence(p.RIVAL)
    play.does(8.4, p.WATCH, p.SILENCE, "")
    play.does(8.9, "watch 0 consistently")
    play.does(9.0, p.WATCH, p.RIVAL, "watch 9")
    play.does(12.7, "renew s")
    play.does(12.8, p.RENEW, o.SessionAlive(), "")


def test_a_watch_from_before_a_silence_contradicts_no_later_read() -> None:
    """A leader that was paused goes on, and answers what was true before."""
    play = after_silence(o.KeyView(10, None, b"them", 3, 10, 3))
    play.does(8.4, p.ACQUIRE, o.LockDelayed(), "")
    play.does(8.5, p.WATCH, p.RIVAL, "watch 9")
    assert play.contender.lock.is_free


def test_a_holder_believes_its_watch_also_after_a_silence() -> None:
    """A holder reads once an interval in any case."""
    play = p.holding()
    play.does(3.2, "read")
    play.does(3.3, "renew s")
    play.does(3.35, p.READ, p.OURS, "")
    play.does(3.4, p.RENEW, p.SILENCE, "")
    play.does(3.9, "renew s")
    play.does(4.0, p.RENEW, o.SessionAlive(), "read")
    play.on(4.1, p.WATCH, p.RIVAL)
    assert play.role == "losing"


def test_a_holder_whose_watch_is_from_before_its_tenure_reads_at_its_own_pace() -> None:
    play = p.trying()
    play.does(4.6, "renew s")
    play.does(4.7, p.ACQUIRE, p.WON, "start up#1: acquired, read, acquiring")
    play.does(4.8, p.READ, p.OURS, "")
    play.does(4.9, p.RENEW, o.SessionAlive(), "")


@pytest.mark.parametrize("outcome", [p.SILENCE, p.FORBIDDEN], ids=["silence", "403"])
def test_a_process_that_stops_sends_release_and_destroy_once(outcome: o.Outcome) -> None:
    play = p.holding()
    play.happens(2.0, e.StopAsked())
    play.ends(2.5, "release s, waiting")
    play.does(5.5, p.RELEASE, outcome, "destroy s")
    play.does(8.5, p.DESTROY, outcome, "stopped, finished")
    assert len(play.times(p.RELEASE)) == len(play.times(p.DESTROY)) == 1


def test_a_process_that_goes_on_repeats_each_write_until_consul_answers() -> None:
    play = p.acquiring()
    play.ends(1.0, "start down#1: acquire-failed, losing", ok=False)
    play.ends(4.0, "release s, waiting")
    play.does(7.0, p.RELEASE, p.SILENCE, "")
    play.does(7.5, "release s")
    play.does(10.5, p.RELEASE, p.FORBIDDEN, "")
    play.does(11.0, "release s")
    play.does(11.1, p.RELEASE, o.Done(), "")
    play.does(11.35, "destroy s")
    play.does(14.35, p.DESTROY, p.SILENCE, "")
    play.does(14.85, "destroy s")
    play.does(14.9, p.DESTROY, o.Done(), "create")


def test_a_session_whose_acquire_had_no_answer_is_released() -> None:
    """The acquire may yet be applied."""
    play = p.trying()
    play.hears(1.0, e.StopAsked(), "")
    play.does(3.2, p.ACQUIRE, p.SILENCE, "release s")
    play.does(3.3, p.RELEASE, o.Done(), "")
    play.does(3.55, "destroy s")


def test_a_lock_that_is_won_after_the_stop_is_released() -> None:
    play = p.trying()
    play.happens(1.0, e.StopAsked())
    play.does(1.1, p.ACQUIRE, p.WON, "release s")
    assert play.times(a.StartHook) == []


def test_a_session_that_is_created_after_the_stop_is_destroyed() -> None:
    """Without an answer, a session that was created all the same is left to its TTL."""
    for outcome, follows in ((p.SILENCE, "stopped, finished"), (o.Created("s"), "destroy s")):
        play = p.beginning()
        play.hears(1.0, e.StopAsked(), "")
        play.does(1.1, p.CREATE, outcome, follows)
    play.does(4.1, p.DESTROY, p.SILENCE, "stopped, finished")


def test_a_lock_won_by_a_session_that_was_reported_dead_is_released() -> None:
    """The session may be alive, so its life ends in order, and no tenure begins with it."""
    play = p.trying()
    play.does(4.6, "renew s")
    play.does(4.7, p.RENEW, o.SessionGone(), "")
    play.does(4.8, p.ACQUIRE, p.WON, "release s")
    assert play.role == "waiting"


def test_a_release_leaves_the_value_that_the_key_has() -> None:
    """Another program has put its value over ours, and a release must not undo that."""
    play = p.holding(on_lose=(), on_acquire=())
    play.on(2.0, p.WATCH, o.KeyView(8, "s", b"theirs", 3, 8, 0))
    play.on(2.1, r.Rewrite, o.LockDelayed())
    play.happens(3.0, e.StopAsked())
    assert play.last(p.RELEASE).value == b"theirs"


def test_every_exchange_ends_within_the_smaller_of_interval_and_3_s() -> None:
    play = p.holding()
    play.passes(10.0)
    play.happens(10.0, e.StopAsked())
    for kind in (p.CREATE, p.RENEW, p.READ, p.ACQUIRE):
        assert play.last(kind).timeout_s == 3.0
    assert p.holding(ttl_s=6.0).last(p.CREATE).timeout_s == 2.0
    assert p.DOWN.timeout_s == 5.0 and not play.times(p.INFO)
