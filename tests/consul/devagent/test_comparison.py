"""The model answers as Consul does, and the comparison finds a model with a fault."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.consul.devagent.comparison import SETTLE_S, against, chosen, fresh_agent, node_of, report
from tests.consul.devagent.sequences import recorded
from tests.support.consul import Agent

pytestmark = pytest.mark.long

QUICK, TIMED, SEED = 160, 40, 1
CLIENT_QUICK = 10


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Agent]:
    """Return a real agent that no client has used, for as many clients as there are waits."""
    with fresh_agent(tmp_path) as agent:
        yield agent


def test_the_model_and_consul_agree(fresh: Agent, request: pytest.FixtureRequest) -> None:
    """They agree in status, body, relations of indexes, and in the queries that each step wakes."""
    result = against(fresh.host, fresh.port, node_of(fresh), chosen(QUICK, TIMED, SEED))
    told = report(result, QUICK, TIMED, SEED)
    request.node.add_report_section("call", "comparison", told)
    assert not result.faults, "\n".join([told, *result.faults[:5]])
    assert result.sequences >= 236 and result.woken >= 250
    assert result.cut_short < result.sequences / 4, told


def test_the_model_of_a_client_agent_agrees_with_one(fresh: Agent, tmp_path: Path) -> None:
    """A client agent puts words before the errors of its servers."""
    sequences = [sequence for sequence in chosen(CLIENT_QUICK, 0, SEED) if not sequence.timed]
    limits = {"limits": {"http_max_conns_per_client": 5000}}
    with Agent(tmp_path / "client", servers=fresh, config=limits) as client:
        where = (client.host, client.port, node_of(client))
        result = against(*where, sequences, client_agent=True)
        assert not result.faults, "\n".join(result.faults[:5])
        assert against(*where, sequences[:CLIENT_QUICK], SETTLE_S[:1]).faults


@pytest.mark.parametrize(
    ("place", "fault", "title"),
    [
        ("supervisor.rehearsal.devagent.sessions.TTL_MULTIPLIER", 1, "only renewal"),
        ("supervisor.rehearsal.devagent.kv.Entry.same", lambda *_: False, "nothing else"),
    ],
    ids=["TTL at 1x", "wake without change"],
)
def test_a_fault_in_the_model_is_detected(
    place: str, fault: object, title: str, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    shows = [sequence for sequence in recorded() if title in sequence.title]
    where = (agent.host, agent.port, node_of(agent), shows, SETTLE_S[1:])
    assert not against(*where).faults
    monkeypatch.setattr(place, fault)
    assert against(*where).faults
