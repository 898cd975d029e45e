"""A reload: which items go on with the new settings, from when on, and which items begin anew."""

from dataclasses import replace
from typing import Any

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.contender.creation import new_contender
from supervisor.core.contender.step import step
from supervisor.core.contenders import Contenders
from supervisor.core.machines.record import tenure_from
from supervisor.core.reload import ReloadEffect, plan_reload, restarted_by
from supervisor.core.settings import CandidateCheck, ItemSettings, Wanted
from tests.unit.core import play as p
from tests.unit.core.play import contender, ended
from tests.unit.core.slot_play import EMPTY, GONE, full, holding, in_line, lock, semaphore, view, waiting
from tests.unit.core.slot_play import WATCH as WATCH_SLOTS

REWRITE = r.Rewrite
NEW_DOWN = p.hook("new down", 2.0)


def holder(**more: Any) -> p.Play:
    """Play until the time is 2.0, and the node holds."""
    play = p.holding(**more)
    play.passes(2.0)
    return play


def changed(play: p.Play, **more: Any) -> e.SettingsChanged:
    return e.SettingsChanged("n", replace(play.contender.settings, **more))


# --- settings that a running item takes over ---------------------------------------------------


def test_a_holder_applies_new_settings_once_they_are_recorded() -> None:
    play = holder()
    before = len(play.records)
    play.happens(4.0, changed(play, on_lose=(NEW_DOWN,)))
    assert play.contender.settings.on_lose == (NEW_DOWN,) and len(play.records) > before
    assert "start new down#1" in p.Play.says(play.happens(5.0, e.StopAsked()))


def test_new_settings_wait_until_a_retry_has_recorded_them() -> None:
    play = holder()
    play.disk_full = True
    play.happens(4.0, changed(play, on_lose=(NEW_DOWN,)))
    assert play.contender.settings.on_lose != (NEW_DOWN,)
    play.disk_full = False
    play.passes(9.0)
    assert play.contender.settings.on_lose == (NEW_DOWN,) and play.contender.next_settings is None


def test_settings_with_a_smaller_room_apply_at_the_next_contact() -> None:
    """With the smaller room, belief would end at once."""
    play = holder()
    play.passes(10.0)
    assert play.contender.tenure is not None
    contact, long = play.contender.tenure.contact, p.hook("long down", 26.0)
    play.happens(contact + 2.9, changed(play, on_lose=(long,)))
    assert play.contender.role is a.Role.HOLDING and play.contender.settings.on_lose != (long,)
    play.passes(contact + 16.0)
    assert play.contender.role is a.Role.HOLDING and play.contender.settings.on_lose == (long,)


def test_a_loss_under_way_ends_with_the_settings_that_it_began_with() -> None:
    play = holder()
    assert "start down#1" in p.Play.says(play.happens(3.0, e.StepDownAsked("n", 5.0)))
    play.happens(3.5, changed(play, on_lose=(NEW_DOWN, NEW_DOWN)))
    assert play.contender.settings.on_lose != (NEW_DOWN, NEW_DOWN)
    play.ends(4.0, "release s, resting")
    assert play.contender.settings.on_lose == (NEW_DOWN, NEW_DOWN)


def test_an_on_acquire_under_way_ends_with_the_settings_that_it_began_with() -> None:
    play = p.acquiring(on_acquire=(p.hook("one"), p.hook("two")))
    play.happens(0.4, changed(play, on_acquire=()))
    play.ends(0.5, "start two#1: acquired")
    play.happens(0.6, e.HookEnded(play.last(a.StartHook), ok=True))
    play.passes(4.0)
    assert play.contender.settings.on_acquire == ()


def test_an_on_change_under_way_ends_with_the_settings_that_it_began_with() -> None:
    """The rest of the hooks must not be looked up in a list that has become shorter."""
    play = p.Play(contender(contend=False, on_acquire=(), on_lose=(), on_change=(p.hook("a"), p.hook("b"))))
    play.happens(0.0, e.Tick())
    play.on(0.1, p.WATCH, p.RIVAL)
    play.happens(0.2, e.HookEnded(play.last(a.StartHook), ok=True))
    play.happens(0.3, changed(play, on_change=()))
    play.happens(0.4, e.HookEnded(play.last(a.StartHook), ok=False))
    assert play.contender.change.context is None
    play.on(0.5, p.WATCH, replace(p.RIVAL, session=None, index=10))
    assert play.contender.change.context is None


def test_former_settings_may_return_before_the_new_ones_were_in_force() -> None:
    play = holder()
    old = play.contender.settings
    play.disk_full = True
    play.happens(4.0, changed(play, on_lose=(NEW_DOWN,)))
    play.happens(4.5, e.SettingsChanged("n", old))
    play.disk_full = False
    play.passes(9.0)
    assert play.contender.settings == old and play.contender.next_settings is None


def test_a_check_keeps_its_result_when_only_its_times_change() -> None:
    check = CandidateCheck(p.hook("check"), 5.0)
    play = p.Play(contender(candidate_check=check))
    for now in (0.0, 5.0):
        play.happens(now, e.Tick())
        play.happens(now + 0.1, e.HookEnded(play.last(a.StartHook), ok=True))
    assert play.contender.health.fit
    play.happens(6.0, changed(play, candidate_check=replace(check, interval_s=1.0, rise=3)))
    assert play.contender.health.fit
    play.happens(6.1, changed(play, candidate_check=CandidateCheck(replace(RUN_CHECK), 5.0)))
    assert not play.contender.health.fit, "another check has no result yet"


def test_a_running_check_does_not_count_for_the_check_that_replaces_it() -> None:
    check = CandidateCheck(p.hook("check"), 5.0, rise=1, fall=1)
    play = p.Play(contender(candidate_check=check))
    play.happens(0.0, e.Tick())
    started = play.last(a.StartHook)
    play.hears(1.0, changed(play, candidate_check=replace(check, hook=RUN_CHECK)), "")
    play.happens(2.0, e.HookEnded(started, ok=True))
    assert not play.contender.health.fit
    play.passes(5.5)
    play.happens(6.0, e.HookEnded(play.last(a.StartHook), ok=True))
    assert play.contender.health.fit


RUN_CHECK = replace(p.hook("check"), call=replace(p.RUN.command, argv=("false",)))

# --- the value ---------------------------------------------------------------------------------


def test_a_holder_writes_its_new_value_once() -> None:
    play = holder()
    assert "rewrite s" in p.Play.says(play.happens(4.0, changed(play, value=b"new")))
    play.does(4.1, REWRITE, o.Done(), "")
    assert play.contender.tenure is not None and play.contender.tenure.leader == b"new"
    assert play.records[-1].leader == b"new"
    play.passes(20.0)
    assert [x for _, x in play.log if isinstance(x, r.Rewrite)] == [play.last(REWRITE)]


@pytest.mark.parametrize("outcome", [p.SILENCE, p.FORBIDDEN, o.LockDelayed(), o.LostRace(), o.SessionGone()])
def test_a_value_whose_write_failed_is_written_later_without_a_loss(outcome: o.Outcome) -> None:
    play = holder()
    play.happens(4.0, changed(play, value=b"new"))
    play.on(4.1, REWRITE, outcome)
    assert play.contender.role is a.Role.HOLDING
    play.passes(12.0)
    assert play.contender.session.last_value == b"new" and play.contender.role is a.Role.HOLDING
    assert len(play.times(REWRITE)) == 2


def test_a_refused_rewrite_is_followed_by_a_read_that_shows_the_loss() -> None:
    play = holder()
    play.passes(3.9)
    play.happens(4.0, changed(play, value=b"new"))
    assert "read" in p.Play.says(play.on(4.1, REWRITE, o.LostRace()))
    play.on(4.2, p.READ, replace(p.RIVAL, modify_index=99))
    assert play.role == "losing"


def test_a_waiter_tries_with_the_new_value() -> None:
    play = p.waiting()
    play.on(0.1, p.WATCH, p.RIVAL)
    play.happens(1.0, changed(play, value=b"new"))
    play.on(2.0, p.WATCH, replace(p.RIVAL, session=None, index=12))
    assert play.last(p.ACQUIRE).value == b"new"


def test_a_win_with_the_old_value_is_followed_by_a_write_of_the_new_one() -> None:
    play = p.trying()
    play.happens(0.25, changed(play, value=b"new"))
    assert "rewrite s" in p.Play.says(play.on(0.3, p.ACQUIRE, p.WON))


def test_a_waiter_for_a_slot_keeps_its_place_in_line_with_a_new_value() -> None:
    play = in_line(view("o1", "o2", at=lock("o1", limit=1)), limit=1)
    play.on(0.4, WATCH_SLOTS, view("o1", "o2", "s", at=lock("o1", limit=1)))
    play.happens(1.0, changed(play, value=b"new"))
    rewrite = play.last(REWRITE)
    assert (rewrite.key, rewrite.value, rewrite.of_slot) == ("p/s", b"new", True)


def adopting(leader: bytes, recorded: ItemSettings) -> p.Play:
    """Play until a process that found a tenure with this leader on record has renewed its session."""
    held = a.Record(a.Point.HOLDING, "k", "s", 7, 3, 2, contact=1.0, leader=leader)
    play = p.Play(contender(), record=held, now=2.0, recorded=recorded)
    play.happens(2.0, e.Tick())
    play.on(2.1, p.RENEW, o.SessionAlive())
    return play


def test_after_a_crash_a_value_that_was_never_written_is_written() -> None:
    play = adopting(b"old", contender())
    assert "rewrite s" in p.Play.says(play.on(2.2, p.READ, replace(p.OURS, value=b"old")))


def test_a_value_that_returns_before_its_rewrite_was_answered_is_written_again() -> None:
    """The write that had no answer may have been applied."""
    play = holder()
    play.happens(4.0, changed(play, value=b"new"))
    play.on(4.1, REWRITE, p.SILENCE)
    play.happens(4.2, changed(play, value=b"me"))
    play.passes(8.0)
    assert play.last(REWRITE).value == b"me" and play.contender.session.last_value == b"me"
    assert len(play.times(REWRITE)) == 2


def test_a_value_that_returns_after_a_crash_during_the_rewrite_is_written_again() -> None:
    play = adopting(b"me", replace(contender(), value=b"new"))
    play.on(2.2, p.READ, replace(p.OURS, value=b"new", modify_index=9))
    play.passes(4.0)
    assert play.last(REWRITE).value == b"me"


def test_an_unchanged_value_is_not_written_after_a_crash() -> None:
    play = adopting(b"me", contender())
    play.on(2.2, p.READ, p.OURS)
    play.passes(20.0)
    assert not play.times(REWRITE)


# --- stepping down -----------------------------------------------------------------------------


def resting(**more: Any) -> p.Play:
    """Play until the node rests: it stepped down for 60 s, and on_lose ended at 5.0."""
    play = holder(**more)
    assert "start down#1" in p.Play.says(play.happens(3.0, e.StepDownAsked("n", 60.0)))
    play.ends(5.0, "release s, resting")
    play.on(5.1, p.RELEASE, o.Done())
    play.passes(6.0)
    assert play.contender.session.id == ""
    return play


def test_on_lose_gets_the_reason_of_a_step_down_also_after_a_crash() -> None:
    play = holder()
    begun = play.happens(3.0, e.StepDownAsked("n", 60.0, note="kernel update"))
    (start,) = [action for action in begun if isinstance(action, a.StartHook)]
    record = play.contender.record
    assert start.context.note == record.note == "kernel update"
    again = tenure_from(record, 4.0)
    assert again is not None and again.note == "kernel update"


def test_a_holder_that_steps_down_rests_after_the_release() -> None:
    play = resting()
    play.passes(64.9)
    assert (play.contender.session.id, play.role) == ("", "resting")
    assert play.says(play.happens(65.0, e.Tick())) == "create, waiting"


def test_the_rest_is_over_on_time_while_the_release_has_no_answer() -> None:
    play = holder()
    play.happens(3.0, e.StepDownAsked("n", 2.0))
    play.ends(5.0, "release s, resting")
    assert play.deadline <= 7.0
    play.hears(7.0, e.Tick(), "waiting")


def test_a_resume_lets_a_release_under_way_end() -> None:
    play = holder()
    play.happens(3.0, e.StepDownAsked("n", 60.0))
    play.ends(5.0, "release s, resting")
    play.hears(5.05, e.ResumeAsked("n"), "waiting")
    play.on(5.1, p.RELEASE, o.Done())
    play.passes(7.0)
    assert play.times(r.DestroySession) and play.times(r.CreateSession)[-1] > 5.0


def test_a_rest_that_a_resume_has_ended_does_not_follow_the_next_tenure() -> None:
    """The next tenure may end for another reason, and only a step-down is followed by a rest."""
    play = resting()
    play.hears(7.0, e.ResumeAsked("n"), "create, waiting")
    play.on(7.1, p.WATCH, replace(p.FREE, index=9, modify_index=9))
    play.passes(20.0)
    assert play.role == "acquiring"
    assert play.contender.rest_s == 0.0 and play.contender.rests_until < 20.0


def test_a_pause_hides_the_rest_and_does_not_end_it() -> None:
    play = resting()
    play.hears(7.0, e.PauseAsked("n"), "paused")
    play.passes(70.0)
    assert play.role == "paused"
    play.happens(70.0, e.ResumeAsked("n"))
    assert play.role == "waiting"


def test_a_resume_does_not_shorten_the_delay_after_the_exit_of_the_run_child() -> None:
    play = holder(run=p.RUN, rejoin_delay_s=30.0)
    play.happens(3.0, e.RunEnded(play.last(a.StartRun)))
    play.ends(5.0, "release s, waiting")
    play.on(5.1, p.RELEASE, o.Done())
    play.passes(6.0)
    play.hears(7.0, e.ResumeAsked("n"), "")
    play.passes(34.9)
    assert play.contender.session.id == ""


def test_an_unfit_node_that_rests_is_ineligible() -> None:
    play = resting()
    play.contender = replace(play.contender, health=replace(play.contender.health, fit=False))
    play.hears(7.0, e.HooksChecked("n", ()), "ineligible")


def test_a_step_down_does_nothing_to_a_waiter() -> None:
    play = p.waiting()
    before = play.contender
    play.happens(1.0, e.StepDownAsked("n", 60.0, "target"))
    assert play.contender == before


def test_new_settings_of_a_waiter_are_recorded_with_its_session() -> None:
    """After a crash the next process winds the session up with these settings."""
    play = p.waiting()
    _, begun = step(play.contender, changed(play, on_lose=(NEW_DOWN,)), 1.0)
    (write,) = (action for action in begun if isinstance(action, a.WriteRecord))
    assert write.record.session == "s" and write.settings.on_lose == (NEW_DOWN,)


# --- the whole file ----------------------------------------------------------------------------


def loaded(*wanted: ItemSettings) -> e.ConfigLoaded:
    return e.ConfigLoaded(tuple(Wanted(settings, 0.5) for settings in wanted), "j")


def named(name: str, **more: Any) -> ItemSettings:
    return replace(contender(), name=name, **{"key": name, **more})


def node(*settings: ItemSettings) -> Contenders:
    made = Contenders([new_contender(each, spread=0.0, instance="i") for each in settings])
    made.step(e.Tick(), 0.0)
    return made


def test_a_longer_prune_delay_restarts_an_item_that_may_have_a_contender_key() -> None:
    """Waiters read in a contender key how long they wait before they prune its slot. A contender in line may
    get a slot before the longer delay is written, so it restarts as well.
    """
    begins, enrolls, waits, held = waiting(), waiting(), full(), holding()
    enrolls.on(0.2, WATCH_SLOTS, EMPTY)
    longer, shorter = semaphore(prune_delay_s=60.0), semaphore(prune_delay_s=20.0)
    for play in (enrolls, waits, held):
        assert plan_reload({"n": play.contender}, {}, {"n": longer}) == {"n": ReloadEffect.RESTARTS}
        assert restarted_by(play.contender, longer) == "prune_delay"
        assert restarted_by(play.contender, replace(longer, key="q/.lock")) == "prefix"
    for play in (begins, enrolls, waits, held):
        assert plan_reload({"n": play.contender}, {}, {"n": shorter}) == {"n": ReloadEffect.CHANGES}
    assert plan_reload({"n": begins.contender}, {}, {"n": longer}) == {"n": ReloadEffect.CHANGES}


def test_a_reload_does_not_touch_an_unchanged_item() -> None:
    both = node(named("one"), named("two"))
    before = both.by_name["one"]
    both.step(loaded(named("one"), named("two", value=b"new")), 1.0)
    assert both.by_name["one"] is before
    assert both.by_name["two"].settings.value == b"new"


def test_an_item_that_the_file_has_dropped_ends_and_is_gone() -> None:
    both = node(named("one", contend=False, on_acquire=(), on_lose=()), named("two"))
    done = both.step(loaded(named("two")), 1.0)
    assert a.Finished("one", clean=True) in done
    assert list(both.by_name) == ["two"]
    assert both.by_name["two"].role is a.Role.WAITING


def test_a_renamed_item_begins_when_the_former_one_has_ended() -> None:
    """Two names of one key mean one application, so the former holder's on_lose must end before."""
    one = holder().contender
    made = Contenders([one])
    begun = made.step(loaded(replace(one.settings, name="m")), 3.0)
    assert any(isinstance(each, a.StartHook) for each in begun)
    assert list(made.by_name) == ["n"] and list(made.not_begun) == ["m"]
    ended(made, begun, 4.0)
    assert list(made.by_name) == ["m"] and not made.not_begun


def test_an_item_that_is_new_on_a_drained_node_is_drained_too() -> None:
    """And on one of which only some items are paused it begins as usual."""
    both = node(named("one"), named("two"))
    both.step(e.PauseAsked("one", 5000.0), 1.0)
    files = named("one"), named("two"), named("three")
    both.step(loaded(*files), 2.0)
    assert not both.by_name["three"].paused
    for name in ("two", "three"):
        both.step(e.PauseAsked(name, 6000.0), 3.0)
    both.step(loaded(*files, named("four")), 4.0)
    assert both.by_name["four"].paused_until == 5000.0 and both.by_name["four"].drained


def test_a_paused_item_stays_paused_under_another_key() -> None:
    made = Contenders([holder().contender])
    settings = made.by_name["n"].settings
    ended(made, made.step(e.PauseAsked("n", 5000.0), 2.0), 2.0)
    begun = made.step(loaded(replace(settings, key="other")), 3.5)
    assert made.by_name["n"].paused and not made.not_begun["n"].paused
    ended(made, begun, 4.0)
    assert made.by_name["n"].settings.key == "other" and made.by_name["n"].paused_until == 5000.0


def test_a_change_of_key_role_or_session_restarts_an_item_without_a_session() -> None:
    begins = new_contender(contender(), spread=0.0, instance="i")
    session = replace(begins.settings.session, name="other")
    for change in ({"key": "x"}, {"contend": False, "on_acquire": (), "on_lose": ()}, {"session": session}):
        wanted = replace(begins.settings, **change)
        assert plan_reload({"n": begins}, {}, {"n": wanted}) == {"n": ReloadEffect.RESTARTS}, change
        name = next(iter(change))
        assert restarted_by(begins, wanted) == {"session": "session.name"}.get(name, name)
    assert plan_reload({"n": begins}, {}, {"n": semaphore()}) == {"n": ReloadEffect.RESTARTS}


@pytest.mark.parametrize("resumed", [True, False])
@pytest.mark.parametrize("stepping", [True, False])
def test_a_rest_after_a_step_down_continues_under_another_session(stepping: bool, resumed: bool) -> None:
    """The file changes while on_lose runs, or when all has ended."""
    made = Contenders([holder().contender])
    settings = made.by_name["n"].settings
    another = replace(settings, session=replace(settings.session, ttl_s=8.0))
    begun = made.step(e.StepDownAsked("n", 60.0), 3.0)
    if not stepping:
        ended(made, begun, 4.0)
        begun = []
    begun += made.step(loaded(another), 6.0)
    ended(made, begun, 7.0)
    assert not made.not_begun and made.by_name["n"].settings == another
    assert not any(isinstance(each, r.CreateSession) for each in made.step(e.Tick(), 60.0))
    roles = [made.by_name["n"].role]
    resumed_at, event = (61.0, e.ResumeAsked("n")) if resumed else (68.0, e.Tick())
    assert any(isinstance(each, r.CreateSession) for each in made.step(event, resumed_at))
    assert [*roles, made.by_name["n"].role] == [a.Role.RESTING, a.Role.WAITING]


def test_the_delay_after_the_exit_of_the_run_child_continues_under_another_session() -> None:
    play = holder(run=p.RUN, rejoin_delay_s=60.0)
    made, settings = Contenders([play.contender]), play.contender.settings
    ended(made, made.step(e.RunEnded(play.last(a.StartRun)), 3.0), 4.0)
    another = replace(settings, session=replace(settings.session, ttl_s=8.0))
    ended(made, made.step(loaded(another), 6.0), 7.0)
    assert not made.not_begun and made.by_name["n"].settings == another
    assert not any(isinstance(each, r.CreateSession) for each in made.step(e.Tick(), 60.0))
    assert any(isinstance(each, r.CreateSession) for each in made.step(e.Tick(), 68.0))


def test_a_successor_that_replaces_another_keeps_its_rest() -> None:
    """The item that rested has ended, and its successor waits for another item that has its new key."""
    settings = contender()
    other = replace(holder().contender, settings=replace(settings, name="other", key="x"))
    made = Contenders([resting().contender, other])
    begun = made.step(loaded(replace(settings, key="x")), 7.0)
    ended(made, [each for each in begun if not isinstance(each, a.StartHook)], 7.0)
    assert list(made.by_name) == ["other"] and made.not_begun["n"].rests_until == 65.0
    made.step(loaded(replace(settings, key="y")), 8.0)
    made.step(e.Tick(), 8.0)
    assert made.by_name["n"].role is a.Role.RESTING


def test_a_successor_that_waits_is_replaced_by_the_next_reload() -> None:
    made = Contenders([holder().contender])
    settings = made.by_name["n"].settings
    made.step(loaded(replace(settings, key="x")), 3.0)
    made.step(loaded(replace(settings, key="y")), 3.1)
    assert made.not_begun["n"].settings.key == "y"
    made.step(loaded(), 3.2)
    assert not made.not_begun and made.by_name["n"].departing


def test_a_reload_is_compared_with_the_last_file_even_before_it_is_in_force() -> None:
    play = holder()
    in_force = play.contender.settings
    play.disk_full = True
    wanted = changed(play, on_lose=(NEW_DOWN,))
    play.happens(4.0, wanted)
    assert plan_reload({"n": play.contender}, {}, {"n": wanted.settings}) == {"n": ReloadEffect.UNCHANGED}
    assert plan_reload({"n": play.contender}, {}, {"n": in_force}) == {"n": ReloadEffect.CHANGES}


def test_an_item_that_returns_while_it_is_wound_up_begins_anew_afterwards() -> None:
    made = Contenders([holder().contender])
    settings = made.by_name["n"].settings
    begun = made.step(loaded(), 3.0)
    assert plan_reload(made.by_name, made.not_begun, {}) == {}
    assert plan_reload(made.by_name, made.not_begun, {"n": settings}) == {"n": ReloadEffect.BEGINS}
    begun += made.step(loaded(settings), 3.1)
    assert list(made.not_begun) == ["n"]
    ended(made, begun, 4.0)
    assert not made.not_begun and not made.by_name["n"].departing


def test_no_successor_begins_after_a_stop() -> None:
    made = Contenders([holder().contender])
    begun = made.step(loaded(replace(made.by_name["n"].settings, name="m")), 3.0)
    begun += made.step(e.StopAsked(), 3.1)
    ended(made, begun, 4.0)
    assert list(made.by_name) == ["n"] and made.stopped


def test_a_stop_applies_to_departing_items() -> None:
    made = Contenders([holder().contender])
    made.step(loaded(), 3.0)
    made.step(e.StopAsked(), 3.1)
    assert not made.by_name["n"].departing and not made.stopped


# --- slots -------------------------------------------------------------------------------------


def test_a_free_slot_beyond_a_smaller_limit_is_not_tried_for() -> None:
    """The file changes after the free slot was seen, and before the waiter tries."""
    play = in_line(view("o1", "o2", "o3", at=lock("o1", "o2")))
    play.on(0.4, WATCH_SLOTS, view("o1", "o2", "o3", "s", at=lock("o1", "o2")))
    play.happens(0.45, changed(play, limit=2))
    play.passes(5.0)
    assert not play.times(r.TakeSlot)
    play.happens(6.0, changed(play, limit=3))
    play.passes(8.0)
    assert play.times(r.TakeSlot)


def test_a_longer_prune_delay_applies_to_a_holder_that_has_vanished() -> None:
    """The file changes just before the former prune delay is over."""
    play = full()
    vanished = view("o2", "o3", "s", at=lock("o1", "o2", "o3"), index=70)
    play.on(1.0, WATCH_SLOTS, vanished)
    play.on(1.1, r.ReadKey, GONE)
    play.passes(30.95)
    play.happens(30.96, changed(play, prune_delay_s=60.0))
    play.passes(60.9)
    assert not play.times(r.TakeSlot)
    play.passes(62.0)
    assert play.times(r.TakeSlot)


def test_settings_with_a_smaller_room_by_the_shared_record_apply_at_the_next_contact() -> None:
    play = holding()
    short = view("s", at=lock("s", index=61, delay_s=16.0), index=62)
    play.on(2.0, WATCH_SLOTS, short)
    play.passes(9.0)
    assert play.contender.tenure is not None
    contact, long = play.contender.tenure.contact, p.hook("long down", 13.0)
    play.happens(contact + 2.9, changed(play, on_lose=(long,)))
    assert play.role == "holding" and play.contender.settings.on_lose != (long,)
    play.passes(contact + 5.0)
    assert play.role == "holding" and play.contender.settings.on_lose == (long,)


def test_a_waiter_with_new_settings_counts_on_the_prune_delay_that_it_will_write() -> None:
    """The prune delay that another program has left in ``.lock`` is not that of the waiter's slot."""
    play = in_line(view("o1", "o2", "o3", at=lock("o1", "o2", "o3", delay_s=4.0)))
    play.on(0.4, WATCH_SLOTS, view("o1", "o2", "o3", "s", at=lock("o1", "o2", "o3", delay_s=4.0)))
    play.on(1.1, WATCH_SLOTS, view("s", at=lock(index=70, delay_s=4.0), index=70))
    play.happens(1.2, changed(play, on_lose=(p.hook("long down", 5.0),)))
    play.on(1.3, r.TakeSlot, o.SlotWritten(o.KeyIndexes(50, 50, 1), o.KeyIndexes(9, 71, 0)))
    assert play.role == "acquiring"
