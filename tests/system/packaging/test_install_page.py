"""The page about the ways to install: each of its commands is run, or is one that another test runs."""

from pathlib import Path

import supervisor
from release import requirements, single_file
from tests.support.pages import INSTALL, Shown, first_codes
from tests.system.packaging.builds import ROOT, run
from tests.system.packaging.conftest import Built
from tests.system.packaging.test_single_file import make

SHOWN = Shown(INSTALL)
(BY_HASHES,) = SHOWN.of(INSTALL, "Requirements with hashes")
COMMANDS, UNDER_SYSTEMD = SHOWN.of(INSTALL, "The single file")
UNIT = ROOT / "systemd" / "consul-supervisor.service"


def test_every_block_of_the_page_has_a_test() -> None:
    assert SHOWN.untested() == []


def test_the_shown_command_for_pip_is_that_of_the_requirements() -> None:
    assert f"# {BY_HASHES.text}" in requirements.HEAD


def test_the_shown_commands_are_run_by_the_tests_of_the_single_file() -> None:
    shown = [line.split()[:2] for line in COMMANDS.text.splitlines()]
    assert shown == [[f"./{single_file.NAME}", name] for name in ("check", "drill", "lock")]


def test_the_single_file_is_installed_where_the_unit_expects_the_command(
    built: Built, tmp_path: Path
) -> None:
    make(built, tmp_path)
    (tmp_path / "usr/local/bin").mkdir(parents=True)
    commands = UNDER_SYSTEMD.text.replace(" /", f" {tmp_path}/")
    run("sh", "-euc", commands, cwd=tmp_path)
    printed = run(str(tmp_path / "usr/local/bin/consul-supervisor"), "--version", cwd=tmp_path)
    assert printed == f"consul-supervisor {supervisor.__version__}\n"
    (started,) = (line for line in UNIT.read_text().splitlines() if line.startswith("ExecStart="))
    command = Path(started.removeprefix("ExecStart=").split()[0])
    assert (tmp_path / command.relative_to("/")).is_file()


def test_the_named_files_are_those_of_a_release() -> None:
    named = " ".join(first_codes(INSTALL, "file"))
    assert named.split() == [
        *("consul_supervisor-VERSION-py3-none-any.whl", requirements.NAME, single_file.NAME, "SHA256SUMS")
    ]
