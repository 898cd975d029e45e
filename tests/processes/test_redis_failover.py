"""The decisions of examples/redis/redis-failover, with answers of Redis that were written by hand.

tests/system/machine/test_databases.py fails a real Redis over.
"""

import os
from pathlib import Path

import pytest

from tests.support.captured import captured
from tests.support.supervisor import ROOT

# Each node has a file of its state, by its port; a node without one does not answer. Commands go to ``told``.
CLI = """#!/bin/sh
port=$4; shift 4
[ -e "$REDIS/$port" ] || { echo "Could not connect: Connection refused"; exit 1; }
case $1 in "") cat "$REDIS/$port" ;; *) echo "$port $*" >>"$REDIS/told"; echo OK ;; esac
"""
STATE = "{token}\nrole:{role}\nmaster_link_status:{link}\nmaster_replid:h\nmaster_repl_offset:{offset}\n"


class Nodes:
    """Three nodes of which this one has the port 1."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "cli").write_text(CLI)
        (folder / "cli").chmod(0o755)
        self.place = folder / "redis-place"

    def are(self, *offsets: int, tokens: str = "777", role: str = "slave", link: str = "up") -> None:
        """Let the nodes have written up to these offsets; the second has the role."""
        for port, (offset, token) in enumerate(zip(offsets, tokens, strict=False), 1):
            state = STATE.format(token=token, role="slave" if port != 2 else role, link=link, offset=offset)
            (self._folder / str(port)).write_text(state)

    def run(self, command: str) -> tuple[int, str]:
        """Return the exit code and the complaint of the script."""
        environ = {
            **os.environ,
            "REDIS": str(self._folder), "RUNTIME_DIRECTORY": str(self._folder),
            "REDIS_ADDRESS": "h:1", "REDIS_NODES": "h:1 h:2 h:3", "REDIS_CATCH_UP": "0",
            "REDIS_CLI": str(self._folder / "cli"), "CONSUL_SUPERVISOR_FENCING_TOKEN": "8",
        }  # fmt: skip
        argv = [str(ROOT / "examples" / "redis" / "redis-failover"), command]
        done = captured(argv, env=environ)
        return done.returncode, done.stderr.strip()

    def told(self) -> list[str]:
        """Return the commands that Redis has got, with the port of each."""
        told = self._folder / "told"
        return told.read_text().splitlines() if told.exists() else []


@pytest.fixture
def nodes(tmp_path: Path) -> Nodes:
    return Nodes(tmp_path)


@pytest.mark.parametrize(
    ("offsets", "tokens", "why"),
    [
        ((5, 6, 5), "777", "h:2 has newer data than h:1"),
        ((9, 5, 5), "787", "h:2 has newer data than h:1"),
        ((5,), "7", "only 1 of 3 nodes answer"),
    ],
    ids=["offset", "token", "minority"],
)
def test_a_redis_that_may_lack_writes_is_not_promoted(
    nodes: Nodes, offsets: tuple[int, ...], tokens: str, why: str
) -> None:
    nodes.are(*offsets, tokens=tokens)
    code, said = nodes.run("promote")
    assert code == 1 and why in said
    assert not nodes.place.exists() and not nodes.told()


def test_another_primary_refuses_writes_before_the_newest_redis_is_promoted(nodes: Nodes) -> None:
    """Perhaps the supervisor of that primary has died."""
    nodes.are(5, 5, 4, role="master")
    assert nodes.run("promote") == (0, "")
    assert nodes.told() == [
        "2 CONFIG SET min-replicas-to-write 100",
        "1 REPLICAOF NO ONE",
        "1 CONFIG SET min-replicas-to-write 1",
        "1 SET consul-supervisor:fencing-token 8",
    ]
    code, said = nodes.run("check")
    assert code == 1 and "it was restarted" in said, "this Redis is a replica again"


def test_after_refuse_writes_no_client_can_write(nodes: Nodes) -> None:
    nodes.place.write_text("primary")
    assert nodes.run("refuse-writes")[0] == 0, "a Redis that does not run refuses writes when it starts"
    nodes.are(5)
    assert nodes.run("refuse-writes") == (0, "")
    assert nodes.told() == ["1 CONFIG SET min-replicas-to-write 100 min-replicas-max-lag 10"]
    assert not nodes.place.exists()
