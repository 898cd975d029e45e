"""Programs made for Consul, and our own supervisors, work with the embedded agent."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

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


def test_consul_lock_n_lets_n_clients_hold(embedded: Client, tmp_path: Path) -> None:
    log = tmp_path / "log"
    turn = f"echo + >> {log}; sleep 0.3; echo - >> {log}"
    for process in [consul(embedded, "lock", "-n=2", "p", turn) for _ in range(4)]:
        output(process)
    inside = [0]
    for sign in log.read_text().split():
        inside.append(inside[-1] + (1 if sign == "+" else -1))
    assert max(inside) == 2 and inside[-1] == 0 and len(inside) == 9
    assert embedded.kv_list("") == []
    until(lambda: not embedded.sessions(), "no session is left, or it was left to its TTL")


@pytest.mark.long
def test_our_own_supervisors_elect_and_fail_over(embedded: Client, tmp_path: Path) -> None:
    """When the leader is killed, the other node leads once session and lock-delay are over."""
    supervisors = {name: supervise(embedded, tmp_path, name) for name in ("one", "two")}
    try:
        first = leader(embedded, set(supervisors))
        written(tmp_path / "events", f"acquire-{first}")
        supervisors[first].kill()
        second = leader(embedded, set(supervisors) - {first})
        written(tmp_path / "events", f"acquire-{second}")
        supervisors[second].terminate()
        assert supervisors[second].wait(DONE_S) == 0
        entry = embedded.kv_get("service/trial/leader")
        assert entry is not None and entry["Session"] == ""
        events = (tmp_path / "events").read_text().split()
        assert events == [f"acquire-{first}", f"acquire-{second}", f"lose-{second}"]
    finally:
        for process in supervisors.values():
            process.kill()
            process.wait()


def supervise(agent: Client, folder: Path, name: str) -> subprocess.Popen[bytes]:
    """Start a supervisor whose hooks record their events."""
    path = folder / f"{name}.yaml"
    path.write_text(f"""
consul: {{address: "{agent.url}"}}
elections:
  trial:
    value: {name}
    session: {{ttl: 1s, lock_delay: 6s}}
    on_acquire: [{{shell: "echo acquire-{name} >> {folder}/events"}}]
    on_lose: [{{shell: "echo lose-{name} >> {folder}/events", timeout: 1s}}]
""")
    argv = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "supervisor", "run", str(path)]
    own = {"STATE_DIRECTORY": str(folder / name), "RUNTIME_DIRECTORY": str(folder / name)}
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(argv, cwd=ROOT, stdout=log, stderr=log, env={**os.environ, **own})


def leader(agent: Client, names: set[str]) -> str:
    """Return the node among these that has the key, as soon as one has it."""
    give_up_at = time.monotonic() + DONE_S
    while time.monotonic() < give_up_at:
        entry = agent.kv_get("service/trial/leader")
        if entry is not None and entry["Session"] and entry["Value"].decode() in names:
            return str(entry["Value"].decode())
        time.sleep(TURN_S)
    raise AssertionError(f"none of {names} became the leader")


def written(path: Path, event: str) -> None:
    """Return once a hook has written this."""
    give_up_at = time.monotonic() + DONE_S
    while not path.exists() or event not in path.read_text().split():
        assert time.monotonic() < give_up_at, f"no {event}"
        time.sleep(TURN_S)
