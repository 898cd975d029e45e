"""An outage that lasts: what a holder believes, what its record says, and what a guard waits for.

With `outage: 2m` the record says (120 + 2 x 3 + 5) / 0.95 = 137.9 s, and belief lasts 126 s: the outage, and
two intervals of 3 s.
"""

from typing import Any

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core.claim.guard import Guard, GuardEnd
from supervisor.core.claim.memory import Memory
from supervisor.core.claim.record import State, TenureRecord
from supervisor.core.contender.step import step
from supervisor.core.frozen import replace
from supervisor.core.lease import OUTAGE_LOCKOUT_MAX_S, lease_of
from supervisor.core.settings import NOWHERE, ItemSettings
from supervisor.core.times import NEVER
from tests.unit.core import play as p
from tests.unit.core.test_guard import FENCE, GUARDED, LOOK, MARK, RECORD, REWRITE, guarding, looking, shown

OUTAGE = replace(FENCE, exclusive=True, outage_s=120.0)
QUICK = replace(OUTAGE, outage_s=None)
LONG = replace(GUARDED, is_long=True)
SAID_S = 137.895  # (120 + 2 x 3 + 5) / 0.95
BELIEF_S = 126.0
HELD = replace(p.OURS, has_record_flags=True, is_long=True)
LONG_RECORD = replace(RECORD, lock_delay_s=1000.0, margin_s=1.5)


def holding(fence: Any = OUTAGE, **more: Any) -> p.Play:
    """Play until this node holds by an acquire that was sent at 0.2."""
    play = looking(fence=fence, **more)
    play.on(0.2, p.WATCH, p.FREE)
    play.on(0.3, p.ACQUIRE, p.WON)
    play.ends(0.4, "holding")
    return play


def given(play: p.Play, now: float, fence: Any, **more: Any) -> None:
    """Give the holder another file, soon after a contact."""
    play.passes(now)
    file: ItemSettings = replace(play.contender.settings, fence=fence, **more)
    play.happens(now, e.SettingsChanged("n", file))


def written(play: p.Play, now: float) -> None:
    """Let Consul carry out the rewrite that is under way."""
    play.on(now, REWRITE, o.Done(record_index=9))


def belief_s(play: p.Play) -> float:
    tenure = play.contender.tenure
    assert tenure is not None
    return tenure.expires_at(play.contender.lease) - tenure.contact


def test_a_holder_acts_for_the_outage_and_two_intervals() -> None:
    play = holding()
    acquire = play.last(p.ACQUIRE)
    assert (acquire.record.lock_delay_s, acquire.record.margin_s, acquire.is_long) == (SAID_S, 1.5, True)
    assert belief_s(play) == pytest.approx(BELIEF_S)
    play.passes(BELIEF_S, silent=True)
    assert play.role == "holding" and play.contender.rides_out(play.now)
    play.passes(BELIEF_S + 1.0, silent=True)
    assert play.last(a.StartHook).context.event == "lose"


def test_a_loss_after_a_long_silence_has_no_more_time_than_any_other() -> None:
    play = holding()
    play.passes(100.0, silent=True)
    play.happens(100.0, e.StopAsked(a.Reason.SHUTDOWN))
    tenure, lease = play.contender.tenure, play.contender.lease
    assert tenure is not None and tenure.rival_at(lease) == pytest.approx(100.0 + 5.0 + 1.5)
    assert tenure.reset_by(lease) == pytest.approx(100.0 + 5.0 + 0.75)


def test_a_loss_in_the_silence_goes_on_record_before_on_lose_because_a_process_may_still_adopt() -> None:
    play = holding()
    play.passes(100.0, silent=True)
    _, actions = step(play.contender, e.StopAsked(a.Reason.SHUTDOWN), 100.0)
    kinds = [type(each) for each in actions]
    assert kinds.index(a.WriteRecord) < kinds.index(a.StartHook)


def test_a_tenure_behind_a_guard_does_not_believe_by_the_one_before() -> None:
    play = holding()
    play.hears(3.0, e.StepDownAsked("n", 0.0), "start down#1: step-down, losing")
    play.ends(3.1, "release s and record, waiting")
    play.on(3.2, p.RELEASE, o.Done())
    play.happens(3.3, e.Tick())
    play.on(3.4, p.DESTROY, o.Done())
    play.happens(5.0, e.Tick())
    play.on(5.1, p.CREATE, o.Created("s"))
    play.on(5.2, LOOK, o.TenureShown(6))
    play.on(5.3, p.READ, replace(LONG, index=12, modify_index=12))
    play.on(5.4, p.ACQUIRE, o.Won(3, 13, 4))
    assert guard_of(play).is_long and belief_s(play) == p.ROOM_S


def test_while_belief_lasts_a_watchdog_counts_by_it() -> None:
    play = holding()
    tenure = play.contender.tenure
    assert tenure is not None
    assert tenure.reset_by(play.contender.lease) == pytest.approx(0.2 + BELIEF_S + 5.0 + 0.75)


@pytest.mark.parametrize("ttl_s", [None, 3600.0])
def test_a_long_ttl_lets_no_holder_read_less_often(ttl_s: float | None) -> None:
    assert lease_of(p.contender(ttl_s=ttl_s, lock_delay_s=60.0, fence=OUTAGE)).interval_s == 5.0


# --- longer and shorter --------------------------------------------------------------------------------


def test_what_is_longer_counts_once_the_record_and_then_the_journal_say_so() -> None:
    play = holding(QUICK)
    given(play, 1.0, OUTAGE)
    rewrite = play.last(REWRITE)
    assert rewrite.record.lock_delay_s == SAID_S and rewrite.record_index == p.WON.modify_index
    assert belief_s(play) == p.ROOM_S and play.records[-1].leased_s == 0.0
    play.disk_full = True
    written(play, 1.5)
    assert belief_s(play) == p.ROOM_S, "a crash would forget it"
    play.disk_full = False
    play.passes(3.0)
    assert play.records[-1].leased_s == pytest.approx(SAID_S, abs=0.001)
    assert belief_s(play) == pytest.approx(BELIEF_S)


def test_a_write_without_an_answer_gives_no_longer_belief_and_a_look_that_shows_it_does() -> None:
    play = holding(QUICK)
    given(play, 1.0, OUTAGE)
    said = play.last(REWRITE).record
    play.on(2.0, REWRITE, p.SILENCE)
    assert belief_s(play) == p.ROOM_S
    play.on(2.1, LOOK, shown(said, 9))
    assert belief_s(play) == pytest.approx(BELIEF_S)


def test_what_is_shorter_counts_with_the_next_contact_and_the_record_stays() -> None:
    play = holding()
    given(play, 1.0, QUICK)
    assert belief_s(play) == p.ROOM_S and play.records[-1].leased_s == 0.0
    assert not play.times(REWRITE) and play.contender.claim.said_s("s") == SAID_S
    play.on(1.1, LOOK, shown(play.last(p.ACQUIRE).record, 9))
    given(play, 4.0, OUTAGE)
    assert belief_s(play) == pytest.approx(BELIEF_S), "the record has said so all the time"


def test_hooks_that_take_longer_leave_less_belief_until_the_record_says_more() -> None:
    play = holding()
    given(play, 1.0, OUTAGE, on_lose=(p.hook("down", 15.0),))
    assert belief_s(play) == pytest.approx(BELIEF_S - 10.0)
    written(play, 1.5)
    assert belief_s(play) == pytest.approx(BELIEF_S)


@pytest.mark.parametrize("left", [None, "shorter"])
def test_a_holder_whose_record_is_gone_or_shorter_believes_by_the_lock_delay(left: str | None) -> None:
    play = holding()
    record = play.last(p.ACQUIRE).record
    read = o.TenureShown(8) if left is None else shown(replace(record, lock_delay_s=30.0), 8)
    play.on(1.0, LOOK, read)
    assert belief_s(play) == p.ROOM_S
    rewrite = play.last(REWRITE)
    assert (rewrite.record.lock_delay_s, rewrite.record_index) == (SAID_S, 8 if left else 0)
    written(play, 1.5)
    assert belief_s(play) == pytest.approx(BELIEF_S)


def test_a_record_that_has_changed_meanwhile_is_read_again_before_it_is_written() -> None:
    play = holding(QUICK)
    given(play, 1.0, OUTAGE)
    first = play.last(REWRITE)
    assert play.says(play.on(1.2, REWRITE, o.RecordExists())).startswith("look")
    play.on(1.3, LOOK, shown(replace(first.record, lock_delay_s=30.0, serial=7), 12))
    play.passes(3.0)
    second = play.last(REWRITE)
    assert (second.record_index, second.record.serial, second.record.lock_delay_s) == (12, 8, SAID_S)


# --- after a crash -----------------------------------------------------------------------------------


def adopting(step: a.Point = a.Point.HOLDING, fence: Any = OUTAGE, **more: Any) -> p.Play:
    settings = p.contender(fence=fence, **more)
    record = a.Record(
        step, "k", "s", token=7, create_index=3, lock_index=2, contact=100.0, leader=b"me", owes=True,
        leased_s=137.89473,
    )  # fmt: skip
    return p.Play(settings, record, 150.0, settings)


def test_a_supervisor_that_starts_in_the_silence_goes_on_by_its_journal() -> None:
    play = adopting()
    play.happens(150.0, e.Tick())
    assert play.role == "holding" and play.contender.may_act(150.0)
    play.passes(100.0 + BELIEF_S - 0.1, silent=True)
    assert play.role == "holding" and not play.times(a.StartHook)
    play.passes(100.0 + BELIEF_S + 0.1, silent=True)
    assert play.last(a.StartHook).context.event == "lose"


@pytest.mark.parametrize(
    ("step", "more"),
    [(a.Point.TENURE, {}), (a.Point.HOLDING, {"run": p.RUN}), (a.Point.HOLDING, {"on_adopt": "acquire"})],
)
def test_what_has_to_begin_again_waits_for_consul(step: a.Point, more: dict[str, Any]) -> None:
    play = adopting(step, **more)
    play.happens(150.0, e.Tick())
    play.passes(170.0, silent=True)
    assert play.role == "acquiring" and not play.contender.may_act(170.0)
    assert not play.times(a.StartHook) and not play.times(a.StartRun)


def test_neither_file_nor_record_lengthens_what_the_journal_says() -> None:
    settings = p.contender(fence=OUTAGE)
    record = a.Record(
        a.Point.HOLDING, "k", "s", token=7, create_index=3, contact=145.0, leader=b"me", owes=True
    )
    play = p.Play(settings, record, 150.0, settings)
    play.happens(150.0, e.Tick())
    said = TenureRecord("s", lock_delay_s=SAID_S, lose_time_s=5.0, target="here")
    play.on(150.1, LOOK, shown(said))
    assert play.contender.tenure is not None and belief_s(play) == p.ROOM_S


# --- behind the guard ----------------------------------------------------------------------------------


def guard_of(play: p.Play) -> Any:
    assert play.contender.guard is not None
    return play.contender.guard


def long_guard(record: TenureRecord | None = LONG_RECORD, **more: Any) -> p.Play:
    """Play until this node has acquired at 1.0 over a record behind the flags of a long one."""
    play = looking(**{"fence": QUICK, **more})
    play.does(0.2, p.WATCH, LONG, "acquire s over, watch 5")
    assert play.last(p.ACQUIRE).is_long, "a node without `outage` keeps the flags"
    play.on(1.0, p.ACQUIRE, p.WON)
    play.on(1.1, LOOK, shown(record))
    return play


def test_a_guard_waits_for_the_longest_that_it_has_read() -> None:
    play = long_guard()
    play.on(2.0, LOOK, shown(replace(LONG_RECORD, lock_delay_s=20.0), 8))
    assert guard_of(play).waits_until(QUICK) == 1001.0
    play.on(3.0, LOOK, shown(None, 9))
    assert guard_of(play).waits_until(QUICK) == 1001.0, "garbage and absence shorten nothing"


def test_a_record_that_cannot_be_read_stands_for_26_hours_behind_these_flags() -> None:
    assert guard_of(long_guard(None)).waits_until(QUICK) == 1.0 + OUTAGE_LOCKOUT_MAX_S
    assert guard_of(guarding(None)).waits_until(FENCE) == 61.0
    unread = looking(fence=QUICK)
    unread.on(0.2, p.WATCH, LONG)
    unread.on(1.0, p.ACQUIRE, p.WON)
    assert guard_of(unread).waits_until(QUICK) == 1.0 + OUTAGE_LOCKOUT_MAX_S


def test_what_is_read_late_opens_a_guard_again_that_time_had_ended() -> None:
    """A PUT over the key takes its flags, so a record that nobody has read counts as a minute."""
    guard = replace(Guard(1.0, NOWHERE, None), end=GuardEnd.WAITED)
    read = guard.observe(LONG_RECORD, "s", 62.0, 62.1)
    assert read.end is None and read.waits_until(QUICK) == 1001.0
    assert replace(guard, record=RECORD).observe(RECORD, "s", 62.0, 62.1).end == "waited"


def test_a_guard_that_outlasts_the_record_notes_no_more_than_that() -> None:
    guard = Guard(1.0, NOWHERE, None).observe(replace(LONG_RECORD, lock_delay_s=70.0), "s", 1.0, 1.0)
    assert guard.note_due_at == 61.0
    guard = guard.note(131.0)
    assert guard.noted_s == 70.0 and guard.note_due_at == NEVER


def test_a_guard_notes_what_it_has_waited_and_the_next_one_counts_on_from_there() -> None:
    play = long_guard()
    index = 6
    for minute in (1, 2):
        play.passes(0.9 + 60.0 * minute)
        play.happens(1.0 + 60.0 * minute, e.Tick())
        mark = play.last(MARK)
        assert (mark.record.waited_s, mark.index, mark.record.state) == (60.0 * minute, index, State.ACTING)
        index += 2
        play.on(1.1 + 60.0 * minute, MARK, o.Done())
        play.on(1.2 + 60.0 * minute, LOOK, shown(mark.record, index))
    after = long_guard(mark.record)
    assert guard_of(after).waits_until(QUICK) == pytest.approx(1.1 + 1000.0 - 120.0), "from its first look"


def test_a_holder_that_says_that_it_stops_has_the_margin_of_its_lock_delay() -> None:
    stops = replace(LONG_RECORD, state=State.STOPPING, lose_time_s=13.0)
    assert guard_of(long_guard(stops)).shoots_at(QUICK) == pytest.approx(1.1 + 13.0 + 1.5)


def test_a_node_that_was_without_consul_lets_a_holder_that_lives_be_heard_first() -> None:
    play = knowing()
    play.passes(8.0, silent=True)
    play.happens(8.1, e.Tick())
    play.on(8.2, p.RENEW, o.SessionAlive())
    returned_at = 8.2
    play.on(9.1, p.READ, replace(LONG, index=12, modify_index=12))
    play.on(9.2, p.ACQUIRE, o.Won(3, 13, 4))
    play.on(9.3, LOOK, shown(LONG_RECORD, 9))
    assert guard_of(play).shoots_at(OUTAGE) == pytest.approx(returned_at + 5.0 + 2.0)


@pytest.mark.parametrize("record", [LONG_RECORD, None])
def test_a_release_during_the_guard_keeps_the_flags(record: TenureRecord | None) -> None:
    play = long_guard(record)
    play.happens(2.0, e.StopAsked(a.Reason.SHUTDOWN))
    release = play.last(p.RELEASE)
    assert release.over_record and release.is_long and not release.ends_record


def test_a_node_without_a_fence_takes_the_record_out_by_its_index() -> None:
    play = guarding(replace(RECORD, state=State.ENDED), fence=None)
    rewrite = play.last(REWRITE)
    assert rewrite.ends_record and rewrite.record_index == 6


# --- Consul loses its word -------------------------------------------------------------------------------


def knowing(**more: Any) -> p.Play:
    """Play until this node waits, and has read the long record of a holder."""
    play = looking(**{"fence": OUTAGE, **more})
    play.on(0.2, p.WATCH, replace(p.RIVAL, session="old", has_record_flags=True, is_long=True))
    play.passes(0.5)
    play.on(0.6, LOOK, shown(LONG_RECORD, 9))
    return play


def test_a_key_made_anew_is_guarded_as_before_and_nobody_is_shot() -> None:
    play = knowing()
    play.on(1.0, p.WATCH, o.KeyView(10))
    assert not play.times(p.ACQUIRE), "another server may lag behind: a consistent read is wanted"
    play.on(1.1, p.READ, o.KeyView(10))
    acquire = play.last(p.ACQUIRE)
    assert acquire.record is None and not acquire.over_record
    play.on(1.3, p.ACQUIRE, p.WON)
    play.on(2.1, LOOK, o.TenureShown(4))
    guard = guard_of(play)
    assert guard.waits_until(OUTAGE) == pytest.approx(guard.lost_at + 1000.0)
    assert guard.shoots_at(OUTAGE) == NEVER and play.contender.reason == "waits for db1"
    ended = replace(LONG_RECORD, state=State.ENDED)
    play.on(2.5, LOOK, shown(replace(ended, session="older"), 11))
    assert guard_of(play).end is None, "an earlier tenure, which the snapshot has brought back"
    play.on(3.0, LOOK, shown(ended, 12))
    assert play.last(REWRITE).record_index == 12, "the former holder has said that it has ended"


def test_a_record_that_is_older_than_it_was_is_waited_for_as_it_was() -> None:
    play = knowing()
    play.on(1.0, p.WATCH, replace(GUARDED, index=12, modify_index=12))
    play.on(1.1, p.ACQUIRE, p.WON)
    play.on(1.3, LOOK, shown(replace(LONG_RECORD, lock_delay_s=30.0), 5))
    guard = guard_of(play)
    assert guard.is_blind and guard.waits_until(OUTAGE) == pytest.approx(guard.lost_at + 1000.0)


def test_a_record_that_got_shorter_in_its_tenure_is_one_of_another_consul() -> None:
    play = looking(fence=OUTAGE)
    play.on(0.2, p.WATCH, replace(p.RIVAL, session="old", has_record_flags=True, is_long=True))
    play.on(0.3, p.WATCH, replace(GUARDED, index=12, modify_index=12))
    play.on(0.4, p.ACQUIRE, p.WON)
    play.on(0.5, LOOK, shown(RECORD))
    assert guard_of(play).is_blind
    assert guard_of(play).longest_s == pytest.approx(SAID_S, abs=0.001), "as long as its own file asks for"


def test_a_key_that_fell_back_to_an_earlier_holder_is_one_of_another_consul() -> None:
    """Also while it has the flags of a long record, and where the holder before is the one that tries."""
    play = knowing()
    play.on(1.0, p.WATCH, replace(LONG, index=10, modify_index=8))
    play.on(1.1, p.READ, replace(LONG, index=10, modify_index=8))
    lost = play.contender.claim.memory.lost
    assert lost is not None and (lost.lease_s, lost.former, lost.is_ours) == (1000.0, LONG_RECORD, False)


def test_a_holder_whose_consul_fell_back_to_an_earlier_one_shoots_nobody_either() -> None:
    """The record that a snapshot has brought back may name a machine that has done nothing since."""
    play = holding()
    play.happens(3.2, e.Tick())
    play.on(3.3, p.READ, replace(p.RIVAL, index=6, modify_index=6, has_record_flags=True, is_long=True))
    assert play.contender.claim.memory.lost is not None and play.contender.claim.memory.lost.is_ours
    claim = play.contender.claim.begun(HELD, "new", 4.0, None, 4.0)
    assert claim.guard is not None and claim.guard.is_blind and claim.guard.word_of is None


def test_a_short_record_that_follows_a_long_one_is_no_other_consul() -> None:
    """The next holder has acquired behind the flags, and its guard has ended before this node looked."""
    memory = Memory().seen(replace(p.RIVAL, has_record_flags=True, is_long=True))
    next_record = replace(RECORD, session="rival")
    assert not memory.contradicts(shown(next_record, 10)) and memory.contradicts(shown(next_record, 8))
    assert memory.read(next_record, 10).view is None


def test_who_waits_for_a_holder_that_it_does_not_know_counts_the_longest() -> None:
    play = knowing(fence=QUICK)
    play.on(0.7, p.WATCH, replace(LONG, index=10, modify_index=10))  # who has the key next is not seen
    play.on(0.8, p.ACQUIRE, o.LostRace())
    play.happens(1.9, e.Tick())
    play.on(2.0, p.READ, o.KeyView(3))
    lost = play.contender.claim.memory.lost
    assert lost is not None and (lost.lease_s, lost.former) == (OUTAGE_LOCKOUT_MAX_S, None)


def test_a_loser_says_how_long_its_hooks_in_force_take() -> None:
    play = holding()
    given(play, 4.0, OUTAGE, on_lose=(p.hook("down", 15.0),))
    play.on(5.0, REWRITE, p.SILENCE)
    play.happens(7.0, e.Tick())
    play.on(7.1, p.READ, replace(LONG, index=12, modify_index=12))
    assert play.last(MARK).record.lose_time_s == 15.0


def test_the_former_holder_says_in_the_new_consul_that_it_has_ended() -> None:
    play = holding()
    play.happens(3.2, e.Tick())
    play.on(3.3, p.READ, o.KeyView(10))
    play.on(3.4, MARK, o.LostRace())
    play.passes(4.0)
    play.ends(4.1, "release s and record, waiting")
    play.on(4.2, p.RELEASE, o.Done(held=False))
    play.passes(4.5)
    for at in (4.6, 4.7):  # the first one was sent before the destroy
        play.on(at, LOOK, o.TenureShown(4))
    mark = play.last(MARK)
    assert (mark.record.session, mark.record.state, mark.index) == ("s", State.ENDED, 0)
    play.on(4.8, MARK, o.Done())
    assert not play.contender.claim.settles
