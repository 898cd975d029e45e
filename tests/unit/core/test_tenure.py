"""The hooks of one tenure: their order, their retries, and how the tenure ends when they fail."""

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from tests.unit.core import play as p

TWO_UP = (p.hook("up 1"), p.hook("up 2"))
TWO_DOWN = (p.hook("down 1", 2.0), p.hook("down 2", 2.0))

# --- on_acquire and run -------------------------------------------------------------------------------


def test_hooks_run_one_after_the_other_then_the_run_child_starts() -> None:
    play = p.acquiring(on_acquire=TWO_UP, run=p.RUN)
    play.ends(1.0, "start up 2#1: acquired")
    play.ends(2.0, "start run, holding")


def test_on_acquire_stops_at_the_first_hook_that_fails() -> None:
    play = p.acquiring(on_acquire=TWO_UP, run=p.RUN)
    play.ends(1.0, "start down#1: acquire-failed, losing", ok=False)
    play.ends(2.0, "release s, waiting")


def test_a_failed_hook_is_retried_after_a_delay_that_doubles() -> None:
    play = p.acquiring(on_acquire=(p.hook("up", retries=2),))
    play.ends(1.0, "", ok=False)
    play.does(2.0, "start up#2: acquired")
    play.ends(2.5, "", ok=False)
    play.passes(4.4)
    play.does(4.5, "start up#3: acquired")
    play.ends(4.6, "start down#1: acquire-failed, losing", ok=False)


def test_with_acquire_failure_keep_a_failed_hook_ends_only_the_list() -> None:
    play = p.acquiring(on_acquire=TWO_UP, run=p.RUN, acquire_failure="keep")
    play.ends(1.0, "start run, holding", ok=False)


@pytest.mark.parametrize("begins", ["hook", "retry", "run"])
def test_no_hook_and_no_run_child_begins_on_old_news(begins: str) -> None:
    """News is old after one interval and one exchange, and the next answer is then waited for."""
    hooks = {"hook": TWO_UP, "retry": (p.hook("up", retries=1),), "run": (p.hook("up"),)}[begins]
    then = {"hook": "start up 2#1: acquired", "retry": "start up#2: acquired", "run": "start run, holding"}
    play = p.acquiring(on_acquire=hooks, run=p.RUN)
    play.does(3.2, "read")
    play.does(3.3, "renew s")
    play.ends(6.25, "", ok=begins != "retry")
    play.does(6.3, p.READ, p.SILENCE, "read")
    if begins == "retry":
        play.does(7.25, "")
    play.does(7.3, p.READ, p.OURS, then[begins])


def test_a_tenure_whose_hooks_never_began_has_no_on_lose() -> None:
    """The tenure was won on news too old to begin a hook with, and lost before newer news came."""
    play = p.trying()
    play.does(7.0, p.ACQUIRE, p.WON, "renew s, read, acquiring")
    play.does(7.1, p.READ, p.RIVAL, "losing, release s, info rival, waiting")
    assert play.times(a.StartHook) == []


# --- what cannot be started -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("began", "says"),
    [(False, "losing, release s, waiting"), (True, "start down#1: acquire-failed, losing")],
)
def test_on_acquire_that_could_not_be_started_calls_for_on_lose_if_an_earlier_attempt_began(
    began: bool, says: str
) -> None:
    play = p.acquiring(on_acquire=(p.hook("up", retries=1),))
    play.ends(1.0, "", ok=False, began=began)
    play.does(2.0, "start up#2: acquired")
    play.ends(2.5, says, began=False)
    assert play.records[-1].step is (a.Point.LOSING if began else a.Point.SESSION)


def test_on_lose_runs_when_an_earlier_hook_of_on_acquire_began() -> None:
    play = p.acquiring(on_acquire=TWO_UP)
    play.ends(1.0, "start up 2#1: acquired")
    play.ends(2.5, "start down#1: acquire-failed, losing", began=False)


def test_a_loss_while_on_acquire_cannot_be_started_needs_no_on_lose() -> None:
    play = p.acquiring()
    play.hears(0.4, e.StopAsked(), "kill up, losing")
    play.ends(0.5, "release s, waiting", began=False)


def test_a_run_child_that_could_not_be_started_calls_for_on_lose_only_after_an_on_acquire() -> None:
    play = p.holding(run=p.RUN)
    play.hears(2.0, e.RunEnded(play.last(a.StartRun), began=False), "start down#1: run-exited, losing")
    alone = p.acquiring(on_acquire=(), run=p.RUN)
    alone.hears(2.0, e.RunEnded(alone.last(a.StartRun), began=False), "losing, release s, waiting")


def test_on_lose_may_begin_at_any_time_and_other_hooks_only_on_fresh_news() -> None:
    play = p.acquiring(run=p.RUN)
    assert play.last(a.StartHook).begin_by == 0.2 + 6.0
    play.ends(1.0, "start run, holding")
    assert play.last(a.StartRun).begin_by == 0.2 + 6.0
    play.hears(2.0, e.RunEnded(play.last(a.StartRun)), "start down#1: run-exited, losing")
    assert play.last(a.StartHook).begin_by == float("inf")


# --- losing ---------------------------------------------------------------------------------------------


def test_losing_kills_on_acquire_then_runs_on_lose_then_releases() -> None:
    play = p.acquiring(on_acquire=TWO_UP, on_lose=TWO_DOWN, run=p.RUN)
    play.hears(1.0, e.StopAsked(), "kill up 1, losing")
    play.ends(1.5, "start down 1#1: shutdown", ok=False)
    play.ends(2.0, "start down 2#1: shutdown")
    play.ends(2.5, "release s, waiting")


def test_losing_stops_the_run_child_before_on_lose() -> None:
    play = p.holding(run=p.RUN)
    play.hears(2.0, e.StopAsked(), "stop run, losing")
    play.hears(3.0, e.RunEnded(play.last(a.StartRun)), "start down#1: shutdown")
    play.ends(3.1, "release s, waiting")


def test_on_lose_gets_the_time_from_which_a_rival_may_hold() -> None:
    play = p.holding(on_lose=TWO_DOWN)
    play.happens(2.0, e.StopAsked())
    assert play.last(a.StartHook).context.rival_at == pytest.approx(1.0 * 0.2 + 30.0)
    play.on(2.2, p.WATCH, p.RIVAL)
    play.ends(2.3, "start down 2#1: shutdown")
    assert play.last(a.StartHook).context.rival_at == 2.2


# --- retries of on_lose ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("failed_at", "again"), [(20.1, True), (20.3, False)])
def test_a_retry_of_on_lose_leaves_time_for_all_hooks_that_follow(failed_at: float, again: bool) -> None:
    """A rival may hold at 30.2. The last resort takes 4 s, the next hook 2 s and the retry itself 3 s, so the
    retry must begin by 21.2, and it begins one second after the failure.
    """
    hooks = (p.hook("down 1", 3.0, retries=1), p.hook("down 2", 2.0))
    play = p.holding(on_acquire=(), on_lose=hooks, on_lose_failure=(p.hook("off", 4.0),))
    play.passes(20.0, silent=True)
    play.ends(failed_at, "" if again else "start down 2#1: lease-expired", ok=False)
    play.passes(failed_at + 1.0, silent=True)
    assert play.last(a.StartHook).attempt == 1 + again


def test_a_retry_that_waits_is_given_up_when_a_rival_appears() -> None:
    play = p.holding(on_lose=(p.hook("down", retries=3),))
    play.happens(2.0, e.StopAsked())
    play.ends(2.2, "", ok=False)
    play.does(
        2.3, p.WATCH, p.RIVAL, "renew s, watch 9 consistently, info rival, stopped, finished, not clean"
    )


# --- when on_lose fails -------------------------------------------------------------------------------------


def test_a_failed_on_lose_without_a_last_resort_is_stuck() -> None:
    """While the session lives the lock is kept and renewed, and nothing else is done."""
    play = p.holding(run=p.RUN)
    play.hears(2.0, e.RunEnded(play.last(a.StartRun)), "start down#1: run-exited, losing")
    play.ends(2.1, "stuck", ok=False)
    play.passes(20.0)
    assert play.times(p.RENEW) == pytest.approx([3.3, 6.3, 9.3, 12.3, 15.3, 18.3])
    assert play.times(p.RELEASE) == []
    play.hears(20.0, e.StopAsked(), "stopped, finished, not clean")


def test_the_last_resort_runs_when_on_lose_failed() -> None:
    play = p.holding(on_lose=TWO_DOWN, on_lose_failure=(p.hook("off"),))
    play.happens(2.0, e.StopAsked())
    play.ends(2.1, "start down 2#1: shutdown", ok=False)
    play.ends(2.2, "start off#1: lose-failed")
    assert play.last(a.StartHook).context.event == "lose-failure"
    play.ends(2.3, "release s, waiting")


def test_a_failed_last_resort_is_stuck() -> None:
    play = p.holding(on_lose_failure=(p.hook("off"),))
    play.happens(2.0, e.StopAsked())
    play.ends(2.1, "start off#1: lose-failed", ok=False)
    play.ends(2.2, "stopped, finished, not clean", ok=False)


def test_the_last_resort_does_not_run_after_a_successful_on_lose() -> None:
    play = p.holding(on_lose_failure=(p.hook("off"),))
    play.happens(2.0, e.StopAsked())
    play.ends(2.1, "release s, waiting")


# --- the context of hooks -----------------------------------------------------------------------------


def test_all_hooks_and_attempts_of_one_transition_have_its_name() -> None:
    play = p.acquiring(on_acquire=(p.hook("up", retries=1),), on_lose=TWO_DOWN)
    play.ends(0.4, "", ok=False)
    play.does(1.4, "start up#2: acquired")
    play.ends(1.5, "holding")
    play.happens(2.0, e.StopAsked())
    play.ends(2.1, "start down 2#1: shutdown")
    transitions = [start.context.transition for _, start in play.log if isinstance(start, a.StartHook)]
    assert transitions == ["s-acquire", "s-acquire", "s-lose", "s-lose"]


def test_the_token_is_the_same_in_all_hooks_of_a_tenure() -> None:
    play = p.holding()
    play.on(1.5, p.WATCH, o.KeyView(9, "s", b"them", 3, 9, 0))
    play.happens(2.0, e.StopAsked())
    tokens = {start.context.fencing_token for _, start in play.log if isinstance(start, a.StartHook)}
    assert tokens == {7}
