"""The file changes while supervisors run: a test of each effect that a change may have."""

import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from supervisor import __version__
from supervisor.daemon.operator import IN_FORCE_S
from tests.consul.elections.scene import Scene
from tests.support.consul import free_ports
from tests.support.supervisor import Supervisor, until


def rewrite(scene: Scene, node: Supervisor, name: str = "", **changes: Any) -> None:
    """Change the node's file, and perhaps the name of its election."""
    node.rewrite(scene.config({name or scene.name: scene.item(node.folder.name, **changes)}))


def entry(scene: Scene, key: str = "") -> dict[str, Any]:
    """Return the entry of the key in Consul."""
    found = scene.agent.kv_get(key or scene.key)
    assert found is not None
    return found


def reload(node: Supervisor) -> tuple[int, list[str]]:
    """Reload, and return the exit code and the reported effect on each item."""
    done = node.ask("reload")
    return done.returncode, [*done.stdout.splitlines(), *done.stderr.splitlines()]


@pytest.mark.long
def test_a_changed_setting_of_the_process_is_reported_without_its_secrets(scene: Scene) -> None:
    a = scene.leader("a")
    port = free_ports(1)[0]
    config = scene.config({scene.name: scene.item("a")}, {"token": "0b8a1c58-secret"})
    config |= {"log": {"level": "info", "format": "json"}, "http": {"listen": f"127.0.0.1:{port}"}}
    a.rewrite(config)
    changed = ["log.level: debug -> info", f"http.listen: none -> 127.0.0.1:{port}", "consul.token: changed"]
    assert reload(a) == (0, changed)
    assert a.wait_line("reloaded")["process"] == "; ".join(changed)
    assert "0b8a1c58" not in a.log_text and scene.calls("a") == ["acquire acquired"]
    assert reload(a) == (0, ["nothing has changed"])


def test_a_reload_logs_only_what_is_new_and_is_an_event(scene: Scene) -> None:
    """What an operator has decided, such as a short TTL, is no warning, and where to listen is no news."""
    a = scene.leader("a", session={"ttl": "3s", "lock_delay": "30s"})
    port = free_ports(1)[0]
    assert {line["level"] for line in a.lines("configuration")} == {"info"}
    before = len(a.lines("configuration"))
    a.rewrite(scene.config({scene.name: scene.item("a", session={"ttl": "3s", "lock_delay": "30s"})})
              | {"http": {"listen": f"0.0.0.0:{port}"}})  # fmt: skip
    assert reload(a)[0] == reload(a)[0] == 0
    assert not a.lines("configuration")[before:]
    told = a.ask("events").stdout
    assert f"Read the configuration again; the daemon: http.listen: none -> 0.0.0.0:{port}\n" in told
    assert "Read the configuration again\n" in told
    assert f"Started version {__version__}: takes part in 1 election or semaphore\n" in told


@pytest.mark.long
def test_changed_hooks_keep_leadership_and_are_used_from_then_on(scene: Scene) -> None:
    """The new on_lose runs even when a crash follows the reload at once, because the record has it."""
    scene.restarts = True
    patient = {"ttl": "10s", "lock_delay": "20s"}  # a slow machine must not look like an expired lease
    a = scene.leader("a", session=patient)
    session = scene.session_of("a")
    rewrite(scene, a, session=patient, on_lose=[scene.hook("a", "lose-new")], on_change=None)
    assert reload(a) == (0, [f"{scene.name}: changed"])
    assert scene.session_of("a") == session and scene.calls("a") == ["acquire acquired"]
    scene.kill("a")
    a.start()
    a.wait_line("role", role="holding", reason="adopted")
    assert scene.session_of("a") == session
    assert a.stop() == 0
    assert [lose.hook for lose in scene.records(event="lose", stage="begin")] == ["lose-new"]


def test_a_changed_value_is_written_without_a_loss(scene: Scene) -> None:
    a = scene.leader("a")
    before = entry(scene)
    rewrite(scene, a, value="another")
    assert reload(a) == (0, [f"{scene.name}: changed"])
    until(lambda: entry(scene)["Value"] == b"another", "the new value stands")
    after = entry(scene)
    for field in ("Session", "LockIndex", "CreateIndex", "Flags"):
        assert after[field] == before[field], field
    assert scene.calls("a") == ["acquire acquired"]
    scene.wait(node="a", event="change", reason="value-changed")


def test_another_key_is_released_and_the_new_one_taken_in_order(scene: Scene) -> None:
    scene.restarts = True
    a = scene.leader("a")
    old = scene.key
    rewrite(scene, a, key=f"{scene.key}/new")
    assert reload(a) == (0, [f"{scene.name}: restarted (key)"])
    assert f"restarted: {scene.name} (key)" in a.lines("reloaded")[-1]["what"]
    assert f"Read the configuration again; restarted: {scene.name} (key)\n" in a.ask("events").stdout
    until(lambda: len(a.lines("role", role="holding")) == 2, "it holds the new key")
    assert scene.calls("a") == ["acquire acquired", "lose config-changed", "acquire acquired"]
    assert entry(scene, old)["Session"] == ""


@pytest.mark.long
def test_a_reload_beside_a_stuck_election_does_not_wait_for_the_operator(scene: Scene) -> None:
    scene.restarts = True
    a = scene.leader("a", on_lose=[scene.hook("a", "lose", "test -e /nowhere")])
    assert a.operate("step-down", scene.name, "--for", "1s")[0] == 1
    a.wait_line("role", role="stuck")
    rewrite(scene, a)
    began_at = time.monotonic()
    code, lines = reload(a)
    words = f"{scene.name}: changed, but in force only when Consul has confirmed it (role: stuck)"
    assert (code, lines) == (0, [words])
    assert time.monotonic() - began_at < IN_FORCE_S
    assert a.operate("recover", scene.name) == (0, "")
    until(lambda: len(a.lines("role", role="holding")) == 2, "it leads again")


def test_a_bad_file_changes_nothing(scene: Scene) -> None:
    a = scene.leader("a")
    rewrite(scene, a, on_lose=[{"exec": ["/bin/true"], "timeout": "5"}], on_acquire=[])
    a.signal(signal.SIGHUP)
    assert "timeout" in a.wait_line("reload-refused")["why"]
    code, said = reload(a)
    assert code == 78 and any("timeout" in line and "5s" in line for line in said), said
    assert scene.calls("a") == ["acquire acquired"]
    assert scene.session_of("a")


def rewrite_large(scene: Scene, node: Supervisor) -> None:
    """Write a file whose reading takes half a second, with another on_lose."""
    changed = scene.item(node.folder.name, on_lose=[scene.hook(node.folder.name, "lose-new")])
    observers = {f"{scene.name}-{number}": {"contend": False} for number in range(1000)}
    node.rewrite(scene.config({scene.name: changed, **observers}))


@pytest.mark.long
def test_a_stop_does_not_wait_for_a_file_that_is_being_read(scene: Scene) -> None:
    a = scene.leader("a")
    rewrite_large(scene, a)
    a.signal(signal.SIGHUP)
    assert a.stop() == 0
    assert not a.lines("reloaded")
    assert scene.calls("a") == ["acquire acquired", "lose shutdown"]


@pytest.mark.long
def test_reloads_that_come_together_are_answered_one_after_the_other(scene: Scene) -> None:
    a = scene.leader("a")
    rewrite(scene, a, on_lose=[scene.hook("a", "lose-new")])
    with ThreadPoolExecutor() as threads:
        replies = list(threads.map(reload, [a, a, a]))
    assert sorted(replies) == [(0, ["nothing has changed"])] * 2 + [(0, [f"{scene.name}: changed"])]
    assert scene.calls("a") == ["acquire acquired"]


def test_a_change_that_the_process_cannot_follow_is_refused_whole(scene: Scene) -> None:
    """A kill and a restart keep leadership, but in another state_dir the next process finds no record."""
    a = scene.leader("a")
    settings = scene.config({scene.name: scene.item("a", value="another")})
    for key, remedy in (("state_dir", "systemctl stop"), ("control_socket", "systemctl restart")):
        a.rewrite({**settings, key: str(a.folder / "elsewhere")})
        code, said = reload(a)
        assert code == 78 and key in said[-1] and remedy in said[-1]
    assert scene.wait_leader() == "a"


@pytest.mark.long
def test_step_down_of_a_single_node_reports_that_no_node_took_over(scene: Scene) -> None:
    a = scene.leader("a")
    code, why = a.operate("step-down", scene.name, "--for", "10m")
    assert code == 1 and "nobody took over within 10 s; this node rests for 600 s after the release, " in why
    assert f"`consul-supervisor resume {scene.name}` ends the rest" in why
    told = a.item()
    assert told["role"] == "resting"
    (warning,) = (each for each in told["warnings"] if each.startswith("rests"))
    assert re.fullmatch(
        rf"rests until \S+Z after step-down( by \S+)?; `consul-supervisor resume {scene.name}` ends the rest",
        warning,
    )
    resumed = a.ask("resume", scene.name)
    assert (resumed.returncode, resumed.stdout) == (0, f"{scene.name}: its rest after step-down has ended\n")
    until(lambda: len(a.lines("role", role="holding")) == 2, "it leads at once")
