"""``kill -9`` of a supervisor loses nothing: the next process adopts a tenure that holds, or winds it up."""

from pathlib import Path

import psutil
import pytest

from tests.consul.elections.crash import (
    crash,
    crash_and_forget,
    flag_of,
    rewrite,
    session_in_force,
    spoil,
    state_of,
)
from tests.consul.elections.scene import Scene
from tests.support.supervisor import until
from tests.support.turns import first_now


def test_a_crash_in_on_acquire_kills_its_processes_and_runs_on_acquire_again(scene: Scene) -> None:
    scene.lasting()
    flag = flag_of(scene)
    body = f"test -e {flag} && {{ setsid sleep 300 & sleep 300; }}; :"
    a = scene.node("a", on_acquire=[scene.hook("a", "acquire", body)])
    scene.wait(node="a", event="acquire", stage="begin")
    until(lambda: len(scene.sleeping()) == 2, "both sleeps")
    crash(scene, "a")
    flag.unlink()
    a.start()
    a.wait_line("role", role="holding")
    assert scene.calls("a") == ["acquire acquired", "acquire adopted"]
    assert not scene.sleeping()


@pytest.mark.long
def test_a_run_child_dies_with_its_supervisor_and_is_started_again(scene: Scene) -> None:
    scene.lasting()
    a = scene.leader("a", run=scene.run("a", "exec sleep 300"))
    child = until(scene.sleeping, "the child")[0]
    crash(scene, "a")
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, "it is dead")
    a.start()
    scene.wait(hook="run", stage="begin", reason="adopted")
    a.wait_line("run-started", reason="adopted")
    assert [record.reason for record in scene.records(hook="run", stage="begin")] == ["acquired", "adopted"]
    assert len(a.lines("run-started")) == 2


@pytest.mark.long
def test_processes_that_a_finished_on_acquire_left_are_left_alone_after_a_crash(scene: Scene) -> None:
    scene.lasting()
    a = scene.leader(
        "a", on_acquire=[scene.hook("a", "acquire", "setsid sleep 300 >/dev/null 2>&1 & sleep 0.3")]
    )
    (left,) = scene.sleeping()
    crash(scene, "a")
    a.start()
    until(lambda: len(a.lines("role", role="holding")) == 2, "it holds again")
    assert left.is_running()
    left.kill()


@pytest.mark.long
@pytest.mark.parametrize("bad", ["elections: {app: {kee: x}}", "elections: ["])
def test_a_bad_file_at_the_restart_winds_up_by_the_record(scene: Scene, bad: str) -> None:
    a = scene.leader("a")
    scene.waiter("b")
    crash_and_forget(scene, "a")
    a.config_path.write_text(f"{bad}\n")
    a.start()
    assert a.wait() == 78
    assert scene.calls("a") == ["acquire acquired", "lose shutdown"]
    ended = scene.wait(node="a", event="lose", stage="end")
    assert ended.at <= scene.wait(node="b", event="acquire", stage="begin").at
    assert not scene.sessions_of("a") and not state_of(a, scene.name)


@pytest.mark.long
def test_a_record_of_another_machine_gets_its_on_lose_and_leaves_the_session_alone(scene: Scene) -> None:
    """A cloned disk must not free the lock of the original machine."""
    a = scene.leader("a")
    session = session_in_force(scene)
    crash(scene, "a")
    rewrite(a, scene.name, machine="elsewhere")
    a.start()
    scene.wait(node="a", event="lose", stage="end")
    a.wait_line("role", role="waiting")
    assert scene.calls("a") == ["acquire acquired", "lose crashed"]
    assert not a.lines("releasing") and session in scene.sessions_of("a")
    until(lambda: session not in scene.sessions_of("a"), "its TTL ends it")


@pytest.mark.parametrize("damage", first_now(["cut", "spoilt"]))
def test_a_damaged_record_means_on_lose_before_anything_else(scene: Scene, damage: str) -> None:
    """The lost part may have been a tenure whose application still acts."""
    a = scene.leader("a")
    crash(scene, "a")
    scene.excuse("a")
    scene.overlap = scene.forgets = True  # the record names neither the tenure nor its token
    if damage == "cut":
        path = a.records / f"{scene.name}.journal"
        path.write_bytes(b"".join(path.read_bytes().rstrip(b" ").splitlines(keepends=True)[:-1]))
    else:
        spoil(a, scene.name)
    a.start()
    scene.wait(node="a", hook="lose", stage="end")
    a.wait_line("journal-unreadable", item=scene.name)
    assert scene.calls("a") == ["acquire acquired", "lose crashed"]


def test_a_folder_that_cannot_be_used_is_refused_with_the_remedy(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    node = scene.node("a", environ={"STATE_DIRECTORY": str(tmp_path / "file" / "state")})
    assert node.wait() == 78
    assert "cannot use state_dir" in node.log_text and "set state_dir to" in node.log_text
    node.assert_no_fault()
