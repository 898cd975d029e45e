"""Programs made for Consul, and our own supervisors, work with the embedded agent."""

import os
import subprocess
from pathlib import Path

from tests.support.consul import BINARY, Client
from tests.support.patience import PATIENCE_S
from tests.support.supervisor import until

DONE_S = PATIENCE_S
TURN_S = 0.05
ROOT = Path(__file__).resolve().parents[3]


def consul(agent: Client, *arguments: str) -> subprocess.Popen[str]:
    """Start Consul's own command with the embedded agent as its server."""
    environment = {**os.environ, "CONSUL_HTTP_ADDR": agent.url, "SHELL": "/bin/sh"}
    return subprocess.Popen(
        [str(BINARY), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def output(process: subprocess.Popen[str]) -> str:
    """Return its output, once it has ended well."""
    text, _ = process.communicate(timeout=DONE_S)
    assert process.returncode == 0, text
    return text


def test_consul_kv_puts_gets_lists_and_deletes(embedded: Client) -> None:
    output(consul(embedded, "kv", "put", "a/b", "value"))
    assert output(consul(embedded, "kv", "get", "a/b")) == "value\n"
    assert output(consul(embedded, "kv", "get", "-recurse", "a/")) == "a/b:value\n"
    assert output(consul(embedded, "kv", "get", "-keys", "")) == "a/\n"
    assert "ModifyIndex" in output(consul(embedded, "kv", "get", "-detailed", "a/b"))
    assert '"key": "a/b"' in output(consul(embedded, "kv", "export", "a"))
    output(consul(embedded, "kv", "delete", "a/b"))
    assert embedded.kv_get("a/b") is None


def test_consul_lock_hands_over_and_leaves_nothing(embedded: Client, tmp_path: Path) -> None:
    log = tmp_path / "log"
    turn = f"echo begin >> {log}; sleep 0.2; echo end >> {log}"
    for process in [consul(embedded, "lock", "p", turn) for _ in range(3)]:
        output(process)
    assert log.read_text().split() == ["begin", "end"] * 3
    assert embedded.kv_list("") == []
    until(lambda: not embedded.sessions(), "no session is left, or it was left to its TTL")
