"""The lane of on_change: which changes it reports, in which order, and that it delays nothing."""

from math import inf

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core.settings import Hook
from tests.unit.core import play as p

TOLD = (p.hook("told"),)
RIVAL_PUT = o.KeyView(10, "rival", b"new", 3, 10, 3)
OTHER = o.KeyView(11, "other", b"other", 3, 11, 4)
BLANK = o.KeyView(12, None, b"other", 3, 12, 4)


def observer(on_change: tuple[Hook, ...] = TOLD) -> p.Play:
    settings = p.contender(contend=False, on_acquire=(), on_lose=(), on_change=on_change)
    play = p.Play(settings)
    play.does(0.0, "watch 0 consistently")
    return play


def told(play: p.Play) -> tuple[str, bytes | None, bytes | None]:
    context: a.HookContext = play.last(a.StartHook).context
    assert context.event == "change"
    return (context.reason.value, context.leader, context.previous_leader)


def test_on_change_reports_the_state_at_the_start_once() -> None:
    play = observer()
    play.does(0.1, p.WATCH, p.RIVAL, "watch 9, start told#1: initial")
    assert told(play) == ("initial", b"them", None)
    play.ends(0.2, "")
    play.does(0.3, p.WATCH, p.RIVAL, "watch 9")


@pytest.mark.parametrize("view", [p.FREE, o.KeyView(6)], ids=["free", "absent"])
def test_a_free_key_at_the_start_has_no_leader(view: o.KeyView) -> None:
    """A free key may still have the value of its last holder."""
    play = observer()
    play.on(0.1, p.WATCH, view)
    assert told(play) == ("initial", None, None)


def test_on_change_reports_another_leader_and_another_value() -> None:
    play = observer()
    play.on(0.1, p.WATCH, p.RIVAL)
    play.ends(0.2, "")
    play.does(0.3, p.WATCH, RIVAL_PUT, "watch 10, start told#1: value-changed")
    assert told(play) == ("value-changed", b"new", b"them")
    play.ends(0.4, "")
    play.does(0.5, p.WATCH, OTHER, "watch 11, start told#1: leader-changed")
    assert told(play) == ("leader-changed", b"other", b"new")
    transitions = [start.context.transition for _, start in play.log if isinstance(start, a.StartHook)]
    assert len(set(transitions)) == 3, "each change has a transition of its own"


def test_the_previous_leader_is_kept_while_nobody_leads() -> None:
    play = observer()
    play.on(0.1, p.WATCH, OTHER)
    play.ends(0.2, "")
    play.does(0.3, p.WATCH, BLANK, "watch 12, start told#1: leader-changed")
    assert told(play) == ("leader-changed", None, b"other")
    play.ends(0.4, "")
    play.does(
        0.5, p.WATCH, o.KeyView(13, "rival", b"them", 3, 13, 5), "watch 13, start told#1: leader-changed"
    )
    assert told(play) == ("leader-changed", b"them", b"other")


def test_states_between_two_runs_of_on_change_are_skipped() -> None:
    play = observer()
    play.on(0.1, p.WATCH, p.RIVAL)
    play.does(0.2, p.WATCH, RIVAL_PUT, "watch 10")
    play.does(0.3, p.WATCH, OTHER, "watch 11")
    play.ends(0.4, "start told#1: leader-changed")
    assert told(play) == ("leader-changed", b"other", b"them")


def test_a_leader_that_returns_before_the_hook_ends_is_no_change() -> None:
    play = observer()
    play.on(0.1, p.WATCH, p.RIVAL)
    play.does(0.2, p.WATCH, BLANK, "watch 12")
    play.does(0.3, p.WATCH, o.KeyView(13, "rival", b"them", 3, 13, 5), "watch 13")
    play.ends(0.4, "")


def test_all_hooks_of_on_change_run_and_a_failed_one_is_retried() -> None:
    play = observer(on_change=(p.hook("one", retries=1), p.hook("two")))
    play.on(0.1, p.WATCH, p.RIVAL)
    play.ends(0.2, "", ok=False)
    play.does(1.2, "start one#2: initial")
    play.ends(1.3, "start two#1: initial", ok=False)
    play.ends(1.4, "")


def test_a_failed_on_change_is_not_retried_once_there_is_a_newer_change() -> None:
    play = observer(on_change=(p.hook("one", retries=1),))
    play.on(0.1, p.WATCH, p.RIVAL)
    play.does(0.2, p.WATCH, OTHER, "watch 11")
    play.ends(0.3, "start one#1: leader-changed", ok=False)


def test_silence_is_no_change() -> None:
    play = observer()
    play.on(0.1, p.WATCH, p.RIVAL)
    play.ends(0.2, "")
    play.does(0.3, p.WATCH, p.SILENCE, "")
    play.does(0.8, "watch 0 consistently")
    play.does(0.9, p.WATCH, p.RIVAL, "watch 9")


def test_each_attempt_is_told_the_role_in_which_it_begins() -> None:
    play = p.waiting(on_change=(p.hook("told", retries=1),))
    play.does(0.2, p.WATCH, p.FREE, "acquire s, start told#1: initial, watch 5")
    first = play.last(a.StartHook)
    play.does(0.3, p.ACQUIRE, p.WON, "start up#1: acquired, acquiring")
    up = play.last(a.StartHook)
    play.hears(0.4, e.HookEnded(first, ok=True), "start told#1: leader-changed")
    second = play.last(a.StartHook)
    play.hears(0.5, e.HookEnded(up, ok=True), "holding")
    play.hears(0.6, e.HookEnded(second, ok=False), "")
    play.does(1.6, "start told#2: leader-changed")
    roles = [start.context.role for start in (first, second, up, play.last(a.StartHook))]
    assert roles == [a.Role.WAITING, a.Role.ACQUIRING, None, a.Role.HOLDING]


def test_a_stop_kills_a_running_on_change_and_begins_no_other() -> None:
    play = observer()
    play.on(0.1, p.WATCH, p.RIVAL)
    play.does(0.2, p.WATCH, OTHER, "watch 11")
    play.hears(0.3, e.StopAsked(), "kill told")
    play.hears(0.35, e.Tick(), "")
    play.ends(0.4, "stopped, finished", ok=False)
    assert play.deadline == inf


def test_on_change_reports_a_value_that_another_program_put() -> None:
    play = p.waiting(on_change=TOLD, on_acquire=(), on_lose=())
    play.on(0.2, p.WATCH, p.FREE)
    play.ends(0.25, "")
    play.does(0.3, p.ACQUIRE, p.WON, "start told#1: leader-changed, holding")
    play.ends(0.4, "")
    play.does(0.5, p.WATCH, p.OURS, "watch 7 consistently")
    play.does(3.2, "read")
    begun = play.on(3.25, p.READ, o.KeyView(8, "s", b"put", 3, 8, 0))
    assert "start told#1: value-changed" in p.Play.says(begun)
