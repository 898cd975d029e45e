"""Semaphores: which observations are a loss for a holder, and which prune delay its lease counts on."""

from dataclasses import replace

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core.lock.slots import LOCK
from supervisor.core.machines.record import is_adoptable
from tests.unit.core import slot_play as s
from tests.unit.core.play import RENEW, SILENCE, Play


def loses(play: Play) -> str:
    """Return the reason that on_lose gets after its wait for one, and the seconds until a rival may hold."""
    play.passes(play.now + 0.3)
    context = play.last(a.StartHook).context
    assert context.event == "lose", play.log[-5:]
    return f"{context.reason} {context.rival_at - play.now:.0f}"


def test_a_slot_that_was_removed_is_a_loss_and_a_rival_may_hold_at_once() -> None:
    play = s.holding()
    play.on(2.0, s.WATCH, s.view("o1", "s", at=s.lock("o1", index=70), index=70))
    assert loses(play) == "slot-removed 0"


def test_a_record_that_is_gone_is_a_loss_that_the_prune_delay_guards() -> None:
    play = s.holding()
    assert f"ask p/{LOCK}" in Play.says(play.on(2.0, s.WATCH, s.view("s", at=None, index=70)))
    assert "read" in Play.says(play.on(2.1, s.ASK, s.GONE))
    play.on(2.2, s.READ, s.view("s", at=None, index=70))
    assert loses(play) == "slot-removed 28"


def test_a_record_that_the_list_does_not_show_is_no_loss_while_a_read_shows_it() -> None:
    play = s.holding()
    hidden = s.view("s", at=None, index=70)
    play.on(2.0, s.WATCH, hidden)
    play.on(2.1, s.ASK, o.KeyView(70, None, b"{}", 9, 61, 0))
    play.on(2.2, s.READ, hidden)
    play.passes(3.0)
    assert play.role == "holding"


def test_a_slot_that_was_removed_is_not_guarded_although_the_session_has_ended() -> None:
    play = s.holding()
    play.on(2.0, s.WATCH, s.view("o1", at=s.lock("o1", index=70), index=70))
    play.on(2.1, RENEW, o.SessionGone())
    context = play.last(a.StartHook).context
    assert (context.reason, context.rival_at) == ("session-invalidated", 2.0)


def test_a_holder_whose_session_has_ended_does_not_read_again() -> None:
    """The prune delay keeps rivals out, and a slot that is lost needs no further read."""
    play = s.holding()
    gone = o.SlotsView(70, s.lock("s", index=61))
    play.on(2.0, s.WATCH, gone)
    play.on(2.0, s.ASK, s.GONE)
    play.on(2.0, s.READ, gone)
    asked = len(play.times(s.READ))
    play.on(2.0, RENEW, o.SessionGone())
    context = play.last(a.StartHook).context
    assert (context.reason, context.rival_at) == ("session-invalidated", 30.2)
    assert len(play.times(s.READ)) == asked


def test_a_holder_whose_contender_key_was_deleted_checks_its_session_once() -> None:
    play = s.holding()
    gone = o.SlotsView(70, s.lock("s", index=61))
    play.on(2.0, s.WATCH, gone)
    play.on(2.0, s.ASK, s.GONE)
    play.on(2.0, s.READ, gone)
    play.on(2.0, RENEW, o.SessionAlive())
    asked = len(play.times(RENEW))
    play.happens(2.0, e.Answered(play.last(s.WATCH), replace(gone, index=71)))
    assert len(play.times(RENEW)) == asked


def test_a_contender_key_that_was_created_again_is_a_loss() -> None:
    play = s.holding()
    again = replace(s.key("s"), create_index=69)
    play.on(2.0, s.WATCH, o.SlotsView(70, s.lock("s", index=61), (again,)))
    assert loses(play) == "key-deleted 28"


def test_a_contender_key_that_was_deleted_is_a_loss_that_the_prune_delay_guards() -> None:
    play = s.holding()
    shown = o.SlotsView(70, s.lock("s", index=61))
    assert "ask p/s" in Play.says(play.on(2.0, s.WATCH, shown))
    play.on(2.1, s.ASK, s.GONE)
    play.on(2.2, s.READ, shown)
    assert loses(play) == "key-deleted 28"


def test_a_list_that_hides_the_holders_key_is_no_loss_and_no_contact() -> None:
    play = s.holding()
    before = play.contender.tenure
    play.on(2.0, s.WATCH, o.SlotsView(70, s.lock("s", index=61)))
    play.on(2.1, s.ASK, o.KeyView(70, "s", b"me", 50, 50, 1))
    assert play.role == "holding" and before is not None and play.contender.tenure is not None
    assert play.contender.tenure.contact == before.contact
    play.passes(40.0, silent=True)
    assert play.last(a.StartHook).context.reason == "lease-expired"


def test_an_unreadable_record_is_no_contact() -> None:
    play = s.holding()
    garbage = o.SlotsView(70, o.LockKey(9, 70, None, "it is no JSON"), (s.key("s"),))
    told = Play.says(play.on(2.0, s.WATCH, garbage))
    assert "notice" in told and play.role == "holding"
    play.passes(40.0, silent=True)
    assert play.last(a.StartHook).context.reason == "lease-expired"


def test_a_shorter_prune_delay_in_the_record_shortens_the_lease() -> None:
    play = s.holding()
    assert play.contender.lease.lockout_s == 30.0
    play.on(2.0, s.WATCH, s.view("s", at=s.lock("s", index=70, delay_s=20.0), index=70))
    assert play.contender.lease.lockout_s == 20.0


def test_a_prune_delay_from_before_the_tenure_does_not_shorten_the_lease() -> None:
    """The write that takes the slot brings the holder's own prune delay, and no rival waits before it."""
    play = s.in_line(s.view("o1", at=s.lock(delay_s=0.001)))
    play.happens(0.6, e.Tick())
    assert play.last(s.TAKE).slot_record.prune_delay_s == 30.0
    play.does(0.7, s.TAKE, s.TAKEN, "start up#1: acquired, acquiring")
    assert play.contender.lease.lockout_s == 30.0


def test_a_slot_shown_by_an_answer_older_than_the_room_begins_no_tenure() -> None:
    play = s.full()
    play.on(1.0, s.WATCH, s.view("o1", "o2", "s", at=s.lock("o1", "o2")))
    play.on(1.1, s.TAKE, SILENCE)
    play.happens(max(play.now, play.deadline), e.Tick())
    asked = play.last(s.READ).at
    play.on(asked + 40.0, s.READ, s.view("o1", "o2", "s", at=s.lock("o1", "o2", "s", index=66), index=66))
    assert play.last(s.READ).at == asked and play.contender.tenure is None


def test_after_all_keys_are_deleted_a_waiter_that_saw_holders_waits_the_prune_delay() -> None:
    play = s.full()
    says = Play.says(play.on(1.0, s.WATCH, o.SlotsView(70)))
    assert "ask p/.lock" in says and "enroll s" in says and "enroll s as" not in says
    play.on(1.1, s.ASK, s.GONE)
    play.on(1.2, s.ENROLL, o.SlotWritten(o.KeyIndexes(75, 75, 1), None))
    assert play.contender.lock.try_at == pytest.approx(31.0)


def test_a_watch_that_a_read_has_overtaken_is_no_news() -> None:
    """A waiter that delays its watch may know more when it looks at the answer."""
    play = s.in_line(s.view("o1", "o2", "o3", "o4", at=s.lock("o1", limit=1)), limit=1)
    play.on(0.4, s.WATCH, s.view("o1", "o2", "o3", "o4", "s", at=s.lock("o1", limit=1)))
    assert play.last(s.WATCH).lag_s > 0
    play.on(1.0, s.WATCH, s.view("o2", "o3", "o4", "s", at=s.lock("o1", limit=1), index=70))
    play.on(1.02, s.ASK, s.GONE)
    newer = s.view("o2", "o3", "o4", "s", at=s.lock("o2", limit=1, index=80), index=80)
    play.on(1.05, s.READ, newer)
    play.on(1.09, s.WATCH, s.view("o2", "o3", "o4", "s", at=s.lock("o1", limit=1), index=75))
    assert play.contender.lock.view == newer
    assert play.last(s.WATCH).consistent


def test_a_tenure_is_adopted_only_if_waiters_wait_as_long_as_its_lease_counts_on() -> None:
    held = a.Record(a.Point.HOLDING, "p/.lock", "s")
    assert is_adoptable(held, s.semaphore(), s.semaphore(limit=1))
    assert is_adoptable(held, s.semaphore(), s.semaphore(prune_delay_s=20.0))
    assert not is_adoptable(held, s.semaphore(), s.semaphore(prune_delay_s=40.0)), "our body says 30 s"


def test_an_adopted_holder_counts_on_the_prune_delay_of_the_shared_record() -> None:
    held = a.Record(a.Point.HOLDING, "p/.lock", "s", 61, 50, 1, contact=1.0, leader=b"me")
    old, new = s.semaphore(), s.semaphore(on_adopt="acquire")
    play = Play(new, record=held, now=2.0, recorded=old)
    play.happens(2.0, e.Tick())
    play.on(2.1, RENEW, o.SessionAlive())
    shown = s.view("s", at=s.lock("s", index=61, delay_s=20.0), index=61)
    assert "start up#1" in Play.says(play.on(2.2, s.WATCH, shown))
    assert play.contender.settings == new and play.contender.lease.lockout_s == 20.0


def test_only_the_read_of_a_holder_names_its_session() -> None:
    """Such an answer shows what a holder needs where the list below the prefix is too long to be read."""
    play = s.holding()
    play.happens(1.5, e.Stalled(5.0))
    assert play.last(s.READ).session == "s"
    waits = s.full()
    waits.happens(1.0, e.Stalled(5.0))
    assert waits.last(s.READ).session is None


def test_a_holder_that_sees_only_its_own_keys_goes_on() -> None:
    play = s.in_line(s.view("o1", "o2", at=s.lock("o1", "o2")))
    play.on(0.4, s.WATCH, s.view("o1", "o2", "s", at=s.lock("o1", "o2", "s", index=61), index=61))
    play.happens(1.5, e.Stalled(5.0))
    told = Play.says(play.on(1.6, s.READ, s.view("s", at=s.lock("o1", "o2", "s", index=61), index=61)))
    assert "ask p/o1" in told and play.contender.has_lock


def test_a_value_that_another_program_has_put_into_our_contender_key_is_replaced() -> None:
    play, shown = s.holding(), s.view("s", at=s.lock("s", index=61), index=70)
    begun = play.on(2.0, s.WATCH, replace(shown, contenders=(replace(s.key("s"), value=b"put"),)))
    assert "rewrite s" in Play.says(begun) and "written over" in play.contender.told_notice
