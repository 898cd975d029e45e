"""The daemon keeps for a later process what it has decided: its configuration, its pauses, its lock."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.consul.elections.crash import (
    accepted_file,
    crash,
    crash_and_forget,
    forget_accepted,
    refile,
    session_in_force,
)
from tests.consul.elections.scene import Scene
from tests.consul.elections.test_accepted import HELD_AGAIN, holds_twice
from tests.support.captured import captured
from tests.support.hung import frozen, hung, needs_root
from tests.support.supervisor import COMMAND, ENVIRON, ROOT, Supervisor, command, until

BROKEN = "elections: ["
FORGETS = "a restart forgets it once this machine has booted: cannot copy the records to "


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """Leave no room on this disk within the block."""
    filler = disk / "filler"
    for _ in range(3):  # the file system keeps some room until it knows what the file needs
        with filler.open("ab", 0) as file, pytest.raises(OSError):
            while True:
                file.write(b"x" * 512)
        os.sync()
    yield
    filler.unlink()


def restart_broken(scene: Scene, a: Supervisor) -> None:
    """Break the file, kill the supervisor, and start it again."""
    good = a.config_path.read_text()
    a.config_path.write_text(BROKEN)
    crash(scene, "a")
    a.start()
    holding = {"role": "holding", "item": scene.name}
    until(lambda: not a.running or len(a.lines("role", **holding)) == 2, HELD_AGAIN)
    a.config_path.write_text(good)


@pytest.fixture(autouse=True)
def lasting(scene: Scene) -> None:
    """Give all nodes leases that outlast each restart."""
    scene.terms = {"ttl": "20s", "lock_delay": "45s"}


def boot(a: Supervisor) -> None:
    """Take the folder in memory from a supervisor that was killed, even while its last child writes there."""
    while a.records.exists():
        shutil.rmtree(a.records, ignore_errors=True)


def reload_with(scene: Scene, a: Supervisor, *others: str, **consul: str) -> int:
    """Reload a file with these items beside the scene's, and return the exit code."""
    items = {name: {"key": f"{scene.name}/{name}", "contend": name == "second"} for name in others}
    refile(a, scene.config({scene.name: scene.item("a"), **items}, consul))
    return a.operate("reload")[0]


@pytest.mark.parametrize("refused", [{"address": "http://127.0.0.1:1"}, {"token_file": "/nowhere/token"}])
def test_a_refused_reload_is_not_kept(scene: Scene, refused: dict[str, str]) -> None:
    a = scene.leader("a")
    session = session_in_force(scene)
    assert reload_with(scene, a, **refused) == 78
    restart_broken(scene, a)
    assert session_in_force(scene) == session and scene.calls("a") == ["acquire acquired"]


def test_a_run_that_is_refused_keeps_nothing(scene: Scene, tmp_path: Path) -> None:
    a = scene.leader("a")
    session = session_in_force(scene)
    other = tmp_path / "other.yaml"
    other.write_text(json.dumps(scene.config({scene.name: scene.item("a", key=f"{scene.key}/other")})))
    for path in (a.config_path, other):
        environ = {**ENVIRON, "STATE_DIRECTORY": str(a.state_dir), "RUNTIME_DIRECTORY": str(tmp_path)}
        argv = [*COMMAND, "run", str(path)]
        refused = captured(argv, cwd=ROOT, env={**environ, "CONSUL_HTTP_ADDR": "http://127.0.0.1:1"})
        assert refused.returncode == 1 and "another consul-supervisor is using it" in refused.stderr
    restart_broken(scene, a)
    assert session_in_force(scene) == session and scene.calls("a") == ["acquire acquired"]


@pytest.mark.long
@needs_root
def test_a_full_disk_is_said_and_keeps_no_outdated_configuration(scene: Scene, state_disk: Path) -> None:
    a = scene.leader("a")
    assert reload_with(scene, a, "second") == 0
    until(lambda: a.lines("role", role="holding", item="second"), "it holds both")
    until(lambda: b"second" in accepted_file(a).read_bytes(), "the configuration is kept")
    with filled(state_disk):
        assert reload_with(scene, a, *(f"large{number}" for number in range(50))) == 0
        assert "No space left" in a.wait_line("copies-failed")["why"]
        told = a.status()
        assert told["healthy"] and "cannot copy the records to" in str(told["warnings"])
        assert not accepted_file(a).exists()
        restart_broken(scene, a)
        assert not a.lines("role", role="holding", item="second")[1:]
        assert scene.calls("a") == ["acquire acquired"]
    until(accepted_file(a).exists, "the configuration is kept again")
    until(lambda: not a.status()["warnings"], "the warning has ended")


@pytest.mark.long
@needs_root
def test_the_newest_of_several_reloads_is_kept_after_a_freeze(scene: Scene, state_disk: Path) -> None:
    a = scene.leader("a")
    until(accepted_file(a).exists, "the configuration is kept")
    with frozen(state_disk):
        for number in range(3):
            assert reload_with(scene, a, f"n{number}") == 0
        assert sum(process.status() == "disk-sleep" for process in scene.processes()) <= 1
        restart_broken(scene, a)
        assert {item["name"] for item in a.status()["items"]} == {scene.name, "n2"}
    on_disk = accepted_file(a)
    until(lambda: on_disk.exists() and b'"n2"' in on_disk.read_bytes(), "the newest is on disk")


def test_folders_that_are_missing_and_files_that_are_left_cost_no_copy(scene: Scene) -> None:
    a = scene.nodes["a"] = Supervisor(scene.folder / "a", scene.config({scene.name: scene.item("a")}))
    a.state_dir = scene.folder / "a" / "x" / "y"
    refile(a, scene.config({scene.name: scene.item("a")}) | {"state_dir": str(a.state_dir)})
    a.records.mkdir()
    (a.records / "accepted.json.new").write_text("left")
    a.start()
    until(accepted_file(a).exists, "the configuration is kept")
    assert json.loads(accepted_file(a).read_bytes())["path"] == str(a.config_path)


class Clone(Supervisor):
    """A supervisor on a host of another name, as that of a cloned disk."""

    def by_way_of(self) -> list[str]:
        return ["unshare", "--uts", "sh", "-c", 'hostname clone && exec "$@"', "-"]


@needs_root
def test_a_clone_goes_by_no_copy(scene: Scene) -> None:
    a = scene.leader("a")
    until(accepted_file(a).exists, "the configuration is kept")
    crash(scene, "a")
    scene.excuse("a")
    boot(a)
    (a.state_dir / f"{scene.name}.journal").unlink()
    a.config_path.write_text(BROKEN)
    clone = Clone(a.folder, {})
    clone.config_path.write_text(BROKEN)
    clone.start()
    assert clone.wait() == 78


@needs_root
def test_a_pause_that_a_boot_would_forget_is_refused(scene: Scene, state_disk: Path) -> None:
    a = scene.leader("a")
    until(lambda: list(state_disk.glob("*.journal")), "the record is copied")
    with filled(state_disk):
        for words in (("pause", scene.name), ("pause", "--all")):
            code, why = a.operate(*words)
            assert code == 1 and FORGETS in why and "No space left on device" in why
        assert "No space left" in str(a.status()["warnings"])
        metrics = a.folder / "control.sock"
        told = captured(["curl", "-s", "--unix-socket", str(metrics), "http://x/metrics"]).stdout
        assert "consul_supervisor_copies_failing 1.0" in told
    assert a.operate("pause", scene.name) == (0, "")
    with filled(state_disk):
        assert a.operate("resume", scene.name)[0] == 1
    crash(scene, "a")
    scene.excuse("a")
    boot(a)
    a.start()
    until(lambda: len(a.lines("started")) == 2, "it runs again")
    assert a.status()["items"][0]["paused"]


@needs_root
def test_a_start_locks_its_state_dir_as_soon_as_the_disk_answers(scene: Scene, state_disk: Path) -> None:
    a = scene.leader("a")
    until(lambda: list(state_disk.glob("*.journal")), "the record is copied")
    with frozen(state_disk):
        crash(scene, "a")
        a.start()
        until(lambda: holds_twice(a), HELD_AGAIN)
    until((state_disk / "accepted.json").exists, "the disk answers")
    second = captured(
        [*COMMAND, "run", str(a.config_path)],
        cwd=ROOT,
        env={**ENVIRON, "STATE_DIRECTORY": str(state_disk)},
        timeout=30,
    )
    assert second.returncode == 1 and "another consul-supervisor is using it" in second.stderr
    assert scene.calls("a") == ["acquire acquired"]


FAULTS = ("absent", "empty", "two", "folder")


def spoil(token: Path, how: str) -> None:
    token.unlink()
    if how == "folder":
        token.mkdir()
    elif how != "absent":
        token.write_text("one\ntwo\n" if how == "two" else "")


@pytest.mark.long
@pytest.mark.parametrize("how", FAULTS)
def test_a_token_file_that_is_bad_at_a_restart_costs_nothing(scene: Scene, how: str) -> None:
    token = scene.folder / "token"
    scene.folder.mkdir(parents=True, exist_ok=True)
    token.write_text("any")
    a = scene.leader("a", consul={"token_file": str(token)})
    session = session_in_force(scene)
    spoil(token, how)
    crash(scene, "a")
    a.start()
    until(lambda: holds_twice(a), HELD_AGAIN)
    assert session_in_force(scene) == session and not a.status()["healthy"]
    assert str(token) in a.wait_line("reload-refused")["why"]
    if how == "folder":
        token.rmdir()
    token.write_text("any")
    until(lambda: a.status()["healthy"], "it reads the file again by itself")
    assert scene.calls("a") == ["acquire acquired"]


@pytest.mark.long
def test_a_tenure_on_record_is_kept_without_a_token_even_if_no_configuration_is(scene: Scene) -> None:
    a = scene.leader("a")
    session = session_in_force(scene)
    crash_and_forget(scene, "a")
    token = scene.folder / "token"
    refile(a, scene.config({scene.name: scene.item("a")}, {"token_file": str(token)}))
    a.start()
    until(lambda: holds_twice(a), HELD_AGAIN)
    assert session_in_force(scene) == session
    assert "requests carry no token, because cannot read" in a.wait_line("reload-refused")["why"]
    token.write_text("any")
    until(lambda: a.status()["healthy"], "it reads the file again by itself")


@pytest.mark.long
@needs_root
def test_a_file_that_answers_late_at_a_restart_is_read_again_by_itself(scene: Scene) -> None:
    a = scene.leader("a")
    far = scene.folder / "far"
    far.mkdir()
    crash(scene, "a")
    a.config_path = a.config_path.rename(far / "config.yaml")
    a.start()
    until(lambda: holds_twice(a), HELD_AGAIN)
    until(accepted_file(a).exists, "the configuration is kept")
    until(lambda: str(far).encode() in accepted_file(a).read_bytes(), "by its new place")
    crash(scene, "a")
    with hung(far):
        a.start()
        until(lambda: len(a.lines("role", role="holding")) == 3, HELD_AGAIN)
        assert not a.status()["healthy"]
    until(lambda: a.status()["healthy"], "it reads the file again by itself")
    assert scene.calls("a") == ["acquire acquired"] and not a.lines("event-loop-stalled")


@pytest.mark.long
def test_commands_about_consul_go_by_the_copy_where_the_daemon_does(scene: Scene) -> None:
    a = scene.leader("a")
    until(accepted_file(a).exists, "the configuration is kept")
    a.config_path.write_text(BROKEN)
    session = scene.session_of("a")
    for words in (
        ("members", scene.name),
        ("leader", scene.name),
        ("status", "--cluster"),
        ("sessions",),
        ("wait", scene.name, "--for", "leader"),
        ("verify", scene.name, "--session", session, "--lock-index", "1"),
    ):
        done = command(*words, "--config", str(a.config_path), environ=a.places)
        assert done.returncode == 0, (words, done.stderr)
        assert "which the daemon has accepted last" in done.stderr
    forget_accepted(a)
    done = command("members", scene.name, "--config", str(a.config_path), environ=a.places)
    assert done.returncode == 78
