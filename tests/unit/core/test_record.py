"""Records: what waits for one, what does not, and what a process that starts makes of one."""

from math import inf
from typing import Any

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core.actions import Record, Step
from supervisor.core.creation import departing_contender
from supervisor.core.settings import CandidateCheck, ElectionSettings
from supervisor.core.step import step
from tests.unit.core.play import (
    ABSENT,
    ACQUIRE,
    CREATE,
    DESTROY,
    FREE,
    LOCK_DELAY_S,
    OURS,
    READ,
    RELEASE,
    RENEW,
    RIVAL,
    ROOM_S,
    RUN,
    SILENCE,
    WATCH,
    WON,
    Play,
    acquiring,
    contender,
    holding,
    hook,
    waiting,
)


def left(step: Step, **more: Any) -> Record:
    """What a process that crashed at 0 has left; its contact was then."""
    return Record(step, "k", "s", 7, 3, 2, 0.0, leader=b"me", **more)


def started(step: Step, at: float = 2.0, **more: Any) -> Play:
    """A process that has started with this record, its first turn taken."""
    record_fields = {name: more.pop(name) for name in ("reason", "foreign", "paused") if name in more}
    play = Play(contender(**more), record=left(step, **record_fields), now=at)
    play.happens(at, e.Tick())
    return play


def steps(play: Play) -> list[str]:
    return [str(record.step) for record in play.records]


# --- what waits for a record -----------------------------------------------------------------------


def test_each_step_is_on_record_in_its_turn() -> None:
    play = holding()
    play.hears(2.0, e.StopAsked(), "start down#1: shutdown, losing")
    play.hears(2.1, e.HookEnded(play.last(a.StartHook), ok=True), "release s, waiting")
    play.does(2.2, RELEASE, o.Done(), "")
    play.does(2.45, "destroy s")
    play.does(2.5, DESTROY, o.Done(), "stopped, finished")
    assert steps(play) == ["session", "tenure", "holding", "losing", "session", "none"]
    assert play.records[1].session == "s" and play.records[1].token == 7


def of_a_loss(event: e.Event, now: float) -> list[type[a.Action]]:
    """The record and the hook, in the order in which the turn has them."""
    _, actions = step(holding().contender, event, now)
    return [type(action) for action in actions if isinstance(action, a.WriteRecord | a.StartHook)]


def test_a_loss_that_consul_guards_is_on_record_before_on_lose_begins() -> None:
    """A process that starts after a crash would adopt the tenure with the application down."""
    assert of_a_loss(e.StopAsked(), 1.0) == [a.WriteRecord, a.StartHook]


def test_no_record_delays_on_lose_where_a_rival_may_soon_hold() -> None:
    assert of_a_loss(e.Tick(), holding().contender.deadline + 60.0) == [a.StartHook, a.WriteRecord]


def test_a_loss_is_on_record_while_on_acquire_is_being_killed() -> None:
    play = acquiring()
    play.hears(0.5, e.StopAsked(), "kill up, losing")
    assert steps(play)[-1] == "losing"


def test_recover_means_nothing_to_who_is_not_stuck() -> None:
    play = holding()
    play.hears(2.0, e.RecoverAsked("n"), "")
    assert play.role == "holding"


def test_who_is_paused_does_not_try() -> None:
    play = waiting()
    play.hears(0.15, e.PauseAsked("n"), "paused")
    play.does(0.2, WATCH, FREE, "watch 5")
    play.hears(0.3, e.ResumeAsked("n"), "acquire s, waiting")


def test_the_newest_contact_is_on_record() -> None:
    """A process that starts while Consul is silent believes no longer than this one would have."""
    play = holding()
    play.passes(10.0)
    assert play.contender.tenure is not None
    assert play.records[-1].contact == play.contender.tenure.contact > 5.0


def test_a_session_that_is_not_on_record_does_not_try() -> None:
    play = Play(contender())
    play.does(0.0, "create, watch 0 consistently")
    play.disk_full = True
    play.on(0.1, CREATE, o.Created("s"))
    play.does(0.2, WATCH, FREE, "watch 5")
    play.passes(3.0)
    assert not play.times(ACQUIRE)
    play.disk_full = False
    play.passes(5.0)
    assert len(play.times(ACQUIRE)) == 1


def test_a_record_that_is_refused_is_tried_again_each_second() -> None:
    play = Play(contender())
    play.does(0.0, "create, watch 0 consistently")
    play.disk_full = True
    play.on(0.1, CREATE, o.Created("s"))
    before = play.refused
    play.passes(4.0)
    assert 3 <= play.refused - before <= 4


def test_a_tenure_that_is_not_on_record_is_given_back_without_a_hook() -> None:
    play = waiting()
    play.does(0.2, WATCH, FREE, "acquire s, watch 5")
    play.disk_full = True
    play.does(0.3, ACQUIRE, WON, "release s")
    assert not play.times(a.StartHook)
    assert play.contender.record_keeper.deadline == inf  # what is on record is the truth again
    play.disk_full = False
    play.on(0.4, RELEASE, o.Done())
    play.on(1.0, DESTROY, o.Done()) if play.times(DESTROY) else play.passes(1.0)
    assert not [now for now in play.times(CREATE) if now > 0.0]


def test_on_lose_waits_for_no_record() -> None:
    play = holding()
    play.disk_full = True
    play.hears(2.0, e.StopAsked(), "start down#1: shutdown, losing")


def test_the_release_waits_for_the_record_that_nothing_is_left_to_do() -> None:
    """Or a release that is applied late could meet a process that has adopted the tenure."""
    play = holding(run=RUN)
    play.disk_full = True
    play.happens(2.0, e.RunEnded(play.last(a.StartRun)))
    play.happens(2.6, e.HookEnded(play.last(a.StartHook), ok=True))
    assert not play.times(RELEASE) and play.role == "losing"
    play.disk_full = False
    play.passes(5.0)
    assert len(play.times(RELEASE)) == 1


def test_a_stop_without_room_for_a_record_leaves_the_lock_to_its_ttl() -> None:
    play = holding()
    play.disk_full = True
    play.hears(2.0, e.StopAsked(), "start down#1: shutdown, losing")
    play.happens(2.1, e.HookEnded(play.last(a.StartHook), ok=True))
    assert play.role == "stopped" and not play.times(RELEASE) and not play.times(DESTROY)


def test_what_the_last_try_left_behind_stays_on_record() -> None:
    play = waiting()
    play.hears(0.5, e.StopAsked(), "destroy s")
    play.does(3.5, DESTROY, SILENCE, "stopped, finished")
    assert play.records[-1] == Record(Step.SESSION, "k", "s")


# --- adoption --------------------------------------------------------------------------------------


def test_a_holder_is_adopted_without_a_hook_when_consul_has_said_both() -> None:
    play = started(Step.HOLDING)
    assert play.role == "acquiring" and steps(play) == ["holding"]
    play.does(2.1, RENEW, o.SessionAlive(), "")
    play.does(2.2, READ, OURS, "holding")
    assert not play.times(a.StartHook)


def test_what_could_not_be_started_for_an_adopted_tenure_calls_for_on_lose() -> None:
    """The process before has run on_acquire."""
    play = started(Step.HOLDING, run=RUN)
    play.does(2.1, RENEW, o.SessionAlive(), "")
    play.does(2.2, READ, OURS, "start run, holding")
    play.hears(2.3, e.RunEnded(play.last(a.StartRun), began=False), "start down#1: run-exited, losing")


# --- the file has changed between the crash and the start -------------------------------------------


def restarted(step: Step, settings: ElectionSettings) -> Play:
    """A process that has started at 2 with other settings than those on record."""
    play = Play(settings, record=left(step), now=2.0, recorded=contender())
    play.happens(2.0, e.Tick())
    return play


OTHER = contender(on_acquire=(hook("other up"),), on_lose=(hook("other down", 1.0),), run=RUN)


def test_until_it_is_adopted_a_tenure_is_lost_by_the_settings_on_record() -> None:
    play = restarted(Step.HOLDING, OTHER)
    assert play.contender.lease.room_s == ROOM_S
    play.does(2.1, READ, ABSENT, "start down#1: crashed, losing")
    play.happens(2.3, e.HookEnded(play.last(a.StartHook), ok=True))
    assert play.contender.settings == OTHER


def test_an_on_lose_that_a_crash_interrupted_is_that_of_the_record() -> None:
    play = restarted(Step.LOSING, OTHER)
    assert play.last(a.StartHook).hook.name == "down"


def test_once_adopted_it_goes_on_by_the_settings_of_the_file_and_they_go_on_record() -> None:
    play = restarted(Step.HOLDING, OTHER)
    play.does(2.1, RENEW, o.SessionAlive(), "")
    before = len(play.records)
    play.does(2.2, READ, OURS, "start run, holding")
    assert play.contender.settings == OTHER and play.contender.lease.lose_time_s == 6.0
    assert len(play.records) > before
    play.happens(2.3, e.RunEnded(play.last(a.StartRun)))
    assert play.last(a.StartHook).hook.name == "other down"


def test_the_file_is_on_record_before_anything_of_it_begins() -> None:
    play = restarted(Step.TENURE, OTHER)
    play.happens(2.1, e.Answered(play.last(RENEW), o.SessionAlive()))
    election, begun = step(play.contender, e.Answered(play.last(READ), OURS), 2.2)
    (write,) = [each for each in begun if not isinstance(each, a.PrepareWrite)]
    assert isinstance(write, a.WriteRecord) and write.settings == OTHER
    election, begun = step(election, e.RecordWritten(write), 2.2)
    told = Play.says([each for each in begun if not isinstance(each, a.PrepareWrite | a.WriteRecord)])
    assert "start other up#1: adopted" in told


def test_a_file_that_cannot_be_recorded_waits_for_the_end_of_the_tenure() -> None:
    play = restarted(Step.HOLDING, OTHER)
    play.does(2.1, RENEW, o.SessionAlive(), "")
    play.disk_full = True
    play.does(2.2, READ, OURS, "holding")
    assert play.contender.settings == contender()
    play.disk_full = False
    play.happens(2.3, e.StopAsked())
    assert play.last(a.StartHook).hook.name == "down"


def test_a_file_that_leaves_less_room_counts_only_on_news_that_is_fresh_by_it() -> None:
    """Else the tenure would be lost by the file before it was adopted by it."""
    strict = contender(ttl_s=60.0, lock_delay_s=60.0, on_lose=(hook("long down", 54.0),))
    loose = contender(ttl_s=60.0, lock_delay_s=60.0)
    play = Play(strict, record=left(Step.HOLDING), now=2.0, recorded=loose)
    play.happens(2.0, e.Tick())
    play.on(2.1, READ, OURS)
    play.on(10.0, RENEW, o.SessionAlive())
    assert play.contender.settings == loose and play.role == "holding"


def test_a_check_that_the_file_has_no_more_ends_nothing() -> None:
    check = CandidateCheck(hook("check"))
    play = Play(contender(), record=left(Step.HOLDING), now=2.0, recorded=contender(candidate_check=check))
    checking = next(each for each in play.happens(2.0, e.Tick()) if isinstance(each, a.StartHook))
    play.on(2.1, RENEW, o.SessionAlive())
    play.does(2.2, READ, OURS, "holding")
    play.hears(2.3, e.HookEnded(checking, ok=False), "")
    assert play.contender.health.fit and play.contender.health.idle


def test_a_check_that_is_under_way_is_not_begun_twice_when_the_file_has_another() -> None:
    check, other = CandidateCheck(hook("check")), CandidateCheck(hook("check"), interval_s=9.0)
    changed = contender(candidate_check=other)
    play = Play(changed, record=left(Step.HOLDING), now=2.0, recorded=contender(candidate_check=check))
    checking = next(each for each in play.happens(2.0, e.Tick()) if isinstance(each, a.StartHook))
    play.on(2.1, RENEW, o.SessionAlive())
    play.does(2.2, READ, OURS, "holding")
    assert play.contender.settings == changed and play.contender.health.running == checking
    play.hears(2.3, e.HookEnded(checking, ok=True), "")
    play.passes(7.5)
    assert len(play.times(a.StartHook)) == 2


# --- an election that the file has no more ----------------------------------------------------------


def departing(step: Step) -> Play:
    play = Play(contender(), now=2.0)
    play.contender = departing_contender(contender(), spread=0.0, instance="i", record=left(step), now=2.0)
    play.happens(2.0, e.Tick())
    return play


def test_while_the_process_goes_on_a_destroy_is_repeated_until_it_is_answered() -> None:
    play = departing(Step.SESSION)
    play.passes(30.0, silent=True)
    assert len(play.times(RELEASE)) > 5 and play.role != "stopped"
    play.passes(31.0)
    assert play.role == "stopped" and play.times(DESTROY)


def test_at_the_end_of_the_process_one_try_is_enough() -> None:
    play = departing(Step.SESSION)
    play.passes(30.0, silent=True)
    play.happens(30.0, e.StopAsked())
    play.passes(40.0, silent=True)
    assert play.role == "stopped" and play.records[-1].session == "s"


def test_a_session_that_nobody_can_end_is_over_when_its_ttl_and_lock_delay_are() -> None:
    """A token without the right to release: whatever comes next under this name does not wait for it."""
    play = departing(Step.SESSION)
    over_at = 2.0 + 2 * 9.0 + LOCK_DELAY_S
    while play.now < over_at - 1:
        play.on(play.now + 0.01, RELEASE, o.Denied("Permission denied"))
        play.passes(play.now + 0.6, silent=True)
    assert play.role != "stopped" and not play.times(DESTROY)
    play.passes(over_at + 5.0, silent=True)
    assert play.role == "stopped"


def test_an_end_that_is_not_on_record_is_none() -> None:
    """Whoever begins next would write over it."""
    play = departing(Step.SESSION)
    play.on(2.1, RELEASE, o.Done())
    play.happens(2.4, e.Tick())
    play.disk_full = True
    play.on(2.5, DESTROY, o.Done())
    assert play.role != "stopped"
    play.disk_full = False
    play.passes(5.0)
    assert play.role == "stopped"


def test_stuck_it_keeps_the_lock_until_recover_or_the_end_of_the_process() -> None:
    play = departing(Step.STUCK)
    play.passes(30.0)
    assert play.role == "stuck" and len(play.times(RENEW)) > 5 and not play.times(RELEASE)
    play.happens(30.0, e.RecoverAsked("n"))
    play.passes(31.0)
    assert play.role == "stopped" and play.times(RELEASE) and play.times(DESTROY)


def test_a_renewal_or_a_read_alone_does_not_adopt() -> None:
    play = started(Step.HOLDING)
    play.does(2.2, READ, OURS, "")
    play.does(2.3, RENEW, SILENCE, "")
    assert play.role == "acquiring"


def test_the_run_child_is_started_again() -> None:
    play = started(Step.HOLDING, run=RUN)
    play.on(2.1, RENEW, o.SessionAlive())
    play.does(2.2, READ, OURS, "start run, holding")
    assert play.last(a.StartRun).context.reason == "adopted"


@pytest.mark.parametrize(("step", "on_adopt"), [(Step.TENURE, "none"), (Step.HOLDING, "acquire")])
def test_on_acquire_begins_again_when_it_had_not_finished_or_is_asked_for(step: Step, on_adopt: str) -> None:
    play = started(step, on_adopt=on_adopt)
    play.on(2.1, RENEW, o.SessionAlive())
    play.does(2.2, READ, OURS, "start up#1: adopted")
    assert play.last(a.StartHook).context.transition == "s-adopt"
    assert steps(play)[-1] == "tenure"


@pytest.mark.parametrize(
    "view", [RIVAL, FREE, o.KeyView(9, "s", b"me", 8, 9, 1), o.KeyView(9, "s", b"me", 3, 9, 3)]
)
def test_a_key_that_is_not_ours_as_it_was_means_on_lose(view: o.KeyView) -> None:
    play = started(Step.HOLDING)
    play.on(2.1, RENEW, o.SessionAlive())
    play.on(2.2, READ, view)
    assert play.says([play.last(a.StartHook)]) == "start down#1: crashed"


def test_silence_is_ridden_out_to_the_end_of_the_room_of_the_contact_on_record() -> None:
    play = started(Step.HOLDING)
    play.passes(23.4, silent=True)
    assert play.role == "acquiring"
    play.passes(23.6, silent=True)
    assert play.says([play.last(a.StartHook)]) == "start down#1: crashed"
    assert play.times(a.StartHook) == [23.5]


def test_a_record_whose_room_is_over_means_on_lose_at_once() -> None:
    play = started(Step.HOLDING, at=23.5)
    assert play.times(a.StartHook) == [23.5]


def test_on_lose_that_was_interrupted_begins_again_with_its_reason() -> None:
    play = started(Step.LOSING, reason=a.Reason.UNHEALTHY)
    assert play.says([play.last(a.StartHook)]) == "start down#1: unhealthy"
    assert play.last(a.StartHook).context.transition == "s-lose"
    play.hears(2.1, e.HookEnded(play.last(a.StartHook), ok=True), "release s, waiting")


def test_a_session_without_a_tenure_is_released_and_destroyed() -> None:
    """Its acquire may have been applied."""
    play = started(Step.SESSION)
    assert play.times(RELEASE) == [2.0] and not play.times(CREATE)
    play.on(2.1, RELEASE, o.Done())
    play.passes(2.4)
    assert play.times(DESTROY)


def test_stuck_stays_stuck_and_keeps_the_session_alive() -> None:
    play = started(Step.STUCK)
    assert play.role == "stuck" and play.times(RENEW) == [2.0] and not play.times(a.StartHook)
    play.hears(3.0, e.RecoverAsked("n"), "release s, waiting")


@pytest.mark.parametrize("step", [Step.TENURE, Step.HOLDING, Step.STUCK])
def test_a_foreign_tenure_gets_its_on_lose_and_its_session_is_left_alone(step: Step) -> None:
    play = started(step, foreign=True)
    start = play.last(a.StartHook)
    assert play.says([start]) == "start down#1: crashed" and start.context.rival_at == 2.0
    assert play.records[-1].foreign
    play.hears(2.1, e.HookEnded(start, ok=True), "create, waiting")
    assert not play.times(RELEASE) and not play.times(DESTROY) and not play.times(RENEW)


def test_a_foreign_session_is_forgotten() -> None:
    play = started(Step.SESSION, foreign=True)
    assert play.times(CREATE) == [2.0] and not play.times(DESTROY)


def test_a_pause_outlives_the_process() -> None:
    play = started(Step.NONE, paused=True)
    assert play.role == "paused" and not play.times(CREATE)
    play.hears(3.0, e.ResumeAsked("n"), "create, waiting")


def test_what_is_gone_from_the_file_is_wound_up_and_no_more() -> None:
    play = Play(contender())
    play.contender = departing_contender(
        contender(), spread=0.0, instance="i", record=left(Step.HOLDING), now=2.0
    )
    play.happens(2.0, e.Tick())
    assert play.says([play.last(a.StartHook)]) == "start down#1: config-changed"
    play.hears(2.1, e.HookEnded(play.last(a.StartHook), ok=True), "release s, waiting")
    play.does(2.2, RELEASE, o.Done(), "")
    play.does(2.45, "destroy s")
    play.does(2.5, DESTROY, o.Done(), "stopped, finished")


# --- a loop that stood still -----------------------------------------------------------------------


def test_after_a_standstill_no_further_hook_begins_before_consul_has_confirmed_the_lock() -> None:
    """The second hook would have had news young enough but for the standstill."""
    play = acquiring(on_acquire=(hook("one"), hook("two")))
    play.happens(2.0, e.Stalled(1.5))
    play.hears(2.1, e.HookEnded(play.last(a.StartHook), ok=True), "")
    play.does(2.2, READ, OURS, "start two#1: acquired")


def test_after_a_standstill_the_lease_is_looked_at_first() -> None:
    play = holding()
    play.happens(24.0, e.Stalled(20.0))
    assert play.says([play.last(a.StartHook)]) == "start down#1: lease-expired"


def test_after_a_standstill_a_holder_asks_at_once() -> None:
    play = holding()
    before = play.times(READ)
    play.happens(5.0, e.Stalled(3.0))
    assert play.times(READ) == [*before, 5.0] and play.times(RENEW)[-1] == 5.0


def test_a_standstill_in_on_acquire_holds_the_next_hook_back() -> None:
    play = acquiring(on_acquire=(contender().on_acquire[0],) * 1, run=RUN)
    play.happens(3.0, e.Stalled(2.0))
    play.hears(3.1, e.HookEnded(play.last(a.StartHook), ok=True), "")
    play.does(3.2, READ, OURS, "start run, holding")
