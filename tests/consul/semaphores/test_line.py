"""Nodes that stand in line, and nodes that leave it because they are paused, unfit, failing or stopped."""

from pathlib import Path

import pytest

from tests.consul.elections.test_operator import operate
from tests.consul.semaphores.scene import SlotScene
from tests.support.supervisor import until


def flag_of(scene: SlotScene, name: str) -> Path:
    """Return a file that a check looks for: the check succeeds while the file is there."""
    scene.folder.mkdir(parents=True, exist_ok=True)
    flag = scene.folder / name
    flag.touch()
    return flag


def checked(flag: Path) -> dict[str, object]:
    """Return the item of a node that is fit while the flag is there."""
    return {
        "candidate_check": {
            "exec": ["/usr/bin/test", "-e", str(flag)], "interval": "1s", "timeout": "900ms",
            "rise": 1, "fall": 1,
        }
    }  # fmt: skip


@pytest.mark.long
def test_pause_withdraws_the_contender_key_and_resume_stands_in_line_again(scene: SlotScene) -> None:
    a, _, _, d = scene.full()
    scene.waiter("e")
    key, session = scene.contender_key("d"), scene.session_of("d")
    assert operate(d, "pause", scene.name) == (0, "")
    scene.wait_gone(key, within_s=5)
    until(lambda: session not in scene.sessions_of("d"), "its session is gone", within_s=5)
    assert scene.line() == ["e"] and d.lines("role", role="paused")
    assert a.stop() == 0
    scene.wait_holders("b", "c", "e")
    assert operate(d, "resume", scene.name) == (0, "")
    until(lambda: scene.line() == ["d"], "d stands in line again", within_s=5)
    assert scene.nodes["b"].stop() == 0
    scene.wait_holders("c", "d", "e")
