"""A start whose file cannot be used goes on by the last accepted configuration, as a refused reload does."""

from pathlib import Path

import pytest

from tests.consul.elections.crash import accepted_file, crash, forget_accepted, refile, session_in_force
from tests.consul.elections.scene import Scene
from tests.support.hung import hung, needs_root
from tests.support.supervisor import Supervisor, command, until
from tests.support.turns import first_now

HELD_AGAIN = "it holds again"


def spoilt(text: str, how: str) -> str:
    """Return the text of a configuration as a slip of the hand leaves it."""
    return {"cut": text[: len(text) // 2], "key": text.replace("on_lose", "on_loose"), "blank": ""}[how]


def holds_twice(node: Supervisor) -> bool:
    return len(node.lines("role", role="holding")) == 2


@pytest.mark.parametrize("how", first_now(["key", "cut", "blank", "absent"]))
def test_a_file_that_is_broken_at_a_restart_costs_nothing(scene: Scene, how: str) -> None:
    scene.lasting()
    a = scene.leader("a")
    until(accepted_file(a).exists, "the configuration is kept")
    assert accepted_file(a).stat().st_mode & 0o777 == 0o600
    session, good = session_in_force(scene), a.config_path.read_text()
    crash(scene, "a")
    if how == "absent":
        a.config_path.unlink()
    else:
        a.config_path.write_text(spoilt(good, how))
    a.start()
    until(lambda: holds_twice(a), HELD_AGAIN)
    assert session_in_force(scene) == session
    why = a.wait_line("reload-refused")["why"]
    assert why.startswith("this process runs by the configuration of 20") and str(a.config_path) in why
    assert (a.status()["healthy"], a.status()["troubles"]) == (False, [why])
    a.config_path.write_text(good)
    assert a.operate("reload")[0] == 0
    assert a.status()["healthy"]
    assert scene.calls("a") == ["acquire acquired"]


@pytest.mark.long
def test_a_file_that_is_broken_on_all_nodes_at_once_costs_nothing(scene: Scene) -> None:
    scene.lasting()
    nodes = scene.three()
    leader = scene.nodes[scene.wait_leader()]
    session, before = session_in_force(scene), [scene.calls(name) for name in scene.nodes]
    for name, node in scene.nodes.items():
        until(accepted_file(node).exists, "the configuration is kept")
        crash(scene, name)
        node.config_path.write_text("elections: [")
    for node in nodes:
        node.start()
    until(lambda: holds_twice(leader), HELD_AGAIN)
    for node in nodes:
        node.wait_line("reload-refused")
    assert session_in_force(scene) == session
    assert [scene.calls(name) for name in scene.nodes] == before


@pytest.mark.parametrize(
    "content",
    first_now([b"negative", b"", b"[" * 200_000, b"null", b"\xff", b'{"path": "%s", "consul": 1}']),
)
def test_a_damaged_copy_counts_as_none(scene: Scene, content: bytes) -> None:
    a = scene.leader("a")
    until(accepted_file(a).exists, "the configuration is kept")
    crash(scene, "a")
    if content == b"negative":
        content = accepted_file(a).read_bytes().replace(b'"lock_delay_s": 4.0', b'"lock_delay_s": -4.0')
        assert b"-4.0" in content
    for folder in (a.state_dir, a.records):
        (folder / "accepted.json").write_bytes(content.replace(b"%s", bytes(a.config_path)))
    a.config_path.write_text("elections: [")
    a.start()
    assert a.wait() == 78
    assert scene.calls("a") == ["acquire acquired", "lose shutdown"]


@pytest.mark.long
def test_the_copy_of_another_file_is_not_used(scene: Scene, tmp_path: Path) -> None:
    a = scene.leader("a")
    until(accepted_file(a).exists, "the configuration is kept")
    crash(scene, "a")
    a.config_path = tmp_path / "another.yaml"
    a.config_path.write_text("elections: [")
    a.start()
    assert a.wait() == 78


@pytest.mark.long
def test_an_item_that_the_file_has_lost_is_given_up_once_the_file_can_be_read(scene: Scene) -> None:
    a = scene.leader("a")
    until(accepted_file(a).exists, "the configuration is kept")
    crash(scene, "a")
    a.config_path.write_text("elections: [")
    a.start()
    until(lambda: holds_twice(a), HELD_AGAIN)
    refile(a, scene.config({"other": scene.election("a", key=f"{scene.key}-other")}))
    assert a.operate("reload")[0] == 0
    until(lambda: "lose config-changed" in scene.calls("a"), "it is given up")
    assert a.status()["healthy"]


@pytest.mark.long
def test_status_without_a_daemon_says_why_the_last_one_ended(scene: Scene) -> None:
    a = scene.leader("a")
    until(accepted_file(a).exists, "the configuration is kept")
    left = a.records / "events"
    until(lambda: left.exists() and b"holding" in left.read_bytes(), "the event is written")
    crash(scene, "a")
    places = a.places
    last = command("status", "--config", str(a.config_path), environ=places)
    assert (last.returncode, last.stdout) == (69, "")
    assert f"the last event that it left in {a.records}: " in last.stderr
    forget_accepted(a)
    a.config_path.write_text(spoilt(a.config_path.read_text(), "key"))
    a.start()
    assert a.wait() == 78
    ended = command("status", "--config", str(a.config_path), environ=places)
    assert ended.returncode == 69 and "Stopped" in ended.stderr


class WithoutSystemd(Supervisor):
    """A supervisor without the folders that systemd gives. Its /run is a folder of its own."""

    def by_way_of(self) -> list[str]:
        (self.folder / "run").mkdir(exist_ok=True)
        alone = 'mount --bind "$0" /run && unset RUNTIME_DIRECTORY STATE_DIRECTORY && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", alone, str(self.folder / "run")]


@pytest.mark.long
@needs_root
@pytest.mark.parametrize("kept", [True, False])
def test_a_configuration_that_hangs_without_systemd_orphans_no_tenure(scene: Scene, kept: bool) -> None:
    """state_dir stands in the file alone, and the note beside the default control socket has it."""
    scene.lasting()
    own = scene.folder / "own"
    config = scene.config({scene.name: scene.election("a")}) | {"state_dir": str(own)}
    a = scene.nodes["a"] = WithoutSystemd(scene.folder / "a", config)
    a.state_dir = own
    files = scene.folder / "etc"
    files.mkdir()
    a.config_path = a.config_path.rename(files / "config.yaml")
    a.start()
    a.wait_line("role", role="holding")
    until(accepted_file(a).exists, "the configuration is kept")
    session = session_in_force(scene)
    crash(scene, "a")
    if not kept:
        forget_accepted(a)
    with hung(files):
        a.start()
        if kept:
            until(lambda: holds_twice(a), HELD_AGAIN)
            assert session_in_force(scene) == session and scene.calls("a") == ["acquire acquired"]
        else:
            assert a.wait() == 1
            assert scene.calls("a") == ["acquire acquired", "lose shutdown"]
            assert not session_in_force(scene)
