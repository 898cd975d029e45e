"""``consul lock`` and an election on its key exclude each other."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.consul.elections.scene import Scene
from tests.support.consul import BINARY
from tests.support.supervisor import PATIENCE_S, until

LOCK_FLAGS = 3304740253564472344  # api.LockFlagValue


def consul_lock(scene: Scene, *arguments: str) -> list[str]:
    return [str(BINARY), "lock", f"-http-addr={scene.agent.host}:{scene.agent.port}", *arguments]


@contextmanager
def held_by_consul_lock(scene: Scene, prefix: str, folder: Path) -> Iterator[None]:
    """Let ``consul lock`` hold while the block runs; its child shows that by a file."""
    held = folder / "held"
    argv = consul_lock(scene, prefix, f"touch {held}; exec sleep 600")
    with (folder / "consul-lock.log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log)
        try:
            until(held.exists, "consul lock holds")
            yield
            process.terminate()
            process.wait(PATIENCE_S)
        finally:
            process.kill()
            process.wait()


@pytest.mark.long
def test_consul_lock_cannot_hold_before_the_leader_has_stopped(scene: Scene) -> None:
    prefix, key = scene.name, f"{scene.name}/.lock"
    a = scene.leader("a", key=key)
    entry = scene.agent.kv_get(key)
    assert entry is not None and entry["Flags"] == LOCK_FLAGS
    refused = subprocess.run(
        consul_lock(scene, "-try=1s", prefix, "true"), check=False, capture_output=True, text=True
    )
    assert refused.returncode == 1 and "lock" in refused.stderr.lower(), refused.stderr
    assert scene.calls("a") == ["acquire acquired"]
    assert a.stop() == 0
    granted = subprocess.run(
        consul_lock(scene, "-child-exit-code", prefix, "exit 0"), check=False, capture_output=True, text=True
    )
    assert granted.returncode == 0, granted.stderr
    assert scene.agent.kv_get(key) is None  # `consul lock` deletes the key when it ends


def test_a_waiter_leads_as_soon_as_consul_lock_releases(scene: Scene, tmp_path: Path) -> None:
    scene.key = f"{scene.name}/.lock"
    with held_by_consul_lock(scene, scene.name, tmp_path):
        a = scene.waiter("a")
        assert scene.calls("a") == []
    assert scene.wait_leader() == "a"
    assert a.running
