"""A client agent that has lost its servers: the supervisors beside it say so on every surface."""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.consul.web.reader import Reader
from tests.support.consul import HOST, Agent
from tests.support.supervisor import Supervisor, command, until

SHOWN_S = 60.0  # 43 s, and a busy machine
SESSION = {"ttl": "3s", "lock_delay": "6s"}
CHECK = {"maintenance": True, "interval": "1s"}  # which the agent answers without its servers


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Agent]:
    with Agent(tmp_path / "server", persistent=True) as agent:
        yield agent


@pytest.fixture
def client(servers: Agent, tmp_path: Path) -> Iterator[Agent]:
    with Agent(tmp_path / "client", servers=servers) as agent:
        yield agent


def gauge(node: Supervisor, name: str) -> float:
    """Return the value of a metric without labels, or with those of the only item."""
    of_name = re.compile(rf"consul_supervisor_{name}[ {{]")
    (line,) = filter(of_name.match, Reader(node).ask("/metrics").body.splitlines())
    return float(line.rpartition(" ")[2])


def sees_leader(node: Supervisor) -> bool:
    return gauge(node, "leader_present") == 1


def answers(node: Supervisor, code: int) -> bool:
    """Return whether /healthz answers with this status."""
    return Reader(node).ask("/healthz").status == code


@pytest.mark.long
def test_every_surface_says_that_the_servers_are_lost(
    servers: Agent, client: Agent, tmp_path: Path, unique: str
) -> None:
    election = {"key": unique, "session": SESSION, "on_lose": [{"exec": ["true"], "timeout": "1s"}]}
    config = {
        "consul": {"address": client.url},
        "http": {"listen": f"{HOST}:0"},
        "elections": {"app": election | {"candidate_check": CHECK}},
    }
    nodes = [Supervisor(tmp_path / name, config) for name in ("holder", "waiter")]
    try:
        for node in nodes:
            node.start()
            until(partial(sees_leader, node), "it sees a leader")
            assert Reader(node).ask("/healthz").status == 200
        servers.kill()
        for node in nodes:
            until(partial(answers, node, 503), "it is not healthy", SHOWN_S)
        until(lambda: not sees_leader(nodes[1]), "nobody can tell who leads", SHOWN_S)
        for node in nodes:
            assert Reader(node).ask("/healthz").status == 503  # the agent goes on answering
            assert gauge(node, "healthy") == gauge(node, "leader_present") == 0
            status = json.loads(Reader(node).ask("/v1/status").body)
            (item,) = status["items"]
            assert item["leader"] is None and item["leader_unknown_since"] is not None
            assert status["consul"]["answered_s_ago"] > 10
            said = command("status", "--socket", str(node.folder / "control.sock")).stdout
            assert "NOT HEALTHY" in said and "unknown since" in said
        assert "cannot be taken over: Consul's servers have not answered" in said
        servers.start()
        for node in nodes:
            until(partial(answers, node, 200), "all is well again", SHOWN_S)
            until(partial(sees_leader, node), "it sees a leader again", SHOWN_S)
    finally:
        for node in nodes:
            node.close()
