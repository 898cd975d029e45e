"""``step-down --to``: the named node takes over, and every other result is reported in one line."""

import re
import subprocess
import time
from pathlib import Path

import pytest

from supervisor.core.lock.handover import named_session
from tests.consul.elections.scene import Scene
from tests.consul.elections.test_foreign_data import consul_lock
from tests.support.supervisor import COMMAND, ENVIRON, PATIENCE_S, ROOT, Supervisor, command, until


def started(scene: Scene, *names: str) -> list[Supervisor]:
    """Start the nodes of these names, the first of which leads.

    All sessions have one name, as by default.
    """
    nodes: list[Supervisor] = []
    for name in names:
        node = scene.node(name, session={"name": f"{scene.name}-all"})
        if not nodes:
            node.wait_line("role", role="holding")
        scene.wait(node=name, stage="end", event="change")
        nodes.append(node)
        until(lambda: nodes[-1].item()["session"], f"{name} has a session")
    return nodes


def candidate(scene: Scene, **fields: object) -> str:
    """Make a session like that of a supervisor that does not act."""
    return scene.agent.session_create(Name=f"{scene.name}-all", TTL="60s", **fields)


def step_down(scene: Scene, node: Supervisor, *words: str) -> tuple[int, str]:
    """Run the command, and return its exit code and the one line with its result."""
    done = node.ask("step-down", scene.name, *words)
    (line,) = (done.stdout + done.stderr).splitlines()
    return done.returncode, line


def test_the_named_node_takes_over(scene: Scene) -> None:
    a, _, c = started(scene, "a", "b", "c")
    target = str(c.item()["session"])
    code, line = step_down(scene, a, "--to", target)
    took_over = rf"{scene.name}: c holds it, \d\.\d s after this node released it"
    assert code == 0 and re.fullmatch(took_over, line)
    assert scene.wait_leader() == "c"
    assert scene.calls("b") == [] and scene.calls("a") == ["acquire acquired", "lose step-down"]
    entry = scene.agent.kv_get(scene.key)
    assert entry is not None and entry["Value"] == b"c", "the next value replaces the hint"


@pytest.mark.long
def test_a_target_is_named_as_its_node_in_consul_and_the_hint_has_no_session(scene: Scene) -> None:
    """While the key is handed over it is free, and ``leader`` reports no leader."""
    a, b = started(scene, "a", "b")
    scene.agent.call("PUT", "/catalog/register", {"Node": scene.name, "Address": "192.0.2.9"})
    target = candidate(scene, Node=scene.name)
    socket = str(a.folder / "control.sock")
    handing = subprocess.Popen(
        [*COMMAND, "step-down", scene.name, "--to", scene.name.upper(), "--socket", socket],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=ENVIRON,
    )
    try:

        def hint() -> bytes:
            entry = scene.agent.kv_get(scene.key)
            assert entry is not None
            return b"" if entry["Session"] else bytes(entry["Value"])

        assert named_session(until(hint, "the key is handed over")) == target
        asked = command("leader", "--key", scene.key, environ={"CONSUL_HTTP_ADDR": scene.agent.url})
        assert (asked.returncode, asked.stdout) == (1, "")
        time.sleep(1.0)
        assert scene.calls("b") == []
        assert scene.agent.acquire(scene.key, target, b"the target")
        output, _ = handing.communicate(timeout=PATIENCE_S)
        assert handing.returncode == 0
        assert output.startswith(f"{scene.name}: {scene.name} holds it, "), "the value names no node"
        assert b.item()["leader"] == "the target"
    finally:
        handing.kill()
        handing.wait()
        scene.agent.session_destroy(target)
        scene.agent.call("PUT", "/catalog/deregister", {"Node": scene.name})


@pytest.mark.long
def test_consul_lock_takes_no_notice_of_a_hint(scene: Scene, tmp_path: Path) -> None:
    scene.key = f"{scene.name}/.lock"
    a = scene.leader("a", session={"name": f"{scene.name}-all"}, on_change=[])
    dead = candidate(scene)
    held = tmp_path / "held"
    argv = consul_lock(scene, "-child-exit-code", scene.name, f"date +%s.%N > {held}; exec sleep 2")
    with (tmp_path / "consul-lock.log").open("wb") as log:
        waiting = subprocess.Popen(argv, stdout=log, stderr=log)
        try:
            until(lambda: len(scene.agent.sessions()) >= 3, "consul lock waits")
            time.sleep(0.5)
            code, line = step_down(scene, a, "--to", dead)
            told_at = time.time()
            assert waiting.wait(PATIENCE_S) == 0
        finally:
            waiting.kill()
            waiting.wait()
    assert code == 1 and "did not take over" in line
    assert float(held.read_text()) < told_at, "it held while the hand-over still waited for the named node"
    scene.agent.session_destroy(dead)
