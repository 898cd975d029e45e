"""The responses of a real Consul about all keys below a prefix, read one after the other."""

import base64

import requests

from supervisor.adapters.consul.semaphore import SEMAPHORE_FLAGS, SlotsReader
from supervisor.core.outcomes import ContenderKey, SlotsView
from tests.support.consul import Agent

PREFIX = "service/of-test-semaphore-api"


def contend(agent: Agent, value: bytes) -> str:
    """Create a session with a contender key."""
    session = agent.session_create(TTL="60s", LockDelay="0s")
    lock(agent, session, value)
    return session


def lock(agent: Agent, session: str, value: bytes) -> None:
    operation = {"Verb": "lock", "Key": f"{PREFIX}/{session}", "Session": session, "Flags": SEMAPHORE_FLAGS}
    assert agent.txn([{"KV": operation | {"Value": base64.b64encode(value).decode()}}]).status == 200


def shown(agent: Agent, reader: SlotsReader) -> SlotsView:
    answer = agent.call("GET", f"/kv/{PREFIX}/?recurse&consistent")
    response = requests.Response()
    response.status_code, response._content = answer.status, answer.text.encode()
    return reader.view(answer.index, response)


def keys(view: SlotsView) -> dict[str, ContenderKey]:
    return {key.name: key for key in view.contenders}


def test_the_reader_decodes_changed_keys_and_reuses_unchanged_ones(shared_agent: Agent) -> None:
    """The result equals that of a new reader, and an unchanged key gives the very object of the read before.

    A key may change by its value, by its session or by its removal.
    """
    agent = shared_agent
    same, changed, dead, gone = (contend(agent, b'{"PruneDelay":"5s"}') for _ in range(4))
    reader = SlotsReader(PREFIX)
    before = keys(shown(agent, reader))
    assert set(before) == {same, changed, dead, gone} and before[changed].prune_delay_s == 5.0
    lock(agent, changed, b'{"PruneDelay":"7s"}')
    agent.session_destroy(dead)
    agent.kv_delete(f"{PREFIX}/{gone}")
    came = contend(agent, b"{}")
    view = shown(agent, reader)
    after = keys(view)
    assert view == shown(agent, SlotsReader(PREFIX))
    assert set(after) == {same, changed, dead, came}
    assert after[same] is before[same]
    assert after[changed].prune_delay_s == 7.0
    assert before[dead].is_alive and not after[dead].is_alive
