"""An election takes a key with the flags of a lock or with none; other flags mark data of another program."""

import json
import subprocess
from pathlib import Path

from tests.consul.elections.scene import Scene
from tests.support.consul import BINARY
from tests.support.supervisor import PATIENCE_S, until

SEMAPHORE_FLAGS = 16210313421097356768  # api.SemaphoreFlagValue

LOCK_FLAGS = 3304740253564472344  # api.LockFlagValue


def consul_lock(scene: Scene, *arguments: str) -> list[str]:
    return [str(BINARY), "lock", f"-http-addr={scene.agent.host}:{scene.agent.port}", *arguments]


def test_a_semaphore_that_is_in_use_is_left_alone(scene: Scene, tmp_path: Path) -> None:
    scene.key = f"{scene.name}/.lock"
    held = tmp_path / "held"
    slot = consul_lock(scene, "-n=2", scene.name, f"touch {held}; exec sleep 600")
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(slot, stdout=log, stderr=log)
    try:
        until(held.exists, "consul lock has a slot")
        before = scene.agent.kv_get(scene.key)
        a = scene.node("a")
        notice = a.wait_line("notice", item=scene.name)
        assert "belongs to another program" in notice["why"] and str(SEMAPHORE_FLAGS) in notice["why"]
        until(lambda: scene.session_of("a"), "it would contend")
        assert scene.agent.kv_get(scene.key) == before
        assert scene.calls("a") == []
        process.terminate()
        process.wait(PATIENCE_S)  # consul lock removes a semaphore without contenders
        released = scene.agent.kv_get(scene.key)
        if released is not None and released["Flags"] == SEMAPHORE_FLAGS:
            assert json.loads(released["Value"])["Holders"] == {}
            scene.agent.kv_delete(scene.key)
        assert scene.wait_leader() == "a"
        a.wait_line("notice-over", item=scene.name)
        entry = scene.agent.kv_get(scene.key)
        assert entry is not None and entry["Flags"] == LOCK_FLAGS
    finally:
        process.kill()
        process.wait()


def test_a_value_in_a_key_that_was_never_locked_is_taken_with_a_notice_without_it(scene: Scene) -> None:
    """The guide's own curl makes such a key; the value may be a secret."""
    scene.agent.kv_put(scene.key, b"max=500")
    a = scene.leader("a")
    assert "a value of 7 bytes, and was never locked" in a.wait_line("notice", item=scene.name)["why"]
    assert "max=500" not in a.log_tail()
