"""Semaphores: which observations are a loss for a holder, and which prune delay its lease counts on."""

from dataclasses import replace

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core.lock.slots import LOCK
from tests.unit.core import slot_play as s
from tests.unit.core.play import RENEW, Play


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
    play.on(2.1, s.ASK, o.KeyView(70, "", b"{}", 9, 61, 0))
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
    assert play.contender.lease.lock_delay_s == 30.0
    play.on(2.0, s.WATCH, s.view("s", at=s.lock("s", index=70, delay_s=20.0), index=70))
    assert play.contender.lease.lock_delay_s == 20.0


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


def test_only_the_read_of_a_holder_names_its_session() -> None:
    """Such an answer shows what a holder needs where the list below the prefix is too long to be read."""
    play = s.holding()
    play.happens(1.5, e.Stalled(5.0))
    assert play.last(s.READ).session == "s"
    waits = s.full()
    waits.happens(1.0, e.Stalled(5.0))
    assert waits.last(s.READ).session == ""
