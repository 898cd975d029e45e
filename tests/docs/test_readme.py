"""README.md is true: its commands run, and the files that it names exist.

Commands for root are run with ``/opt`` and ``/etc`` in a folder of the test's. Each block is taken by a test,
or a test fails; so a changed word, default or option fails a test and not a reader.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from docs import completion, guarantees, man
from supervisor import __version__
from supervisor.config import load
from supervisor.core.actions import Role
from supervisor.core.lease import lease_of
from tests.support.pages import README, ROOT, Shown, fenced
from tests.support.shell import Shell

SHOWN = Shown(README)
BYTES_MAX = 8_000  # a first page: longer text belongs into docs/
INSTALL_S = 300.0  # from a package index that may be far away
DEMO_S = 120.0
EXAMPLE = ROOT / "examples" / "configs" / "minimal.yaml"
NEEDS_SYSTEMD = "needs systemd; tests/processes/test_systemd.py has the unit"
# Lines that no test runs, with the reason.
NOT_RUN = {
    "make test": "it is what runs this test",
    "make deb": "tests/system/packaging/test_debian.py builds the package",
    "apt install ./dist/consul-supervisor_*.deb": "tests/system/machine/test_package.py installs it",
    "systemctl daemon-reload": NEEDS_SYSTEMD,
    "systemctl enable --now consul-supervisor": NEEDS_SYSTEMD,
    "consul-supervisor status": NEEDS_SYSTEMD,
}


def lines(block: str) -> list[str]:
    """Return the commands of a block that are run, without comments."""
    typed = [line.partition("#")[0].strip() for line in block.splitlines()]
    return [line for line in typed if line and line not in NOT_RUN]


def test_every_block_of_the_readme_has_a_test() -> None:
    assert SHOWN.untested() == []


def test_every_block_that_is_not_run_is_in_the_readme() -> None:
    typed = [line.partition("#")[0].strip() for block in fenced(README) for line in block.text.splitlines()]
    assert set(NOT_RUN) <= set(typed)


def test_the_readme_is_short() -> None:
    assert len(README.read_bytes()) <= BYTES_MAX


# --- text of the readme ---------------------------------------------------------------------------


@SHOWN.by(README, "", "text")
def test_the_picture_of_a_failover_names_existing_roles_and_hooks(shown: str) -> None:
    states = re.findall(r"(?:^node\d +|\|-- )(\w+)(?: --\| (?!release)(\w+))?", shown, re.MULTILINE)
    named = {word for found in states for word in found if word}
    assert named >= {"holding", "waiting", "on_lose"}
    assert named - {"on_lose", "on_acquire"} <= set(Role)


@SHOWN.by(README, "The smallest file", "yaml")
def test_the_smallest_file_is_the_minimal_example(shown: str) -> None:
    example = EXAMPLE.read_text()
    without_comments = "".join(line for line in example.splitlines(True) if not line.startswith("#"))
    assert without_comments == shown


def test_the_figures_of_the_smallest_file_are_those_of_the_program() -> None:
    item = load(EXAMPLE, {}, "node1").items[0]
    lease = lease_of(item)
    text = README.read_text()
    assert f"`{item.key}`" in text
    assert f"another node starts the app {lease.failover_s:g} s later at most" in text
    assert f"begins to stop the app {lease.room_s:g} s after Consul last confirmed the lock" in text


def test_each_promise_is_one_of_the_guarantees() -> None:
    section = README.read_text().partition("\n## What you can rely on\n")[2].partition("\n## ")[0]
    shown = re.findall(r"^\d\. \[(.+)\.\]\(", section, re.MULTILINE)
    promised = [promise["promise"].replace("`", "") for promise in guarantees.promises()]
    assert len(shown) == 8 and {one.replace("`", "") for one in shown} <= set(promised)
    assert f"and {len(promised) - len(shown)} more" in section


# --- installation and demo ----------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Shell]:
    """Return a shell in this checkout as a new user has it, without this test's Python and pipx folders."""
    ours = ("PYTHON", "VIRTUAL_ENV", "MAKE", "MFLAGS", "TESTS", "WORKERS", "CONSUL", "PIPX", "PYTEST")
    environ = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    venv = ROOT / ".venv" / "bin" / "python"
    environ |= {
        "PYTHON": str(venv if venv.exists() else sys.executable),  # so that make never replaces our .venv
        "TMPDIR": str(tmp_path),
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(tmp_path / "bin"),
        "PIPX_MAN_DIR": str(tmp_path / "man"),
    }
    with closing(Shell(tmp_path, ROOT, environ)) as one:
        one.provide("python3", f'"{os.path.realpath(sys.executable)}" "$@"')
        one.provide("pipx", f'"{sys.executable}" -m pipx "$@"')
        yield one


(DEBIAN,) = SHOWN.of(README, "On Debian 12 and 13")
NODE = SHOWN.of(README, "With venv and systemd")
WORKSTATION = SHOWN.of(README, "With pipx")
DEMO, EXCERPT, DRILLED = SHOWN.of(README, "Try it")
DEVELOPMENT = SHOWN.of(README, "Two commands")


def assert_shows_the_excerpt(printed: str) -> None:
    """Check that the shown lines occur in their order; times, tokens and nodes differ each time."""

    def form(text: str) -> list[str]:
        text = re.sub(r"^ +\d+\.\d{3} s", "TIME", text, flags=re.MULTILINE)
        return re.sub(r"token \d+", "token N", re.sub(r"node-[abc]", "NODE", text)).splitlines()

    rest = iter(form(printed))
    for line in form(EXCERPT.text):
        assert line == "…" or line in rest, f"not printed, or not in this place: {line}"


def test_other_tests_build_and_install_the_debian_package() -> None:
    assert lines(DEBIAN.text) == []


@pytest.mark.long
def test_the_installation_with_pipx_works_and_the_demo_after_it(checkout: Shell, tmp_path: Path) -> None:
    """One shell runs both. pip uses its configured package index, as the set-up of the tests does."""
    (install,) = WORKSTATION
    assert checkout.run_all(lines(install.text), INSTALL_S).endswith(f"\nconsul-supervisor {__version__}\n")
    assert checkout.run("command -v consul-supervisor").strip() == str(tmp_path / "bin" / "consul-supervisor")
    for place, text in man.pages().items():
        assert (tmp_path / place).read_text() == text  # pipx has linked it
    assert_shows_the_excerpt(checkout.run_all(lines(DEMO.text), DEMO_S))


@pytest.mark.long
def test_the_installation_with_venv_and_systemd_works(checkout: Shell, tmp_path: Path) -> None:
    """``/opt/``, ``/etc/`` and ``/usr/local/`` are below the test's folder."""

    def here(text: str) -> str:
        return re.sub(r"(?<!\S)/(?=(?:opt|etc|usr/local)/)", f"{tmp_path}/", text)

    units = tmp_path / "etc" / "systemd" / "system"
    commands, share = tmp_path / "usr" / "local" / "bin", tmp_path / "usr" / "local" / "share"
    for folder in (units, commands, share, tmp_path / "opt"):
        folder.mkdir(parents=True)
    checkout.run(f"PATH={commands}:$PATH")
    install, check = NODE
    checkout.run_all(lines(here(install.text)), INSTALL_S)
    checked = checkout.run_all(lines(here(check.text)), INSTALL_S)
    assert re.search(r"^app\n  key +service/app/leader$", checked, re.MULTILINE)
    unit = (units / "consul-supervisor.service").read_text()
    start = re.search(r"^ExecStart=(\S+) run (\S+)$", unit, re.MULTILINE)
    assert start is not None
    assert checkout.ended(f"{here(start[1])} --version") == (0, f"consul-supervisor {__version__}\n")
    assert [file.name for file in Path(here(start[2])).iterdir()] == ["app.yaml"]
    for place, text in {**man.pages(), **completion.scripts()}.items():
        assert (share / place).read_text() == text


@pytest.mark.long
def test_the_shown_drill_keeps_every_promise(checkout: Shell) -> None:
    checkout.provide("consul-supervisor", f'"{sys.executable}" -m supervisor "$@"')
    assert checkout.run_all(lines(DRILLED.text), DEMO_S).endswith("all kept\n")


# --- development ----------------------------------------------------------------------------------


@pytest.mark.long
def test_make_demo_prints_the_shown_output(checkout: Shell) -> None:
    (development,) = DEVELOPMENT
    assert lines(development.text) == ["make demo"]
    assert_shows_the_excerpt(checkout.run_all(lines(development.text), DEMO_S))


@pytest.mark.parametrize(("target", "folder"), [("test", "tests"), ("test-unit", "tests/unit")])
def test_make_targets_run_the_documented_tests(target: str, folder: str, checkout: Shell) -> None:
    code, listed = checkout.ended(f"make --dry-run {target}")
    assert code == 0 and re.search(rf"python -m pytest .* {folder}$", listed, re.MULTILINE), listed
