"""What lies on a file system that does not answer harms no other election, and no start."""

from pathlib import Path

import pytest

from tests.elections.scene import Scene
from tests.support.hung import hung, needs_root
from tests.support.supervisor import Supervisor, until

pytestmark = needs_root
HANGS = {"timeout": "500ms", "kill_after": "100ms"}


@pytest.fixture
def far(tmp_path: Path) -> Path:
    """A folder that will hang, with a program and a secret in it."""
    folder = tmp_path / "far"
    folder.mkdir()
    (folder / "hook").write_text("#!/bin/sh\nexit 0\n")
    (folder / "hook").chmod(0o755)
    (folder / "token").write_text("anonymous\n")
    (folder / "secret").write_text("hunter2\n")
    return folder


def beside(scene: Scene, far: Path) -> dict[str, object]:
    """The election of the scene, and beside it two that ask for what hangs again and again."""
    program = {"exec": [str(far / "hook")], **HANGS}
    folder = {"exec": ["/bin/true"], "cwd": str(far), **HANGS}
    secret = {
        "webhook": {"url": "http://127.0.0.1:9/", "secret_file": str(far / "secret")},
        "timeout": "500ms",
    }
    observer = {"key": f"{scene.name}-2/leader", "contend": False, "on_change": [program, folder, secret]}
    check = {**program, "interval": "1s"}
    unfit = scene.election(
        "a", key=f"{scene.name}-3/leader", candidate_check=check, session={"name": f"{scene.name}-3"}
    )
    return {scene.name: scene.item("a"), f"{scene.name}-2": observer, f"{scene.name}-3": unfit}


def hand_over(scene: Scene, a: Supervisor) -> None:
    """A loss is met as soon as ever."""
    scene.agent.session_destroy(scene.session_of("a"))
    scene.wait(node="a", event="lose", stage="end", name=scene.name)
    until(lambda: a.lines("role", item=scene.name, role="waiting"), "it gives the lock back")


def test_hooks_that_hang_delay_no_other_election(scene: Scene, far: Path) -> None:
    a = scene.node("a", items=beside(scene, far))
    a.wait_line("role", role="holding", item=scene.name)
    with hung(far):
        scene.agent.kv_put(f"{scene.name}-2/leader", b"somebody")
        a.wait_line("hook-failed", item=f"{scene.name}-2")
        hand_over(scene, a)
        assert not a.lines("stood-still")
