"""Records: which actions wait for one, which do not, and how a process starts from one."""

import json
from math import inf
from typing import Any

import pytest

from supervisor.adapters.journal.serialize import to_plain
from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core.actions import Point, Record
from supervisor.core.contender.creation import new_contender
from supervisor.core.contender.lifecycle import depart
from supervisor.core.contender.step import step
from supervisor.core.settings import CandidateCheck, ElectionSettings
from supervisor.core.times import LONG_AGO, NEVER
from tests.unit.core import play as p


def left(step: Point, **more: Any) -> Record:
    """Return the record that a process left when it crashed at 0, the time of its last contact."""
    return Record(step, "k", "s", 7, 3, 2, 0.0, leader=b"me", **more)


def started(step: Point, at: float = 2.0, **more: Any) -> p.Play:
    """Play a process that has started with this record and has taken its first step."""
    record_fields = {name: more.pop(name) for name in ("reason", "foreign", "paused") if name in more}
    play = p.Play(p.contender(**more), record=left(step, **record_fields), now=at)
    play.happens(at, e.Tick())
    return play


def steps(play: p.Play) -> list[str]:
    return [str(record.step) for record in play.records]


# --- actions that wait for a record ----------------------------------------------------------------


def test_the_steps_of_a_tenure_are_recorded_in_their_order() -> None:
    play = p.holding()
    play.hears(2.0, e.StopAsked(), "start down#1: shutdown, losing")
    play.hears(2.1, e.HookEnded(play.last(a.StartHook), ok=True), "release s, waiting")
    play.does(2.2, p.RELEASE, o.Done(), "")
    play.does(2.45, "destroy s")
    play.does(2.5, p.DESTROY, o.Done(), "stopped, finished")
    assert steps(play) == ["session", "tenure", "holding", "losing", "session", "none"]
    assert play.records[1].session == "s" and play.records[1].token == 7


def of_a_loss(event: e.Event, now: float) -> list[type[a.Action]]:
    """Return the kinds of the record and the hook that a loss begins, in their order."""
    _, actions = step(p.holding().contender, event, now)
    return [type(action) for action in actions if isinstance(action, a.WriteRecord | a.StartHook)]


def test_a_loss_that_the_lock_delay_guards_is_recorded_before_on_lose_begins() -> None:
    """Otherwise a process that starts after a crash would adopt a tenure whose application is down."""
    assert of_a_loss(e.StopAsked(), 1.0) == [a.WriteRecord, a.StartHook]


def test_on_lose_does_not_wait_for_a_record_when_a_rival_may_soon_hold() -> None:
    assert of_a_loss(e.Tick(), p.holding().contender.deadline + 60.0) == [a.StartHook, a.WriteRecord]


def test_a_loss_is_recorded_while_on_acquire_is_being_killed() -> None:
    play = p.acquiring()
    play.hears(0.5, e.StopAsked(), "kill up, losing")
    assert steps(play)[-1] == "losing"


def test_recover_does_nothing_to_a_holder_that_is_not_stuck() -> None:
    play = p.holding()
    play.hears(2.0, e.RecoverAsked("n"), "")
    assert play.role == "holding"


def test_a_paused_contender_has_no_session_and_does_not_try() -> None:
    """A session would have other nodes take it for a candidate, and hand over to it."""
    play = p.waiting()
    play.hears(0.15, e.PauseAsked("n"), "destroy s, paused")
    play.does(0.2, p.WATCH, p.FREE, "watch 5")
    play.does(0.25, p.DESTROY, o.Done(), "")
    play.passes(20.0)
    play.hears(20.0, e.ResumeAsked("n"), "create, waiting")
    play.does(20.1, p.CREATE, o.Created("t"), "read")
    play.does(20.2, p.READ, p.FREE, "acquire t")


def test_a_pause_is_on_record_with_its_end() -> None:
    play = p.waiting()
    play.happens(0.15, e.PauseAsked("n", 5000.0))
    assert (play.contender.record.paused, play.contender.record.pause_ends_at) == (True, 5000.0)
    play.happens(0.2, e.PauseAsked("n"))
    assert (play.contender.record.paused, play.contender.record.pause_ends_at) == (True, None)
    play.happens(0.3, e.ResumeAsked("n"))
    assert (play.contender.record.paused, play.contender.record.pause_ends_at) == (False, None)


@pytest.mark.parametrize("stays_until", [LONG_AGO, 4000.0, NEVER])
def test_what_undrain_leaves_of_a_pause_is_on_record(stays_until: float) -> None:
    play = p.waiting()
    play.happens(0.15, e.PauseAsked("n", NEVER, stays_until))
    record = play.contender.record
    assert json.loads(json.dumps(to_plain(record), allow_nan=False))["paused"]
    again = new_contender(play.contender.settings, spread=0.0, instance="i", record=record)
    assert (again.paused_until, again.stays_until) == (NEVER, stays_until)
    assert again.drained is (stays_until != NEVER)
    play.happens(0.2, e.ResumeAsked("n"))
    assert play.contender.record.stays_until is None


def test_the_newest_contact_is_recorded() -> None:
    """A process that starts while Consul is silent must believe no longer than the process before it."""
    play = p.holding()
    play.passes(10.0)
    assert play.contender.tenure is not None
    assert play.records[-1].contact == play.contender.tenure.contact > 5.0


def test_a_session_that_is_not_recorded_does_not_try() -> None:
    play = p.beginning()
    play.disk_full = True
    play.on(0.1, p.CREATE, o.Created("s"))
    play.does(0.2, p.WATCH, p.FREE, "watch 5")
    play.passes(3.0)
    assert not play.times(p.ACQUIRE)
    play.disk_full = False
    play.passes(5.0)
    assert len(play.times(p.ACQUIRE)) == 1


def test_a_record_that_cannot_be_written_is_retried_each_second() -> None:
    play = p.beginning()
    play.disk_full = True
    play.on(0.1, p.CREATE, o.Created("s"))
    before = play.refused
    play.passes(4.0)
    assert 3 <= play.refused - before <= 4


def test_a_tenure_that_cannot_be_recorded_is_released_without_a_hook() -> None:
    play = p.trying()
    play.disk_full = True
    play.does(0.3, p.ACQUIRE, p.WON, "release s")
    assert not play.times(a.StartHook)
    assert play.contender.record_keeper.due_at == inf  # the last record is true again, so no write is due
    play.disk_full = False
    play.on(0.4, p.RELEASE, o.Done())
    play.on(1.0, p.DESTROY, o.Done()) if play.times(p.DESTROY) else play.passes(1.0)
    assert not [now for now in play.times(p.CREATE) if now > 0.0]


def test_the_release_waits_until_the_end_of_the_tenure_is_recorded() -> None:
    """Otherwise a release that is applied late could end a tenure that the next process has adopted."""
    play = p.holding(run=p.RUN)
    play.disk_full = True
    play.happens(2.0, e.RunEnded(play.last(a.StartRun)))
    play.happens(2.6, e.HookEnded(play.last(a.StartHook), ok=True))
    assert not play.times(p.RELEASE) and play.role == "losing"
    play.disk_full = False
    play.passes(5.0)
    assert len(play.times(p.RELEASE)) == 1


def test_a_stop_that_cannot_be_recorded_leaves_the_lock_to_its_ttl() -> None:
    play = p.holding()
    play.disk_full = True
    play.hears(2.0, e.StopAsked(), "start down#1: shutdown, losing")
    play.happens(2.1, e.HookEnded(play.last(a.StartHook), ok=True))
    assert play.role == "stopped" and not play.times(p.RELEASE) and not play.times(p.DESTROY)


def test_a_session_whose_destroy_has_no_answer_stays_on_record() -> None:
    play = p.waiting()
    play.hears(0.5, e.StopAsked(), "destroy s")
    play.does(3.5, p.DESTROY, p.SILENCE, "stopped, finished")
    assert play.records[-1] == Record(Point.SESSION, "k", "s")


# --- adoption --------------------------------------------------------------------------------------


def test_a_holder_is_adopted_without_a_hook_once_consul_confirms_session_and_key() -> None:
    play = started(Point.HOLDING)
    assert play.role == "acquiring" and steps(play) == ["holding"]
    play.does(2.1, p.RENEW, o.SessionAlive(), "")
    play.does(2.2, p.READ, p.OURS, "holding")
    assert not play.times(a.StartHook)


def test_an_adopted_tenure_whose_run_child_cannot_start_calls_for_on_lose() -> None:
    """The process before has run on_acquire, so the application may be up."""
    play = started(Point.HOLDING, run=p.RUN)
    play.does(2.1, p.RENEW, o.SessionAlive(), "")
    play.does(2.2, p.READ, p.OURS, "start run, holding")
    assert play.last(a.StartRun).context.reason == "adopted"
    play.hears(2.3, e.RunEnded(play.last(a.StartRun), began=False), "start down#1: run-exited, losing")


# --- the file has changed between the crash and the start -------------------------------------------


def restarted(step: Point, settings: ElectionSettings) -> p.Play:
    """Play a process that has started at 2 with other settings than the recorded ones."""
    play = p.Play(settings, record=left(step), now=2.0, recorded=p.contender())
    play.happens(2.0, e.Tick())
    return play


OTHER = p.contender(on_acquire=(p.hook("other up"),), on_lose=(p.hook("other down", 1.0),), run=p.RUN)


def test_a_tenure_lost_before_its_adoption_uses_the_recorded_settings() -> None:
    play = restarted(Point.HOLDING, OTHER)
    assert play.contender.lease.room_s == p.ROOM_S
    play.does(2.1, p.READ, p.ABSENT, "start down#1: crashed, losing")
    play.happens(2.3, e.HookEnded(play.last(a.StartHook), ok=True))
    assert play.contender.settings == OTHER


def test_an_on_lose_that_a_crash_interrupted_uses_the_recorded_settings() -> None:
    play = restarted(Point.LOSING, OTHER)
    assert play.last(a.StartHook).hook.name == "down"


def test_an_adopted_tenure_takes_and_records_the_settings_of_the_file() -> None:
    play = restarted(Point.HOLDING, OTHER)
    play.does(2.1, p.RENEW, o.SessionAlive(), "")
    before = len(play.records)
    play.does(2.2, p.READ, p.OURS, "start run, holding")
    assert play.contender.settings == OTHER and play.contender.lease.lose_time_s == 6.0
    assert len(play.records) > before
    play.happens(2.3, e.RunEnded(play.last(a.StartRun)))
    assert play.last(a.StartHook).hook.name == "other down"


def test_new_settings_are_recorded_before_a_hook_of_theirs_begins() -> None:
    play = restarted(Point.TENURE, OTHER)
    play.happens(2.1, e.Answered(play.last(p.RENEW), o.SessionAlive()))
    election, begun = step(play.contender, e.Answered(play.last(p.READ), p.OURS), 2.2)
    (write,) = [each for each in begun if not isinstance(each, a.PrepareWrite)]
    assert isinstance(write, a.WriteRecord) and write.settings == OTHER
    election, begun = step(election, e.RecordWritten(write), 2.2)
    told = p.Play.says([each for each in begun if not isinstance(each, a.PrepareWrite | a.WriteRecord)])
    assert "start other up#1: adopted" in told


def test_settings_that_cannot_be_recorded_wait_for_the_end_of_the_tenure() -> None:
    play = restarted(Point.HOLDING, OTHER)
    play.does(2.1, p.RENEW, o.SessionAlive(), "")
    play.disk_full = True
    play.does(2.2, p.READ, p.OURS, "holding")
    assert play.contender.settings == p.contender()
    play.disk_full = False
    play.happens(2.3, e.StopAsked())
    assert play.last(a.StartHook).hook.name == "down"


def test_settings_with_less_room_apply_only_on_a_contact_that_is_recent_enough() -> None:
    """Otherwise the smaller room would end the tenure before the new settings adopt it."""
    strict = p.contender(ttl_s=60.0, lock_delay_s=60.0, on_lose=(p.hook("long down", 54.0),))
    loose = p.contender(ttl_s=60.0, lock_delay_s=60.0)
    play = p.Play(strict, record=left(Point.HOLDING), now=2.0, recorded=loose)
    play.happens(2.0, e.Tick())
    play.on(2.1, p.READ, p.OURS)
    play.on(10.0, p.RENEW, o.SessionAlive())
    assert play.contender.settings == loose and play.role == "holding"


def test_a_failed_check_that_the_file_has_dropped_ends_no_tenure() -> None:
    check = CandidateCheck(p.hook("check"))
    play = p.Play(
        p.contender(), record=left(Point.HOLDING), now=2.0, recorded=p.contender(candidate_check=check)
    )
    checking = next(each for each in play.happens(2.0, e.Tick()) if isinstance(each, a.StartHook))
    play.on(2.1, p.RENEW, o.SessionAlive())
    play.does(2.2, p.READ, p.OURS, "holding")
    play.hears(2.3, e.HookEnded(checking, ok=False), "")
    assert play.contender.health.fit and play.contender.health.idle


def test_a_changed_check_does_not_begin_while_the_former_one_runs() -> None:
    check, other = CandidateCheck(p.hook("check")), CandidateCheck(p.hook("check"), interval_s=9.0)
    changed = p.contender(candidate_check=other)
    play = p.Play(changed, record=left(Point.HOLDING), now=2.0, recorded=p.contender(candidate_check=check))
    checking = next(each for each in play.happens(2.0, e.Tick()) if isinstance(each, a.StartHook))
    play.on(2.1, p.RENEW, o.SessionAlive())
    play.does(2.2, p.READ, p.OURS, "holding")
    assert play.contender.settings == changed and play.contender.health.running == checking
    play.hears(2.3, e.HookEnded(checking, ok=True), "")
    play.passes(7.5)
    assert len(play.times(a.StartHook)) == 2


# --- an election that the file has dropped ----------------------------------------------------------


def departing(step: Point) -> p.Play:
    play = p.Play(p.contender(), now=2.0)
    born = new_contender(p.contender(), spread=0.0, instance="i", record=left(step), now=2.0)
    play.contender = depart(born, 2.0)
    play.happens(2.0, e.Tick())
    return play


def test_a_process_that_goes_on_repeats_release_and_destroy_until_consul_answers() -> None:
    play = departing(Point.SESSION)
    play.passes(30.0, silent=True)
    assert len(play.times(p.RELEASE)) > 5 and play.role != "stopped"
    play.passes(31.0)
    assert play.role == "stopped" and play.times(p.DESTROY)


def test_a_session_that_cannot_be_released_is_over_after_its_ttl_and_lock_delay() -> None:
    """A token may lack the right to release, and a successor of this name must not wait for ever."""
    play = departing(Point.SESSION)
    over_at = 2.0 + 2 * 9.0 + p.LOCK_DELAY_S
    while play.now < over_at - 1:
        play.on(play.now + 0.01, p.RELEASE, o.Denied("Permission denied"))
        play.passes(play.now + 0.6, silent=True)
    assert play.role != "stopped" and not play.times(p.DESTROY)
    play.passes(over_at + 5.0, silent=True)
    assert play.role == "stopped"


def test_a_departing_election_ends_once_its_end_is_recorded() -> None:
    """A successor that began before would overwrite the record."""
    play = departing(Point.SESSION)
    play.on(2.1, p.RELEASE, o.Done())
    play.happens(2.4, e.Tick())
    play.disk_full = True
    play.on(2.5, p.DESTROY, o.Done())
    assert play.role != "stopped"
    play.disk_full = False
    play.passes(5.0)
    assert play.role == "stopped"


def test_a_departing_election_that_is_stuck_keeps_the_lock_until_recover() -> None:
    play = departing(Point.STUCK)
    play.passes(30.0)
    assert play.role == "stuck" and len(play.times(p.RENEW)) > 5 and not play.times(p.RELEASE)
    play.happens(30.0, e.RecoverAsked("n"))
    play.passes(31.0)
    assert play.role == "stopped" and play.times(p.RELEASE) and play.times(p.DESTROY)


def test_a_renewal_or_a_read_alone_does_not_adopt() -> None:
    play = started(Point.HOLDING)
    play.does(2.2, p.READ, p.OURS, "")
    play.does(2.3, p.RENEW, p.SILENCE, "")
    assert play.role == "acquiring"


@pytest.mark.parametrize(("step", "on_adopt"), [(Point.TENURE, "none"), (Point.HOLDING, "acquire")])
def test_an_adoption_runs_on_acquire_if_it_was_unfinished_or_on_adopt_says_so(
    step: Point, on_adopt: str
) -> None:
    play = started(step, on_adopt=on_adopt)
    play.on(2.1, p.RENEW, o.SessionAlive())
    play.does(2.2, p.READ, p.OURS, "start up#1: adopted")
    assert play.last(a.StartHook).context.transition == "s-adopt"
    assert steps(play)[-1] == "tenure"


@pytest.mark.parametrize(
    "view", [p.RIVAL, p.FREE, o.KeyView(9, "s", b"me", 8, 9, 1), o.KeyView(9, "s", b"me", 3, 9, 3)]
)
def test_a_key_that_changed_hands_after_the_crash_means_on_lose(view: o.KeyView) -> None:
    play = started(Point.HOLDING)
    play.on(2.1, p.RENEW, o.SessionAlive())
    play.on(2.2, p.READ, view)
    assert play.says([play.last(a.StartHook)]) == "start down#1: crashed"


def test_silence_after_a_start_ends_belief_one_room_after_the_recorded_contact() -> None:
    play = started(Point.HOLDING)
    play.passes(23.4, silent=True)
    assert play.role == "acquiring"
    play.passes(23.6, silent=True)
    assert play.says([play.last(a.StartHook)]) == "start down#1: crashed"
    assert play.times(a.StartHook) == [23.5]


def test_an_interrupted_on_lose_begins_again_with_its_reason() -> None:
    play = started(Point.LOSING, reason=a.Reason.UNHEALTHY)
    assert play.says([play.last(a.StartHook)]) == "start down#1: unhealthy"
    assert play.last(a.StartHook).context.transition == "s-lose"
    play.hears(2.1, e.HookEnded(play.last(a.StartHook), ok=True), "release s, waiting")


def test_a_recorded_session_without_a_tenure_is_released_and_destroyed() -> None:
    """The session's acquire may have been applied."""
    play = started(Point.SESSION)
    assert play.times(p.RELEASE) == [2.0] and not play.times(p.CREATE)
    play.on(2.1, p.RELEASE, o.Done())
    play.passes(2.4)
    assert play.times(p.DESTROY)


def test_a_stuck_tenure_stays_stuck_over_a_restart_and_keeps_its_session_alive() -> None:
    play = started(Point.STUCK)
    assert play.role == "stuck" and play.times(p.RENEW) == [2.0] and not play.times(a.StartHook)
    play.hears(3.0, e.RecoverAsked("n"), "release s, waiting")


@pytest.mark.parametrize("step", [Point.TENURE, Point.HOLDING, Point.STUCK])
def test_a_foreign_tenure_gets_its_on_lose_and_its_session_is_left_alone(step: Point) -> None:
    play = started(step, foreign=True)
    start = play.last(a.StartHook)
    assert play.says([start]) == "start down#1: crashed" and start.context.rival_at == 2.0
    assert play.records[-1].foreign
    play.hears(2.1, e.HookEnded(start, ok=True), "create, waiting")
    assert not play.times(p.RELEASE) and not play.times(p.DESTROY) and not play.times(p.RENEW)


def test_a_foreign_session_is_forgotten() -> None:
    play = started(Point.SESSION, foreign=True)
    assert play.times(p.CREATE) == [2.0] and not play.times(p.DESTROY)


def test_an_election_that_the_file_has_dropped_is_wound_up_and_finished() -> None:
    play = departing(Point.HOLDING)
    assert play.says([play.last(a.StartHook)]) == "start down#1: config-changed"
    play.hears(2.1, e.HookEnded(play.last(a.StartHook), ok=True), "release s, waiting")
    play.does(2.2, p.RELEASE, o.Done(), "")
    play.does(2.45, "destroy s")
    play.does(2.5, p.DESTROY, o.Done(), "stopped, finished")


# --- a stalled event loop --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hooks", "begins"), [(("one", "two"), "start two#1: acquired"), (("one",), "start run, holding")]
)
def test_after_a_stall_neither_hook_nor_run_child_begins_before_consul_confirms_the_lock(
    hooks: tuple[str, ...], begins: str
) -> None:
    """Without the stall the news would be fresh enough for it."""
    play = p.acquiring(on_acquire=tuple(map(p.hook, hooks)), run=p.RUN)
    play.happens(2.0, e.Stalled(1.5))
    play.ends(2.1, "")
    play.does(2.2, p.READ, p.OURS, begins)


def test_after_a_stall_the_lease_is_checked_first() -> None:
    play = p.holding()
    play.happens(24.0, e.Stalled(20.0))
    assert play.says([play.last(a.StartHook)]) == "start down#1: lease-expired"


def test_after_a_stall_a_holder_reads_and_renews_at_once() -> None:
    play = p.holding()
    before = play.times(p.READ)
    play.happens(5.0, e.Stalled(3.0))
    assert play.times(p.READ) == [*before, 5.0] and play.times(p.RENEW)[-1] == 5.0
