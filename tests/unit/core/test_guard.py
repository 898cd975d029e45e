"""A node that acquires over another's tenure record waits behind a guard, and no longer than it must."""

from typing import Any

import pytest

from supervisor.config.formats.tenure_record import decoded, encoded
from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as req
from supervisor.core.claim.record import UNREADABLE, State, TenureRecord, in_whole_ms
from supervisor.core.contender.step import step
from supervisor.core.frozen import replace
from supervisor.core.settings import Fence, Place
from supervisor.core.times import NEVER
from tests.unit.core import play as p

LOOK = req.WatchTenure
REWRITE = req.Rewrite
MARK = req.MarkTenure
FENCE = Fence(p.hook("fence", 20.0, retries=1000), target="here", after_s=2.0)
GUARDED = replace(p.FREE, has_record_flags=True)
ELSEWHERE = Place("other machine", "db1", "b")
RECORD = TenureRecord(
    "old", lock_delay_s=10.0, lose_time_s=3.0, target="db1", node="n1", place=ELSEWHERE, token=4
)


def shown(record: TenureRecord | None, index: int = 6) -> o.TenureShown:
    return o.TenureShown(index, index, record)


def looking(**more: Any) -> p.Play:
    """Play until the contender has looked, before its first try."""
    play = p.beginning(**{"fence": FENCE, **more})
    play.does(0.1, p.CREATE, o.Created("s"), "look")
    play.on(0.1, LOOK, shown(None))
    return play


def guarding(record: TenureRecord | None = RECORD, **more: Any) -> p.Play:
    """Play until the node has acquired over a record: Consul's answer comes at 1.0, and the record at 1.1."""
    play = looking(**more) if more.get("fence", FENCE) is not None else p.waiting(**more)
    fenced = more.get("fence", FENCE) is not None
    # A node without a fence notes first that it owes the flags.
    play.does(0.2, p.WATCH, GUARDED, "acquire s over, watch 5" if fenced else "watch 5, acquire s over")
    play.does(1.0, p.ACQUIRE, p.WON, "look, acquiring")
    play.on(1.1, LOOK, shown(record))
    return play


def test_an_acquire_in_order_writes_the_record_and_the_release_takes_it_away() -> None:
    play = looking()
    play.does(0.2, p.WATCH, p.FREE, "acquire s with record, watch 5")
    claim = play.last(p.ACQUIRE).record
    assert (claim.session, claim.state, claim.target, claim.lock_delay_s) == ("s", State.ACTING, "here", 30.0)
    play.does(0.3, p.ACQUIRE, p.WON, "start up#1: acquired, record 7, acquiring")
    assert play.last(a.StartHook).context.previous == a.Previous("released")
    play.ends(0.4, "holding")
    play.hears(1.0, e.StepDownAsked("n", 60.0), "start down#1: step-down, losing")
    play.ends(1.1, "release s and record, resting")
    play.does(1.2, p.RELEASE, o.Done(), "")
    play.passes(1.3)
    assert play.contender.session.stage == "absent", "nothing is owed"


def test_nothing_acts_until_the_former_holder_says_that_it_has_ended() -> None:
    play = guarding()
    assert play.role == "acquiring" and not play.times(a.StartHook)
    play.does(1.5, LOOK, shown(replace(RECORD, state=State.ENDED), 8), "claim s, record 8")
    play.on(1.6, REWRITE, o.Done())
    assert play.last(a.StartHook).context.previous == a.Previous("said", "db1", "n1", "db1", 4)
    assert play.contender.tenure is not None and play.contender.tenure.contact == 1.5


def test_a_guard_reads_the_record_although_a_put_has_taken_the_flags() -> None:
    play = p.waiting(fence=None)
    play.on(0.2, p.WATCH, GUARDED)
    play.on(1.0, p.ACQUIRE, p.SILENCE)
    play.passes(1.4)
    play.happens(1.5, e.Tick())
    play.on(1.6, p.READ, p.OURS)
    for at in (1.7, 1.8):  # the first one was sent before the tenure
        play.on(at, LOOK, shown(RECORD))
    assert play.contender.guard is not None and play.contender.guard.record == RECORD


def test_the_fence_begins_when_the_holder_had_its_time_and_its_success_lets_this_node_act() -> None:
    """The key was free at 0.2, which a holder that lives has seen as well."""
    play = guarding()
    play.does(2.1, "")
    play.does(2.2, "look")  # the watch may hang, and the holder have said something meanwhile
    play.on(2.2, LOOK, shown(RECORD))
    assert play.last(a.StartHook).hook.name == "fence"
    assert play.last(a.StartHook).context.previous == a.Previous("", "db1", "n1", "db1", 4, "fence")
    play.ends(3.5, "claim s, read")
    play.on(5.0, REWRITE, p.SILENCE)  # the machine that was shot may have run Consul's leader
    play.passes(6.0)  # Consul answers again
    assert play.last(a.StartHook).context.previous == a.Previous("fenced", "db1", "n1", "db1", 4, "fence")


def test_no_fence_begins_before_the_acquire_is_answered() -> None:
    play = guarding(fence=replace(FENCE, after_s=0.5))
    play.on(1.2, LOOK, shown(RECORD))
    play.passes(1.3)
    assert play.times(a.StartHook) == [pytest.approx(1.1, abs=0.2)]


def test_a_fence_that_fails_is_tried_again_and_time_ends_the_guard() -> None:
    play = guarding()
    play.does(3.0, "look")
    play.on(3.0, LOOK, shown(RECORD))
    play.ends(3.1, "", ok=False)
    play.passes(4.1)
    play.on(4.1, LOOK, shown(RECORD))
    play.passes(10.9)
    assert [each.hook.name for _, each in play.log if isinstance(each, a.StartHook)][:2] == ["fence", "fence"]
    assert not play.times(REWRITE)
    play.passes(11.0)
    assert play.says([play.last(a.KillHook)]) == "kill fence", "a shot must not come when this node acts"
    assert not play.times(REWRITE)
    play.ends(11.5, "claim s", ok=False)
    play.on(11.6, REWRITE, o.Done())
    assert play.last(a.StartHook).context.previous.end == "waited"


def test_a_machine_that_has_booted_anew_meanwhile_is_not_shot_again() -> None:
    """The watch on the record may hang, so each further attempt is preceded by a look of its own."""
    play = guarding()
    play.does(3.0, "look")
    play.on(3.0, LOOK, shown(RECORD))
    play.ends(3.1, "", ok=False)
    play.passes(4.0)
    play.does(4.1, "look")
    play.does(4.2, LOOK, shown(replace(RECORD, state=State.ENDED), 8), "claim s, record 8")
    assert len(play.times(a.StartHook)) == 1


def test_the_guard_counts_from_the_answer_to_the_acquire() -> None:
    play = guarding(fence=None)
    play.passes(10.9)
    assert not play.times(REWRITE)
    play.passes(11.0)
    assert play.times(REWRITE) == [11.0]
    assert play.says([play.last(REWRITE)]) == "clear s", "a node without a fence keeps no record"


@pytest.mark.parametrize("record", [None, UNREADABLE], ids=["absent", "unreadable"])
def test_a_record_that_shows_nothing_is_waited_for_as_long_as_any(record: TenureRecord | None) -> None:
    play = guarding(record)
    play.passes(60.9)
    assert not play.times(REWRITE) and not play.times(a.StartHook)
    play.passes(61.0)
    assert play.times(REWRITE) == [61.0]


SPARED = [{"target": None}, {"target": "here"}, {"place": Place("m", "h", "b")}]


@pytest.mark.parametrize(("change", "shots"), [({}, 1), *((each, 0) for each in SPARED)])
def test_nobody_is_shot_without_a_target_and_no_node_shoots_itself(
    change: dict[str, Any], shots: int
) -> None:
    play = guarding(replace(RECORD, **change))
    claim = play.contender.claim
    assert claim.guard is not None
    guard = replace(claim.guard, here=Place("m", "h", "c"))
    play.contender = replace(play.contender, claim=replace(claim, guard=guard))
    play.passes(2.2)
    if shots:
        play.on(2.2, LOOK, shown(replace(RECORD, **change)))
    play.passes(10.9)
    assert len(play.times(a.StartHook)) == shots


def test_nobody_is_shot_by_a_record_that_is_gone() -> None:
    """Its holder may live, and cannot say any more that it has ended. Its lease counts all the same."""
    play = guarding()
    play.on(play.now, LOOK, shown(None))
    guard = play.contender.guard
    assert guard is not None and (guard.shoots_at(FENCE), guard.waits_until(FENCE)) == (NEVER, 11.0)


def test_a_record_of_another_tenure_that_comes_back_is_waited_for_anew() -> None:
    """As by a restored snapshot. A holder that has said that it stops is left in peace all the same."""
    play = guarding()
    stops = guarding(replace(RECORD, state=State.STOPPING))
    stops.on(2.0, LOOK, shown(RECORD, 7))
    play.on(2.0, LOOK, shown(replace(RECORD, session="older"), 7))
    both = guarding(replace(RECORD, state=State.STOPPING))
    both.on(2.0, LOOK, shown(replace(RECORD, session="older", state=State.STOPPING), 7))
    acts = guarding(replace(RECORD, state=State.STOPPING))
    acts.on(2.0, LOOK, shown(replace(RECORD, session="older"), 7))
    for each, shot_at in ((play, 4.0), (acts, 4.0), (stops, 4.6), (both, 5.5)):
        each.passes(shot_at - 0.1)
        looks = len(each.times(LOOK))
        each.passes(shot_at)
        assert each.times(LOOK)[looks:] == [shot_at], "it may be shot now"


def test_required_waits_for_the_word_of_an_operator() -> None:
    play = guarding(fence=replace(FENCE, required=True), record=replace(RECORD, target=None))
    play.passes(200.0)
    assert play.role == "acquiring" and not play.times(REWRITE)
    play.hears(200.1, e.ConfirmOffAsked("n"), "claim s")


def test_a_waiter_puts_right_what_this_machine_left_before_its_boot() -> None:
    here = Place("m", "h", "now")
    left = TenureRecord("old", target="here", place=replace(here, boot="before"))
    play = p.Play(p.contender(fence=FENCE))
    play.contender = replace(play.contender, claim=replace(play.contender.claim, here=here))
    play.does(0.0, "create, watch 0 consistently")
    play.on(0.1, p.CREATE, o.Created("s"))
    play.does(0.2, LOOK, shown(left, 4), "mark old ended")
    play.does(0.3, MARK, o.Done(), "")
    play.does(0.4, p.WATCH, GUARDED, "acquire s over, watch 5")
    other = replace(left, place=ELSEWHERE)
    play = p.Play(p.contender(fence=FENCE))
    play.contender = replace(play.contender, claim=replace(play.contender.claim, here=here))
    play.does(0.0, "create, watch 0 consistently")
    play.on(0.1, p.CREATE, o.Created("s"))
    play.on(0.2, LOOK, shown(other, 4))
    assert play.last(MARK).record.target is None, "the name means this machine now"


def test_a_guard_takes_nothing_from_the_record_of_an_earlier_one() -> None:
    """Its first look at the record may have no answer."""
    play = guarding(replace(RECORD, state=State.ENDED))
    assert play.times(REWRITE) == [1.1]
    play.hears(1.2, e.StepDownAsked("n", 1.0), "resting")
    play.on(1.3, REWRITE, o.LostRace())
    play.on(1.4, p.RELEASE, o.Done())
    play.passes(2.2)
    play.on(2.3, LOOK, shown(None))
    play.on(2.4, p.CREATE, o.Created("t"))
    play.on(2.5, LOOK, shown(None))
    play.on(2.6, req.ReadKey, GUARDED)
    play.on(2.7, p.ACQUIRE, p.WON)
    play.on(2.8, LOOK, p.SILENCE)
    assert play.times(REWRITE) == [1.1] and play.contender.guard is not None


def test_a_holder_looks_before_it_writes_the_record_that_a_reload_asks_for() -> None:
    """Else it would watch no record, and never say that it stops. What it saw as a waiter is of another."""
    play = p.waiting()
    play.on(0.2, p.WATCH, replace(p.RIVAL, has_record_flags=True))
    play.passes(0.5)
    play.on(0.6, LOOK, shown(None))
    play.on(0.7, p.WATCH, replace(p.FREE, modify_index=9, index=9))
    play.on(0.8, p.ACQUIRE, replace(p.WON, modify_index=10))
    play.ends(0.9, "holding")
    looks = len(play.times(LOOK))
    play.happens(1.0, e.SettingsChanged("n", p.contender(fence=FENCE)))
    play.passes(4.0)
    assert len(play.times(LOOK)) == looks + 1 and not play.times(REWRITE)
    play.on(4.1, LOOK, shown(None))
    assert play.times(REWRITE) == [4.1]


def test_a_key_of_another_is_guarded_by_our_own_record_alone() -> None:
    play = looking()
    play.on(0.2, p.WATCH, p.FREE)
    play.on(0.3, p.ACQUIRE, p.WON)
    play.on(0.4, LOOK, shown(RECORD))
    play.on(0.5, p.WATCH, replace(GUARDED, session="rival", modify_index=9, lock_index=9))
    play.on(0.6, p.WATCH, replace(GUARDED, session="rival", modify_index=9, lock_index=9))
    assert play.contender.tenure is not None and play.contender.tenure.taken_at is not None


def test_a_waiter_whose_record_may_be_there_learns_at_once_that_its_session_is_gone() -> None:
    """Otherwise the next holder would take it for one that was lost, and shoot it."""
    play = looking()
    play.does(0.2, p.WATCH, p.FREE, "acquire s with record, watch 5")
    play.on(0.3, p.ACQUIRE, p.SILENCE)  # it was applied, and then Consul has ended the session
    play.does(0.4, p.WATCH, replace(p.RIVAL, has_record_flags=True), "renew s, watch 9, info rival")
    play.on(0.5, req.RenewSession, o.SessionGone())
    play.passes(0.7)
    assert play.times(p.DESTROY) and play.contender.claim.standing == "settling"


@pytest.mark.parametrize("order", [e.StopAsked(), e.ItemRemoved("n")], ids=["stops", "departs"])
def test_what_a_session_may_have_left_is_settled_while_there_is_time(order: e.Event) -> None:
    """A process that ends asks once. One that goes on asks until Consul has surely forgotten the session."""
    play = looking()
    play.on(0.2, p.WATCH, p.FREE)
    play.on(0.3, p.ACQUIRE, p.SILENCE)  # it may have been applied
    play.happens(0.4, order)
    play.on(0.5, p.RELEASE, o.Done())
    play.happens(0.6, e.Tick())
    play.on(0.8, p.DESTROY, o.Done())
    assert play.contender.record.session == "s" and play.contender.record.owes, "for the next process"
    ended_at = 0.9 if isinstance(order, e.StopAsked) else 0.4 + 2 * 9 + 30
    while play.role != "stopped" and play.now < 60.0:
        play.on(max(play.now + 0.1, 0.9), LOOK, p.SILENCE)
        play.passes(play.now + 1.0)
    assert ended_at <= play.now < ended_at + 3.0


def test_a_record_found_without_its_flags_is_forgotten_once_another_holds() -> None:
    play = looking()
    play.does(0.2, p.WATCH, p.FREE, "acquire s with record, watch 5")
    play.on(0.3, p.ACQUIRE, o.RecordExists())
    play.does(0.4, p.READ, p.FREE, "acquire s over")
    play.on(0.5, p.ACQUIRE, o.LostRace())
    play.on(0.6, p.READ, p.RIVAL)
    play.on(0.7, p.WATCH, p.RIVAL)
    play.does(2.0, p.WATCH, replace(p.FREE, modify_index=10, index=10), "acquire s with record, watch 10")


def test_a_win_that_only_a_read_shows_is_guarded_although_a_put_took_the_flags_away() -> None:
    play = looking()
    play.does(0.2, p.WATCH, GUARDED, "acquire s over, watch 5")
    play.on(0.3, p.ACQUIRE, p.SILENCE)
    while not any(isinstance(each, p.READ) for each in play.under_way):
        play.happens(play.deadline, e.Tick())
    play.on(play.now, p.READ, p.OURS)
    assert play.contender.tenure is not None and play.contender.tenure.phase == "guarding"


def test_a_node_that_may_not_write_the_record_gives_the_key_back() -> None:
    play = guarding(replace(RECORD, state=State.ENDED))
    play.on(1.2, REWRITE, p.FORBIDDEN)
    assert play.role != "acquiring" and play.says([play.last(p.RELEASE)]) == "release s only"


@pytest.mark.parametrize("lose_time_s", [1.1 + 2.2, 44.44444, 0.1 + 0.2, 7.0])
def test_a_record_that_was_read_equals_the_one_that_was_written(lose_time_s: float) -> None:
    """Otherwise its holder would write it again and again."""
    claim = replace(RECORD, session="5e", lock_delay_s=30.0, lose_time_s=in_whole_ms(lose_time_s))
    assert decoded(encoded(claim), 1) == claim and claim.lose_time_s >= lose_time_s - 1e-9


# --- records of this machine -------------------------------------------------------------------------

HERE = Place("machine", "db2", "boot", "journal")
MINE = replace(RECORD, node="n2", target="db2", place=HERE)
KEPT = replace(p.RIVAL, has_record_flags=True)


def at(place: Place, record: TenureRecord, view: o.KeyView = KEPT, **more: Any) -> p.Play:
    """Play a node at that place until it has read this record, which the key's flags tell of."""
    play = p.Play(p.contender(**{"fence": FENCE, **more}))
    play.contender = replace(play.contender, claim=replace(play.contender.claim, here=place))
    play.happens(0.0, e.Tick())
    play.on(0.1, p.WATCH, view)
    play.passes(0.6)
    play.on(0.7, LOOK, shown(record))
    return play


@pytest.mark.parametrize("how", [{}, {"contend": False}, {"fence": None}])
@pytest.mark.parametrize("view", [KEPT, GUARDED])
@pytest.mark.parametrize("place", [HERE, replace(HERE, boot="next"), replace(HERE, boot="next", journal="")])
def test_a_node_of_which_nothing_acts_ends_what_its_boot_or_its_journal_has_left(
    how: dict[str, Any], view: o.KeyView, place: Place
) -> None:
    """A restored snapshot shows such a record also to a node that only observes."""
    play = at(place, MINE, view, **how)
    assert play.says([play.last(MARK)]) == "mark old ended" and play.last(MARK).index == 6


@pytest.mark.parametrize("place", [
    replace(HERE, journal="younger"), replace(HERE, journal=""), replace(HERE, machine="clone"),
    replace(HERE, machine=""), replace(HERE, boot=""),
])  # fmt: skip
def test_a_journal_that_is_not_the_one_of_the_record_ends_nothing(place: Place) -> None:
    assert not at(place, MINE).times(MARK)


def test_a_record_of_another_process_here_stays_until_an_operator_disowns_it() -> None:
    play = at(replace(HERE, journal="another"), MINE)
    assert "consul-supervisor recover n" in play.contender.told_notice
    play.hears(1.0, e.RecoverAsked("n"), "mark old ended, no notice")


def test_no_operator_disowns_the_record_of_another_machine() -> None:
    play = at(HERE, RECORD)
    play.happens(1.0, e.RecoverAsked("n"))
    assert not play.times(MARK)


def test_one_target_in_two_files_is_told_before_the_crash() -> None:
    play = at(HERE, replace(RECORD, target="here"))
    assert not play.contender.told_notice, "this node does not know its own name yet"
    play.contender = replace(play.contender, session=replace(play.contender.session, node="n2"))
    play.happens(5.0, e.Stalled(2.0))
    assert "no fence would run against db1, because its target here" in play.contender.told_notice


@pytest.mark.parametrize("place, said", [
    (replace(HERE, boot="next"), "mark old stopping"),
    (replace(HERE, machine="clone", boot="next"), ""),
])  # fmt: skip
def test_a_process_after_a_boot_says_of_its_own_machine_that_its_former_tenure_stops(
    place: Place, said: str
) -> None:
    """Its on_lose runs, and a fence would hit the machine that has booted. A copied journal says nothing."""
    record = a.Record(
        a.Point.HOLDING, key="k", session="old", token=4, create_index=3, lock_index=1, contact=-50.0,
        leader=b"me", foreign=True, owes=True,
    )  # fmt: skip
    play = p.Play(p.contender(fence=FENCE), record)
    play.contender = replace(play.contender, claim=replace(play.contender.claim, here=place))
    play.happens(0.0, e.Tick())
    play.on(0.1, LOOK, shown(MINE))
    play.on(0.2, p.WATCH, GUARDED)
    assert play.says([action for _, action in play.log if isinstance(action, MARK)]) == said


def test_a_write_that_nobody_answers_is_read_before_it_is_repeated() -> None:
    play = at(HERE, MINE, GUARDED)
    looks = len(play.times(LOOK))
    play.on(0.8, MARK, p.SILENCE)
    play.passes(2.5)
    assert len(play.times(LOOK)) > looks and len(play.times(MARK)) == 1
    play.on(2.6, LOOK, shown(MINE, 8))
    assert play.last(MARK).index == 8


def test_a_token_without_the_right_asks_no_more_before_the_key_changes() -> None:
    play = at(HERE, MINE)
    play.on(0.8, MARK, p.FORBIDDEN)
    looks = len(play.times(LOOK))
    play.passes(20.0)
    assert len(play.times(LOOK)) == looks and len(play.times(MARK)) == 1


def test_a_node_that_only_saw_a_record_marks_no_key_as_it_leaves() -> None:
    """Whoever acquires a marked key waits for the record, and there would be none."""
    play = p.waiting(fence=None)
    play.hurries = False
    play.happens(0.2, e.Answered(play.pending(p.WATCH), GUARDED))
    play.on(0.3, p.ACQUIRE, o.LostRace())
    play.on(0.4, p.READ, replace(p.FREE, modify_index=8))
    play.passes(3.0)
    play.ends(3.0, "holding")
    play.hears(3.1, e.StopAsked(), "start down#1: shutdown, losing")
    play.ends(3.2, "release s, waiting")


def test_a_session_on_record_reads_the_flags_before_its_release() -> None:
    record = a.Record(a.Point.SESSION, key="k", session="old", owes=True)
    play = p.Play(p.contender(fence=FENCE), record)
    play.does(0.0, "read, watch 0 consistently")
    play.does(0.1, p.READ, p.FREE, "release old")


def test_a_look_without_an_answer_lets_no_fence_begin() -> None:
    """The holder may have said something meanwhile, and the watch on its record was given up for the look."""
    for outcome in (p.SILENCE, p.FORBIDDEN):
        play = guarding()
        play.does(3.0, "look")
        play.on(3.2, LOOK, outcome)
        play.passes(4.4)
        assert len(play.times(LOOK)) == 5, "it is read again after a pause"
        play.on(4.5, LOOK, shown(replace(RECORD, state=State.STOPPING), 8))
        assert not play.times(a.StartHook)


def test_the_record_of_a_holder_beside_this_node_is_nobodys_to_disown() -> None:
    play = at(replace(HERE, journal="another"), replace(MINE, session="rival"))
    assert not play.contender.told_notice
    play.happens(1.0, e.RecoverAsked("n"))
    assert not play.times(MARK)


def test_a_session_that_is_given_up_watches_no_record() -> None:
    record = a.Record(a.Point.SESSION, key="k", session="old", owes=True)
    play = p.Play(p.contender(fence=FENCE), record)
    play.happens(0.0, e.Tick())
    play.on(0.1, p.READ, replace(p.OURS, session="old", has_record_flags=True))
    assert not play.times(LOOK)


def test_an_orderly_end_leaves_nothing_to_warn_of() -> None:
    """The node keeps what it knew of its own record no longer than the record is there."""
    play = looking()
    play.contender = replace(play.contender, claim=replace(play.contender.claim, here=HERE))
    play.on(0.2, p.WATCH, p.FREE)
    play.on(0.3, p.ACQUIRE, p.WON)
    play.ends(0.4, "holding")
    play.happens(1.0, e.StepDownAsked("n", 60.0))
    play.ends(1.1, "release s and record, resting")
    play.on(1.2, p.RELEASE, o.Done())
    play.passes(2.0)
    assert play.contender.session.id == "" and not any(
        isinstance(each, a.NoticeChanged) for _, each in play.log
    )


def test_a_look_that_is_under_way_at_the_acquire_is_repeated_and_not_doubled() -> None:
    """The guard goes by a look that began after the acquire."""
    play = looking(acquire_delay_s=0.4)
    play.does(0.2, p.WATCH, GUARDED, "watch 5")
    play.does(0.45, "look")
    play.does(0.61, "acquire s over")
    play.does(0.7, p.ACQUIRE, p.WON, "acquiring")
    play.does(0.8, LOOK, shown(replace(RECORD, state=State.ENDED)), "look")
    play.does(0.9, LOOK, shown(RECORD), "record 6, acquiring")
    assert play.contender.guard is not None and play.contender.guard.end is None


def test_a_waiter_looks_again_while_the_record_does_not_name_the_holder() -> None:
    """A claim behind a guard writes the record, and leaves the key as it is."""
    play = looking()
    play.on(0.2, p.WATCH, replace(p.RIVAL, has_record_flags=True))
    play.passes(0.5)
    play.on(0.5, LOOK, shown(RECORD))
    assert play.contender.others_record == RECORD
    play.passes(5.5)
    play.on(5.5, LOOK, shown(replace(RECORD, session="rival", place=HERE)))
    looks = play.times(LOOK)
    play.passes(30.0)
    assert play.times(LOOK) == looks


# --- the look before the first try --------------------------------------------------------------------

NAMED = replace(RECORD, target="n1", place=ELSEWHERE)  # by the name that this node has now


def unverified(**more: Any) -> p.Play:
    """Play until a session is created, while the free key has the flags of a record."""
    play = p.Play(p.contender(**{"fence": replace(FENCE, target=None), **more}))
    play.verifies = False
    play.contender = replace(play.contender, claim=replace(play.contender.claim, here=HERE))
    play.happens(0.0, e.Tick())
    play.on(0.05, p.WATCH, GUARDED)
    play.on(0.1, p.CREATE, o.Created("s"))
    return play


def test_a_look_that_did_not_know_our_name_is_not_the_one_before_the_first_try() -> None:
    """Otherwise this machine is shot in the place of the one that had the name before."""
    play = unverified()
    play.does(0.3, "look")
    play.on(0.32, LOOK, shown(NAMED))
    play.does(0.4, p.RENEW, o.SessionAlive("n1"), "mark old acting")
    assert play.last(MARK).record.target is None and not play.times(p.ACQUIRE)
    play.on(0.6, MARK, o.Done())
    play.passes(0.7)
    assert play.times(p.ACQUIRE)


def test_a_verified_session_looks_at_once_although_another_look_is_due_later() -> None:
    play = unverified()
    play.does(0.15, p.RENEW, o.SessionAlive("n2"), "look")
    play.on(0.2, LOOK, shown(NAMED))
    assert play.times(p.ACQUIRE) == [0.2]


def test_a_waiter_to_whom_a_reload_gives_a_fence_looks_before_it_tries() -> None:
    play = p.Play(p.contender())
    play.contender = replace(play.contender, claim=replace(play.contender.claim, here=HERE))
    play.happens(0.0, e.Tick())
    play.on(0.1, p.CREATE, o.Created("s"))
    play.on(0.2, p.WATCH, KEPT)
    play.passes(0.6)
    play.on(0.7, LOOK, shown(replace(NAMED, target="here")))
    assert not play.times(MARK), "a node without a fence has no name to it"
    play.happens(5.0, e.SettingsChanged("n", p.contender(fence=FENCE)))
    assert play.last(MARK).record.target is None


def test_an_observer_takes_no_name_out_of_a_record() -> None:
    """One target that was copied into every file would otherwise keep a lost machine from being shot."""
    assert not at(HERE, replace(NAMED, target="here"), contend=False).times(MARK)


def test_nothing_is_written_over_a_record_by_who_winds_up() -> None:
    play = unverified()
    play.does(0.3, "look")
    play.happens(0.35, e.StopAsked())
    play.on(0.4, LOOK, shown(replace(MINE, place=replace(HERE, boot="before"))))
    assert not play.times(MARK)


def test_a_record_found_without_its_flags_is_forgotten_once_the_key_is_foreign() -> None:
    play = looking()
    play.does(0.2, p.WATCH, p.FREE, "acquire s with record, watch 5")
    play.on(0.3, p.ACQUIRE, o.RecordExists())
    foreign = o.KeyView(8, None, b"x", 3, 8, 1, foreign_flags=7)
    play.on(0.4, p.READ, foreign)
    play.on(0.5, p.WATCH, foreign)
    play.does(3.0, p.WATCH, o.KeyView(10), "acquire s with record, no notice, watch 10")


def test_a_record_found_without_its_flags_is_forgotten_when_the_key_has_changed() -> None:
    """Another may have held and released meanwhile, unseen, and a guard would wait for nothing."""
    play = looking()
    play.on(0.2, p.WATCH, p.FREE)
    play.on(0.3, p.ACQUIRE, o.RecordExists())
    play.does(0.4, p.READ, replace(p.FREE, modify_index=50, index=50), "acquire s with record")


def test_a_holder_without_a_fence_takes_away_flags_that_tell_of_no_record() -> None:
    """They would make the next node wait for nothing. An operator has deleted the record."""
    play = guarding(fence=None)
    play.passes(11.1)
    play.ends(11.2, "holding")
    play.on(11.25, p.WATCH, p.OURS)
    play.on(11.3, p.WATCH, replace(p.OURS, modify_index=20, index=20, has_record_flags=True))
    assert play.says([play.last(REWRITE)]) == "clear s" and play.times(REWRITE) == [11.0, 11.3]


def test_a_holder_has_on_record_that_it_owes_before_it_writes_its_first_tenure_record() -> None:
    """A process that starts after a crash between the two would not take the record away."""
    held, settings = p.holding().contender, replace(p.contender(fence=FENCE), value=b"new")
    held, (offered,) = step(held, e.SettingsChanged("n", settings), 1.1)
    assert isinstance(offered, a.WriteRecord) and not offered.record.owes
    held, begun = step(held, e.RecordWritten(offered), 1.1)
    (noted,) = (each for each in begun if not isinstance(each, req.HintKey))
    assert isinstance(noted, a.WriteRecord) and noted.record.owes
    _, begun = step(held, e.RecordWritten(noted), 1.1)
    assert [each.record is not None for each in begun if isinstance(each, REWRITE)] == [True]


def test_a_release_takes_a_record_away_of_which_the_journal_knows_nothing() -> None:
    """As an earlier version may have left it."""
    play = p.Play(p.contender(fence=FENCE), record=a.Record(a.Point.SESSION, key="k", session="s"))
    play.contender = replace(
        play.contender, claim=replace(play.contender.claim, record=replace(RECORD, session="s"))
    )
    play.does(0.0, "release s and record, watch 0 consistently")
    play.on(0.1, p.RELEASE, o.Done())
    assert play.contender.claim.record is None and not play.contender.claim.owes
