"""A node that acquires over another's tenure record waits behind a guard, and no longer than it must."""

from typing import Any

import pytest

from supervisor.config.formats.tenure_record import decoded, encoded
from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as req
from supervisor.core.frozen import replace
from supervisor.core.settings import Fence, Place
from supervisor.core.tenure_record import UNREADABLE, State, TenureRecord, in_whole_ms
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
    claim = play.last(p.ACQUIRE).claim
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


def test_the_fence_begins_when_the_holder_had_its_time_and_its_success_lets_this_node_act() -> None:
    """The key was free at 0.2, which a holder that lives has seen as well."""
    play = guarding()
    play.does(2.1, "")
    play.does(2.2, "look")  # the watch may hang, and the holder have said something meanwhile
    play.on(2.2, LOOK, shown(RECORD))
    assert play.last(a.StartHook).hook.name == "fence"
    assert play.last(a.StartHook).context.previous == a.Previous("", "db1", "n1", "db1", 4)
    play.ends(3.5, "claim s, read")
    play.on(5.0, REWRITE, p.SILENCE)  # the machine that was shot may have run Consul's leader
    play.passes(6.0)  # Consul answers again
    assert play.last(a.StartHook).context.previous == a.Previous("fenced", "db1", "n1", "db1", 4)


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
    play.passes(10.9)
    assert [each.hook.name for _, each in play.log if isinstance(each, a.StartHook)][:2] == ["fence", "fence"]
    assert not play.times(REWRITE)
    play.passes(11.0)
    assert play.says([play.last(a.KillHook)]) == "kill fence", "a shot must not come when this node acts"
    assert not play.times(REWRITE)
    play.ends(11.5, "claim s", ok=False)
    play.on(11.6, REWRITE, o.Done())
    assert play.last(a.StartHook).context.previous.end == "waited"


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


@pytest.mark.parametrize("change", [{"target": ""}, {"target": "here"}, {"place": Place("m", "h", "b")}])
def test_nobody_is_shot_without_a_target_and_no_node_shoots_itself(change: dict[str, Any]) -> None:
    play = guarding(replace(RECORD, **change))
    tenure = play.contender.tenure
    assert tenure is not None and tenure.guard is not None
    guard = replace(tenure.guard, here=Place("m", "h", "c"))
    play.contender = replace(play.contender, tenure=replace(tenure, guard=guard))
    play.passes(10.9)
    assert not play.times(a.StartHook)


def test_required_waits_for_the_word_of_an_operator() -> None:
    play = guarding(fence=replace(FENCE, required=True), record=replace(RECORD, target=None))
    play.passes(200.0)
    assert play.role == "acquiring" and not play.times(REWRITE)
    play.hears(200.1, e.ConfirmOffAsked("n"), "claim s")


def test_a_waiter_puts_right_what_this_machine_left_before_its_boot() -> None:
    here = Place("m", "h", "now")
    left = TenureRecord("old", target="here", place=replace(here, boot="before"))
    play = p.Play(p.contender(fence=FENCE))
    play.contender = replace(play.contender, place=here)
    play.does(0.0, "create, watch 0 consistently")
    play.on(0.1, p.CREATE, o.Created("s"))
    play.does(0.2, LOOK, shown(left, 4), "mark old ended")
    play.does(0.3, p.WATCH, GUARDED, "watch 5")
    play.does(0.4, MARK, o.Done(), "acquire s over")
    other = replace(left, place=ELSEWHERE)
    play = p.Play(p.contender(fence=FENCE))
    play.contender = replace(play.contender, place=here)
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
    assert play.times(p.DESTROY) and play.contender.session.stage == "settling"


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
