"""Semaphores: when the slot of a vanished holder is free, and which records are left alone."""

import pytest

from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as req
from supervisor.core.lock.slots import LOCK
from tests.unit.core import slot_play as s
from tests.unit.core.play import RENEW, Play

WITHOUT_O3 = s.view("o1", "o2", "s", at=s.lock("o1", "o2", "o3"))


def taken_at(play: Play) -> float:
    """Return when a slot is tried for; until then each read shows no o3."""
    while not play.times(s.TAKE):
        play.happens(max(play.now, play.deadline), e.Tick())
        for request in [r for r in play.under_way if not isinstance(r, req.Watch | s.TAKE)]:
            shown = o.SessionAlive() if isinstance(request, RENEW) else WITHOUT_O3
            play.happens(play.now, e.Answered(request, shown))
    return play.times(s.TAKE)[0]


def test_the_slot_of_a_vanished_holder_is_free_after_the_prune_delay() -> None:
    play = s.full()
    assert "ask p/o3" in Play.says(play.on(1.0, s.WATCH, WITHOUT_O3))
    play.on(1.1, s.ASK, s.GONE)
    assert taken_at(play) == pytest.approx(31.0, abs=0.01)
    record = play.last(s.TAKE).slot_record
    assert (record.limit, record.holders, record.prune_delay_s) == (3, ("o1", "o2", "s"), 30.0)
    assert play.last(s.TAKE).pruned == (req.Pruned("o3", None),)


def test_a_holder_that_was_only_hidden_is_read_again_when_something_changes() -> None:
    """The holder may have gone between the read that showed it and the next list that does not."""
    play = s.full()
    play.on(1.0, s.WATCH, WITHOUT_O3)
    play.on(1.1, s.ASK, o.KeyView(50, "o3", b"me", 3, 3, 1))
    assert "does not show o3" in play.contender.lock.notice
    asked = len(play.times(s.ASK))
    play.on(1.2, s.READ, WITHOUT_O3)
    assert len(play.times(s.ASK)) == asked
    changed = s.view("o1", "o2", "s", at=s.lock("o1", "o2", "o3"), index=70)
    assert "ask p/o3" in Play.says(play.on(5.0, s.WATCH, changed))
    play.on(5.1, s.ASK, s.GONE)
    assert play.contender.lock.notice == ""
    assert play.contender.lock.try_at == pytest.approx(35.0)


def test_a_newcomer_takes_the_slot_of_a_vanished_holder_after_the_prune_delay() -> None:
    play = s.waiting()
    play.on(0.2, s.WATCH, s.view("o1", "o2", at=s.lock("o1", "o2", "o3")))
    play.on(0.25, s.ASK, s.GONE)
    play.on(0.3, s.ENROLL, o.SlotWritten(o.KeyIndexes(50, 50, 1), None))
    assert taken_at(play) == pytest.approx(30.2, abs=0.01)


def test_each_vanished_holder_has_a_prune_delay_of_its_own() -> None:
    """o2 vanishes at 1 and o3 at 11; o4 gets the slot of o2 at 31, and that of o3 is free at 41."""
    play = s.full()
    line = ("o1", "o3", "o4", "s")
    play.on(1.0, s.WATCH, s.view(*line, at=s.lock("o1", "o2", "o3")))
    play.on(1.0, s.ASK, s.GONE)
    play.on(11.0, s.WATCH, s.view("o1", "o4", "s", at=s.lock("o1", "o2", "o3")))
    play.on(11.0, s.ASK, s.GONE)
    assert play.contender.lock.try_at == pytest.approx(31.2)
    play.on(31.1, s.WATCH, s.view("o1", "o4", "s", at=s.lock("o1", "o3", "o4", index=70)))
    play.passes(33.0)
    assert not play.times(s.TAKE)
    assert play.contender.lock.try_at == pytest.approx(41.0)


@pytest.mark.parametrize("longest", ["file", "record", "body"])
def test_the_longest_prune_delay_of_file_record_and_body_counts(longest: str) -> None:
    play = s.full(prune_delay_s=40.0 if longest == "file" else 20.0)
    at = s.lock("o1", "o2", "o3", delay_s=40.0 if longest == "record" else 20.0)
    of_o1 = s.key("o1", delay_s=40.0 if longest == "body" else 20.0)
    play.on(1.0, s.WATCH, o.SlotsView(60, at, (of_o1, s.key("o2", delay_s=20.0), s.key("s", delay_s=20.0))))
    play.on(1.0, s.ASK, s.GONE)
    ours = play.contender.lock
    assert ours.try_at == pytest.approx(41.0)


def test_the_prune_delay_in_the_body_of_a_vanished_holder_is_kept() -> None:
    at = s.lock("o1", "o2", "o3", delay_s=20.0)
    keys = [s.key(name, delay_s=20.0) for name in ("o1", "o2")]
    play = s.in_line(o.SlotsView(60, at, (*keys, s.key("o3", delay_s=40.0))), prune_delay_s=20.0)
    play.on(1.0, s.WATCH, o.SlotsView(60, at, (*keys, s.key("s", delay_s=20.0))))
    play.on(1.0, s.ASK, s.GONE)
    assert play.contender.lock.try_at == pytest.approx(41.0)


def test_a_contender_key_without_a_session_counts_as_vanished() -> None:
    """A session of behavior release leaves such a key behind."""
    play = s.full()
    keys = (s.key("o1"), s.key("o2"), s.key("o3", alive=False), s.key("s"))
    play.on(1.0, s.WATCH, o.SlotsView(60, s.lock("o1", "o2", "o3"), keys))
    play.on(1.0, s.ASK, o.KeyView(60, None, b"me", 3, 60, 1))
    assert play.contender.lock.try_at == pytest.approx(31.0)


def test_a_vanished_holder_stays_in_the_record_when_another_slot_is_taken() -> None:
    """o2 vanished at 1, and o3 left at 2, so the slot of o3 is free and that of o2 is not."""
    play = s.full()
    play.on(1.0, s.WATCH, s.view("o1", "o3", "s", at=s.lock("o1", "o2", "o3")))
    play.on(1.0, s.ASK, s.GONE)
    told = Play.says(play.on(2.0, s.WATCH, s.view("o1", "s", at=s.lock("o1", "o2", index=70), index=70)))
    assert "take s as 3: o1 o2 s" in told


@pytest.mark.parametrize(("of_o1", "record_s", "written_s"), [(40.0, 20.0, 40.0), (20.0, 40.0, 30.0)])
def test_a_new_holder_writes_the_longest_prune_delay_of_all_holders(
    of_o1: float, record_s: float, written_s: float
) -> None:
    """A longer delay in the record counts no more once the holder that wrote it has left."""
    play = s.full()
    at = s.lock("o1", "o2", delay_s=record_s)
    keys = (s.key("o1", delay_s=of_o1), s.key("o2", delay_s=20.0), s.key("s"))
    play.on(1.0, s.WATCH, o.SlotsView(60, at, keys))
    record = play.last(s.TAKE).slot_record
    assert (record.limit, record.holders, record.prune_delay_s) == (3, ("o1", "o2", "s"), written_s)


def test_a_new_holder_keeps_the_recorded_prune_delay_of_a_vanished_holder() -> None:
    """The body of the vanished holder is gone, and only the record still has its prune delay."""
    play = s.full()
    play.on(1.0, s.WATCH, s.view("o2", "s", at=s.lock("o1", "o2", delay_s=40.0)))
    record = play.last(s.TAKE).slot_record
    assert (record.limit, record.holders, record.prune_delay_s) == (3, ("o1", "o2", "s"), 40.0)


def test_a_holder_that_a_single_read_still_shows_is_never_pruned() -> None:
    """An ACL may cut the list, so that a contender whose key is denied looks vanished."""
    play = s.full()
    play.on(1.0, s.WATCH, WITHOUT_O3)
    told = Play.says(play.on(1.1, s.ASK, o.KeyView(60, "o3", b"", 3, 3, 1)))
    assert "notice: the list below the prefix does not show o3" in told
    assert play.contender.lock.try_at == -float("inf") or not play.contender.may_try


def test_a_holder_whose_key_may_not_be_read_is_never_pruned() -> None:
    play = s.full()
    play.on(1.0, s.WATCH, WITHOUT_O3)
    play.on(1.1, s.ASK, o.Denied("Permission denied"))
    assert not play.contender.may_try
    assert "ask p/o3" in Play.says(play.happens(1.7, e.Tick()))


def test_after_the_record_was_deleted_no_slot_is_free_for_the_prune_delay() -> None:
    play = s.full()
    gone = s.view("o1", "o2", "o3", "s", at=None)
    assert f"ask p/{LOCK}" in Play.says(play.on(1.0, s.WATCH, gone))
    play.on(1.0, s.ASK, s.GONE)
    assert play.contender.lock.try_at == pytest.approx(31.0 + 3 * 0.2)


@pytest.mark.parametrize(("seen", "opens_at"), [(True, 31.0), (False, 50.0)])
def test_a_record_that_may_have_returned_meanwhile_restarts_the_prune_delay(
    seen: bool, opens_at: float
) -> None:
    play = s.full()
    play.on(1.0, s.WATCH, s.view("o1", "o2", "o3", "s", at=None, index=70))
    play.on(1.0, s.ASK, s.GONE)
    later = s.view("o1", "o2", "s", at=None, index=80)
    play.on(20.0, s.WATCH if seen else s.READ, later)
    if not seen:
        play.on(20.0, s.ASK, s.GONE)
    assert play.contender.lock.try_at == pytest.approx(opens_at + 2 * 0.2)


@pytest.mark.parametrize("kind", ["garbage", "lock"])
def test_a_record_of_another_program_is_left_alone(kind: str) -> None:
    play = s.waiting()
    shown = o.SlotsView(60, o.LockKey(9, 60, None, f"it is {kind}"))
    told = Play.says(play.on(0.2, s.WATCH, shown))
    assert told == "watch 60, notice: .lock is no semaphore's and is left alone"
    play.passes(20.0)
    assert not play.times(s.ENROLL)


# --- many --------------------------------------------------------------------------------------------


class Name(str):
    """A session that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def comparisons(count: int) -> int:
    """Return how many comparisons two answers cost: a record of N holders without keys, and one key."""
    play, names = s.full(), tuple(Name(f"o{number}") for number in range(count))
    Name.compared = 0
    play.on(1.0, s.WATCH, s.view("s", at=s.lock(*names), index=70))
    play.on(1.1, s.ASK, s.GONE)
    return Name.compared


def test_the_cost_of_vanished_holders_grows_in_proportion_to_their_number() -> None:
    """A site that has lost its power leaves as many vanished holders as a semaphore may have."""
    assert comparisons(2000) < 15 * comparisons(200)
