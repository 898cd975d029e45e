"""step-down to a named node: the name that the release leaves behind, and how each contender reads it."""

from dataclasses import replace

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as req
from supervisor.core.lock.handover import HANDOVER_S, named_session, naming
from tests.unit.core import play as p
from tests.unit.core.slot_play import holding as holding_a_slot

TARGET = "target"
DELAY_S = 2.0


def handed_over(to: str = TARGET) -> o.KeyView:
    """Return the key as the release of a holder that steps down leaves it."""
    return o.KeyView(12, None, naming(to), 3, 12, 3)


# --- the name ----------------------------------------------------------------------------------------


def test_the_value_names_its_target() -> None:
    session = "0fb3cba9-26e7-4cbb-9b4b-6e1a3c5b2c11"
    assert named_session(naming(session)) == session
    assert naming("s") == b'{"consul-supervisor":{"handover_to":"s"}}'


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"node1",
        b'{"Node":"node1"}',
        b'{"consul-supervisor":{"handover_to":""}}',
        b'{"consul-supervisor":{"handover_to":null}}',
        b'{"consul-supervisor":{"handover_to":"s","version":2}}',
        b'{"consul-supervisor":{"handed_to":"s"}}',
        b'{"consul-supervisor":{"handover_to":"s"}} ',
        b'{"consul-supervisor":{"handover_to":"s"}}\n',
        b'{"consul-supervisor":{"handover_to":"' + b"s" * 65 + b'"}}',
        b'{"consul-supervisor":{"handover_to":"' + b"s" * 65536 + b'"}}',
        b'{"consul-supervisor":{"handover_to":"\xff"}}',
        b'{"consul-supervisor":' * 3000,
    ],
    ids=lambda value: f"{len(value)} bytes",
)
def test_any_other_value_names_nobody_and_delays_nobody(value: bytes) -> None:
    assert named_session(value) is None
    play = p.behind()
    play.does(1.0, p.WATCH, replace(handed_over(), value=value), "acquire s, watch 12")


# --- the holder that hands over ------------------------------------------------------------------------


def releasing(play: p.Play, to: str, *, for_s: float = 60.0) -> req.Release:
    """Play a holder that steps down at 2.0, and whose on_lose ends at 3.0."""
    play.hears(2.0, e.StepDownAsked("n", for_s, to), "start down#1: step-down, losing")
    play.happens(3.0, e.HookEnded(play.last(a.StartHook), ok=True))
    release = play.last(p.RELEASE)
    assert isinstance(release, req.Release)
    return release


def test_a_release_without_an_answer_is_repeated_with_the_name() -> None:
    play = p.holding()
    releasing(play, TARGET)
    assert play.prepared[-1].value == naming(TARGET)  # type: ignore[attr-defined]
    play.on(4.0, p.RELEASE, p.SILENCE)
    play.passes(5.0)
    releases = [action for _, action in play.log if isinstance(action, req.Release)]
    assert [release.value for release in releases] == [naming(TARGET)] * 2


def test_a_later_session_hands_nothing_over() -> None:
    play = p.holding()
    releasing(play, TARGET, for_s=0.0)
    play.passes(3.9)
    assert play.contender.session.handover_to is None


def test_a_name_of_before_is_not_left_behind_again() -> None:
    """This node tried without an answer and then gives up: its own value replaces the name."""
    play = p.behind()
    play.does(1.0, p.WATCH, handed_over("s"), "acquire s, watch 12")
    play.hears(1.1, e.StopAsked(), "")
    play.on(1.2, p.ACQUIRE, p.SILENCE)
    release = play.last(p.RELEASE)
    assert isinstance(release, req.Release) and release.value == b"me"


def test_a_slot_is_not_handed_over() -> None:
    play = holding_a_slot()
    before = play.contender.settings.value
    play.happens(play.now, e.StepDownAsked("n", 60.0, TARGET))
    play.passes(play.now + 5.0)
    assert not any(naming(TARGET) == getattr(action, "value", b"") for _, action in play.log)
    assert play.contender.settings.value == before


# --- the others ------------------------------------------------------------------------------------------


def test_the_others_leave_the_key_to_the_target() -> None:
    play = p.behind()
    play.does(1.0, p.WATCH, handed_over(), "watch 12")
    play.does(1.1, p.WATCH, o.KeyView(13, TARGET, b"t", 3, 13, 4), "watch 13, info target")
    play.passes(1.0 + 2 * HANDOVER_S)
    assert play.times(p.ACQUIRE) == []


def test_the_time_counts_from_when_this_node_saw_the_key_free() -> None:
    """Another name on a free key prolongs nothing, even from another writer."""
    play = p.behind()
    play.does(1.0, p.WATCH, handed_over(), "watch 12")
    later = replace(handed_over("other"), index=13, modify_index=13)
    play.happens(9.0, e.Answered(play.pending(p.WATCH), later))
    play.passes(1.0 + HANDOVER_S + 0.5)
    assert play.times(p.ACQUIRE) == [pytest.approx(1.0 + HANDOVER_S)]


def test_who_is_not_preferred_leaves_it_for_its_acquire_delay_after_that() -> None:
    play = p.behind(acquire_delay_s=DELAY_S)
    play.does(1.0, p.WATCH, handed_over(), "watch 12")
    assert play.contender.lock.try_at == 1.0 + HANDOVER_S + DELAY_S


def test_a_target_that_does_not_act_costs_ten_seconds_once() -> None:
    """A lock-delay that refuses the try costs no second time."""
    play = p.behind()
    play.does(1.0, p.WATCH, handed_over(), "watch 12")
    play.passes(1.0 + HANDOVER_S - 0.2)
    play.does(1.0 + HANDOVER_S - 0.1, "read")
    play.does(1.0 + HANDOVER_S - 0.1, p.READ, handed_over(), "")
    play.does(1.0 + HANDOVER_S, "acquire s")
    play.does(1.0 + HANDOVER_S + 0.1, p.ACQUIRE, o.LockDelayed(), "")
    assert play.contender.lock.try_at == pytest.approx(1.0 + 15.0, abs=0.01)


def test_a_node_that_starts_leaves_the_key_as_well() -> None:
    """The node has no session yet, so nothing can name it."""
    play = p.beginning()
    play.does(0.1, p.WATCH, handed_over(), "watch 12")
    play.does(0.2, p.CREATE, o.Created("s"), "")
    play.passes(HANDOVER_S)
    assert play.times(p.ACQUIRE) == []
    play.passes(HANDOVER_S + 0.5)
    assert play.times(p.ACQUIRE) == [pytest.approx(0.1 + HANDOVER_S)]


def test_the_holder_that_handed_over_leaves_it_too_without_a_rest() -> None:
    play = p.holding()
    releasing(play, TARGET, for_s=0.0)
    play.on(3.1, p.RELEASE, o.Done())
    play.happens(3.2, e.Answered(play.pending(p.WATCH), handed_over()))
    assert play.contender.lock.try_at == 3.2 + HANDOVER_S


def test_what_a_holder_writes_is_its_value_and_nothing_else() -> None:
    """While the key has a Session its value is the leader's, even when it looks like a hint for this node."""
    play = p.behind()
    play.does(1.0, p.WATCH, replace(p.RIVAL, index=11, value=naming("s")), "watch 11")
    assert play.contender.lock.view is not None and play.contender.lock.view.leader == naming("s")
    play.passes(30.0)
    assert play.times(p.ACQUIRE) == []


# --- the target --------------------------------------------------------------------------------------------


def test_the_target_tries_at_once() -> None:
    """The hint names this node, so neither its acquire_delay nor a lost race holds it back."""
    play = p.behind(acquire_delay_s=DELAY_S)
    lock = replace(play.contender.lock, attempt_probability=1 / 256, hold_index=9)  # type: ignore[call-arg]
    play.contender = replace(play.contender, lock=lock)
    play.does(1.0, p.WATCH, handed_over("s"), "acquire s, watch 12")


# --- contend: manual ---------------------------------------------------------------------------------------


def test_a_manual_node_waits_with_a_session_and_tries_only_for_a_key_that_is_handed_to_it() -> None:
    play = p.behind(manual=True)
    play.does(1.0, p.WATCH, handed_over(), "watch 12")
    play.passes(40.0)
    assert play.times(p.ACQUIRE) == [] and play.contender.role is a.Role.WAITING
    play.on(41.0, p.WATCH, replace(p.RIVAL, index=13, modify_index=13))
    ours = replace(handed_over("s"), index=14, modify_index=14)
    assert "acquire s" in play.says(play.on(41.1, p.WATCH, ours))


def test_resume_lets_a_manual_node_try_until_the_end_of_its_next_tenure() -> None:
    play = p.behind(manual=True)
    play.does(1.0, p.WATCH, replace(handed_over(), value=b"them"), "watch 12")
    play.hears(2.0, e.ResumeAsked("n"), "read")
    play.does(2.1, p.READ, replace(handed_over(), value=b"them"), "acquire s")
    play.on(2.2, p.ACQUIRE, p.WON)
    assert play.contender.allowed and play.contender.tenure is not None
    play.happens(2.3, e.HookEnded(play.last(a.StartHook), ok=True))
    play.happens(3.0, e.StepDownAsked("n", 0.0))
    play.happens(3.1, e.HookEnded(play.last(a.StartHook), ok=True))
    assert play.contender.tenure is None and not play.contender.allowed


def test_a_pause_takes_back_that_a_manual_node_may_try() -> None:
    play = p.behind(manual=True)
    play.happens(1.0, e.ResumeAsked("n"))
    play.happens(1.1, e.PauseAsked("n"))
    assert not play.contender.allowed and play.contender.paused


def test_the_end_of_a_pause_allows_nothing_and_ends_no_rest() -> None:
    play = p.holding()
    play.happens(2.0, e.StepDownAsked("n", 600.0))
    play.happens(2.1, e.PauseAsked("n", 60.0))
    play.happens(2.2, e.PauseOver("n"))
    play.happens(2.3, e.HookEnded(play.last(a.StartHook), ok=True))
    play.on(2.4, p.RELEASE, o.Done())
    assert not play.contender.allowed and not play.contender.paused
    assert play.contender.rests_until > 600.0
    play = p.behind(manual=True)
    play.happens(2.0, e.PauseAsked("n", 60.0))
    play.happens(2.1, e.PauseOver("n"))
    assert not play.contender.allowed and not play.contender.paused


def test_a_word_for_all_items_or_for_one_that_is_not_manual_allows_nothing() -> None:
    play = p.behind(manual=True)
    play.happens(1.0, e.ResumeAsked("n", by_name=False))
    assert not play.contender.allowed
    play = p.behind()
    play.happens(1.0, e.ResumeAsked("n"))
    assert not play.contender.allowed
