"""``candidate_check: {maintenance: true}``: a node in Consul's maintenance mode does not hold."""

from dataclasses import replace

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.settings import CandidateCheck
from tests.unit.core import play as p

ASK = r.ReadMaintenance
MAINTENANCE = CandidateCheck(None, interval_s=5.0, maintenance=True)
WHY = "this node is in Consul's maintenance mode: kernel; `consul maint -disable` ends that"
ON, OFF = o.InMaintenance(WHY, "kernel 6.1"), o.InMaintenance()


def started() -> p.Play:
    """The key is free, the first request has no answer yet, and there is no session."""
    play = p.Play(p.contender(candidate_check=MAINTENANCE))
    play.happens(0.0, e.Tick())
    play.on(0.2, p.WATCH, p.FREE)
    return play


def fit_again(play: p.Play, now: float) -> None:
    """Play the end of the maintenance mode up to the acquire, which is sent at ``now`` + 0.05."""
    assert "create" in p.Play.says(play.on(now, ASK, OFF))
    said = p.Play.says(play.on(now + 0.05, p.CREATE, o.Created("s")))
    if "acquire s" not in said:
        assert "read" in said
        said = p.Play.says(play.on(now + 0.05, p.READ, p.FREE))
    assert "acquire s" in said


def leading() -> p.Play:
    """The node holds since 0.5."""
    play = started()
    fit_again(play, 0.3)
    play.on(0.4, p.ACQUIRE, p.WON)
    play.happens(0.5, e.HookEnded(play.last(a.StartHook), ok=True))
    assert play.role == "holding"
    return play


def test_a_node_in_maintenance_does_not_contend_and_says_why() -> None:
    play = started()
    assert play.on(0.3, ASK, ON) == [a.NoticeChanged("n", WHY)]
    play.passes(4.9)
    assert play.role == "ineligible" and play.times(p.CREATE) == []
    play.happens(5.0, e.Tick())
    said = p.Play.says(play.on(5.1, ASK, OFF))
    assert "no notice" in said and "waiting" in said and "create" in said
    play.on(5.2, p.CREATE, o.Created("s"))
    play.on(5.3, p.READ, p.FREE)
    assert play.times(p.ACQUIRE) == [5.3]


def test_a_holder_in_maintenance_steps_down_in_order() -> None:
    play = leading()
    play.happens(5.0, e.Tick())
    said = p.Play.says(play.on(5.1, ASK, ON))
    assert "start down#1: maintenance, losing" in said
    assert play.last(a.StartHook).context.note == "kernel 6.1"
    play.happens(5.2, e.HookEnded(play.last(a.StartHook), ok=True))
    assert play.role == "ineligible"


def test_an_adopted_holder_goes_on_until_an_answer_shows_the_mode() -> None:
    record = a.Record(a.Point.HOLDING, "k", "s", 7, 3, 2, -1.0, leader=b"me")
    settings = p.contender(candidate_check=MAINTENANCE)
    play = p.Play(settings, record, recorded=settings)
    play.happens(0.0, e.Tick())
    assert play.contender.tenure is not None and play.contender.tenure.believes
    play.on(0.1, ASK, ON)
    assert play.contender.tenure is not None and not play.contender.tenure.believes


@pytest.mark.parametrize("outcome", [p.SILENCE, p.FORBIDDEN], ids=["silence", "403"])
def test_without_an_answer_the_former_answer_stays_in_force(outcome: o.Outcome) -> None:
    play = leading()
    play.happens(5.0, e.Tick())
    play.on(5.1, ASK, outcome)
    assert play.role == "holding"
    unfit = started()
    unfit.on(0.3, ASK, outcome)
    assert unfit.role == "ineligible" and unfit.times(p.ACQUIRE) == []


@pytest.mark.parametrize(
    ("outcome", "again_at"), [(p.SILENCE, 0.8), (p.FORBIDDEN, 5.0), (OFF, 5.0), (ON, 5.0)]
)
def test_the_request_is_repeated_after_an_interval_and_sooner_after_silence(
    outcome: o.Outcome, again_at: float
) -> None:
    play = started()
    play.on(0.3, ASK, outcome)
    assert play.contender.maintenance.read.deadline == again_at
    late = started()
    late.on(7.0, ASK, OFF)
    assert late.contender.maintenance.read.deadline == 7.0 or late.times(ASK)[-1] == 7.0


def test_a_command_beside_the_maintenance_mode_must_succeed_as_well() -> None:
    check = CandidateCheck(p.hook("check"), rise=1, fall=1, maintenance=True)
    play = p.Play(p.contender(candidate_check=check))
    play.happens(0.0, e.Tick())
    play.on(0.2, p.WATCH, p.FREE)
    play.on(0.3, ASK, OFF)
    assert play.role == "ineligible"
    assert "create" in p.Play.says(play.happens(0.4, e.HookEnded(play.last(a.StartHook), ok=True)))
    other = p.Play(p.contender(candidate_check=check))
    other.happens(0.0, e.Tick())
    other.happens(0.1, e.HookEnded(other.last(a.StartHook), ok=True))
    assert other.role == "ineligible"


def test_a_reload_that_adds_the_setting_sends_a_request_at_once_and_a_holder_goes_on() -> None:
    play = p.holding()
    play.happens(1.0, e.SettingsChanged("n", p.contender(candidate_check=MAINTENANCE)))
    assert play.times(ASK) == [1.0] and play.role == "holding"


def test_a_reload_that_removes_the_setting_makes_the_node_fit() -> None:
    play = started()
    play.on(0.3, ASK, ON)
    said = p.Play.says(play.happens(1.0, e.SettingsChanged("n", p.contender())))
    assert "no notice" in said and "waiting" in said
    play.passes(20.0)
    assert play.times(ASK) == [0.0]


def test_a_reload_that_changes_the_times_keeps_what_is_known() -> None:
    play = started()
    play.on(0.3, ASK, ON)
    changed = e.SettingsChanged("n", p.contender(candidate_check=replace(MAINTENANCE, interval_s=9.0)))
    assert play.happens(1.0, changed) == []
    assert play.role == "ineligible" and not play.contender.maintenance.is_fit
    fit = started()
    fit.on(0.3, ASK, OFF)
    fit.happens(1.0, changed)
    assert fit.contender.maintenance.is_fit and fit.times(ASK) == [0.0]


def test_an_answer_to_a_request_of_former_settings_changes_nothing() -> None:
    play = started()
    play.happens(0.3, e.SettingsChanged("n", p.contender()))
    play.on(0.4, ASK, ON)
    assert play.contender.maintenance.is_fit and play.role != "ineligible"


def test_a_stop_sends_no_further_request() -> None:
    play = leading()
    play.happens(1.0, e.StopAsked())
    play.passes(6.0)
    play.happens(6.0, e.HookEnded(play.last(a.StartHook), ok=True))
    play.passes(60.0)
    assert play.role == "stopped" and play.times(ASK) == [0.0]
