"""A session that differs in Consul from the request for it is never used for a tenure."""

from dataclasses import replace
from typing import Any

import pytest

from supervisor.adapters.consul.shown_session import differences
from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.machines.session import ALTERED_RETRY_S
from supervisor.core.settings import SessionSettings
from tests.unit.core import play as p
from tests.unit.core.slot_play import semaphore

ALTERED = o.SessionAltered("lock-delay 15 s instead of 30 s")
ASKED = SessionSettings("ours", 9.0, 30.0, node_checks=("one", "two"), service_checks=("three",))


def unverified(**more: Any) -> p.Play:
    """Play until the session exists and the key is free; the session is not yet verified."""
    play = p.Play(p.contender(**more))
    play.verifies = False
    play.does(0.0, "create, watch 0 consistently")
    play.does(0.1, p.CREATE, o.Created("s"), "renew s")
    play.does(0.1, p.WATCH, p.FREE, "watch 5")
    return play


@pytest.mark.parametrize(
    ("has", "said"),
    [
        ({}, ""),
        ({"name": "another"}, ""),
        ({"node_checks": ("two", "one", "one")}, ""),
        ({"ttl_s": 9.0004}, ""),
        ({"lock_delay_s": 15.0}, "lock-delay 15 s instead of 30 s"),
        ({"lock_delay_s": 31.5}, ""),
        ({"lock_delay_s": 29.5}, "lock-delay 29.5 s instead of 30 s"),
        ({"ttl_s": None}, "TTL none instead of 9 s"),
        ({"ttl_s": 8.5}, "TTL 8.5 s instead of 9 s"),
        ({"ttl_s": 9.5}, ""),
        ({"behavior": "delete"}, "behavior delete instead of release"),
        ({"node_checks": ("serfHealth",)}, "node checks serfHealth instead of one and two"),
        ({"service_checks": ()}, "service checks none instead of three"),
        ({"ttl_s": None, "lock_delay_s": 0.0}, "lock-delay 0 s instead of 30 s, TTL none instead of 9 s"),
    ],
)
def test_each_difference_is_named(has: dict[str, Any], said: str) -> None:
    assert differences(ASKED, replace(ASKED, **has)) == said


def test_a_lock_delay_above_consuls_maximum_is_compared_as_the_maximum() -> None:
    asked, longest = replace(ASKED, lock_delay_s=90.0), replace(ASKED, lock_delay_s=60.0)
    assert differences(asked, asked) == differences(asked, longest) == differences(longest, asked) == ""
    assert differences(asked, replace(ASKED, lock_delay_s=59.0)) == "lock-delay 59 s instead of 60 s"


def test_an_attempt_waits_until_the_session_is_verified() -> None:
    play = unverified()
    play.does(0.2, p.RENEW, o.SessionAlive(), "acquire s")


def test_a_verification_without_an_answer_is_repeated() -> None:
    play = unverified()
    play.does(0.2, p.RENEW, p.SILENCE, "")
    play.does(0.7, "renew s")
    play.does(0.8, p.RENEW, o.SessionAlive(), "acquire s, read")


def test_an_altered_session_is_destroyed_and_the_next_one_comes_after_a_pause() -> None:
    play = unverified()
    play.does(0.2, p.RENEW, ALTERED, "destroy s")
    assert play.contender.altered == ALTERED.why
    play.on(0.3, p.DESTROY, o.Done())
    play.passes(0.2 + ALTERED_RETRY_S - 0.01)
    assert len(play.times(p.CREATE)) == 1 and not play.times(p.ACQUIRE)
    play.passes(0.2 + ALTERED_RETRY_S)
    assert play.times(p.CREATE)[1:] == [pytest.approx(0.2 + ALTERED_RETRY_S)]


def test_an_unaltered_session_ends_the_report_of_an_altered_one() -> None:
    play = unverified()
    play.on(0.2, p.RENEW, ALTERED)
    play.on(0.3, p.DESTROY, o.Done())
    play.verifies = True
    play.passes(0.2 + ALTERED_RETRY_S)
    assert play.contender.altered == "" and play.role == "acquiring"


def test_an_altered_session_that_is_shown_as_the_holder_begins_no_tenure() -> None:
    """Another program may have locked the key with this session, whose lock-delay guards no lease."""
    play = unverified()
    play.does(0.3, p.WATCH, replace(p.OURS, session="s"), "destroy s, watch 7")
    assert not play.times(a.StartHook)


def test_the_verification_of_a_session_does_not_move_the_next_renewal() -> None:
    play = unverified()
    play.does(0.2, p.RENEW, o.SessionAlive(), "acquire s")
    play.on(0.3, p.ACQUIRE, o.LostRace())
    assert play.contender.session.renew.due_at == pytest.approx(0.1 + 4.5)


def test_a_contender_for_a_slot_does_not_join_the_line_with_an_altered_session() -> None:
    play = p.Play(semaphore(limit=1))
    play.verifies = False
    play.does(0.0, "create, watch 0 consistently")
    play.on(0.1, p.CREATE, o.Created("s"))
    play.on(0.1, r.WatchSlots, o.SlotsView(5))
    play.does(0.2, p.RENEW, ALTERED, "destroy s")
    assert not play.times(r.JoinSemaphore)


def test_a_holder_whose_session_was_altered_runs_on_lose_before_the_release() -> None:
    """The lease counts on the session's lock-delay, so an altered session ends the tenure."""
    play = p.holding()
    play.does(3.2, "read")
    play.does(3.3, "renew s")
    play.does(3.4, p.RENEW, ALTERED, "start down#1: session-altered, losing")
    play.on(3.5, p.READ, p.OURS)
    assert not play.times(r.Release), "the release waits for the end of on_lose"
    play.ends(4.0, "release s, waiting")


def test_a_tenure_is_not_adopted_with_an_altered_session() -> None:
    record = a.Record(a.Point.HOLDING, "k", "s", 7, 3, 2, -1.0, leader=b"me")
    play = p.Play(p.contender(), record)
    play.happens(0.0, e.Tick())
    play.on(0.1, p.READ, replace(p.OURS, session="s"))
    assert play.role == "acquiring"
    begun = play.on(0.2, p.RENEW, ALTERED)
    assert play.says(begun) == "start down#1: crashed, losing"
