"""The Consul agents of the tests, which must keep the promises of their docstrings."""

from pathlib import Path

import psutil
import pytest

from tests.support.consul import Agent, Client
from tests.support.programs import run_program


def test_a_started_agent_answers_reads_and_writes_at_once(agent: Agent) -> None:
    assert agent.kv_get("a/key") is None
    assert agent.kv_put("a/key", b"\x00value")
    entry = agent.kv_get("a/key")
    assert entry is not None
    assert (entry["Value"], entry["Session"]) == (b"\x00value", "")
    assert [entry["Key"] for entry in agent.kv_list("a/")] == ["a/key"]
    agent.kv_delete("a/key")
    assert agent.kv_list("a/") == []


def test_a_lock_belongs_to_one_session_until_it_is_released(shared_agent: Agent, unique: str) -> None:
    """The sessions have a TTL of one second, which only a changed session_ttl_min allows."""
    one, other = (shared_agent.session_create(TTL="1s", LockDelay="0s", Name=unique) for _ in range(2))
    assert shared_agent.acquire(unique, one, b"one")
    assert not shared_agent.acquire(unique, other)
    held = shared_agent.kv_get(unique)
    assert held is not None and held["Session"] == one
    assert not shared_agent.release(unique, other)
    assert shared_agent.release(unique, one, b"one")
    lock = {"KV": {"Verb": "lock", "Key": unique, "Session": other, "Value": ""}}
    assert shared_agent.txn([lock]).status == 200
    shared_agent.session_destroy(other)
    shared_agent.session_destroy(other)
    assert one in {session["ID"] for session in shared_agent.sessions()}
    assert other not in {session["ID"] for session in shared_agent.sessions()}


def test_a_blocking_query_wakes_on_a_change(shared_agent: Agent, unique: str) -> None:
    shared_agent.kv_put(unique, b"1")
    before = shared_agent.kv_wait(unique, 0)
    shared_agent.kv_put(unique, b"2")
    after = shared_agent.kv_wait(unique, before.index)
    assert after.index > before.index


@pytest.mark.long
def test_a_persistent_agent_keeps_data_and_ports_over_a_kill(persistent_agent: Agent) -> None:
    session = persistent_agent.session_create(TTL="600s")
    assert persistent_agent.acquire("key", session, b"mine")
    url = persistent_agent.url
    persistent_agent.kill()
    with pytest.raises(ConnectionRefusedError):
        persistent_agent.kv_get("key")
    persistent_agent.start()
    entry = persistent_agent.kv_get("key")
    assert entry is not None
    assert (entry["Session"], persistent_agent.url) == (session, url)


def test_a_frozen_agent_is_silent_until_thawed(agent: Agent) -> None:
    agent.freeze()
    with pytest.raises(TimeoutError):
        agent.call("GET", "/kv/key", timeout_s=0.2)
    agent.thaw()
    agent.wait_ready()
    assert agent.kv_get("key") is None


def test_a_frozen_agent_can_be_killed(tmp_path: Path) -> None:
    with Agent(tmp_path) as agent:
        pid = agent.pid
        agent.freeze()
    assert not psutil.pid_exists(pid)


def test_a_restarted_dev_agent_has_no_data_and_a_second_stop_is_no_error(agent: Agent) -> None:
    agent.kv_put("key", b"value")
    agent.restart()
    assert agent.kv_get("key") is None
    agent.stop()
    agent.stop()


def test_the_configuration_of_a_test_replaces_the_default_one(tmp_path: Path) -> None:
    rules = {"acl": {"enabled": True, "default_policy": "deny", "tokens": {"master": "a-test-token"}}}
    with Agent(tmp_path, config=rules, token="a-test-token") as agent:
        assert agent.kv_put("key", b"value")
        assert Client(agent.host, agent.port).call("GET", "/kv/key").status == 403


def test_a_start_that_fails_shows_the_log_of_consul(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no_such_setting"), Agent(tmp_path, config={"no_such_setting": 1}):
        pass


def test_an_agent_whose_port_another_agent_has_does_not_start(tmp_path: Path, agent: Agent) -> None:
    """Two workers may choose one port, and the second one must not use the first one's agent."""
    second = Agent(tmp_path / "second", config={"ports": {"http": agent.port}})
    with pytest.raises(RuntimeError, match="address already in use"):
        second.start()


@pytest.mark.long
def test_an_agent_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    """Pytest may be killed, and no agent may be left then."""
    program = """
        import os, pathlib, signal, sys
        from tests.support.consul import Agent
        agent = Agent(pathlib.Path(sys.argv[1]))
        agent.start()
        print(agent.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    ran = run_program(program, str(tmp_path))
    assert ran.stdout, ran.stderr
    try:
        psutil.Process(int(ran.stdout)).wait(10)
    except psutil.NoSuchProcess:
        pass
