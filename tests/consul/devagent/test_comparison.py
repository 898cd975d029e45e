"""The model answers as Consul does, and the comparison finds a model with a fault."""

from pathlib import Path

import pytest

from tests.consul.devagent.comparison import SETTLE_S, against, node_of
from tests.consul.devagent.sequences import recorded
from tests.support.consul import Agent

pytestmark = pytest.mark.long


def test_the_model_and_consul_agree(agent: Agent) -> None:
    """They agree in status, body, relations of indexes, and in the queries that each step wakes."""
    result = against(agent.host, agent.port, node_of(agent), recorded())
    assert not result.faults, "\n".join(result.faults[:5])
    assert result.woken >= 10 and result.cut_short < result.sequences / 4


def test_the_model_of_a_client_agent_agrees_with_one(agent: Agent, tmp_path: Path) -> None:
    """A client agent puts words before the errors of its servers."""
    sequences = [sequence for sequence in recorded() if not sequence.timed]
    with Agent(tmp_path / "client", servers=agent) as client:
        where = (client.host, client.port, node_of(client))
        result = against(*where, sequences, client_agent=True)
        assert not result.faults, "\n".join(result.faults[:5])
        assert against(*where, sequences, SETTLE_S[:1]).faults


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
