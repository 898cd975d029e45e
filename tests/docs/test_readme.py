"""README.md is true: what it shows is run, what it names exists.

Shell sessions (```console) are run as they stand, in one bash each; output is compared but for times
and numbers that differ each time. What is to be typed as root (```sh) is run with ``/opt`` and
``/etc`` in a folder of the test's. Each block is taken by a test, or a test fails; so a changed word,
default or option fails a test and not a reader.
"""

import ast
import functools
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor import __version__
from supervisor.cli import exit_codes
from supervisor.config import load
from supervisor.core.actions import Role
from tests.support.consul import BINARY, HOST, Agent, free_ports
from tests.support.pages import PAGES, README, ROOT, Shown, code_of, fenced, first_codes, name
from tests.support.shell import Shell, constant, replay
from tests.support.supervisor import PATIENCE_S, Supervisor, command, until

SHOWN = Shown(README)
INSTALL_S = 300.0  # from a package index that may be far away
DEMO_S = 120.0
# Lines that no test runs, and why.
NOT_RUN = {
    "make test": "it is what runs this test",
    "systemctl daemon-reload": "needs systemd; tests/processes/test_systemd.py has the unit",
    "systemctl enable --now consul-supervisor": "the same",
    "journalctl -fu consul-supervisor": "the machine's own journal, for ever",
}


def lines(block: str) -> list[str]:
    """The commands of a block, without comments and what is not run."""
    typed = [line.partition("#")[0].strip() for line in block.splitlines()]
    return [line for line in typed if line and line not in NOT_RUN]


def test_no_block_is_untested() -> None:
    assert SHOWN.untested() == []


def test_what_is_not_run_is_really_there() -> None:
    typed = [line.partition("#")[0].strip() for block in fenced(README) for line in block.text.splitlines()]
    assert set(NOT_RUN) <= set(typed)


# --- shell sessions ---------------------------------------------------------------------------------


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """One with the shown programs, but that an agent has ports of this test's own and dies with its shell."""
    http, server, serf = free_ports(3)
    ports = {"http": http, "server": server, "serf_lan": serf, "serf_wan": -1, "dns": -1, "grpc": -1}
    (tmp_path / "consul.json").write_text(json.dumps({"bind_addr": HOST, "ports": ports}))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    address = {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "CONSUL_HTTP_ADDR": f"{HOST}:{http}"}
    one = Shell(tmp_path, tmp_path, address)
    try:
        one.provide("consul", f'"{BINARY}" "$@" -config-file={tmp_path}/consul.json')
        port = f'$([ "$1" != dev-agent ] || echo --port {http})'
        one.provide("consul-supervisor", f'"{sys.executable}" -m supervisor "$@" {port}')
        yield one
    finally:
        one.close()


@pytest.mark.long
@SHOWN.by(README, "60 seconds", "console")
@pytest.mark.parametrize("first", ["consul-supervisor dev-agent", "consul agent -dev"])
def test_the_first_minute_is_the_same_with_either_agent(shown: str, first: str, shell: Shell) -> None:
    """The page names both for the first line, and shows one."""
    assert f"`{first}` in the first line" in README.read_text() or shown.startswith(f"$ {first} >")
    replay(shell, shown.replace("consul-supervisor dev-agent", first))


@SHOWN.by(README, "Configuration by example", "console")
def test_a_mistake_is_told_as_it_is_shown(shown: str, shell: Shell) -> None:
    replay(shell, shown)


@SHOWN.by(README, "Figures", "console")
def test_the_figures_are_those_that_are_shown(shown: str, shell: Shell) -> None:
    replay(shell, shown)


# --- installation -------------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Shell]:
    """One in this checkout, as a new user has it: nothing of this test's own Python, pipx's folders ours."""
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
    one = Shell(tmp_path, ROOT, environ)
    try:
        one.provide("python3", f'"{os.path.realpath(sys.executable)}" "$@"')
        one.provide("pipx", f'"{sys.executable}" -m pipx "$@"')
        yield one
    finally:
        one.close()


def run_all(shell: Shell, block: str, within_s: float) -> str:
    """What the commands of a block print; every one must end well."""
    all_printed = ""
    for line in lines(block):
        code, printed = shell.ended(line, within_s)
        assert code == 0, f"{line} ends with {code}: {printed}"
        all_printed += printed
    return all_printed


@pytest.mark.long
@SHOWN.by(README, "With pipx", "sh")
def test_the_installation_with_pipx_works(shown: str, checkout: Shell, tmp_path: Path) -> None:
    """From the package index that pip is set up for, as the set-up of the tests does."""
    assert run_all(checkout, shown, INSTALL_S).endswith(f"\nconsul-supervisor {__version__}\n")
    assert checkout.run("command -v consul-supervisor").strip() == str(tmp_path / "bin" / "consul-supervisor")


@pytest.mark.long
@SHOWN.by(README, "With venv and systemd", "sh")
def test_the_installation_with_venv_and_systemd_works(shown: str, checkout: Shell, tmp_path: Path) -> None:
    """``/opt/``, ``/etc/`` and ``/usr/local/`` are below the test's folder; all is where the unit says."""

    def here(text: str) -> str:
        return re.sub(r"(?<!\S)/(?=(?:opt|etc|usr/local)/)", f"{tmp_path}/", text)

    units = tmp_path / "etc" / "systemd" / "system"
    commands = tmp_path / "usr" / "local" / "bin"
    for folder in (units, commands, tmp_path / "opt"):
        folder.mkdir(parents=True)
    checkout.run(f"PATH={commands}:$PATH")
    assert re.search(
        r"^app\n  key +service/app/leader$", run_all(checkout, here(shown), INSTALL_S), re.MULTILINE
    )
    unit = (units / "consul-supervisor.service").read_text()
    start = re.search(r"^ExecStart=(\S+) run (\S+)$", unit, re.MULTILINE)
    assert start is not None
    assert checkout.ended(f"{here(start[1])} --version") == (0, f"consul-supervisor {__version__}\n")
    assert [file.name for file in Path(here(start[2])).iterdir()] == ["app.yaml"]


# --- the two commands -------------------------------------------------------------------------------


@pytest.mark.long
@SHOWN.by(README, "Two commands", "text", "excerpt")
@SHOWN.by(README, "Two commands", "sh", "commands")
def test_make_demo_prints_what_is_shown_of_it(excerpt: str, commands: str, checkout: Shell) -> None:
    """In the shown order, other lines between; times, tokens and which node it is differ each time."""

    def form(text: str) -> list[str]:
        text = re.sub(r"^ +\d+\.\d{3} s", "TIME", text, flags=re.MULTILINE)
        return re.sub(r"token \d+", "token N", re.sub(r"node-[abc]", "NODE", text)).splitlines()

    assert lines(commands) == ["make demo"]
    printed = iter(form(run_all(checkout, commands, DEMO_S)))
    for line in form(excerpt):
        assert line == "…" or line in printed, f"not printed, or not in this place: {line}"


def test_make_test_runs_all_tests(checkout: Shell) -> None:
    code, listed = checkout.ended("make --dry-run test")
    assert code == 0 and re.search(r"python -m pytest .* tests$", listed, re.MULTILINE), listed


@SHOWN.by(README, "", "text")
def test_the_picture_of_a_failover_names_roles_and_hooks_that_there_are(shown: str) -> None:
    states = re.findall(r"(?:^node\d +|\|-- )(\w+)(?: --\| (?!release)(\w+))?", shown, re.MULTILINE)
    named = {word for found in states for word in found if word}
    assert named >= {"holding", "waiting", "on_lose"}
    assert named - {"on_lose", "on_acquire"} <= set(Role)


# --- configuration ----------------------------------------------------------------------------------


@SHOWN.by(README, "Configuration by example", "yaml")
def test_the_shown_configuration_is_the_minimal_example(shown: str) -> None:
    example = (ROOT / "examples" / "configs" / "minimal.yaml").read_text()
    without_comments = "".join(line for line in example.splitlines(True) if not line.startswith("#"))
    assert without_comments == shown


@SHOWN.by(README, "At most N", "yaml")
def test_the_shown_semaphore_loads_without_a_warning(shown: str, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(shown)
    assert load(file, {}, "node1").warnings == ()
    assert "here `service/rebuild`:" in README.read_text()


def test_all_examples_are_named() -> None:
    named = re.findall(r"\(examples/configs/(\S+?)\)", README.read_text())
    assert sorted(named) == sorted(path.name for path in (ROOT / "examples" / "configs").iterdir())


# --- hooks ------------------------------------------------------------------------------------------


@SHOWN.by(README, "Hooks", "json", "text")
def test_the_shown_object_is_what_a_hook_gets(
    text: str, shared_agent: Agent, tmp_path: Path, unique: str
) -> None:
    """By a real on_lose: the same names in their order, and the same values but for what is this run's."""
    shown = json.loads(text)
    told = tmp_path / "told"
    election = {
        "key": unique,
        "session": {"ttl": "2s", "lock_delay": "45s"},
        "on_acquire": [{"exec": ["true"]}],
        "on_lose": [{"shell": f"cat >{told}"}],
    }
    one = Supervisor(
        tmp_path, {"consul": {"address": shared_agent.url}, "elections": {shown["name"]: election}}
    )
    try:
        one.start()
        one.wait_line("role", role="holding")
        assert one.stop() == 0
    finally:
        one.close()
    seen = json.loads(told.read_text())
    assert list(seen) == list(shown)
    for this_run in ("session", "fencing_token", "time_left", "key"):
        assert type(seen.pop(this_run)) is type(shown.pop(this_run))
    host = socket.gethostname()
    assert constant(json.dumps(seen).replace(host, "vm1")) == constant(json.dumps(shown))


# --- commands ---------------------------------------------------------------------------------------


@functools.cache
def helps() -> dict[str, str]:
    """What --help says of each command that there is."""
    names = re.findall(r"^    ([a-z-]+)(?:  |$)", command("--help").stdout, re.MULTILINE)
    return {one: command(one, "--help").stdout for one in names}


@pytest.mark.long
def test_the_commands_are_those_of_the_help() -> None:
    named = [text.removeprefix("consul-supervisor ").split()[0] for text in first_codes(README, "command")]
    assert set(named) == set(helps())


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_named_command_and_option_is_one(page: Path) -> None:
    for line in re.findall(
        r"consul-supervisor (?!consul-supervisor)([a-z][^`\n|&>]*)", "\n".join(code_of(page))
    ):
        verb, *words = line.split()
        assert verb in helps(), f"consul-supervisor {line}"
        for option in (word for word in words if word.startswith("--")):
            assert option in helps()[verb], f"consul-supervisor {line}"
    for piece in code_of(page):
        assert not piece.startswith("--") or piece in "\n".join(helps().values()), piece


def test_the_exit_codes_are_those_of_the_help_and_the_program() -> None:
    listed = README.read_text().partition("Exit codes: ")[2].partition(".")[0]
    codes = [int(part.split()[0]) for part in listed.replace("\n", " ").split("; ")]
    names = ("DONE", "NEGATIVE", "USAGE", "UNREACHABLE", "BUG", "CONFIGURATION")
    known = [getattr(exit_codes, name) for name in names]
    assert codes == known
    shown = command("--help").stdout.partition("exit codes: ")[2]
    assert [int(number) for number in re.findall(r"(?:^|, )(\d+) ", shown)] == known


# --- beside consul lock -----------------------------------------------------------------------------


@pytest.mark.long
def test_an_election_and_consul_lock_exclude_each_other(
    shared_agent: Agent, tmp_path: Path, unique: str
) -> None:
    election = {
        "key": f"{unique}/.lock",
        "session": {"ttl": "2s", "lock_delay": "30s"},
        "on_change": [{"exec": ["true"]}],
    }
    one = Supervisor(tmp_path, {"consul": {"address": shared_agent.url}, "elections": {"app": election}})
    child_ran = tmp_path / "child-ran"
    lock = ["setpriv", "--pdeathsig", "TERM", str(BINARY), "lock", f"-http-addr={shared_agent.url}"]
    child = f"touch {child_ran}; exec sleep 60"
    try:
        one.start()
        one.wait_line("role", role="holding")
        refused = subprocess.run(
            [*lock, "-timeout=1s", unique, child], check=False, capture_output=True, timeout=PATIENCE_S
        )
        assert refused.returncode == 1
        assert not child_ran.exists()
        assert one.stop() == 0
        with subprocess.Popen([*lock, unique, child], stderr=subprocess.DEVNULL) as theirs:
            until(child_ran.exists, "consul lock runs its child")
            one.start()
            until(lambda: len(one.lines("hook-succeeded", reason="initial")) == 2, "it sees a leader")
            assert len(one.lines("role", role="holding")) == 1
            theirs.terminate()
        until(lambda: len(one.lines("role", role="holding")) == 2, "it leads after consul lock")
        assert one.stop() == 0
        one.assert_no_fault()
    finally:
        one.close()


# --- guarantees --------------------------------------------------------------------------------


def guarantees() -> list[str]:
    text = README.read_text().partition("\n## Guarantees\n")[2].partition("\n## ")[0]
    return re.split(r"^\d+\. ", text, flags=re.MULTILINE)[1:]


def test_guarantees_are_numbered_and_each_names_a_test() -> None:
    numbers = re.findall(r"^(\d+)\. \*\*", README.read_text(), re.MULTILINE)
    assert numbers == [str(number) for number in range(1, len(guarantees()) + 1)]
    for guarantee in guarantees():
        assert re.search(r"`tests/\S+\.py::test_\w+`", guarantee), guarantee


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`(tests/\S+?::\w+)`", README.read_text()))))
def test_the_tests_that_guarantees_name_exist(named: str) -> None:
    path, _, function = named.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
