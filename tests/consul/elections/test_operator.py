"""Commands of an operator to a running supervisor: recover, pause, resume."""

import signal

import pytest

from tests.consul.elections.scene import Scene
from tests.support.supervisor import ENVIRON, Supervisor, command, until
from tests.support.turns import first_now


def operate(node: Supervisor, *words: str) -> tuple[int, str]:
    """Run a command for this node's supervisor, and return its exit code and standard error."""
    done = command(*words, "--socket", str(node.folder / "control.sock"))
    return done.returncode, done.stderr.strip()


@pytest.mark.long
def test_recover_after_a_restart_that_found_the_node_stuck_frees_the_key(scene: Scene) -> None:
    scene.restarts = True
    a = scene.leader("a", on_lose=[scene.hook("a", "lose", "test -e /nowhere")])
    a.signal(signal.SIGTERM)
    assert a.wait() == 1
    a.start()
    a.wait_line("role", role="stuck")
    assert operate(a, "recover", scene.name) == (0, "")
    until(lambda: len(a.lines("role", role="holding")) == 2, "it leads again")
    a.kill()
    scene.excuse("a")


@pytest.mark.parametrize("names_socket", first_now([True, False]))
def test_a_half_saved_drop_in_takes_no_command_away(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, names_socket: bool
) -> None:
    folder = scene.folder / "a"
    scene.leader("a")
    scene.waiter("b")
    monkeypatch.setitem(ENVIRON, "RUNTIME_DIRECTORY", str(folder))
    drop_ins = folder / "drop-ins"
    drop_ins.mkdir()
    (drop_ins / "a.yaml").write_text(f"control_socket: {folder}/control.sock\n" if names_socket else "")
    (drop_ins / "b.yaml").write_text("elections: {half: [\n")
    for words, code in {
        ("holds", scene.name): 0,
        ("status", scene.name): 0,
        ("events", scene.name): 0,
        ("recover", scene.name): 1,
        ("step-down", scene.name): 0,
    }.items():
        done = command(*words, "--config", str(drop_ins))
        assert done.returncode == code, done.stderr
        assert ("is asked, the usual control socket" in done.stderr) != names_socket
