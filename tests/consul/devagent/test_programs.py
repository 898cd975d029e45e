"""Programs made for Consul, and our own supervisors, work with the embedded agent."""

import os
import subprocess
from pathlib import Path

import pytest
from consul import Consul, ConsulException, NotFound  # type: ignore[import-untyped]

from tests.support.consul import BINARY, Client
from tests.support.patience import PATIENCE_S
from tests.support.supervisor import until

DONE_S = PATIENCE_S
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


def test_py_consul_uses_sessions_keys_and_transactions(embedded: Client) -> None:
    client = Consul(port=embedded.port)
    session = client.session.create("mine", behavior="delete", ttl=20, lock_delay=0)
    node = client.session.info(session)[1]["Node"]
    assert [each["ID"] for each in client.session.node(node)[1]] == [session]
    assert client.session.node("nobody")[1] == [] and client.session.renew(session)["TTL"] == "20s"
    assert client.kv.put("a/1", "one", acquire=session) and not client.kv.put("a/1", "two", release="x")
    assert client.kv.get("a/1")[1]["Session"] == session
    index, found = client.kv.get("a/", recurse=True)
    assert [each["Value"] for each in found] == [b"one"] and client.kv.get("a/1", index=index, wait="20ms")[
        0
    ] == index
    client.txn.put([{"KV": {"Verb": "set", "Key": "b", "Value": "dHdv"}}])
    done = client.txn.put([{"KV": {"Verb": "get", "Key": "b"}}, {"KV": {"Verb": "get-tree", "Key": "a/"}}])
    assert done["Errors"] is None and [each["KV"]["Key"] for each in done["Results"]] == ["b", "a/1"]
    assert done["Results"][0]["KV"]["Value"] == "dHdv"
    assert client.kv.get("", keys=True, separator="/")[1] == ["a/", "b"]
    assert client.session.destroy(session) and client.kv.get("a/1")[1] is None
    assert client.kv.delete("b", cas=client.kv.get("b")[1]["ModifyIndex"]) and client.kv.delete(
        "", recurse=True
    )
    assert client.status.leader() in client.status.peers()
    for refused in (client.session.list, lambda dc: client.kv.get("a", dc=dc)):
        with pytest.raises(ConsulException):
            refused(dc="elsewhere")
    with pytest.raises(NotFound):
        client.session.renew(session)


def test_consul_lock_hands_over_and_leaves_nothing(embedded: Client, tmp_path: Path) -> None:
    log = tmp_path / "log"
    turn = f"echo begin >> {log}; sleep 0.2; echo end >> {log}"
    for process in [consul(embedded, "lock", "p", turn) for _ in range(3)]:
        output(process)
    assert log.read_text().split() == ["begin", "end"] * 3
    assert embedded.kv_list("") == []
    until(lambda: not embedded.sessions(), "no session is left, or it was left to its TTL")
