"""Modes and owners: the warnings when other users may read a secret or change what the daemon runs.

``check`` and the start give each warning with the command that removes its cause.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from supervisor.config import load
from supervisor.daemon.preflight.file_modes import FAR_STATE, audit
from tests.support.captured import captured
from tests.support.consul import Agent
from tests.support.hung import hung
from tests.support.supervisor import COMMAND, ENVIRON, ROOT, Supervisor, until

NOBODY = 65534
SOMEBODY = 12345
TOKEN = "7c1d7a3e-0000-4000-8000-000000000001"
# Only root may enter the folders of Python and this checkout, so everything is read as root first.
AS_ANOTHER = """
import contextlib, io, os, sys
from supervisor.commands.cli import main
uid = int(sys.argv.pop(1))
with contextlib.redirect_stdout(io.StringIO()):
    main()
os.setgroups([])
os.setgid(uid)
os.setuid(uid)
sys.exit(main())
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away and becomes another user")


class NodeFiles:
    """The files of a node with right modes; a test spoils one of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.etc = self._folder("etc")
        self.state = self._folder("state", 0o700)
        self.run = self._folder("run")
        self.config = self.etc / "c.yaml"
        self.token = self._file("token", TOKEN, 0o600)
        self.hook_key = self._file("hook.key", "whsec_c2VjcmV0", 0o600)
        self.program = self._file("promote", "#!/bin/sh\n", 0o755)
        issued = trustme.CA().issue_cert("node.example")
        self.cert = self._file("cert.pem", issued.cert_chain_pems[0].bytes().decode(), 0o644)
        self.key = self._file("key.pem", issued.private_key_pem.bytes().decode(), 0o600)
        self.write()

    def _folder(self, name: str, mode: int = 0o755) -> Path:
        made = self.folder / name
        made.mkdir()
        made.chmod(mode)
        return made

    def _file(self, name: str, content: str, mode: int) -> Path:
        made = self.folder / name
        made.write_text(content)
        made.chmod(mode)
        return made

    def write(self, **consul: object) -> None:
        """Write the configuration; ``consul`` replaces its token_file."""
        tls = {"cert_file": str(self.cert), "key_file": str(self.key)}
        webhook = {"webhook": "https://127.0.0.1:1/", "secret_file": str(self.hook_key), "tls": tls}
        election = {"on_acquire": [{"exec": [str(self.program)]}], "on_change": [webhook]}
        content = {
            "consul": consul or {"token_file": str(self.token)},
            "state_dir": str(self.state),
            "control_socket": str(self.run / "control.sock"),
            "elections": {"app": election},
        }
        self.config.write_text(json.dumps(content))
        self.config.chmod(0o644)

    def give_to(self, uid: int) -> None:
        """Give all files to this user, and to the user's own group."""
        for path in [self.folder, *self.folder.rglob("*")]:
            os.chown(path, uid, uid)

    def warnings(self, path: Path | None = None) -> list[str]:
        """Return the warnings for the user of this process."""
        path = path or self.config
        config = load(path, {}, "node1")
        assert config.warnings == ()
        return [str(problem) for problem in audit(path, config)]

    def checked(self, uid: int) -> list[str]:
        """Return the warnings of ``check``, which still succeeds, run by this user."""
        as_another = [sys.executable, "-c", AS_ANOTHER, f"{uid}"]
        done = captured(
            [*(as_another if uid != os.geteuid() else COMMAND), "check", str(self.config)],
            cwd=ROOT,
            env={**ENVIRON, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        assert (done.returncode, done.stderr) == (0, ""), done
        assert TOKEN not in done.stdout
        lines = done.stdout.splitlines()
        return [line.removeprefix("warning: ") for line in lines if line.startswith("warning: ")]


@pytest.fixture
def node(folder: Path) -> NodeFiles:
    return NodeFiles(folder)


def as_what() -> str:
    return "root" if os.geteuid() == 0 else "this user"


def test_files_with_right_modes_give_no_warning(node: NodeFiles) -> None:
    assert node.warnings() == []
    assert node.warnings(node.etc) == []


def test_check_prints_the_warnings_about_file_modes(node: NodeFiles) -> None:
    node.config.chmod(0o666)
    assert node.checked(os.geteuid()) == node.warnings() != []


Spoil = Callable[[NodeFiles], object]
SPOILT: dict[str, tuple[Spoil, str]] = {
    "configuration": (
        lambda node: node.config.chmod(0o666),
        "{etc}/c.yaml: everybody can change what runs as {user}: chmod go-w {etc}/c.yaml",
    ),
    "configuration's folder": (
        lambda node: node.etc.chmod(0o777),
        "{etc}: everybody can replace what is in it: chmod go-w {etc}",
    ),
    "program's folder": (
        lambda node: node.folder.chmod(0o757),
        "{folder}: everybody can replace what is in it: chmod go-w {folder}",
    ),
    "program": (
        lambda node: node.program.chmod(0o757),
        "{folder}/promote: everybody can change what runs as {user}: chmod go-w {folder}/promote",
    ),
    "token": (
        lambda node: node.token.chmod(0o644),
        "{folder}/token: consul.token_file: everybody can read this secret: chmod o= {folder}/token",
    ),
    "signing secret": (
        lambda node: node.hook_key.chmod(0o604),
        "{folder}/hook.key: elections.app.on_change[0].secret_file: everybody can read this secret: "
        "chmod o= {folder}/hook.key",
    ),
    "key": (
        lambda node: node.key.chmod(0o644),
        "{folder}/key.pem: elections.app.on_change[0].tls.key_file: everybody can read this secret: "
        "chmod o= {folder}/key.pem",
    ),
    "records": (
        lambda node: node.state.chmod(0o755),
        "{folder}/state: state_dir: everybody can look into it: chmod 0700 {folder}/state",
    ),
    "key that cannot be used": (
        lambda node: node.key.write_text("nothing of use\n"),
        "elections.app.on_change[0].tls: cannot use cert_file and key_file {folder}/cert.pem, "
        "{folder}/key.pem: one of them holds no PEM of its kind",
    ),
}


@pytest.mark.parametrize("what", SPOILT)
def test_each_file_open_to_other_users_is_a_warning_with_its_remedy(node: NodeFiles, what: str) -> None:
    """The command in the warning removes its cause."""
    spoil, expected = SPOILT[what]
    spoil(node)
    warning = expected.format(folder=node.folder, etc=node.etc, user=as_what())
    assert node.warnings(node.etc) == [warning]
    if " chmod " in warning:
        subprocess.run(["sh", "-c", f"chmod {warning.partition(': chmod ')[2]}"], check=True)
        assert node.warnings(node.etc) == []


def test_a_folder_by_a_relative_path_is_warned_of_once(
    node: NodeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(node.folder)
    node.etc.chmod(0o777)
    name = node.etc.name
    assert node.warnings(Path(name)) == [f"{name}: everybody can replace what is in it: chmod go-w {name}"]


def test_files_of_another_machine_give_no_warning(node: NodeFiles) -> None:
    for file in (node.token, node.hook_key, node.cert, node.key):
        file.unlink()
    assert node.warnings() == []


@as_root
def test_a_group_that_may_write_is_a_warning_unless_it_is_the_owners_own(node: NodeFiles) -> None:
    node.config.chmod(0o664)
    assert node.warnings() == []  # the group is root's own
    os.chown(node.config, 0, NOBODY)
    assert node.warnings() == [
        f"{node.config}: its group can change what runs as root: chmod go-w {node.config}"
    ]


@as_root
def test_a_group_may_read_a_secret(node: NodeFiles) -> None:
    """A daemon that does not run as root needs such a file: root:GROUP, 0640."""
    os.chown(node.token, 0, NOBODY)
    node.token.chmod(0o640)
    assert node.warnings() == []


@as_root
@pytest.mark.parametrize("which", ["config", "etc", "program", "state"])
def test_an_owner_other_than_root_and_the_daemons_user_is_a_warning(node: NodeFiles, which: str) -> None:
    path: Path = getattr(node, which)
    os.chown(path, SOMEBODY, SOMEBODY)
    (warning,) = node.warnings(node.etc)
    assert warning.startswith(f"{path}: ")
    assert f"its owner, user id {SOMEBODY}, can " in warning and warning.endswith(f": chown root {path}")


def test_file_modes_are_checked_behind_symlinks(node: NodeFiles) -> None:
    moved = node.token.rename(node.folder / "moved")
    moved.chmod(0o644)
    node.token.symlink_to(moved)
    assert node.warnings() == [
        f"{node.token}: consul.token_file: everybody can read this secret: chmod o= {node.token}"
    ]


def test_a_sticky_folder_is_a_warning_only_for_a_configuration(node: NodeFiles) -> None:
    """/tmp is such a folder, but other users may add files to it, so a configuration must not lie there."""
    node.folder.chmod(0o1777)
    node.run.chmod(0o1777)
    assert node.warnings(node.etc) == []
    node.etc.chmod(0o1777)
    assert len(node.warnings(node.etc)) == 1


def test_a_configuration_that_holds_a_token_is_a_secret(node: NodeFiles) -> None:
    node.write(token=TOKEN)
    assert node.warnings() == [
        f"{node.config}: consul.token: everybody can read the token in it: chmod o= {node.config}"
    ]
    node.config.chmod(0o640)
    assert node.warnings() == []


@pytest.mark.long
@as_root
def test_files_of_an_ordinary_user_and_of_root_give_that_user_no_warning(node: NodeFiles) -> None:
    node.give_to(NOBODY)
    os.chown(node.config, 0, 0)
    assert node.checked(NOBODY) == []
    assert node.warnings() != []  # if root ran it, the user nobody could make root run anything
    node.config.chmod(0o646)
    assert node.checked(NOBODY) == [
        f"{node.config}: everybody can change what runs as this user: chmod go-w {node.config}"
    ]


@as_root
def test_files_that_an_ordinary_user_may_not_see_are_skipped(node: NodeFiles) -> None:
    """The user of ``check`` need not be the user of the daemon."""
    node.key.chmod(0o644)
    locked = node.folder / "locked"
    locked.mkdir()
    node.token.rename(locked / "token")
    node.token = locked / "token"
    node.write()
    locked.chmod(0o700)
    os.chown(node.hook_key, NOBODY, NOBODY)
    warnings = node.checked(NOBODY)
    assert [line for line in warnings if "key.pem" in line] and not [
        line for line in warnings if "token" in line
    ]


def test_the_start_logs_the_warnings_about_file_modes(tmp_path: Path, shared_agent: Agent) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o644)
    consul = {"address": shared_agent.url, "token_file": str(token)}
    one = Supervisor(tmp_path / "node", {"consul": consul, "elections": {"app": {"contend": False}}})
    try:
        one.config_path.chmod(0o666)
        one.start()
        one.wait_line("started")
        until(lambda: len(one.lines("configuration")) >= 2, "both warnings are logged after the start")
        logged = [line["why"] for line in one.lines("configuration")]
        assert logged == [
            f"{one.config_path}: everybody can change what runs as {as_what()}: chmod go-w {one.config_path}",
            f"{token}: consul.token_file: everybody can read this secret: chmod o= {token}",
        ]
        assert one.stop() == 0
    finally:
        one.close()


@as_root
def test_a_state_dir_on_a_hung_file_system_is_a_warning(node: NodeFiles) -> None:
    with hung(node.state):
        assert node.warnings() == [f"{node.state}: state_dir: {FAR_STATE}"]
