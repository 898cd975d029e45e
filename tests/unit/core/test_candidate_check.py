"""candidate_check: a node contends once its check has risen, and a holder steps down when it has fallen."""

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core.beside import candidate_check as healths
from supervisor.core.settings import CandidateCheck
from supervisor.core.times import NEVER
from tests.unit.core import play as p

CHECK = CandidateCheck(p.hook("check", 3.0, kill_after_s=1.0), interval_s=5.0, rise=2, fall=3)


def checked() -> p.Play:
    """Play until the key is free. The first check runs since 0.0, and there is no session yet."""
    play = p.Play(p.contender(candidate_check=CHECK))
    play.does(0.0, "watch 0 consistently, start check#1: scheduled, ineligible")
    play.does(0.2, p.WATCH, p.FREE, "watch 5")
    return play


def result(play: p.Play, now: float, expected: str, *, ok: bool) -> None:
    """End the check that runs."""
    started = next(
        x for _, x in reversed(play.log) if isinstance(x, a.StartHook) and x.context.event == "check"
    )
    play.hears(now, e.HookEnded(started, ok), expected)


def leading() -> p.Play:
    """Play until the node holds: two checks have succeeded, and on_acquire has ended at 5.4."""
    play = checked()
    result(play, 0.3, "", ok=True)
    play.passes(5.0)
    result(play, 5.1, "create, waiting", ok=True)
    play.does(5.15, p.CREATE, o.Created("s"), "read")
    play.does(5.2, p.READ, p.FREE, "acquire s")
    play.on(5.3, p.ACQUIRE, p.WON)
    play.hears(5.4, e.HookEnded(play.last(a.StartHook), ok=True), "holding")
    return play


def test_each_check_is_told_the_role_in_which_it_begins() -> None:
    play = leading()
    play.passes(10.0)
    starts = [start.context for _, start in play.log if isinstance(start, a.StartHook)]
    roles = [context.role for context in starts if context.event == "check"]
    assert roles == [a.Role.INELIGIBLE, a.Role.INELIGIBLE, a.Role.HOLDING]


def test_an_unfit_waiter_has_no_session_until_its_check_rises_again() -> None:
    """Other nodes take a session for a candidate, and would hand over to it."""
    play = checked()
    result(play, 0.3, "", ok=True)
    play.on(0.4, p.WATCH, p.RIVAL)
    play.passes(5.0)
    result(play, 5.1, "create, waiting", ok=True)
    play.does(5.2, p.CREATE, o.Created("s"), "")
    for start in (10.0, 15.0, 20.0):
        play.passes(start)
        result(play, start + 0.1, "destroy s, ineligible" if start == 20.0 else "", ok=False)
    play.on(20.2, p.DESTROY, o.Done())
    for start in (25.0, 30.0):
        play.passes(start)
        result(play, start + 0.1, "create, waiting" if start == 30.0 else "", ok=True)
    assert play.times(p.CREATE) == [5.1, 30.1] and not play.times(p.ACQUIRE)


def test_a_check_that_a_reload_adds_begins_at_once() -> None:
    """Without a run of the check an adopted holder would be unfit for ever once it has lost."""
    bare, with_check = healths.new_health(p.contender()), p.contender(candidate_check=CHECK)
    health, begun = healths.advance(
        healths.new_health(with_check).after(bare), with_check, None, "i", a.Role.WAITING, 7.0
    )
    assert [type(action) for action in begun] == [a.StartHook] and health.due_at == 12.0
    assert healths.new_health(p.contender()).after(health).deadline == NEVER


def test_a_check_gets_the_leader_that_was_observed_last() -> None:
    play = checked()
    result(play, 0.3, "", ok=True)
    play.on(0.4, p.WATCH, p.RIVAL)
    play.passes(5.0)
    first, second = (x.context for _, x in play.log if isinstance(x, a.StartHook) and x.hook == CHECK.hook)
    assert (first.leader, second.leader) == (None, b"them")


def test_a_failure_restarts_the_count_of_successes() -> None:
    play = checked()
    result(play, 0.3, "", ok=True)
    for start, ok in ((5.0, False), (10.0, True), (15.0, False)):
        play.passes(start)
        result(play, start + 0.1, "", ok=ok)
    assert play.role == "ineligible" and not play.times(p.ACQUIRE)


def test_checks_begin_one_interval_apart_and_never_two_at_once() -> None:
    play = checked()
    play.hears(7.0, e.PauseOver("n"), "")  # an event lets all begin that is due
    play.passes(12.0)
    begun = [now for now, x in play.log if isinstance(x, a.StartHook)]
    assert begun == [0.0]
    result(play, 12.0, "start check#1: scheduled", ok=True)


def test_a_holder_steps_down_after_fall_failures_in_a_row() -> None:
    play = leading()
    for start in (10.0, 15.0):
        play.passes(start)
        result(play, start + 0.1, "", ok=False)
        assert play.role == "holding"
    play.passes(20.0)
    result(play, 20.1, "start down#1: unhealthy, losing", ok=False)


def test_a_success_restarts_the_count_of_failures() -> None:
    play = leading()
    for start, ok in ((10.0, False), (15.0, False), (20.0, True), (25.0, False), (30.0, False)):
        play.passes(start)
        result(play, start + 0.1, "", ok=ok)
    assert play.role == "holding"


def test_after_an_unhealthy_loss_the_node_is_ineligible_and_creates_a_session_after_a_delay() -> None:
    play = leading()
    for start in (10.0, 15.0, 20.0):
        play.passes(start)
        result(play, start + 0.1, "start down#1: unhealthy, losing" if start == 20.0 else "", ok=False)
    down = next(x for _, x in reversed(play.log) if isinstance(x, a.StartHook) and x.hook.name == "down")
    play.hears(20.2, e.HookEnded(down, ok=True), "release s, ineligible")
    play.on(20.3, p.RELEASE, o.Done())
    for start in (25.0, 30.0):
        play.passes(start)
        result(play, start + 0.1, "waiting" if start == 30.0 else "", ok=True)
    assert [now for now in play.times(p.CREATE) if now > 20.0] == []
    play.passes(31.0)
    assert len([now for now in play.times(p.CREATE) if now > 20.0]) == 1


def test_an_adopted_holder_goes_on_before_its_check_has_risen() -> None:
    record = a.Record(a.Point.HOLDING, "k", "s", 7, 3, 2, -1.0, leader=b"me")
    play = p.Play(p.contender(candidate_check=CHECK), record=record)
    play.happens(0.0, e.Tick())
    play.on(0.1, p.RENEW, o.SessionAlive())
    play.does(0.2, p.READ, p.OURS, "holding")
    result(play, 0.3, "", ok=False)
    assert play.role == "holding"


def test_a_stop_ends_a_check_that_runs() -> None:
    play = checked()
    play.hears(0.5, e.StopAsked(), "kill check")
