"""What an operator sees of a silence of Consul that a holder rides out by `outage`, and of a long wait."""

from typing import Any

import pytest

from supervisor.core.claim.guard import Guard
from supervisor.core.frozen import replace
from supervisor.core.lease import lease_of
from supervisor.core.machines.tenure import Phase
from supervisor.core.settings import NOWHERE
from supervisor.reporting.telemetry.formatting import when
from tests.consul.web.test_status import NOON, Stage
from tests.unit.core import play as p
from tests.unit.core.test_guard import FENCE, RECORD, guarding, looking

OUTAGE_S = 900.0
LONG = replace(FENCE, exclusive=True, outage_s=OUTAGE_S)
RECORD_S = 958.948  # (900 + 2 x 3 + 5) / 0.95, in whole milliseconds
BELIEF_S = 906.0


def riding(now: float = 0.4) -> Stage:
    """Return a holder whose newest contact was at 0.2, at this time."""
    play = looking(fence=LONG)
    play.does(0.2, p.WATCH, p.FREE, "acquire s with record, watch 5")
    play.on(0.3, p.ACQUIRE, p.WON)
    play.ends(0.4, "holding")
    stage = Stage()
    stage.node.by_name["n"], stage.now = play.contender, 0.4
    stage.answers(p.OURS)
    stage.now = now
    return stage


def test_a_holder_shows_since_when_consul_is_silent_and_until_when_it_acts() -> None:
    stage = riding()
    lease = stage.node.by_name["n"].lease
    assert lease.belief_s == pytest.approx(BELIEF_S)
    assert (stage.item["outage_s"], stage.item["record_s"]) == (OUTAGE_S, RECORD_S)
    assert stage.item["lease_room_s"] == pytest.approx(BELIEF_S)
    stage.now = 0.2 + lease.fresh_s
    assert (stage.item["silent_since"], stage.item["warnings"]) == (None, [])
    assert 'outage_left_seconds{kind="election",name="n"} 0.0' in stage.metrics
    since, until = when(NOON), when(NOON + round(0.2 + BELIEF_S))
    for now in (0.3 + lease.fresh_s, 800.2):
        stage.now = now
        assert (stage.item["silent_since"], stage.item["acts_until"]) == (since, until)
        words = f"Consul is silent since {since}; acts until {until} without it, then on_lose"
        assert stage.item["warnings"] == [words]
        assert stage.item["leader"] == "me" and stage.code("/leader/n") == stage.code("/healthz") == 200
        assert 'leader_present{kind="election",name="n"} 1.0' in stage.metrics
    assert 'outage_left_seconds{kind="election",name="n"} 106.0' in stage.metrics
    stage.now = 0.3 + BELIEF_S
    assert stage.code("/leader/n") == 503


@pytest.mark.parametrize("acts", [True, False])
def test_a_process_that_starts_in_the_silence_says_whether_it_holds(acts: bool) -> None:
    """A run child ended with the process before, and waits for Consul."""
    stage = riding()
    one = stage.node.by_name["n"]
    assert one.tenure is not None
    tenure = replace(one.tenure, phase=Phase.ADOPTING, acquire_done=True)
    settings = replace(one.settings, run=None if acts else p.RUN)
    stage.change(tenure=tenure, lock=replace(one.lock, view=None), settings=settings)
    stage.answers(p.SILENCE)
    stage.now = 100.0
    (warning,) = (each for each in stage.item["warnings"] if each.startswith("Consul is silent"))
    assert (stage.item["acts_until"] is not None, "acts until" in warning) == (acts, acts)
    assert stage.item["holds"] is acts and (stage.item["leader_unknown_since"] is None) is acts
    says = "holding" if acts else "Consul has not confirmed the tenure of the process before"
    assert stage.body("/leader/n") == f"n: {says}\n"


@pytest.mark.parametrize(
    ("outage_s", "told"),
    [
        (60.0, "until the next tenure; the file asks for 74.74s"),
        (3600.0, "until it is written again; the file asks for 1h3m21s"),
    ],
)
def test_a_record_that_says_another_time_than_the_file_is_a_warning(outage_s: float, told: str) -> None:
    stage = riding()
    settings = replace(stage.node.by_name["n"].settings, fence=replace(LONG, outage_s=outage_s))
    stage.change(settings=settings, lease=lease_of(settings, leased_s=RECORD_S))
    assert stage.item["warnings"] == [f"others wait 15m59s by the tenure record {told}"]


def test_who_waits_behind_a_long_record_says_until_when_and_whether_anybody_is_shot() -> None:
    """A guard subtracts what others have waited, and shoots nobody once Consul has lost its word."""
    former = replace(RECORD, lock_delay_s=RECORD_S, waited_s=300.0)
    play = guarding(former, fence=LONG)
    stage = Stage()
    stage.node.by_name["n"], stage.now = play.contender, 2.0
    stage.answers(p.OURS)
    until = when(NOON + 1.1 - 300.0 + RECORD_S)  # from the first look
    (told,) = stage.item["warnings"]
    assert f"which may still act: until {until} at most, or until the fence has ended well" in told
    guard = play.contender.claim.guard
    assert guard is not None
    stage.change(claim=replace(play.contender.claim, guard=guard.behind(RECORD_S, None)))
    (told,) = stage.item["warnings"]
    assert f"so nobody is shot: until {until} at most; if that machine is off" in told
    blind = Guard(1.0, NOWHERE, None).behind(RECORD_S, None)
    stage.change(claim=replace(play.contender.claim, guard=blind))
    assert "waits for the former holder, of which Consul has lost what it said" in stage.item["warnings"][0]


@pytest.mark.parametrize(
    ("now", "waited_s", "until"), [(5.0, 0.0, 1.0), (70.0, 60.0, 1.0), (5.0, 300.0, -295.0)]
)
def test_who_looks_on_counts_no_wait_twice(now: float, waited_s: float, until: float) -> None:
    """This node has seen the key taken at 1 s; the next holder notes its wait, or that of a guard before."""
    stage = Stage()
    one: Any = stage.node.by_name["n"]
    view = replace(p.RIVAL, has_record_flags=True, is_long=True)
    former = replace(RECORD, lock_delay_s=RECORD_S, waited_s=waited_s)
    stage.now = now
    stage.answers(view)
    lock = replace(one.lock, view=view, holder=view.session, holder_seen_at=1.0)
    stage.change(lock=lock, claim=replace(one.claim, record=former))
    (told,) = (each for each in stage.item["warnings"] if "has the key" in each)
    assert f"until {when(NOON + until + RECORD_S)} at most" in told
