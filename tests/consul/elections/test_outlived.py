"""A process that KILL does not end: a stop waits for it with the lock, the record of a loss does not end."""

import signal
from pathlib import Path

import pytest

from tests.consul.elections.scene import Scene
from tests.consul.elections.test_fence import fenced, record
from tests.support.hung import needs_root, stuck
from tests.support.supervisor import Supervisor, processes_of, until

pytestmark = needs_root
SLOW = {"timeout": "4900ms", "kill_after": "100ms"}  # on_lose has the time to wait for the process


@pytest.fixture
def far(tmp_path: Path) -> Path:
    folder = tmp_path / "far"
    folder.mkdir()
    return folder


def hangs(far: Path) -> dict[str, object]:
    return {"exec": ["cat", str(far / "file")], "stop_timeout": "100ms"}


def leader(scene: Scene, far: Path, **more: object) -> tuple[Supervisor, str]:
    """Start a leader whose application waits for the file system. Return how it is named."""
    scene.terms = {"ttl": "5s", "lock_delay": "15s"}
    more = {"on_lose": [scene.hook("a", "lose", **SLOW)], **more}
    a = scene.leader("a", run=hangs(far), **more)
    (cat,) = processes_of(str(far / "file"))
    until(lambda: "request_wait" in Path(f"/proc/{cat.pid}/wchan").read_text(), "it waits")
    return a, f"KILL has not ended cat ({cat.pid})"


def says(a: Supervisor, left: str) -> bool:
    return any(left in warning for warning in a.item()["warnings"])


def test_a_stop_waits_for_the_end_of_a_process_and_then_goes_on(scene: Scene, far: Path) -> None:
    with stuck(far):
        a, left = leader(scene, far)
        b = scene.waiter("b")
        a.signal(signal.SIGTERM)
        assert a.wait_line("notice")["why"] == left
        assert says(a, left) and a.item()["role"] == "losing"
        assert not scene.records(node="a", event="lose")
    assert a.wait() == 0
    assert scene.calls("a")[-1] == "lose shutdown"
    b.wait_line("role", role="holding")


def test_a_process_that_does_not_end_leaves_the_item_stuck(scene: Scene, far: Path) -> None:
    """So it stays after a stop and a start, until the operator's word."""
    scene.restarts = True
    with stuck(far):
        a, left = leader(scene, far)
        b = scene.waiter("b")
        a.operate("step-down", scene.name)
        assert a.wait_line("role", role="stuck")["why"] == left
        assert scene.calls("a")[-1] == "lose step-down"
        assert a.item()["last_error"]["text"] == left
        assert a.stop() == 1
        a.start()
        until(lambda: len(a.lines("role", role="stuck", why=left)) == 2, "the next process knows of it")
        assert says(a, left)
        entry = scene.agent.kv_get(scene.key)
        assert entry is not None and entry.get("Session") and not b.lines("role", role="holding")
        assert a.operate("recover", scene.name)[0] == 0
        b.wait_line("role", role="holding")


def test_a_tenure_record_does_not_say_ended_while_a_process_exists(scene: Scene, far: Path) -> None:
    """On a loss on_lose runs at once, and once more after a crash; the end of the process ends the record."""
    scene.restarts = True
    with stuck(far):
        a, left = leader(scene, far, fence=fenced(scene, "a"))
        scene.agent.session_destroy(scene.session_of("a"))
        scene.wait(node="a", event="lose", stage="end")
        until(lambda: says(a, left), "it says which process")
        until(lambda: (record(scene) or {})["state"] == "stopping", "it says so to the others")
        scene.kill("a")
        a.start()
        until(lambda: len(scene.records(node="a", event="lose", stage="end")) == 2, "on_lose runs again")
        until(lambda: says(a, left), "the next process knows of it")
        known = record(scene)
        assert known is not None and known["state"] == "stopping"
        assert len(a.lines("role", role="holding")) == 1
    until(lambda: len(a.lines("role", role="holding")) == 2, "it contends again")
    assert (record(scene) or {}).get("token") != known["token"], "the former record is gone"
    a.wait_line("notice-over")
    assert "notice-over" in a.ask("events", "--json").stdout
    assert a.stop() == 0
