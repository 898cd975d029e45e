"""Consul's leading server stands still: a waiter with a fence hears from another one that the key is free."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.consul.elections.scene import Scene
from tests.consul.elections.test_fence import fenced
from tests.consul.elections.test_foreign_data import LOCK_FLAGS
from tests.support.consul import HOST, Agent, free_ports
from tests.support.supervisor import until

TTL_S = 60  # a renewal, which shows that the watch hangs, comes after half of it
HEARD_S = 10.0  # a watch that hangs ends after 30 s, when the agent gives up the connection


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Agent]]:
    """Return three servers of one Consul, of which one of the first two leads, and after it the other."""
    ports = [dict(zip(("http", "server", "serf_lan"), free_ports(3), strict=True)) for _ in range(3)]
    joins = [f"{HOST}:{each['serf_lan']}" for each in ports]
    with ExitStack() as exits:
        agents = []
        for number, each in enumerate(ports):
            config = {"ports": each, "bootstrap_expect": 3, "retry_join": joins, "retry_interval": "100ms"}
            config["performance"] = {"raft_multiplier": 10 if number == 2 else 1}
            agent = Agent(tmp_path / f"server-{number}", persistent=True, config=config)
            exits.callback(agent.kill)
            agents.append(agent)
        for agent in agents:
            agent.begin()
        for agent in agents:
            agent.wait_ready()
        near = agents[2]
        if near.server_port == _leader_port(near):  # which bootstraps the three now and then
            near.freeze()
            until(lambda: _leader_port(agents[0]) not in (0, near.server_port), "another server leads")
            near.thaw()
            until(lambda: _leader_port(near) not in (0, near.server_port), "the third one follows")
        yield agents


def _leader_port(agent: Agent) -> int:
    return int(agent.call("GET", "/status/leader").json().rpartition(":")[2] or 0)


@pytest.mark.long
def test_a_waiter_hears_of_the_free_key_although_the_leading_server_stands_still(
    servers: list[Agent], tmp_path: Path, unique: str
) -> None:
    *pair, near = servers
    leads = _leader_port(near)
    leader, other = sorted(pair, key=lambda each: each.server_port != leads)
    scene = Scene(near, tmp_path / "nodes", unique)
    with ExitStack() as exits:
        exits.callback(scene.end)
        rival = other.session_create(TTL="300s", LockDelay="1ms")
        assert other.call("PUT", f"/kv/{scene.key}?acquire={rival}&flags={LOCK_FLAGS}").json()
        waits = {"ttl": f"{TTL_S}s"}
        waiter = scene.waiter("a", fence=fenced(scene, "a"), session=waits)
        waiter.wait_line("request", kind="hint key")
        leader.freeze()
        until(lambda: _leader_port(other) not in (0, leads), "another server leads")
        other.session_destroy(rival)
        waiter.wait_line("role", role="holding", within_s=HEARD_S)
        leader.thaw()
