"""A restart with a changed file, with records that were changed by hand, and on a broken disk."""

import fcntl
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.consul.elections.crash import (
    crash,
    crash_and_forget,
    flag_of,
    refile,
    session_in_force,
    spoil,
    state_of,
)
from tests.consul.elections.scene import Scene
from tests.support.hung import needs_root
from tests.support.supervisor import Supervisor, until
from tests.support.turns import first_now

# --- another file ----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("broken", ["\n  - broken: [\n", "\nelections: twice\n"])
def test_a_broken_file_with_a_state_dir_of_its_own_still_winds_up(scene: Scene, broken: str) -> None:
    config = scene.config({scene.name: scene.election("a")}) | {"state_dir": str(scene.folder / "own")}
    a = scene.nodes["a"] = Supervisor(scene.folder / "a", config)
    a.state_dir = scene.folder / "own"
    a.start()
    a.wait_line("role", role="holding")
    crash_and_forget(scene, "a")
    a.config_path.write_text(a.config_path.read_text() + broken)
    a.start()
    assert a.wait() == 78
    assert scene.calls("a") == ["acquire acquired", "lose shutdown"]
    assert not session_in_force(scene) and not state_of(a, scene.name)


@pytest.mark.long
def test_a_former_state_dir_that_is_still_in_use_is_tried_again(scene: Scene) -> None:
    """A killed process may take a moment to end.

    With 78 systemd would not start the supervisor again, and no process would wind up its tenures.
    """
    config = scene.config({scene.name: scene.election("a")})
    a = scene.leader("a")
    crash(scene, "a")
    refile(a, {**config, "state_dir": str(scene.folder / "elsewhere")})
    with open(a.state_dir / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        a.start()
        assert a.wait() == 1
        assert "another consul-supervisor is using it" in a.log_text and session_in_force(scene)
    a.start()
    assert a.wait() == 1
    assert scene.calls("a") == ["acquire acquired", "lose shutdown"]
    assert not session_in_force(scene) and not state_of(a, scene.name)


@pytest.mark.parametrize("other", first_now(["{1}/link", "{0}/"]))
def test_another_spelling_of_the_same_state_dir_keeps_the_tenure(scene: Scene, other: str) -> None:
    scene.lasting()
    config = scene.config({scene.name: scene.election("a")})
    a = scene.leader("a")
    session = session_in_force(scene)
    crash(scene, "a")
    (scene.folder / "link").symlink_to(a.state_dir)
    refile(a, {**config, "state_dir": other.format(a.state_dir, scene.folder)})
    a.start()
    until(lambda: len(a.lines("role", role="holding")) == 2, "it has adopted its tenure")
    assert session_in_force(scene) == session
    assert scene.calls("a") == ["acquire acquired"]
    assert a.stop() == 0


@pytest.mark.long
def test_records_in_a_former_state_dir_are_wound_up_even_if_the_file_is_bad(scene: Scene) -> None:
    a = scene.leader("a")
    crash_and_forget(scene, "a")
    a.config_path.write_text(f"state_dir: {scene.folder / 'elsewhere'}\nelections: twice\n")
    a.start()
    assert a.wait() == 78
    assert scene.calls("a") == ["acquire acquired", "lose shutdown"]
    assert not session_in_force(scene) and not state_of(a, scene.name)


def test_a_tenure_stuck_in_a_former_state_dir_needs_an_operator(scene: Scene) -> None:
    scene.restarts = True
    config = scene.config({scene.name: scene.election("a")})
    a = scene.leader("a", on_lose=[scene.hook("a", "lose", "false")])
    a.kill()
    scene.excuse("a")
    refile(a, {**config, "state_dir": str(scene.folder / "elsewhere")})
    a.start()
    assert a.wait() == 78
    assert state_of(a, scene.name)
    assert f"see the records in {a.state_dir}" in a.log_text


@pytest.mark.long
def test_a_loss_goes_by_the_hooks_on_record_until_the_tenure_is_adopted(scene: Scene) -> None:
    """The file of that record started the application."""
    a = scene.leader("a", on_lose=[scene.hook("a", "lose old")])
    crash(scene, "a")
    refile(a, scene.config({scene.name: scene.election("a", on_lose=[scene.hook("a", "lose new")])}))
    scene.agent.session_destroy(session_in_force(scene))
    a.start()
    until(lambda: len(a.lines("role", role="holding")) == 2, "it leads again")
    assert a.stop() == 0
    assert scene.calls("a")[1::2] == ["lose crashed", "lose shutdown"]
    assert [each.hook for each in scene.records(node="a", event="lose", stage="end")] == [
        "lose old",
        "lose new",
    ]


@pytest.mark.long
def test_a_renamed_election_waits_after_a_restart_for_the_end_of_the_old_one(scene: Scene) -> None:
    """Both elections act on one application, so no new hook may run before the old on_lose has ended."""
    a = scene.leader("a", on_lose=[scene.hook("a", "lose", "sleep 0.4")])
    crash(scene, "a")
    scene.agent.session_destroy(session_in_force(scene))
    time.sleep(4.2)  # until the lock-delay is over
    refile(a, scene.config({"renamed": scene.election("a")}))
    a.start()
    lost = scene.wait(node="a", event="lose", stage="end")
    code, why = a.operate("pause", "renamed")
    assert code == 0 or "which has the same name or key" in why  # on_acquire may have begun by then
    if code == 0:
        assert a.operate("resume", "renamed") == (0, "")
    until(lambda: scene.calls("a", "renamed"), "the new one leads")
    assert scene.wait(node="a", name="renamed", event="acquire", stage="begin").at >= lost.at


@pytest.mark.long
def test_stuck_is_kept_over_a_change_of_the_session_until_recover(scene: Scene) -> None:
    mended = scene.folder / "mended"
    lose = [scene.hook("a", "lose", f"test -e {mended}")]
    a = scene.leader("a", on_lose=lose)
    scene.waiter("b")
    scene.restarts = True
    a.signal(signal.SIGTERM)
    assert a.wait() == 1
    session = session_in_force(scene)
    refile(a, scene.config({scene.name: scene.election("a", on_lose=lose, session={"lock_delay": "5s"})}))
    a.start()
    a.wait_line("role", role="stuck")
    time.sleep(8)  # longer than a session lives without renewals
    assert session_in_force(scene) == session and a.running
    mended.touch()
    assert a.operate("recover", scene.name) == (0, "")
    until(lambda: session_in_force(scene) not in ("", session), "somebody else leads, or a anew")
    until(lambda: scene.sessions_of("a"), "a contends as the file says")


@pytest.mark.long
def test_a_record_of_another_consul_is_reported(scene: Scene) -> None:
    scene.lasting()
    a = scene.leader("a", consul={"address": scene.proxy.url})
    crash(scene, "a")
    refile(a, scene.config({scene.name: scene.election("a")}))
    a.start()
    told = a.wait_line("recorded-elsewhere", item=scene.name)
    assert scene.proxy.url in told["why"] and session_in_force(scene) in told["why"]
    until(lambda: len(a.lines("role", role="holding")) == 2, "it is the same cluster: adopted")


# --- at the start ----------------------------------------------------------------------------------


def handles_term(supervisor: Supervisor) -> bool:
    """Return whether the process blocks or catches SIGTERM."""
    status = Path(f"/proc/{supervisor.pid}/status").read_text()
    masks = (
        int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigBlk", "SigCgt"))
    )
    return any(mask >> (signal.SIGTERM - 1) & 1 for mask in masks)


@pytest.mark.parametrize("after_s", [0.0, 0.15])
def test_a_stop_that_comes_while_the_supervisor_starts_is_in_order(scene: Scene, after_s: float) -> None:
    a = scene.leader("a")
    crash(scene, "a")
    a.start()
    until(lambda: handles_term(a), "it keeps TERM for its loop")  # a Python that still starts would die of it
    time.sleep(after_s)
    a.signal(signal.SIGTERM)
    assert a.wait() == 0
    assert scene.calls("a")[0] == "acquire acquired" and len(scene.calls("a")) == 2
    assert not session_in_force(scene)


@pytest.mark.long
def test_a_hook_that_a_crash_left_running_is_ended_even_if_the_record_is_bad(scene: Scene) -> None:
    scene.overlap = scene.forgets = True  # the record does not name the tenure
    a = scene.node("a", on_acquire=[scene.hook("a", "acquire", "sleep 3")])
    scene.wait(node="a", event="acquire", stage="begin")
    a.wait_line("hook-started", event_kind="acquire")
    crash(scene, "a")
    scene.excuse("a")
    spoil(a, scene.name)
    a.start()
    scene.wait(node="a", event="lose", stage="end")
    time.sleep(3)
    ends = [each.at for each in scene.records(node="a", event="acquire", stage="end")]
    began = [each.at for each in scene.records(node="a", event="acquire", stage="begin")]
    assert len(ends) < len(began), "the one that was interrupted never came to its end"


# --- changed records and broken disks ---------------------------------------------------------------


@pytest.mark.long
@needs_root
def test_a_pause_that_cannot_be_recorded_is_reported_as_a_failure(scene: Scene, disk: Path) -> None:
    scene.lasting()
    scene.records_in(disk, "a")
    a = scene.leader("a")
    crash(scene, "a")
    path = disk / f"{scene.name}.journal"
    os.truncate(path, len(path.read_bytes().rstrip(b" ")) + 1)  # the space that the journal keeps free
    with (disk / "filler").open("wb", 0) as file, pytest.raises(OSError):
        while True:
            file.write(b"x")
    a.start()
    until(lambda: len(a.lines("role", role="holding")) == 2, "it is adopted")
    code, why = a.operate("pause", scene.name)
    assert code == 1 and "a restart forgets it" in why
    (disk / "filler").unlink()


@pytest.mark.long
@needs_root
def test_a_disk_that_became_read_only_orphans_no_tenure(scene: Scene, disk: Path) -> None:
    scene.lasting()
    a = scene.leader("a", environ={"STATE_DIRECTORY": str(disk)})
    crash(scene, "a")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    a.start()
    until(lambda: len(a.lines("role", role="holding")) == 2, "it is adopted")
    assert "Read-only" in a.wait_line("copies-failed")["why"]
    assert a.stop() == 0
    assert scene.calls("a") == ["acquire acquired", "lose shutdown"]


@pytest.mark.long
def test_a_pause_during_the_wind_up_is_kept(scene: Scene) -> None:
    flag = flag_of(scene)
    slow = [scene.hook("a", "lose", f"while test -e {flag}; do sleep 0.05; done", timeout="9s")]
    a = scene.leader("a", on_lose=slow, session={"lock_delay": "14s"})
    crash(scene, "a")
    scene.key = f"{scene.name}/other"
    refile(a, scene.config({scene.name: scene.election("a")}))
    a.start()
    scene.wait(node="a", event="lose", stage="begin")
    assert a.operate("pause", scene.name) == (0, "")
    flag.unlink()
    a.wait_line("role", role="paused")
    assert state_of(a, scene.name)["paused"] is True
    assert scene.calls("a") == ["acquire acquired", "lose config-changed"]
    scene.excuse("a")
