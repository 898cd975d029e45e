"""The daemon keeps for a later process what it has decided: its configuration, its pauses, its lock."""

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
from tests.consul.elections.test_operator import operate
from tests.consul.elections.test_unstartable import status
from tests.support.captured import captured
from tests.support.hung import hung, needs_root
from tests.support.supervisor import Supervisor, command, until

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
    """Take the folder in memory from a supervisor that was killed."""
    shutil.rmtree(a.records)


def reload_with(scene: Scene, a: Supervisor, *others: str, **consul: str) -> int:
    """Reload a file with these items beside the scene's, and return the exit code."""
    items = {name: {"key": f"{scene.name}/{name}", "contend": name == "second"} for name in others}
    refile(a, scene.config({scene.name: scene.item("a"), **items}, consul))
    return operate(a, "reload")[0]


def test_a_refused_reload_is_not_kept(scene: Scene) -> None:
    a = scene.leader("a")
    session = session_in_force(scene)
    for refused in ({"address": "http://127.0.0.1:1"}, {"token_file": "/nowhere/token"}):
        assert reload_with(scene, a, **refused) == 78
    restart_broken(scene, a)
    assert session_in_force(scene) == session and scene.calls("a") == ["acquire acquired"]


class Clone(Supervisor):
    """A supervisor on a host of another name, as that of a cloned disk."""

    def _argv(self) -> list[str]:
        return ["unshare", "--uts", "sh", "-c", 'hostname clone && exec "$@"', "-", *super()._argv()]


@pytest.mark.long
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


@pytest.mark.long
@needs_root
def test_a_pause_that_a_boot_would_forget_is_refused(scene: Scene, state_disk: Path) -> None:
    a = scene.leader("a")
    until(lambda: list(state_disk.glob("*.journal")), "the record is copied")
    with filled(state_disk):
        for words in (("pause", scene.name), ("pause", "--all")):
            code, why = operate(a, *words)
            assert code == 1 and FORGETS in why and "No space left on device" in why
        assert "No space left" in str(status(a)["warnings"])
        metrics = a.folder / "control.sock"
        told = captured(["curl", "-s", "--unix-socket", str(metrics), "http://x/metrics"]).stdout
        assert "consul_supervisor_copies_failing 1.0" in told
    assert operate(a, "pause", scene.name) == (0, "")
    with filled(state_disk):
        assert operate(a, "resume", scene.name)[0] == 1
    crash(scene, "a")
    scene.excuse("a")
    boot(a)
    a.start()
    until(lambda: len(a.lines("started")) == 2, "it runs again")
    assert status(a)["items"][0]["paused"]  # type: ignore[index]


@pytest.mark.long
@pytest.mark.parametrize("how", ["absent", "two"])
def test_a_token_file_that_is_bad_at_a_restart_costs_nothing(scene: Scene, how: str) -> None:
    token = scene.folder / "token"
    scene.folder.mkdir(parents=True, exist_ok=True)
    token.write_text("any")
    a = scene.leader("a", consul={"token_file": str(token)})
    session = session_in_force(scene)
    token.unlink()
    if how == "two":
        token.write_text("one\ntwo\n")
    crash(scene, "a")
    a.start()
    until(lambda: holds_twice(a), HELD_AGAIN)
    assert session_in_force(scene) == session and not status(a)["healthy"]
    assert str(token) in a.wait_line("reload-refused")["why"]
    token.write_text("any")
    until(lambda: status(a)["healthy"], "it reads the file again by itself")
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
    until(lambda: status(a)["healthy"], "it reads the file again by itself")


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
        assert not status(a)["healthy"]
    until(lambda: status(a)["healthy"], "it reads the file again by itself")
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
