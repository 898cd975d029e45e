"""Paths on a file system that does not answer harm no other election and no start."""

import shutil
import signal
import time
from pathlib import Path

import pytest

from supervisor.adapters.journal.copies import HUNG_S
from tests.consul.elections.crash import crash
from tests.consul.elections.scene import Scene
from tests.support.hung import frozen, hung, needs_root
from tests.support.supervisor import Supervisor, until

pytestmark = needs_root
HANGS = {"timeout": "500ms", "kill_after": "100ms"}


@pytest.fixture
def far(tmp_path: Path) -> Path:
    """Return a folder that will hang, with a program and a secret in it."""
    folder = tmp_path / "far"
    folder.mkdir()
    (folder / "hook").write_text("#!/bin/sh\nexit 0\n")
    (folder / "hook").chmod(0o755)
    (folder / "token").write_text("anonymous\n")
    (folder / "secret").write_text("hunter2\n")
    return folder


def beside(scene: Scene, far: Path) -> dict[str, object]:
    """Return the election of the scene and two elections that use hung paths again and again."""
    program = {"exec": [str(far / "hook")], **HANGS}
    folder = {"exec": ["/bin/true"], "cwd": str(far), **HANGS}
    secret = {"webhook": "http://127.0.0.1:9/", "secret_file": str(far / "secret"), "timeout": "500ms"}
    observer = {"key": f"{scene.name}-2/leader", "contend": False, "on_change": [program, folder, secret]}
    check = {**program, "interval": "1s"}
    unfit = scene.election(
        "a", key=f"{scene.name}-3/leader", candidate_check=check, session={"name": f"{scene.name}-3"}
    )
    return {scene.name: scene.item("a"), f"{scene.name}-2": observer, f"{scene.name}-3": unfit}


def hand_over(scene: Scene, a: Supervisor) -> None:
    """Check that a loss runs on_lose without a delay."""
    scene.agent.session_destroy(scene.session_of("a"))
    scene.wait(node="a", event="lose", stage="end", name=scene.name)
    until(lambda: a.lines("role", item=scene.name, role="waiting"), "it gives the lock back")


@pytest.mark.long
def test_hooks_that_hang_delay_no_other_election(scene: Scene, far: Path) -> None:
    a = scene.node("a", items=beside(scene, far))
    a.wait_line("role", role="holding", item=scene.name)
    with hung(far):
        assert scene.agent.acquire(f"{scene.name}-2/leader", scene.agent.session_create())
        for hook in ("on_change[0]", "on_change[1]", "on_change[2]"):
            a.wait_line("hook-failed", item=f"{scene.name}-2", hook=hook, reason="leader-changed")
        a.wait_line("check-failed", item=f"{scene.name}-3")
        hand_over(scene, a)
        assert not a.lines("event-loop-stalled")


@pytest.mark.long
def test_a_start_beside_hung_paths_winds_up_its_records(scene: Scene, far: Path) -> None:
    """A killed supervisor has lost its lock meanwhile, so on_lose is due at once."""
    scene.restarts = True
    a = scene.node("a", items=beside(scene, far), consul={"token_file": str(far / "token")})
    a.wait_line("role", role="holding", item=scene.name)
    session = scene.session_of("a")
    with hung(far):
        scene.kill("a")
        scene.agent.session_destroy(session)
        a.start()
        scene.wait(node="a", event="lose", stage="end", name=scene.name)
    until(lambda: len(a.lines("role", role="holding", item=scene.name)) > 1, "it leads again")


def test_a_reload_whose_configuration_hangs_is_refused_and_delays_no_election(
    scene: Scene, tmp_path: Path
) -> None:
    (tmp_path / "far").mkdir()
    a = Supervisor(scene.folder / "a", scene.config({scene.name: scene.item("a")}))
    a.config_path = a.config_path.rename(tmp_path / "far/config.yaml")
    scene.nodes["a"] = a
    a.start()
    a.wait_line("role", role="holding")
    with hung(tmp_path / "far"):
        a.signal(signal.SIGHUP)
        assert "did not answer within 0.25 s" in a.wait_line("reload-refused")["why"]
        hand_over(scene, a)


def copied(a: Supervisor, disk: Path) -> None:
    """Wait until the disk has the newest record."""
    until(lambda: list(disk.glob("*.journal")), "the record is copied")


@pytest.mark.parametrize("frozen_s", [3, pytest.param(60, marks=pytest.mark.long)])
def test_a_disk_that_freezes_costs_no_tenure_and_delays_no_loss(
    scene: Scene, state_disk: Path, frozen_s: int
) -> None:
    a, b = scene.leader("a"), scene.waiter("b")
    copied(a, state_disk)
    with frozen(state_disk):
        time.sleep(frozen_s)
        assert scene.calls("a") == ["acquire acquired"]
        assert a.operate("step-down", scene.name)[0] == 0
        scene.wait(node="a", event="lose", stage="end")
        b.wait_line("role", role="holding")
        if frozen_s > HUNG_S:
            assert "did not answer within 10 s" in a.wait_line("copies-failed")["why"]
        assert not a.lines("event-loop-stalled") and not a.lines("journal-failed")
    until(lambda: not list(state_disk.glob("*.journal")), "the end of the tenure is copied")
    if frozen_s > HUNG_S:
        a.wait_line("copies-recovered")


@pytest.mark.long
def test_a_restart_while_the_disk_is_frozen_adopts_the_tenure(scene: Scene, state_disk: Path) -> None:
    scene.lasting()
    a = scene.leader("a")
    copied(a, state_disk)
    session = scene.session_of("a")
    with frozen(state_disk):
        for holding in (2, 3):
            crash(scene, "a")
            a.start()
            until(lambda: len(a.lines("role", role="holding")) == holding, "it is adopted")  # noqa: B023
        assert scene.session_of("a") == session and scene.calls("a") == ["acquire acquired"]
        assert a.stop() == 0
    assert scene.calls("a") == ["acquire acquired", "lose shutdown"]


@pytest.mark.long
def test_a_state_dir_that_hangs_delays_no_on_lose(scene: Scene) -> None:
    a = scene.leader("a")
    with hung(a.state_dir):
        scene.agent.session_destroy(scene.session_of("a"))
        scene.wait(node="a", event="lose", stage="end")
        assert not a.lines("journal-failed")


@pytest.mark.long
def test_a_start_whose_configuration_hangs_winds_up_its_records_and_is_tried_again(
    scene: Scene, tmp_path: Path
) -> None:
    scene.restarts = True
    folder = tmp_path / "far"
    a = scene.leader("a")
    folder.mkdir()
    (folder / "config.yaml").write_text(a.config_path.read_text())
    a.config_path = folder / "config.yaml"
    session = scene.session_of("a")
    with hung(folder):
        scene.kill("a")
        scene.agent.session_destroy(session)
        a.start()
        scene.wait(node="a", event="lose", stage="end")
        assert a.wait() == 1
    assert "its file system did not answer within 3 s" in a.log_text
    a.start()
    until(lambda: len(a.lines("role", role="holding")) > 1, "it leads again")


@pytest.mark.long
def test_a_start_after_a_boot_whose_state_dir_hangs_ends_and_winds_up_when_the_disk_is_back(
    scene: Scene,
) -> None:
    scene.restarts = True
    a = scene.leader("a")
    record = a.state_dir / f"{scene.name}.journal"
    until(lambda: record.exists() and b'"step":"holding"' in record.read_bytes(), "the tenure is copied")
    scene.kill("a")
    shutil.rmtree(a.records)
    with hung(a.state_dir):
        a.start()
        assert a.wait() == 1
        assert "did not answer within 3 s; it belongs on a disk of this machine" in a.log_text
    if session := scene.session_of("a"):  # else it has expired meanwhile
        scene.agent.session_destroy(session)
    a.start()
    scene.wait(node="a", event="lose", stage="end")
