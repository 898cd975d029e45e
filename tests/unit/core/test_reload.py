"""Another file while the process runs: what goes on by it, from when on, and what begins anew."""

from dataclasses import replace
from typing import Any

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.contenders import Contenders
from supervisor.core.creation import new_contender
from supervisor.core.reload import ReloadEffect, plan_reload
from supervisor.core.settings import CandidateCheck, ItemSettings, SessionSettings, Wanted
from supervisor.core.step import step
from tests.unit.core.play import (
    ACQUIRE,
    CREATE,
    FORBIDDEN,
    OURS,
    READ,
    RELEASE,
    RENEW,
    RIVAL,
    RUN,
    SILENCE,
    WATCH,
    WON,
    Play,
    contender,
    hook,
)
from tests.unit.core.slot_play import EMPTY, GONE, full, holding, in_line, lock, semaphore, view, waiting
from tests.unit.core.slot_play import WATCH as WATCH_SLOTS

REWRITE = r.Rewrite
NEW_DOWN = hook("new down", 2.0)


def holder(**more: Any) -> Play:
    """It holds since 0.1, and has heard so at 2.0."""
    play = Play(contender(**more))
    play.happens(0.0, e.Tick())
    play.on(0.0, CREATE, o.Created("s"))
    play.on(0.0, WATCH, replace(RIVAL, session="", index=5))
    play.on(0.1, ACQUIRE, WON)
    play.happens(0.2, e.HookEnded(play.last(a.StartHook), ok=True))
    play.passes(2.0)
    assert play.contender.role is a.Role.HOLDING
    return play


def changed(play: Play, **more: Any) -> e.SettingsChanged:
    return e.SettingsChanged("n", replace(play.contender.settings, **more))


# --- what goes on ------------------------------------------------------------------------------


def test_a_holder_follows_as_soon_as_the_record_says_so() -> None:
    play = holder()
    before = len(play.records)
    play.happens(4.0, changed(play, on_lose=(NEW_DOWN,)))
    assert play.contender.settings.on_lose == (NEW_DOWN,) and len(play.records) > before
    assert "start new down#1" in Play.says(play.happens(5.0, e.StopAsked()))


def test_what_cannot_be_recorded_is_not_in_force_and_is_tried_again() -> None:
    play = holder()
    play.disk_full = True
    play.happens(4.0, changed(play, on_lose=(NEW_DOWN,)))
    assert play.contender.settings.on_lose != (NEW_DOWN,)
    play.disk_full = False
    play.passes(9.0)
    assert play.contender.settings.on_lose == (NEW_DOWN,) and play.contender.next_settings is None


def test_a_smaller_room_counts_from_the_next_contact() -> None:
    """By the smaller room alone, belief would end at once."""
    play = holder()
    play.passes(10.0)
    assert play.contender.tenure is not None
    contact, long = play.contender.tenure.contact, hook("long down", 26.0)
    play.happens(contact + 2.9, changed(play, on_lose=(long,)))
    assert play.contender.role is a.Role.HOLDING and play.contender.settings.on_lose != (long,)
    play.passes(contact + 16.0)
    assert play.contender.role is a.Role.HOLDING and play.contender.settings.on_lose == (long,)


def test_a_loss_that_has_begun_ends_by_what_it_began_with() -> None:
    play = holder()
    assert "start down#1" in Play.says(play.happens(3.0, e.StepDownAsked("n", 5.0)))
    play.happens(3.5, changed(play, on_lose=(NEW_DOWN, NEW_DOWN)))
    assert play.contender.settings.on_lose != (NEW_DOWN, NEW_DOWN)
    play.ends(4.0, "release s, resting")
    assert play.contender.settings.on_lose == (NEW_DOWN, NEW_DOWN)


def test_on_acquire_under_way_ends_by_what_it_began_with() -> None:
    play = Play(contender(on_acquire=(hook("one"), hook("two"))))
    play.happens(0.0, e.Tick())
    play.on(0.0, CREATE, o.Created("s"))
    play.on(0.0, WATCH, replace(RIVAL, session="", index=5))
    play.on(0.1, ACQUIRE, WON)
    play.happens(0.2, changed(play, on_acquire=()))
    assert "start two#1" in Play.says(play.happens(0.3, e.HookEnded(play.last(a.StartHook), ok=True)))
    play.happens(0.4, e.HookEnded(play.last(a.StartHook), ok=True))
    play.passes(4.0)
    assert play.contender.settings.on_acquire == ()


def test_on_change_under_way_ends_by_what_it_began_with() -> None:
    """A list that got shorter is no place to look up the rest of it."""
    play = Play(contender(contend=False, on_acquire=(), on_lose=(), on_change=(hook("a"), hook("b"))))
    play.happens(0.0, e.Tick())
    play.on(0.1, WATCH, RIVAL)
    play.happens(0.2, e.HookEnded(play.last(a.StartHook), ok=True))
    play.happens(0.3, changed(play, on_change=()))
    play.happens(0.4, e.HookEnded(play.last(a.StartHook), ok=False))
    assert play.contender.change.context is None
    play.on(0.5, WATCH, replace(RIVAL, session="", index=10))
    assert play.contender.change.context is None


def test_the_file_before_is_back_before_the_new_one_was_in_force() -> None:
    play = holder()
    old = play.contender.settings
    play.disk_full = True
    play.happens(4.0, changed(play, on_lose=(NEW_DOWN,)))
    play.happens(4.5, e.SettingsChanged("n", old))
    play.disk_full = False
    play.passes(9.0)
    assert play.contender.settings == old and play.contender.next_settings is None


def test_a_check_at_other_times_has_found_what_it_has_found() -> None:
    check = CandidateCheck(hook("check"), 5.0)
    play = Play(contender(candidate_check=check))
    for now in (0.0, 5.0):
        play.happens(now, e.Tick())
        play.happens(now + 0.1, e.HookEnded(play.last(a.StartHook), ok=True))
    assert play.contender.health.fit
    play.happens(6.0, changed(play, candidate_check=replace(check, interval_s=1.0, rise=3)))
    assert play.contender.health.fit
    play.happens(6.1, changed(play, candidate_check=CandidateCheck(replace(RUN_CHECK), 5.0)))
    assert not play.contender.health.fit, "another check has found nothing yet"


def test_a_check_under_way_counts_for_no_other_check() -> None:
    check = CandidateCheck(hook("check"), 5.0, rise=1, fall=1)
    play = Play(contender(candidate_check=check))
    play.happens(0.0, e.Tick())
    started = play.last(a.StartHook)
    play.happens(1.0, changed(play, candidate_check=replace(check, hook=RUN_CHECK)))
    play.happens(2.0, e.HookEnded(started, ok=True))
    assert not play.contender.health.fit
    play.passes(5.5)
    play.happens(6.0, e.HookEnded(play.last(a.StartHook), ok=True))
    assert play.contender.health.fit


RUN_CHECK = replace(hook("check"), call=replace(RUN.command, argv=("false",)))

# --- the value ---------------------------------------------------------------------------------


def test_a_holder_writes_its_new_value_once() -> None:
    play = holder()
    assert "rewrite s" in Play.says(play.happens(4.0, changed(play, value=b"new")))
    play.does(4.1, REWRITE, o.Done(), "")
    assert play.contender.tenure is not None and play.contender.tenure.leader == b"new"
    assert play.records[-1].leader == b"new"
    play.passes(20.0)
    assert [x for _, x in play.log if isinstance(x, r.Rewrite)] == [play.last(REWRITE)]


@pytest.mark.parametrize("outcome", [SILENCE, FORBIDDEN, o.LockDelayed(), o.LostRace(), o.SessionGone()])
def test_a_value_that_was_not_written_is_written_later_and_is_no_loss(outcome: o.Outcome) -> None:
    play = holder()
    play.happens(4.0, changed(play, value=b"new"))
    play.on(4.1, REWRITE, outcome)
    assert play.contender.role is a.Role.HOLDING
    play.passes(12.0)
    assert play.contender.session.last_value == b"new" and play.contender.role is a.Role.HOLDING
    assert len(play.times(REWRITE)) == 2


def test_where_the_session_is_said_not_to_hold_a_read_tells() -> None:
    play = holder()
    play.passes(3.9)
    play.happens(4.0, changed(play, value=b"new"))
    assert "read" in Play.says(play.on(4.1, REWRITE, o.LostRace()))
    play.on(4.2, READ, replace(RIVAL, modify_index=99))
    assert play.role == "losing"


def test_a_put_of_somebody_else_is_not_fought_over() -> None:
    play = holder()
    play.on(4.0, WATCH, replace(OURS, index=50, value=b"put over", lock_index=0, modify_index=50))
    play.passes(20.0)
    assert not [x for _, x in play.log if isinstance(x, r.Rewrite)]


def test_a_waiter_tries_with_the_new_value() -> None:
    play = Play(contender())
    play.happens(0.0, e.Tick())
    play.on(0.0, CREATE, o.Created("s"))
    play.on(0.1, WATCH, RIVAL)
    play.happens(1.0, changed(play, value=b"new"))
    play.on(2.0, WATCH, replace(RIVAL, session="", index=12))
    assert play.last(ACQUIRE).value == b"new"


def test_a_win_by_the_old_value_is_followed_by_the_new_one() -> None:
    play = Play(contender())
    play.happens(0.0, e.Tick())
    play.on(0.0, CREATE, o.Created("s"))
    play.on(0.0, WATCH, replace(RIVAL, session="", index=5))
    play.happens(0.05, changed(play, value=b"new"))
    assert "rewrite s" in Play.says(play.on(0.1, ACQUIRE, WON))


def test_who_stands_in_line_for_a_slot_keeps_its_place_under_the_new_value() -> None:
    play = in_line(view("o1", "o2", at=lock("o1", limit=1)), limit=1)
    play.on(0.4, WATCH_SLOTS, view("o1", "o2", "s", at=lock("o1", limit=1)))
    play.happens(1.0, changed(play, value=b"new"))
    rewrite = play.last(REWRITE)
    assert (rewrite.key, rewrite.value, rewrite.of_slot) == ("p/s", b"new", True)


def test_after_a_crash_the_value_is_written_if_it_never_was() -> None:
    held = a.Record(a.Step.HOLDING, "k", "s", 7, 3, 2, contact=1.0, leader=b"old")
    play = Play(contender(), record=held, now=2.0)
    play.happens(2.0, e.Tick())
    play.on(2.1, RENEW, o.SessionAlive())
    assert "rewrite s" in Play.says(play.on(2.2, READ, replace(OURS, value=b"old")))


def test_the_former_value_is_back_before_the_new_one_was_answered_for() -> None:
    """It may have been written all the same."""
    play = holder()
    play.happens(4.0, changed(play, value=b"new"))
    play.on(4.1, REWRITE, SILENCE)
    play.happens(4.2, changed(play, value=b"me"))
    play.passes(8.0)
    assert play.last(REWRITE).value == b"me" and play.contender.session.last_value == b"me"
    assert len(play.times(REWRITE)) == 2


def test_the_former_value_is_back_after_a_crash_that_came_before_the_answer() -> None:
    held = a.Record(a.Step.HOLDING, "k", "s", 7, 3, 2, contact=1.0, leader=b"me")
    play = Play(contender(), record=held, now=2.0, recorded=replace(contender(), value=b"new"))
    play.happens(2.0, e.Tick())
    play.on(2.1, RENEW, o.SessionAlive())
    play.on(2.2, READ, replace(OURS, value=b"new", modify_index=9))
    play.passes(4.0)
    assert play.last(REWRITE).value == b"me"


def test_a_value_that_was_never_changed_is_not_written_after_a_crash() -> None:
    held = a.Record(a.Step.HOLDING, "k", "s", 7, 3, 2, contact=1.0, leader=b"me")
    play = Play(contender(), record=held, now=2.0, recorded=contender())
    play.happens(2.0, e.Tick())
    play.on(2.1, RENEW, o.SessionAlive())
    play.on(2.2, READ, OURS)
    play.passes(20.0)
    assert not play.times(REWRITE)


# --- stepping down -----------------------------------------------------------------------------


def resting(**more: Any) -> Play:
    """It has stepped down for 60 s, at 5.0; the destroy is done at 5.3."""
    play = holder(**more)
    assert "start down#1" in Play.says(play.happens(3.0, e.StepDownAsked("n", 60.0)))
    play.ends(5.0, "release s, resting")
    play.on(5.1, RELEASE, o.Done())
    play.passes(6.0)
    assert play.contender.session.id == ""
    return play


def test_who_steps_down_rests_after_the_release() -> None:
    play = resting()
    play.passes(64.9)
    assert (play.contender.session.id, play.role) == ("", "resting")
    assert play.says(play.happens(65.0, e.Tick())) == "create, waiting"


def test_a_resume_ends_the_rest_at_once() -> None:
    play = resting()
    assert play.says(play.happens(7.0, e.ResumeAsked("n"))) == "create, waiting"
    play.passes(20.0)
    assert play.role == "acquiring"


def test_the_rest_is_over_on_time_while_the_release_has_no_answer() -> None:
    play = holder()
    play.happens(3.0, e.StepDownAsked("n", 2.0))
    play.ends(5.0, "release s, resting")
    assert play.deadline <= 7.0
    play.hears(7.0, e.Tick(), "waiting")


def test_a_resume_while_the_release_is_under_way_lets_it_end() -> None:
    play = holder()
    play.happens(3.0, e.StepDownAsked("n", 60.0))
    play.ends(5.0, "release s, resting")
    play.hears(5.05, e.ResumeAsked("n"), "waiting")
    play.on(5.1, RELEASE, o.Done())
    play.passes(7.0)
    assert play.times(r.DestroySession) and play.times(r.CreateSession)[-1] > 5.0


def test_a_resume_while_it_steps_down_leaves_no_rest() -> None:
    play = holder()
    play.happens(3.0, e.StepDownAsked("n", 60.0))
    play.happens(4.0, e.ResumeAsked("n"))
    play.ends(5.0, "release s, waiting")
    play.on(5.1, RELEASE, o.Done())
    play.passes(20.0)
    assert play.role == "acquiring"


def test_the_rest_that_a_resume_has_ended_does_not_follow_the_next_tenure() -> None:
    """It ends by another reason than a step-down, which knows no rest."""
    play = resting()
    play.happens(7.0, e.ResumeAsked("n"))
    play.passes(20.0)
    assert play.contender.rest_s == 0.0 and play.contender.rests_until < 20.0


def test_a_resume_ends_pause_and_rest() -> None:
    """This is the order of a drain: pause, step down, resume."""
    play = holder()
    play.happens(2.9, e.PauseAsked("n"))
    play.happens(3.0, e.StepDownAsked("n", 60.0))
    play.ends(5.0, "release s, paused")
    play.on(5.1, RELEASE, o.Done())
    play.passes(7.0)
    assert play.says(play.happens(7.0, e.ResumeAsked("n"))) == "create, waiting"


def test_a_pause_hides_the_rest_and_does_not_end_it() -> None:
    play = resting()
    play.hears(7.0, e.PauseAsked("n"), "paused")
    play.passes(70.0)
    assert play.role == "paused"
    play.happens(70.0, e.ResumeAsked("n"))
    assert play.role == "waiting"


def test_a_resume_is_no_short_cut_past_the_delay_after_a_loss_of_its_own_making() -> None:
    play = holder(run=RUN, rejoin_delay_s=30.0)
    play.happens(3.0, e.RunEnded(play.last(a.StartRun)))
    play.ends(5.0, "release s, waiting")
    play.on(5.1, RELEASE, o.Done())
    play.passes(6.0)
    play.hears(7.0, e.ResumeAsked("n"), "")
    play.passes(34.9)
    assert play.contender.session.id == ""


def test_one_that_is_not_fit_is_not_called_resting() -> None:
    play = resting()
    play.contender = replace(play.contender, health=replace(play.contender.health, fit=False))
    play.hears(7.0, e.Tick(), "ineligible")


def test_who_does_not_hold_does_not_step_down() -> None:
    play = Play(contender())
    play.happens(0.0, e.Tick())
    play.on(0.0, CREATE, o.Created("s"))
    before = play.contender
    play.happens(1.0, e.StepDownAsked("n", 60.0))
    assert play.contender == before


def test_what_a_waiter_follows_goes_on_record_with_its_session() -> None:
    """A process that starts winds its session up by that."""
    play = Play(contender())
    play.happens(0.0, e.Tick())
    play.on(0.0, CREATE, o.Created("s"))
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


@pytest.mark.parametrize(
    ("change", "effect"),
    [
        ({}, ReloadEffect.UNCHANGED),
        ({"value": b"new"}, ReloadEffect.CHANGES),
        ({"on_acquire": ()}, ReloadEffect.CHANGES),
        ({"on_lose": (NEW_DOWN,)}, ReloadEffect.CHANGES),
        ({"on_change": (NEW_DOWN,)}, ReloadEffect.CHANGES),
        ({"candidate_check": CandidateCheck(hook("check"))}, ReloadEffect.CHANGES),
        ({"rejoin_delay_s": 1.0, "on_adopt": "acquire", "acquire_failure": "keep"}, ReloadEffect.CHANGES),
        ({"key": "other"}, ReloadEffect.RESTARTS),
        ({"run": RUN}, ReloadEffect.RESTARTS),
        ({"session": SessionSettings("ours", ttl_s=8.0)}, ReloadEffect.RESTARTS),
        ({"contend": False, "on_acquire": (), "on_lose": ()}, ReloadEffect.RESTARTS),
    ],
)
def test_which_change_keeps_leadership(change: dict[str, Any], effect: ReloadEffect) -> None:
    play = holder()
    wanted = {"n": replace(play.contender.settings, **change)}
    assert plan_reload({"n": play.contender}, {}, wanted) == {"n": effect}


def test_nobody_with_a_contender_key_may_count_on_more_than_others_read_in_it() -> None:
    """Nor who stands in line, or may: it could have a slot before it has written the longer delay, and
    whoever takes a slot after it writes what the contender keys say."""
    begins, enrolls, waits, held = waiting(), waiting(), full(), holding()
    enrolls.on(0.2, WATCH_SLOTS, EMPTY)
    longer, shorter = semaphore(prune_delay_s=60.0), semaphore(prune_delay_s=20.0)
    for play in (enrolls, waits, held):
        assert plan_reload({"n": play.contender}, {}, {"n": longer}) == {"n": ReloadEffect.RESTARTS}
    for play in (begins, enrolls, waits, held):
        assert plan_reload({"n": play.contender}, {}, {"n": shorter}) == {"n": ReloadEffect.CHANGES}
    assert plan_reload({"n": begins.contender}, {}, {"n": longer}) == {"n": ReloadEffect.CHANGES}


def test_what_did_not_change_is_not_touched() -> None:
    both = node(named("one"), named("two"))
    before = both.by_name["one"]
    both.step(loaded(named("one"), named("two", value=b"new")), 1.0)
    assert both.by_name["one"] is before
    assert both.by_name["two"].settings.value == b"new"


def test_what_the_file_has_no_more_ends_and_is_gone() -> None:
    both = node(named("one", contend=False, on_acquire=(), on_lose=()), named("two"))
    done = both.step(loaded(named("two")), 1.0)
    assert a.Finished("one", clean=True) in done
    assert list(both.by_name) == ["two"]
    assert both.by_name["two"].role is a.Role.WAITING


def test_what_is_in_the_way_ends_first() -> None:
    """Another name, the same key: it is the same application. A holder's on_lose must end before."""
    one = holder().contender
    made = Contenders([one])
    begun = made.step(loaded(replace(one.settings, name="m")), 3.0)
    lose = next(action for action in begun if isinstance(action, a.StartHook))
    assert list(made.by_name) == ["n"] and list(made.waiting) == ["m"]
    begun = made.step(e.HookEnded(lose, ok=True), 4.0)
    while "n" in made.by_name:
        outcomes = {r.Release: o.Done(), r.DestroySession: o.Done(), a.WriteRecord: None}
        for action in begun:
            if isinstance(action, a.WriteRecord):
                begun = made.step(e.RecordWritten(action), 5.0)
                break
            if type(action) in outcomes:
                assert isinstance(action, r.Request)
                begun = made.step(e.Answered(action, o.Done()), 5.0)
                break
        else:
            begun = made.step(e.Tick(), 6.0)
    assert list(made.by_name) == ["m"] and not made.waiting


def test_a_paused_item_is_paused_under_another_key_too() -> None:
    made = node(named("one"))
    made.step(e.PauseAsked("one"), 1.0)
    made.step(loaded(named("one", key="other")), 2.0)
    waiting = {**made.by_name, **made.waiting}
    assert all(contender.paused for contender in waiting.values())


def test_who_waits_for_its_first_session_cannot_change_what_others_were_told_either() -> None:
    begins, session = new_contender(contender(), spread=0.0, instance="i"), SessionSettings("other")
    for change in ({"key": "x"}, {"contend": False, "on_acquire": (), "on_lose": ()}, {"session": session}):
        wanted = replace(begins.settings, **change)
        assert plan_reload({"n": begins}, {}, {"n": wanted}) == {"n": ReloadEffect.RESTARTS}, change
    assert plan_reload({"n": begins}, {}, {"n": semaphore()}) == {"n": ReloadEffect.RESTARTS}


def ended(made: Contenders, begun: list[a.Action], now: float) -> None:
    """All goes well until nothing is begun any more at that time."""
    todo = list(begun)
    while todo:
        action, more = todo.pop(0), list[a.Action]()
        match action:
            case a.StartHook():
                more = made.step(e.HookEnded(action, ok=True), now)
            case r.Release() | r.DestroySession():
                more = made.step(e.Answered(action, o.Done()), now)
            case a.WriteRecord():
                more = made.step(e.RecordWritten(action), now)
        todo += more or (made.step(e.Tick(), now) if not todo else [])


@pytest.mark.parametrize("resumed", [True, False])
@pytest.mark.parametrize("stepping", [True, False])
def test_who_rests_after_a_step_down_rests_under_another_session_too(stepping: bool, resumed: bool) -> None:
    """The file changes while on_lose runs, or when all has ended."""
    made = Contenders([holder().contender])
    settings = made.by_name["n"].settings
    another = replace(settings, session=replace(settings.session, ttl_s=8.0))
    begun = made.step(e.StepDownAsked("n", 60.0), 3.0)
    if not stepping:
        ended(made, begun, 4.0)
        ended(made, made.step(e.Tick(), 5.0), 5.0)
        begun = []
    begun += made.step(loaded(another), 6.0)
    ended(made, begun, 7.0)
    ended(made, made.step(e.Tick(), 8.0), 8.0)
    assert not made.waiting and made.by_name["n"].settings == another
    assert not any(isinstance(each, r.CreateSession) for each in made.step(e.Tick(), 60.0))
    roles = [made.by_name["n"].role]
    resumed_at, event = (61.0, e.ResumeAsked("n")) if resumed else (68.0, e.Tick())
    assert any(isinstance(each, r.CreateSession) for each in made.step(event, resumed_at))
    assert [*roles, made.by_name["n"].role] == [a.Role.RESTING, a.Role.WAITING]


def test_the_delay_after_a_loss_of_its_own_making_goes_on_under_another_session() -> None:
    play = holder(run=RUN, rejoin_delay_s=60.0)
    made, settings = Contenders([play.contender]), play.contender.settings
    ended(made, made.step(e.RunEnded(play.last(a.StartRun)), 3.0), 4.0)
    another = replace(settings, session=replace(settings.session, ttl_s=8.0))
    ended(made, made.step(loaded(another), 6.0), 7.0)
    ended(made, made.step(e.Tick(), 8.0), 8.0)
    assert not made.waiting and made.by_name["n"].settings == another
    assert not any(isinstance(each, r.CreateSession) for each in made.step(e.Tick(), 60.0))
    assert any(isinstance(each, r.CreateSession) for each in made.step(e.Tick(), 68.0))


def test_a_successor_that_replaces_another_keeps_its_rest() -> None:
    """It waits for another item to end, whose key it was to have; the item that rested has ended."""
    settings = contender()
    other = replace(holder().contender, settings=replace(settings, name="other", key="x"))
    made = Contenders([resting().contender, other])
    begun = made.step(loaded(replace(settings, key="x")), 7.0)
    ended(made, [each for each in begun if not isinstance(each, a.StartHook)], 7.0)
    assert list(made.by_name) == ["other"] and made.waiting["n"].rests_until == 65.0
    made.step(loaded(replace(settings, key="y")), 8.0)
    made.step(e.Tick(), 8.0)
    assert made.by_name["n"].role is a.Role.RESTING


def test_a_successor_that_waits_is_replaced_by_the_next_file() -> None:
    made = Contenders([holder().contender])
    settings = made.by_name["n"].settings
    made.step(loaded(replace(settings, key="x")), 3.0)
    made.step(loaded(replace(settings, key="y")), 3.1)
    assert made.waiting["n"].settings.key == "y"
    made.step(loaded(), 3.2)
    assert not made.waiting and made.by_name["n"].departing


def test_a_file_is_compared_with_the_one_before_it_be_that_in_force_or_not() -> None:
    play = holder()
    in_force = play.contender.settings
    play.disk_full = True
    wanted = changed(play, on_lose=(NEW_DOWN,))
    play.happens(4.0, wanted)
    assert plan_reload({"n": play.contender}, {}, {"n": wanted.settings}) == {"n": ReloadEffect.UNCHANGED}
    assert plan_reload({"n": play.contender}, {}, {"n": in_force}) == {"n": ReloadEffect.CHANGES}


def test_what_comes_back_while_it_is_wound_up_begins_anew_after_that() -> None:
    made = Contenders([holder().contender])
    settings = made.by_name["n"].settings
    begun = made.step(loaded(), 3.0)
    assert plan_reload(made.by_name, made.waiting, {}) == {}
    assert plan_reload(made.by_name, made.waiting, {"n": settings}) == {"n": ReloadEffect.BEGINS}
    begun += made.step(loaded(settings), 3.1)
    assert list(made.waiting) == ["n"]
    ended(made, begun, 4.0)
    ended(made, made.step(e.Tick(), 5.0), 5.0)
    assert not made.waiting and not made.by_name["n"].departing


def test_nothing_begins_after_a_stop() -> None:
    made = Contenders([holder().contender])
    begun = made.step(loaded(replace(made.by_name["n"].settings, name="m")), 3.0)
    begun += made.step(e.StopAsked(), 3.1)
    ended(made, begun, 4.0)
    ended(made, made.step(e.Tick(), 5.0), 5.0)
    assert list(made.by_name) == ["n"] and made.stopped


def test_a_stop_ends_what_departs_too() -> None:
    made = Contenders([holder().contender])
    made.step(loaded(), 3.0)
    made.step(e.StopAsked(), 3.1)
    assert not made.by_name["n"].departing and not made.stopped


# --- slots -------------------------------------------------------------------------------------


def test_a_slot_that_is_none_by_a_smaller_limit_is_not_tried_for() -> None:
    """The file changes between the news of a free slot and our turn in line."""
    play = in_line(view("o1", "o2", "o3", at=lock("o1", "o2")))
    play.on(0.4, WATCH_SLOTS, view("o1", "o2", "o3", "s", at=lock("o1", "o2")))
    play.happens(0.45, changed(play, limit=2))
    play.passes(5.0)
    assert not play.times(r.TakeSlot)
    play.happens(6.0, changed(play, limit=3))
    play.passes(8.0)
    assert play.times(r.TakeSlot)


def test_the_slot_of_one_that_vanished_is_waited_for_by_a_longer_prune_delay() -> None:
    """The file changes just before its time is over by the former one."""
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


def test_a_smaller_room_by_what_the_record_says_counts_from_the_next_contact() -> None:
    play = holding()
    short = view("s", at=lock("s", index=61, delay_s=16.0), index=62)
    play.on(2.0, WATCH_SLOTS, short)
    play.passes(9.0)
    assert play.contender.tenure is not None
    contact, long = play.contender.tenure.contact, hook("long down", 13.0)
    play.happens(contact + 2.9, changed(play, on_lose=(long,)))
    assert play.role == "holding" and play.contender.settings.on_lose != (long,)
    play.passes(contact + 5.0)
    assert play.role == "holding" and play.contender.settings.on_lose == (long,)


def test_a_waiter_that_follows_counts_on_what_its_own_record_will_say() -> None:
    """The delay that somebody else has left in ``.lock`` is not that of the slot that it takes."""
    play = in_line(view("o1", "o2", "o3", at=lock("o1", "o2", "o3", delay_s=4.0)))
    play.on(0.4, WATCH_SLOTS, view("o1", "o2", "o3", "s", at=lock("o1", "o2", "o3", delay_s=4.0)))
    play.on(1.1, WATCH_SLOTS, view("s", at=lock(index=70, delay_s=4.0), index=70))
    play.happens(1.2, changed(play, on_lose=(hook("long down", 5.0),)))
    play.on(1.3, r.TakeSlot, o.SlotWritten(o.KeyIndexes(50, 50, 1), o.KeyIndexes(9, 71, 0)))
    assert play.role == "acquiring"


def test_a_check_under_way_ends_before_another_begins() -> None:
    play = Play(contender(candidate_check=CandidateCheck(hook("check"), 5.0)))
    play.happens(0.0, e.Tick())
    running = play.contender.health.running
    begun = play.happens(1.0, changed(play, candidate_check=CandidateCheck(RUN_CHECK, 5.0)))
    assert running is not None and play.contender.health.running == running
    assert not [action for action in begun if isinstance(action, a.StartHook)]
