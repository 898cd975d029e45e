"""How a waiter comes to hold the lock: news of the key, attempts, refusals, and the first hook."""

from dataclasses import replace
from typing import Any

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.contender.reducer import REPAIR_S
from tests.unit.core import play as p

FREE_AGAIN = o.KeyView(12, None, b"them", 3, 12, 3)

ABSENT_LATER = o.KeyView(14)
FOREIGN = o.KeyView(12, None, b"data", 3, 12, 0, foreign_flags=42)

# --- a free key --------------------------------------------------------------------------------------


@pytest.mark.parametrize("free", [p.FREE, p.ABSENT], ids=["free", "absent"])
def test_a_free_key_is_acquired(free: o.KeyView) -> None:
    play = p.waiting()
    play.does(0.2, p.WATCH, free, f"acquire s, watch {free.index}")
    play.does(0.3, p.ACQUIRE, p.WON, "start up#1: acquired, acquiring")
    play.ends(1.0, "holding")


def test_the_token_is_the_modify_index_and_the_contact_the_send_time_of_the_acquire() -> None:
    play = p.acquiring()
    context = play.last(a.StartHook).context
    assert (context.fencing_token, context.session, context.lock_index) == (7, "s", 2)
    assert (context.leader, context.rival_at) == (b"me", None)
    assert play.contender.tenure is not None
    assert play.contender.tenure.contact == 0.2


NOTICE = "notice: the key belongs to another program and is left alone"


def test_a_key_of_another_program_is_left_alone_until_it_is_gone() -> None:
    play = p.waiting()
    play.does(0.2, p.WATCH, FOREIGN, f"watch 12, {NOTICE}")
    play.does(5.0, p.WATCH, replace(FOREIGN, index=13, modify_index=13), "renew s, watch 13")
    assert not play.contender.lock.is_free
    play.does(6.0, p.WATCH, ABSENT_LATER, "acquire s, no notice, watch 14")
    assert play.contender.lock.opens_at == 6.0, "the back-off of every waiter begins now"


def test_a_read_that_shows_data_of_another_program_ends_the_attempts() -> None:
    play = p.beginning()
    play.does(0.1, p.WATCH, p.FREE, "watch 5")
    play.does(1.1, p.CREATE, o.Created("s"), "read")
    play.does(1.2, p.READ, FOREIGN, NOTICE)


def test_a_key_that_a_rival_holds_is_a_lock_with_any_flags() -> None:
    play = p.beginning()
    play.does(0.1, p.WATCH, replace(FOREIGN, session="rival"), "watch 12, info rival")


def test_a_holder_goes_on_when_a_put_changes_the_flags_of_its_key() -> None:
    """A plain PUT changes the value and the flags of a key, and not its holder."""
    play = p.holding()
    play.does(3.0, p.WATCH, o.KeyView(9, "s", b"theirs", 3, 9, 0, foreign_flags=42), "watch 9 consistently")
    assert play.role == "holding" and not play.contender.told_notice


PUT = o.KeyView(9, "s", b"put", 3, 9, 0)


def overwritten() -> p.Play:
    """Another program has written over the value at 2, and a read shows it at 3.3."""
    play = p.holding()
    play.does(3.2, "read")
    assert (
        "rewrite s" in p.Play.says(play.on(3.3, p.READ, PUT)) and "written over" in play.contender.told_notice
    )
    return play


def test_a_value_that_another_program_writes_is_replaced_at_most_once_a_minute() -> None:
    play = overwritten()
    assert "no notice" in p.Play.says(play.on(3.4, r.Rewrite, o.Done()))
    play.on(3.5, p.WATCH, replace(PUT, index=10, modify_index=10))
    assert "written over" in play.contender.told_notice
    while len(play.times(r.Rewrite)) == 1:
        play.happens(play.deadline, e.Tick())
        for request in [each for each in play.under_way if isinstance(each, p.READ | p.RENEW)]:
            play.on(play.now, type(request), PUT if isinstance(request, p.READ) else o.SessionAlive())
    assert play.times(r.Rewrite) == [3.3, 3.4 + REPAIR_S] and play.role == "holding"


def test_an_answer_that_began_before_the_repair_may_show_the_former_value() -> None:
    play = p.holding()
    play.does(3.2, "read")
    play.on(3.3, p.WATCH, PUT)
    play.on(3.4, r.Rewrite, o.Done())
    play.on(3.5, p.READ, PUT)
    play.passes(70.0)
    assert not play.contender.told_notice and play.times(r.Rewrite) == [3.3]


def test_a_repair_without_an_answer_is_repeated() -> None:
    play = overwritten()
    play.on(3.4, r.Rewrite, p.SILENCE)
    assert not play.on(3.5, p.WATCH, replace(PUT, index=10, modify_index=10))[1:]
    play.passes(6.0)
    assert play.times(r.Rewrite)[1:] == [pytest.approx(3.9)] and not play.contender.told_notice


NEVER_LOCKED = o.KeyView(12, None, b"max=500", 3, 12, 0, is_marked=False)


@pytest.mark.parametrize("only_locks", [False, True], ids=["election", "lock"])
def test_a_value_in_a_key_that_was_never_locked_is_reported_and_left_alone_by_lock(only_locks: bool) -> None:
    play = p.Play(p.contender(only_locks=only_locks))
    play.does(0.0, "create, watch 0 consistently")
    play.on(0.1, p.CREATE, o.Created("s"))
    assert ("acquire s" in p.Play.says(play.on(0.2, p.WATCH, NEVER_LOCKED))) is not only_locks
    assert "a value of 7 bytes" in play.contender.told_notice and "max" not in play.contender.told_notice


@pytest.mark.parametrize(
    "change", [{"value": b""}, {"lock_index": 1}, {"is_marked": True}, {"session": "x"}], ids=str
)
def test_a_key_that_may_be_a_lock_is_no_value(change: dict[str, Any]) -> None:
    assert NEVER_LOCKED.was_never_locked and not replace(NEVER_LOCKED, **change).was_never_locked


def test_news_of_a_free_key_waits_for_the_session() -> None:
    play = p.beginning()
    play.does(0.1, p.WATCH, p.FREE, "watch 5")
    play.does(1.0, p.CREATE, o.Created("s"), "acquire s")


def test_the_age_of_a_read_counts_from_its_request() -> None:
    play = p.beginning()
    play.does(0.1, p.WATCH, p.FREE, "watch 5")
    play.does(1.1, p.CREATE, o.Created("s"), "read")
    play.does(2.2, p.READ, p.FREE, "read")


# --- refused -------------------------------------------------------------------------------------------


def refused_at_10(play: p.Play) -> None:
    play.passes(9.9)
    play.does(10.0, p.WATCH, FREE_AGAIN, "acquire s, watch 12")
    play.does(10.01, p.ACQUIRE, o.LockDelayed(), "")


def test_the_next_attempt_comes_as_soon_as_the_lock_delay_ends() -> None:
    """The lock-delay is that of the former holder's session, and runs from when the key was seen free."""
    play = p.behind()
    refused_at_10(play)
    play.passes(24.9)
    assert play.times(p.READ) == []
    play.does(24.902, "read")
    play.does(24.91, p.READ, FREE_AGAIN, "")
    play.does(25.002, "acquire s")
    assert play.times(p.ACQUIRE) == [10.0, 25.002]


def test_a_node_that_starts_within_a_lock_delay_tries_once_a_second() -> None:
    """The node has not seen when the delay began, and must not wait for a whole one of its own."""
    play = p.trying()
    began_at = play.times(p.ACQUIRE)[0]
    play.does(began_at + 0.01, p.ACQUIRE, o.LockDelayed(), "")
    for _ in range(3):
        play.does(play.deadline, "read")
        play.does(play.now, p.READ, p.FREE, "")
        play.does(play.deadline, "acquire s")
        play.does(play.now + 0.01, p.ACQUIRE, o.LockDelayed(), "")
    assert play.now < began_at + 4.0


def test_after_the_lock_delay_the_attempt_is_repeated_once_a_second() -> None:
    play = p.behind(ttl_s=None)
    refused_at_10(play)
    play.passes(25.0)
    for _ in range(3):
        play.does(play.deadline, "acquire s")
        play.does(play.now + 0.01, p.ACQUIRE, o.LockDelayed(), "")
        play.does(play.deadline, "read")
        play.does(play.now, p.READ, FREE_AGAIN, "")
    assert play.times(p.ACQUIRE) == pytest.approx([10.0, 25.002, 26.012, 27.022])


@pytest.mark.parametrize("info", [o.SessionInfo(None), p.SILENCE], ids=["none", "silence"])
def test_an_unknown_lock_delay_is_taken_to_be_our_own(info: o.Outcome) -> None:
    play = p.waiting()
    play.does(0.2, p.WATCH, p.RIVAL, "watch 9, info rival")
    play.does(0.3, p.INFO, info, "")
    play.does(0.7, p.WATCH, FREE_AGAIN, "acquire s, watch 12")
    play.does(0.71, p.ACQUIRE, o.LockDelayed(), "")
    play.passes(30.5)
    assert play.times(p.READ) == []
    play.does(30.602, "read")


def test_the_lock_delay_of_a_holder_is_requested_once() -> None:
    play = p.behind()
    play.does(1.0, p.WATCH, o.KeyView(10, "rival", b"new", 3, 10, 3), "watch 10")
    play.does(2.0, p.WATCH, o.KeyView(11, "other", b"other", 3, 11, 4), "watch 11, info other")
    play.does(2.1, p.INFO, p.FORBIDDEN, "")
    play.does(2.6, "info other")


def test_a_key_that_is_shown_as_free_and_refused_is_tried_for_once_a_second() -> None:
    """Something hides the holder. The first lost race is ordinary, so the next attempt follows at once."""
    play = p.trying()
    play.does(0.3, p.ACQUIRE, o.LostRace(), "read")
    play.does(0.4, p.READ, FREE_AGAIN, "acquire s")
    play.does(0.5, p.ACQUIRE, o.LostRace(), "notice: Consul shows the key as free and refuses the lock")
    play.does(1.5, "read")
    play.does(1.6, p.READ, FREE_AGAIN, "acquire s")
    play.does(1.7, p.ACQUIRE, o.LostRace(), "")
    play.does(2.6, p.WATCH, FREE_AGAIN, "watch 12")  # news is no reason to try sooner
    play.does(2.7, "acquire s, read")
    play.does(2.8, p.READ, p.RIVAL, "info rival, no notice")


def test_a_read_that_the_watch_has_overtaken_is_repeated() -> None:
    """If the older answer were believed, it would hide the free key until the watch's wait is over."""
    play = p.trying()
    play.does(0.3, p.ACQUIRE, o.LostRace(), "read")
    play.does(0.4, p.WATCH, FREE_AGAIN, "acquire s, watch 12")
    play.does(0.5, p.READ, p.RIVAL, "read")


# --- an acquire without an answer -----------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [p.SILENCE, p.FORBIDDEN], ids=["silence", "403"])
def test_an_acquire_without_an_answer_is_followed_by_a_read(outcome: o.Outcome) -> None:
    play = p.trying()
    play.does(3.2, p.ACQUIRE, outcome, "")
    play.does(3.7, "read")
    play.does(3.8, p.READ, p.FREE, "acquire s")


def test_an_acquire_applied_after_its_deadline_begins_the_tenure() -> None:
    """The token is the one that the read shows, and the contact is when the read was sent."""
    play = p.trying()
    play.does(3.2, p.ACQUIRE, p.SILENCE, "")
    play.does(3.7, "read")
    play.does(3.8, p.READ, p.OURS, "start up#1: acquired, acquiring")
    assert play.last(a.StartHook).context.fencing_token == p.OURS.modify_index
    assert play.contender.tenure is not None
    assert play.contender.tenure.contact == 3.7


UNWELCOME = ("paused", "unfit")


def unwelcome(play: p.Play, why: str) -> None:
    """Pause the node, or let a hook be missing, after the acquire was sent."""
    if why == "paused":
        play.hears(0.25, e.PauseAsked("n"), "paused")
    else:
        missing = e.HooksChecked("n", (a.Fault("down", "no such program", "install it"),))
        play.hears(0.25, missing, "ineligible, cannot start down")


@pytest.mark.parametrize("why", UNWELCOME)
def test_a_lock_won_by_a_node_that_may_no_longer_hold_is_released(why: str) -> None:
    play = p.trying()
    unwelcome(play, why)
    assert "release s" in p.Play.says(play.on(0.3, p.ACQUIRE, p.WON))
    assert "destroy s" in p.Play.says([*play.on(0.4, p.RELEASE, o.Done()), *play.happens(0.7, e.Tick())])
    assert not play.times(a.StartHook)


@pytest.mark.parametrize("why", UNWELCOME)
def test_a_lock_won_late_by_a_node_that_may_no_longer_hold_is_released(why: str) -> None:
    play = p.trying()
    unwelcome(play, why)
    assert "release s" in p.Play.says([*play.on(3.2, p.ACQUIRE, p.SILENCE), *play.on(3.3, p.WATCH, p.OURS)])
    assert not play.times(a.StartHook)


@pytest.mark.parametrize("why", UNWELCOME)
def test_a_node_that_may_no_longer_hold_awaits_the_answer_to_its_attempt(why: str) -> None:
    """A watch may show the attempt's effect before its answer. The release follows the answer."""
    play = p.trying()
    unwelcome(play, why)
    play.does(0.3, p.WATCH, p.OURS, "watch 7")
    assert "release s" in p.Play.says(play.on(0.4, p.ACQUIRE, p.WON))
    assert not play.times(p.READ) and not play.times(a.StartHook)


def test_an_answer_older_than_the_room_begins_no_belief() -> None:
    """A frozen agent may answer an old request late, so the contender reads again after a while."""
    play = p.behind()
    refused_at_10(play)
    play.does(10.1, p.WATCH, p.SILENCE, "")
    play.does(10.6, "watch 0 consistently")
    play.passes(34.0, silent=True)
    play.on(34.2, p.WATCH, p.OURS)
    assert play.role == "waiting"
    play.passes(34.7)
    assert play.times(p.READ)[-1] >= 34.2


def test_a_win_older_than_the_room_begins_no_tenure() -> None:
    """With ``accept_overlap`` the room may be shorter than a request."""
    play = p.trying(lock_delay_s=6.0)
    play.does(0.9, p.ACQUIRE, p.WON, "")


def test_a_win_reported_after_a_read_has_shown_it_changes_nothing() -> None:
    play = p.trying()
    play.does(0.3, p.WATCH, p.OURS, "read, watch 7")
    play.does(0.4, p.READ, p.OURS, "start up#1: acquired, acquiring")
    before = play.contender.tenure
    play.does(0.5, p.ACQUIRE, p.WON, "")
    assert play.contender.tenure == before


def test_a_session_that_died_is_replaced() -> None:
    play = p.trying()
    play.does(0.3, p.ACQUIRE, o.SessionGone(), "release s")
    play.on(0.4, p.RELEASE, o.Done())
    play.does(0.65, "destroy s")
    play.does(0.7, p.DESTROY, o.Done(), "")
    play.does(1.3, "create")
    play.does(1.4, p.CREATE, o.Created("s2"), "read")
    play.does(1.5, p.READ, p.FREE, "acquire s2")


# --- the watch --------------------------------------------------------------------------------------------


def test_a_watch_that_wakes_without_change_is_rearmed_five_times_then_once_a_second() -> None:
    play = p.behind()
    for wake in range(5):
        play.does(1.0 + wake / 10, p.WATCH, p.RIVAL, "watch 9")
    play.does(2.0, p.WATCH, p.RIVAL, "")
    play.does(3.0, "watch 9")
    play.does(3.1, p.WATCH, p.RIVAL, "")
    play.does(4.1, "watch 9")
    play.does(4.2, p.WATCH, o.KeyView(10, "rival", b"new", 3, 10, 3), "watch 10")
    play.does(4.3, p.WATCH, o.KeyView(11, "rival", b"new", 3, 10, 3), "watch 11")


def test_a_watch_whose_wait_ran_out_is_rearmed_at_once() -> None:
    play = p.behind()
    for now in (31.0, 62.0, 93.0, 124.0, 155.0, 186.0, 217.0):
        play.passes(now - 0.1)
        play.does(now, p.WATCH, p.RIVAL, "watch 9")


def test_a_watch_without_an_answer_begins_anew() -> None:
    play = p.behind()
    play.does(1.0, p.WATCH, p.SILENCE, "")
    play.does(1.5, "watch 0 consistently")
    play.does(1.6, p.WATCH, p.FORBIDDEN, "")
    play.does(2.1, "watch 0 consistently")


def test_an_index_that_fell_is_followed_by_a_consistent_watch() -> None:
    """The server lags behind, or its state was restored, so a consistent answer must decide."""
    play = p.behind()
    play.does(1.0, p.WATCH, o.KeyView(4, None, b"", 3, 4, 0), "watch 0 consistently")
    assert play.times(p.ACQUIRE) == []
    play.does(1.1, p.WATCH, o.KeyView(4, None, b"", 3, 4, 0), "acquire s, watch 4")


def test_a_holders_watch_is_consistent_and_begins_at_the_index_of_the_tenure() -> None:
    play = p.acquiring()
    play.does(0.4, p.WATCH, o.KeyView(6), "watch 7 consistently")
    assert play.contender.tenure is not None and play.contender.tenure.believes


# --- stopping -----------------------------------------------------------------------------------------------


def test_an_observer_has_no_session_and_stops_at_once() -> None:
    play = p.Play(p.contender(contend=False, on_acquire=(), on_lose=()))
    play.does(0.0, "watch 0 consistently")
    play.does(0.1, p.WATCH, p.FREE, "watch 5")
    play.does(0.2, p.WATCH, p.RIVAL, "watch 9")
    assert play.role == "observer"
    play.hears(1.0, e.StopAsked(), "stopped, finished")


def test_a_contender_stopped_before_it_began_sends_nothing() -> None:
    play = p.Play(p.contender())
    play.hears(0.0, e.StopAsked(), "stopped, finished")


def test_a_holder_stops_in_order() -> None:
    play = p.holding()
    play.hears(2.0, e.StopAsked(), "start down#1: shutdown, losing")
    play.does(3.2, "read")
    play.does(3.3, "renew s")
    play.does(3.4, p.READ, p.OURS, "")
    play.does(3.5, p.RENEW, o.SessionAlive(), "")
    play.ends(4.0, "release s, waiting")
    play.does(4.1, p.RELEASE, o.Done(), "")
    play.passes(5.0)
    assert play.role == "stopped" and play.last(a.Finished).clean
