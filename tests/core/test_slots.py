"""Semaphores: in line, a slot, and whose slots are free when; told to the core step by step.

The settings are those of ``play``, with 3 slots below ``p`` and a prune delay of 30 s; session ``s`` is
ours. ``o1``, ``o2`` ... are others; a view names who is alive, and who has a slot.
"""

from dataclasses import replace
from typing import Any

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core.memory import is_adoptable
from supervisor.core.settings import SemaphoreSettings, SessionSettings
from supervisor.core.slots import LOCK
from tests.core.play import CREATE, DESTROY, DOWN, RENEW, SILENCE, UP, Play

WATCH, READ, ASK = a.WatchSlots, a.ReadSlots, a.ReadKey
ENROLL, TAKE, LEAVE = a.Enroll, a.TakeSlot, a.Leave
GONE = e.KeyView(50)


def semaphore(*, limit: int = 3, **more: Any) -> SemaphoreSettings:
    base: dict[str, Any] = {"on_acquire": (UP,), "on_lose": (DOWN,), "prune_delay_s": 30.0, **more}
    session = SessionSettings("ours", ttl_s=9.0, lock_delay_s=15.0, behavior="delete")
    return SemaphoreSettings("n", "p/.lock", b"me", session, limit=limit, **base)


def key(name: str, *, alive: bool = True, delay_s: float | None = 30.0) -> e.ContenderKey:
    """In line since the index that its name ends with; ours since 50."""
    index = int(name[1:]) if name[1:] else 50
    return e.ContenderKey(name, name if alive else "", b"me", index, 1, delay_s)


def lock(*holders: str, limit: int | None = 3, index: int = 60, delay_s: float | None = 30.0) -> e.LockKey:
    return e.LockKey(9, index, a.Roster(limit, holders, delay_s))


def view(*contenders: str, at: e.LockKey | None, index: int = 60) -> e.SlotsView:
    return e.SlotsView(index, at, tuple(map(key, contenders)))


EMPTY = e.SlotsView(5)
SEATED = e.Seated(e.Indexes(50, 50, 1), e.Indexes(9, 61, 0))
TAKEN = e.Seated(e.Indexes(50, 50, 1), e.Indexes(9, 61, 0))
OURS = view("s", at=lock("s", limit=3, index=61), index=61)


def waiting(**more: Any) -> Play:
    """Started at 0; the session is there at 0.1, and the watch of index 0 waits for its answer."""
    play = Play(semaphore(**more))
    play.does(0.0, "create, watch 0 consistently")
    play.does(0.1, CREATE, e.Created("s"), "")
    return play


def in_line(shown: e.SlotsView, **more: Any) -> Play:
    """In line since 0.3, behind all that the view shows."""
    play = waiting(**more)
    assert "enroll s" in Play.says(play.on(0.2, WATCH, shown))
    play.on(0.3, ENROLL, e.Seated(e.Indexes(50, 50, 1), None))
    return play


def full(**more: Any) -> Play:
    """Three others have the slots."""
    return in_line(view("o1", "o2", "o3", at=lock("o1", "o2", "o3")), **more)


def holding(**more: Any) -> Play:
    """Alone with a slot since 0.3; on_acquire is done at 1, the watch says so."""
    play = waiting(**more)
    play.does(0.2, WATCH, EMPTY, "enroll s as 3: s, watch 5")
    play.on(0.3, ENROLL, SEATED)
    play.happens(1.0, e.HookEnded(play.last(a.StartHook), ok=True))
    play.does(1.1, WATCH, OURS, "watch 61 consistently")
    assert play.role == "holding"
    return play


# --- in line, and a slot ---------------------------------------------------------------------------


def test_in_an_empty_folder_the_key_and_the_record_are_made_in_one_step() -> None:
    play = waiting()
    play.does(0.2, WATCH, EMPTY, "enroll s as 3: s, watch 5")
    play.does(0.3, ENROLL, SEATED, "start up#1: acquired, acquiring")
    request = play.last(ENROLL)
    assert (request.prefix, request.index, request.value) == ("p", 0, b"me")
    assert request.roster == a.Roster(3, ("s",), 30.0)
    assert play.last(a.StartHook).context.fencing_token == 61
    assert play.last(a.StartHook).context.kind == "semaphore"


def test_a_free_slot_that_nobody_waits_for_is_taken_in_one_step() -> None:
    play = waiting()
    play.does(0.2, WATCH, view("o1", at=lock("o1")), "enroll s as 3: o1 s, watch 60")
    assert play.last(ENROLL).index == 60


def test_where_all_slots_are_taken_one_stands_in_line() -> None:
    play = waiting()
    play.does(0.2, WATCH, view("o1", "o2", "o3", at=lock("o1", "o2", "o3")), "enroll s, watch 60")
    play.does(0.3, ENROLL, e.Seated(e.Indexes(50, 50, 1), None), "")
    assert play.role == "waiting" and play.deadline > 4


def test_a_slot_that_gets_free_goes_to_the_first_in_line_at_once() -> None:
    play = full()
    play.does(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")), "take s as 3: o1 o2 s, watch 60")
    play.does(1.1, TAKE, TAKEN, "start up#1: acquired, acquiring")


@pytest.mark.parametrize(("before", "pause_s"), [(1, 0.2), (3, 0.6), (40, 2.0)])
def test_who_stands_further_behind_lets_those_before_try_first(before: int, pause_s: float) -> None:
    play = full()
    line = [f"o{number}" for number in range(4, 4 + before)]
    play.on(1.0, WATCH, view("o1", "o2", *line, "s", at=lock("o1", "o2")))
    assert not play.times(TAKE)
    play.passes(0.999 + pause_s)
    assert not play.times(TAKE)
    play.under_way = [r for r in play.under_way if not isinstance(r, READ)]
    while not play.times(TAKE) and play.now < 5:
        play.happens(max(play.now, play.deadline), e.Tick())
        for request in [r for r in play.under_way if isinstance(r, READ)]:
            play.happens(play.now, e.Answered(request, view("o1", "o2", *line, "s", at=lock("o1", "o2"))))
    assert play.times(TAKE)[0] == pytest.approx(1.0 + pause_s, abs=0.01)


@pytest.mark.parametrize(("before", "lag_s"), [(0, 0.0), (2, 0.0), (3, 0.06), (10, 0.2), (40, 0.5)])
def test_who_cannot_be_next_looks_a_little_later(before: int, lag_s: float) -> None:
    """As many as there are slots may be next at once; those behind leave Consul to them."""
    line = [f"o{number}" for number in range(4, 4 + before)]
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "o3", *line, "s", at=lock("o1", "o2", "o3")))
    assert play.last(WATCH).lag_s == pytest.approx(lag_s)


def test_what_is_looked_at_later_is_news_of_before() -> None:
    """It justifies a try for so much less time."""
    line = [f"o{number}" for number in range(4, 44)]
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "o3", *line, "s", at=lock("o1", "o2", "o3")))
    play.on(2.0, WATCH, view("o1", "o2", *line, "s", at=lock("o1", "o2", index=70), index=70))
    assert play.contender.claim.free_at == pytest.approx(1.5)


def test_a_holder_looks_at_once_whoever_stands_before_it() -> None:
    play = holding()
    line = [f"o{number}" for number in range(1, 41)]
    play.on(2.0, WATCH, view(*line, "s", at=lock("s", index=61), index=70))
    assert play.last(WATCH).lag_s == 0.0


def test_who_comes_late_is_in_nobodys_way() -> None:
    """o90 stands behind us: its key was made after ours."""
    play = full()
    play.does(1.0, WATCH, view("o1", "o2", "s", "o90", at=lock("o1", "o2")), "take s as 3: o1 o2 s, watch 60")


def test_who_comes_when_another_waits_stands_in_line_and_lets_it_try_first() -> None:
    """That a place in line was to be had before is no head start for the slot."""
    play = waiting()
    play.does(0.2, WATCH, view("o1", "o2", "o4", at=lock("o1", "o2")), "enroll s, watch 60")
    play.on(2.0, ENROLL, e.Seated(e.Indexes(50, 50, 1), None))
    assert play.contender.claim.try_at == pytest.approx(2.2)


def test_a_lost_race_is_read_anew_before_the_next_try() -> None:
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")))
    assert "read" in Play.says(play.on(1.1, TAKE, e.Raced()))
    play.on(1.2, READ, view("o1", "o2", "o4", "s", at=lock("o1", "o2", "o4", index=70)))
    play.passes(3.0)
    assert len(play.times(TAKE)) == 1


def test_races_in_a_row_are_further_and_further_apart() -> None:
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")))
    for number in range(12):
        play.on(play.now + 0.001, TAKE, e.Raced())
        shown = view("o1", "o2", "s", at=lock("o1", "o2", index=70 + number))
        while len(play.times(TAKE)) == number + 1:
            for request in [r for r in play.under_way if isinstance(r, READ)]:
                play.happens(play.now, e.Answered(request, shown))
            if len(play.times(TAKE)) == number + 1:
                play.happens(max(play.now, play.deadline), e.Tick())
    times = play.times(TAKE)
    pauses = [after - before for before, after in zip(times, times[1:], strict=False)]
    assert pauses[0] == pytest.approx(0.026, abs=0.01) and pauses[-1] == pytest.approx(1.0, abs=0.1)


def test_a_slot_that_a_late_write_brings_is_ours_by_the_read_that_shows_it() -> None:
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")))
    play.on(4.0, TAKE, SILENCE)
    shown = view("o1", "o2", "s", at=lock("o1", "o2", "s", index=66))
    assert "read" in Play.says(play.on(4.1, WATCH, shown))
    assert "start up#1" in Play.says(play.on(4.2, READ, shown))


def test_a_contender_key_that_is_gone_is_made_anew() -> None:
    play = full()
    assert "enroll s" in Play.says(play.on(1.0, WATCH, view("o1", "o2", "o3", at=lock("o1", "o2", "o3"))))


# --- who vanished ----------------------------------------------------------------------------------

HIS = view("o1", "o2", "s", at=lock("o1", "o2", "o3"))


def test_the_slot_of_one_that_vanished_is_free_after_the_prune_delay() -> None:
    play = full()
    assert "ask p/o3" in Play.says(play.on(1.0, WATCH, HIS))
    play.on(1.1, ASK, GONE)
    for _ in range(1000):
        if play.times(TAKE):
            break
        play.happens(max(play.now, play.deadline), e.Tick())
        for request in [r for r in play.under_way if not isinstance(r, a.Watch | TAKE)]:
            play.happens(play.now, e.Answered(request, e.Alive() if isinstance(request, RENEW) else HIS))
    assert play.times(TAKE)[0] == pytest.approx(31.0, abs=0.01)
    assert play.last(TAKE).roster == a.Roster(3, ("o1", "o2", "s"), 30.0)


def test_what_was_only_hidden_is_asked_for_again_when_something_changes() -> None:
    """It may have gone between the read that showed it and the next list that does not."""
    play = full()
    play.on(1.0, WATCH, HIS)
    play.on(1.1, ASK, e.KeyView(50, "o3", b"me", 3, 3, 1))
    assert "does not show o3" in play.contender.claim.notice
    asked = len(play.times(ASK))
    play.on(1.2, READ, HIS)
    assert len(play.times(ASK)) == asked
    changed = view("o1", "o2", "s", at=lock("o1", "o2", "o3"), index=70)
    assert "ask p/o3" in Play.says(play.on(5.0, WATCH, changed))
    play.on(5.1, ASK, GONE)
    assert play.contender.claim.notice == ""
    assert play.contender.claim.try_at == pytest.approx(35.0)


def test_who_comes_when_one_has_vanished_waits_as_long() -> None:
    """To stand in line was possible at once; a slot is not."""
    play = waiting()
    play.on(0.2, WATCH, view("o1", "o2", at=lock("o1", "o2", "o3")))
    play.on(0.2, ASK, GONE)
    play.on(0.3, ENROLL, e.Seated(e.Indexes(50, 50, 1), None))
    play.on(0.3, WATCH, HIS)
    play.passes(29.0)
    assert not play.times(TAKE)
    assert play.contender.claim.try_at == pytest.approx(30.2)


def test_who_comes_into_line_behind_one_that_vanished_waits_as_long() -> None:
    play = waiting()
    play.on(0.2, WATCH, view("o1", "o2", at=lock("o1", "o2", "o3")))
    play.on(0.25, ASK, GONE)
    play.on(0.3, ENROLL, e.Seated(e.Indexes(50, 50, 1), None))
    for _ in range(1000):
        if play.times(TAKE):
            break
        play.happens(max(play.now, play.deadline), e.Tick())
        for request in [r for r in play.under_way if not isinstance(r, a.Watch | TAKE)]:
            play.happens(play.now, e.Answered(request, e.Alive() if isinstance(request, RENEW) else HIS))
    assert play.times(TAKE)[0] == pytest.approx(30.2, abs=0.01)


def test_the_slot_of_the_first_that_vanished_is_not_that_of_the_second() -> None:
    """o2 goes at 1, o3 at 11; o4 gets the slot of o2 at 31, and that of o3 is free at 41."""
    play = full()
    line = ("o1", "o3", "o4", "s")
    play.on(1.0, WATCH, view(*line, at=lock("o1", "o2", "o3")))
    play.on(1.0, ASK, GONE)
    play.on(11.0, WATCH, view("o1", "o4", "s", at=lock("o1", "o2", "o3")))
    play.on(11.0, ASK, GONE)
    assert play.contender.claim.try_at == pytest.approx(31.2)
    play.on(31.1, WATCH, view("o1", "o4", "s", at=lock("o1", "o3", "o4", index=70)))
    play.passes(33.0)
    assert not play.times(TAKE)
    assert play.contender.claim.try_at == pytest.approx(41.0)


@pytest.mark.parametrize("longest", ["file", "record", "body"])
def test_the_longest_prune_delay_counts(longest: str) -> None:
    play = full(prune_delay_s=40.0 if longest == "file" else 20.0)
    at = lock("o1", "o2", "o3", delay_s=40.0 if longest == "record" else 20.0)
    of_o1 = key("o1", delay_s=40.0 if longest == "body" else 20.0)
    play.on(1.0, WATCH, e.SlotsView(60, at, (of_o1, key("o2", delay_s=20.0), key("s", delay_s=20.0))))
    play.on(1.0, ASK, GONE)
    claim = play.contender.claim
    assert claim.try_at == pytest.approx(41.0)


def test_what_the_body_of_one_that_vanished_asked_for_is_remembered() -> None:
    at = lock("o1", "o2", "o3", delay_s=20.0)
    keys = [key(name, delay_s=20.0) for name in ("o1", "o2")]
    play = in_line(e.SlotsView(60, at, (*keys, key("o3", delay_s=40.0))), prune_delay_s=20.0)
    play.on(1.0, WATCH, e.SlotsView(60, at, (*keys, key("s", delay_s=20.0))))
    play.on(1.0, ASK, GONE)
    assert play.contender.claim.try_at == pytest.approx(41.0)


def test_a_contender_key_without_its_session_is_as_good_as_gone() -> None:
    """As that of a session of behavior release is left behind."""
    play = full()
    keys = (key("o1"), key("o2"), key("o3", alive=False), key("s"))
    play.on(1.0, WATCH, e.SlotsView(60, lock("o1", "o2", "o3"), keys))
    play.on(1.0, ASK, e.KeyView(60, "", b"me", 3, 60, 1))
    assert play.contender.claim.try_at == pytest.approx(31.0)


def test_whoever_vanished_stays_in_the_record_when_another_slot_is_taken() -> None:
    """o2 vanished at 1, and at 2 o3 leaves: its slot is free, that of o2 is not."""
    play = full()
    play.on(1.0, WATCH, view("o1", "o3", "s", at=lock("o1", "o2", "o3")))
    play.on(1.0, ASK, GONE)
    told = Play.says(play.on(2.0, WATCH, view("o1", "s", at=lock("o1", "o2", index=70), index=70)))
    assert "take s as 3: o1 o2 s" in told


@pytest.mark.parametrize(("of_o1", "record_s", "written_s"), [(40.0, 20.0, 40.0), (20.0, 40.0, 30.0)])
def test_our_write_says_how_long_others_are_to_wait(of_o1: float, record_s: float, written_s: float) -> None:
    """The longest that a holder asks for; what the record says of one that has left is over."""
    play = full()
    at = lock("o1", "o2", delay_s=record_s)
    keys = (key("o1", delay_s=of_o1), key("o2", delay_s=20.0), key("s"))
    play.on(1.0, WATCH, e.SlotsView(60, at, keys))
    assert play.last(TAKE).roster == a.Roster(3, ("o1", "o2", "s"), written_s)


def test_our_write_goes_on_to_say_how_long_others_wait_for_one_that_vanished() -> None:
    """Its body is gone, and with it what it asked for; the record still says so."""
    play = full()
    play.on(1.0, WATCH, view("o2", "s", at=lock("o1", "o2", delay_s=40.0)))
    assert play.last(TAKE).roster == a.Roster(3, ("o1", "o2", "s"), 40.0)


def test_what_a_single_read_does_not_confirm_is_never_pruned() -> None:
    """The list may be cut by an ACL: a denied contender looks dead."""
    play = full()
    play.on(1.0, WATCH, HIS)
    told = Play.says(play.on(1.1, ASK, e.KeyView(60, "o3", b"", 3, 3, 1)))
    assert "notice: the list below the prefix does not show o3" in told
    assert play.contender.claim.try_at == -float("inf") or not play.contender.may_try


def test_nor_is_what_is_denied() -> None:
    play = full()
    play.on(1.0, WATCH, HIS)
    play.on(1.1, ASK, e.Denied("Permission denied"))
    assert not play.contender.may_try
    assert "ask p/o3" in Play.says(play.happens(1.7, e.Tick()))


def test_a_record_that_was_deleted_beside_contenders_is_as_good_as_full_for_the_prune_delay() -> None:
    play = full()
    gone = view("o1", "o2", "o3", "s", at=None)
    assert f"ask p/{LOCK}" in Play.says(play.on(1.0, WATCH, gone))
    play.on(1.0, ASK, GONE)
    assert play.contender.claim.try_at == pytest.approx(31.0 + 3 * 0.2)


@pytest.mark.parametrize(("seen", "opens_at"), [(True, 31.0), (False, 50.0)])
def test_a_record_that_may_have_been_there_meanwhile_is_waited_for_anew(seen: bool, opens_at: float) -> None:
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "o3", "s", at=None, index=70))
    play.on(1.0, ASK, GONE)
    later = view("o1", "o2", "s", at=None, index=80)
    play.on(20.0, WATCH if seen else READ, later)
    if not seen:
        play.on(20.0, ASK, GONE)
    assert play.contender.claim.try_at == pytest.approx(opens_at + 2 * 0.2)


@pytest.mark.parametrize("kind", ["garbage", "lock"])
def test_a_record_of_somebody_else_is_left_alone(kind: str) -> None:
    play = waiting()
    shown = e.SlotsView(60, e.LockKey(9, 60, None, f"it is {kind}"))
    told = Play.says(play.on(0.2, WATCH, shown))
    assert told == "watch 60, notice: .lock is no semaphore's and is left alone"
    play.passes(20.0)
    assert not play.times(ENROLL)


# --- limits ------------------------------------------------------------------------------------------


def test_the_smaller_of_file_and_record_counts() -> None:
    play = in_line(view("o1", "o2", at=lock("o1", "o2", limit=2)))
    assert play.role == "waiting" and not play.times(TAKE)
    told = Play.says(play.on(1.0, WATCH, view("o1", "s", at=lock("o1", limit=2))))
    assert told.startswith("take s as 2: o1 s")


def test_more_in_the_record_than_in_the_file_is_not_used_and_not_changed() -> None:
    play = in_line(view("o1", "o2", "o3", at=lock("o1", "o2", "o3", limit=5)))
    assert not play.times(TAKE)
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2", limit=5)))
    assert play.last(TAKE).roster.limit == 5


def test_a_difference_is_noticed_and_its_end_too() -> None:
    play = waiting()
    told = Play.says(play.on(0.2, WATCH, view("o1", "o2", at=lock("o1", "o2", limit=2))))
    assert "notice: limit is 3 in the file and 2 in Consul" in told
    play.on(0.3, ENROLL, e.Seated(e.Indexes(50, 50, 1), None))
    assert "no notice" in Play.says(
        play.on(1.0, WATCH, view("o1", "o2", "o3", "s", at=lock("o1", "o2", "o3")))
    )


def test_a_lower_limit_evicts_nobody() -> None:
    play = holding()
    shown = view("o1", "s", at=lock("o1", "s", limit=1, index=70), index=70)
    told = Play.says(play.on(2.0, WATCH, shown))
    assert "start" not in told and play.role == "holding"


# --- a holder ---------------------------------------------------------------------------------------


def loses(play: Play) -> str:
    """The reason that on_lose is given, once it has waited for a better one."""
    play.passes(play.now + 0.3)
    context = play.last(a.StartHook).context
    assert context.event == "lose", play.log[-5:]
    return f"{context.reason} {context.rival_at - play.now:.0f}"


def test_a_slot_taken_from_us_is_a_loss_and_a_rival_may_be_there() -> None:
    play = holding()
    play.on(2.0, WATCH, view("o1", "s", at=lock("o1", index=70), index=70))
    assert loses(play) == "slot-removed 0"


def test_a_record_that_is_gone_is_a_loss_that_the_prune_delay_guards() -> None:
    play = holding()
    assert f"ask p/{LOCK}" in Play.says(play.on(2.0, WATCH, view("s", at=None, index=70)))
    assert "read" in Play.says(play.on(2.1, ASK, GONE))
    play.on(2.2, READ, view("s", at=None, index=70))
    assert loses(play) == "slot-removed 28"


def test_a_record_that_the_list_does_not_show_is_no_loss_while_a_read_shows_it() -> None:
    play = holding()
    hidden = view("s", at=None, index=70)
    play.on(2.0, WATCH, hidden)
    play.on(2.1, ASK, e.KeyView(70, "", b"{}", 9, 61, 0))
    play.on(2.2, READ, hidden)
    play.passes(3.0)
    assert play.role == "holding"


def test_a_slot_taken_from_us_has_no_guard_though_our_session_ends_too() -> None:
    play = holding()
    play.on(2.0, WATCH, view("o1", at=lock("o1", index=70), index=70))
    play.on(2.1, RENEW, e.Dead())
    context = play.last(a.StartHook).context
    assert (context.reason, context.rival_at) == ("session-invalidated", 2.0)


def test_a_holder_whose_session_has_ended_asks_for_it_once() -> None:
    """The others are kept out by the prune delay; what is lost is not asked for again and again."""
    play = holding()
    gone = e.SlotsView(70, lock("s", index=61))
    play.on(2.0, WATCH, gone)
    play.on(2.0, ASK, GONE)
    play.on(2.0, READ, gone)
    asked = len(play.times(READ))
    play.on(2.0, RENEW, e.Dead())
    context = play.last(a.StartHook).context
    assert (context.reason, context.rival_at) == ("session-invalidated", 30.2)
    assert len(play.times(READ)) == asked


def test_a_holder_whose_key_was_deleted_asks_once_whether_its_session_lives() -> None:
    play = holding()
    gone = e.SlotsView(70, lock("s", index=61))
    play.on(2.0, WATCH, gone)
    play.on(2.0, ASK, GONE)
    play.on(2.0, READ, gone)
    play.on(2.0, RENEW, e.Alive())
    asked = len(play.times(RENEW))
    play.happens(2.0, e.Answered(play.last(WATCH), replace(gone, index=71)))
    assert len(play.times(RENEW)) == asked


def test_a_contender_key_that_was_made_anew_is_not_that_of_our_tenure() -> None:
    play = holding()
    again = replace(key("s"), create_index=69)
    play.on(2.0, WATCH, e.SlotsView(70, lock("s", index=61), (again,)))
    assert loses(play) == "key-deleted 28"


def test_a_contender_key_that_was_deleted_is_a_loss_that_the_prune_delay_guards() -> None:
    play = holding()
    shown = e.SlotsView(70, lock("s", index=61))
    assert "ask p/s" in Play.says(play.on(2.0, WATCH, shown))
    play.on(2.1, ASK, GONE)
    play.on(2.2, READ, shown)
    assert loses(play) == "key-deleted 28"


def test_a_list_that_hides_us_is_no_loss_and_no_contact() -> None:
    play = holding()
    before = play.contender.tenure
    play.on(2.0, WATCH, e.SlotsView(70, lock("s", index=61)))
    play.on(2.1, ASK, e.KeyView(70, "s", b"me", 50, 50, 1))
    assert play.role == "holding" and before is not None and play.contender.tenure is not None
    assert play.contender.tenure.contact == before.contact
    play.passes(40.0, silent=True)
    assert play.last(a.StartHook).context.reason == "lease-expired"


def test_a_record_that_became_garbage_is_no_contact() -> None:
    play = holding()
    garbage = e.SlotsView(70, e.LockKey(9, 70, None, "it is no JSON"), (key("s"),))
    told = Play.says(play.on(2.0, WATCH, garbage))
    assert "notice" in told and play.role == "holding"
    play.passes(40.0, silent=True)
    assert play.last(a.StartHook).context.reason == "lease-expired"


def test_a_shorter_prune_delay_in_the_record_shortens_the_lease() -> None:
    play = holding()
    assert play.contender.lease.lock_delay_s == 30.0
    play.on(2.0, WATCH, view("s", at=lock("s", index=70, delay_s=20.0), index=70))
    assert play.contender.lease.lock_delay_s == 20.0


def test_a_short_prune_delay_that_was_left_there_shortens_nobodys_lease() -> None:
    """Our own step writes ours; before it nobody waits for us."""
    play = in_line(view("o1", at=lock(delay_s=0.001)))
    play.happens(0.6, e.Tick())
    assert play.last(TAKE).roster.prune_delay_s == 30.0
    play.does(0.7, TAKE, TAKEN, "start up#1: acquired, acquiring")
    assert play.contender.lease.lock_delay_s == 30.0


def test_a_hold_that_is_found_out_too_late_is_asked_for_again_in_a_while() -> None:
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")))
    play.on(1.1, TAKE, SILENCE)
    play.happens(max(play.now, play.deadline), e.Tick())
    asked = play.last(READ).at
    play.on(asked + 40.0, READ, view("o1", "o2", "s", at=lock("o1", "o2", "s", index=66), index=66))
    assert play.last(READ).at == asked and play.contender.tenure is None


def test_when_all_is_deleted_who_has_seen_holders_stands_in_line_and_waits() -> None:
    play = full()
    says = Play.says(play.on(1.0, WATCH, e.SlotsView(70)))
    assert "ask p/.lock" in says and "enroll s" in says and "enroll s as" not in says
    play.on(1.1, ASK, GONE)
    play.on(1.2, ENROLL, e.Seated(e.Indexes(75, 75, 1), None))
    assert play.contender.claim.try_at == pytest.approx(31.0)


def test_when_all_is_deleted_who_holds_alone_has_lost() -> None:
    play = holding()
    assert "ask p/.lock" in Play.says(play.on(2.0, WATCH, e.SlotsView(70)))
    play.on(2.1, ASK, GONE)
    play.does(2.2, READ, e.SlotsView(70), "renew s, losing")


def test_an_answer_that_a_read_has_overtaken_is_no_news() -> None:
    """Whoever looks at it later may know more by then."""
    play = in_line(view("o1", "o2", "o3", "o4", at=lock("o1", limit=1)), limit=1)
    play.on(0.4, WATCH, view("o1", "o2", "o3", "o4", "s", at=lock("o1", limit=1)))
    assert play.last(WATCH).lag_s > 0
    play.on(1.0, WATCH, view("o2", "o3", "o4", "s", at=lock("o1", limit=1), index=70))
    play.on(1.02, ASK, GONE)
    newer = view("o2", "o3", "o4", "s", at=lock("o2", limit=1, index=80), index=80)
    play.on(1.05, READ, newer)
    play.on(1.09, WATCH, view("o2", "o3", "o4", "s", at=lock("o1", limit=1), index=75))
    assert play.contender.claim.view == newer
    assert play.last(WATCH).consistent


def test_a_record_goes_on_only_while_others_wait_as_long_as_we_count_on() -> None:
    held = a.Memory(a.Step.HOLDING, "p/.lock", "s")
    assert is_adoptable(held, semaphore(), semaphore(limit=1))
    assert is_adoptable(held, semaphore(), semaphore(prune_delay_s=20.0))
    assert not is_adoptable(held, semaphore(), semaphore(prune_delay_s=40.0)), "our body says 30 s"


def test_once_adopted_it_counts_on_no_more_than_the_record_says() -> None:
    held = a.Memory(a.Step.HOLDING, "p/.lock", "s", 61, 50, 1, contact=1.0, leader=b"me")
    old, new = semaphore(), semaphore(on_adopt="acquire")
    play = Play(new, memory=held, now=2.0, recorded=old)
    play.happens(2.0, e.Tick())
    play.on(2.1, RENEW, e.Alive())
    shown = view("s", at=lock("s", index=61, delay_s=20.0), index=61)
    assert "start up#1" in Play.says(play.on(2.2, WATCH, shown))
    assert play.contender.settings == new and play.contender.lease.lock_delay_s == 20.0


# --- leaving ----------------------------------------------------------------------------------------


def left(play: Play) -> str:
    """What follows a stop, once on_lose is done."""
    play.happens(play.now, e.StopAsked())
    return Play.says(play.happens(play.now + 0.1, e.HookEnded(play.last(a.StartHook), ok=True)))


def test_leaving_takes_us_out_of_the_record_and_out_of_line_then_ends_the_session() -> None:
    play = holding()
    assert left(play).startswith("leave s as 3: ")
    assert play.last(LEAVE).index == 61 and play.last(LEAVE).roster.holders == ()
    play.on(1.5, LEAVE, e.Done())
    assert "destroy s" in Play.says(play.happens(1.6, e.Tick()))
    play.does(1.7, DESTROY, e.Done(), "stopped, finished")


def test_a_leave_that_meets_another_write_is_read_and_tried_again_even_at_a_stop() -> None:
    play = holding()
    left(play)
    assert "read" in Play.says(play.on(1.5, LEAVE, e.Raced()))
    told = Play.says(play.on(1.6, READ, view("o1", "s", at=lock("s", "o1", index=80), index=80)))
    assert "leave s as 3: o1" in told and play.last(LEAVE).index == 80


def test_at_a_stop_a_silent_consul_is_asked_once() -> None:
    play = holding()
    left(play)
    play.on(1.5, LEAVE, e.Raced())
    told = Play.says(play.on(4.6, READ, SILENCE))
    assert "leave s" in told
    assert play.last(LEAVE).roster is None, "the record is not as it was known: such a write would be in vain"
    play.passes(20.0, silent=True)
    assert play.role == "stopped"


def test_who_waits_leaves_the_line_when_it_stops() -> None:
    play = full()
    play.happens(1.0, e.StopAsked())
    assert play.last(LEAVE).roster is None
    play.on(1.1, LEAVE, e.Done())
    play.happens(1.2, e.Tick())
    play.does(1.3, DESTROY, e.Done(), "stopped, finished")


def test_who_is_paused_is_in_nobodys_way() -> None:
    play = full()
    assert "leave s" in Play.says(play.happens(1.0, e.PauseAsked("n")))
    play.on(1.1, LEAVE, e.Done())
    play.happens(1.2, e.Tick())
    play.on(1.3, DESTROY, e.Done())
    play.passes(10.0)
    assert play.role == "paused" and not play.contender.session.id
    assert "create" in Play.says(play.happens(10.0, e.ResumeAsked("n")))


@pytest.mark.parametrize("asked", [e.PauseAsked("n"), e.StopAsked()])
def test_a_slot_that_is_taken_when_nobody_wants_it_any_more_is_given_back(asked: e.Event) -> None:
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")))
    play.happens(1.05, asked)
    assert "leave s as 3: o1 o2" in Play.says(play.on(1.1, TAKE, TAKEN))


def test_whether_a_try_without_an_answer_has_taken_a_slot_is_found_out_before_leaving() -> None:
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")))
    play.happens(1.05, e.PauseAsked("n"))
    assert "leave" not in Play.says(play.on(4.0, TAKE, SILENCE))
    shown = view("o1", "o2", "s", at=lock("o1", "o2", "s", index=66), index=66)
    assert "leave s as 3: o1 o2" in Play.says(play.on(4.1, READ, shown))


def test_a_slot_that_a_late_write_brings_to_one_that_is_paused_is_given_back() -> None:
    play = full()
    play.on(1.0, WATCH, view("o1", "o2", "s", at=lock("o1", "o2")))
    play.on(4.0, TAKE, SILENCE)
    play.under_way = [r for r in play.under_way if not isinstance(r, READ)]
    shown = view("o1", "o2", "s", at=lock("o1", "o2", "s", index=66), index=66)
    play.happens(4.1, e.Answered(next(r for r in play.under_way if isinstance(r, WATCH)), shown))
    play.happens(4.1, e.PauseAsked("n"))
    told = Play.says(play.on(4.2, READ, shown))
    assert "leave s as 3: o1 o2" in told


# --- on_change ---------------------------------------------------------------------------------------


def test_on_change_is_not_told_of_a_record_that_says_nothing_of_who_holds() -> None:
    play = full(on_change=(UP,))
    play.happens(0.4, e.HookEnded(play.last(a.StartHook), ok=True))
    before = len(play.times(a.StartHook))
    play.on(1.0, WATCH, e.SlotsView(70, e.LockKey(9, 70, None, "it is no JSON"), ()))
    assert len(play.times(a.StartHook)) == before


def test_on_change_is_told_the_holders() -> None:
    play = waiting(on_change=(UP,))
    play.on(0.2, WATCH, view("o1", "o2", at=lock("o1", "o2")))
    context = play.last(a.StartHook).context
    assert (context.reason, [holder.session for holder in context.holders]) == ("initial", ["o1", "o2"])
    play.happens(0.3, e.HookEnded(play.last(a.StartHook), ok=True))
    count = len(play.times(a.StartHook))
    play.on(0.4, WATCH, view("o1", "o2", "o9", at=lock("o1", "o2", index=61)))
    assert len(play.times(a.StartHook)) == count, "who only waits is nobody's news"
    play.on(0.5, WATCH, view("o1", "o9", at=lock("o1", index=62)))
    assert play.last(a.StartHook).context.reason == "leader-changed"
