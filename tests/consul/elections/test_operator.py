"""Commands of an operator to a running supervisor: recover, pause, resume."""

import signal

import pytest

from tests.consul.elections.scene import Scene
from tests.support.supervisor import Supervisor, command, until


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
