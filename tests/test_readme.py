"""README.md is true: what it shows is run, what it names exists.

Shell sessions (```console) are run as they stand, in one bash, against a real Consul; output is
compared but for times and numbers that differ each time. So a changed word, default or option
fails a test and not a reader.
"""

import ast
import functools
import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor import cli
from tests.support.consul import BINARY, Agent
from tests.support.pages import PAGES, README, ROOT, blocks, code_of, first_codes, name
from tests.support.shell import Shell, constant, steps
from tests.support.supervisor import PATIENCE_S, Supervisor, command, until

# --- shell sessions ---------------------------------------------------------------------------------


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    one = Shell(tmp_path)
    try:
        yield one
    finally:
        one.close()


def test_the_shell_sessions_print_what_they_show(shell: Shell) -> None:
    """A sleep is for people: here a command is repeated until it prints what it should."""
    shown = [step for session in blocks(README, "console") for step in steps(session)]
    assert len(shown) >= 10
    for line, expected in shown:
        if line.startswith("sleep "):
            continue
        give_up_at = time.monotonic() + PATIENCE_S
        while constant(printed := shell.run(line)) != constant(expected):
            assert expected, f"{line} prints what is not shown: {printed}"
            assert time.monotonic() < give_up_at, f"{line} prints {printed}"
            time.sleep(0.05)


def test_only_readme_has_shell_sessions() -> None:
    """Others would not be run."""
    assert [name(page) for page in PAGES if blocks(page, "console")] == ["README.md"]


def test_the_installation_names_what_the_unit_starts() -> None:
    (text,) = blocks(README, "sh")
    unit = (ROOT / "systemd" / "consul-supervisor.service").read_text()
    start = re.search(r"^ExecStart=(\S+) run (\S+)$", unit, re.MULTILINE)
    assert start is not None
    assert f"{start[1]} check {start[2]}\n" in text
    assert f"venv {start[1].removesuffix('/bin/consul-supervisor')}\n" in text
    for file in re.findall(r"^cp (\S+)", text, re.MULTILINE):
        assert (ROOT / file).is_file()


# --- configuration ----------------------------------------------------------------------------------


def test_the_shown_configuration_is_the_minimal_example() -> None:
    example = (ROOT / "examples" / "configs" / "minimal.yaml").read_text()
    without_comments = "".join(line for line in example.splitlines(True) if not line.startswith("#"))
    assert without_comments in blocks(README, "yaml")


def test_all_examples_are_named() -> None:
    named = re.findall(r"\(examples/configs/(\S+?)\)", README.read_text())
    assert sorted(named) == sorted(path.name for path in (ROOT / "examples" / "configs").iterdir())


# --- hooks ------------------------------------------------------------------------------------------


def test_the_shown_object_is_what_a_hook_gets(shared_agent: Agent, tmp_path: Path, unique: str) -> None:
    """By a real on_lose: the same names in their order, and the same values but for what is this run's."""
    (text,) = blocks(README, "json")
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
    names = re.findall(r"^    (\w+)  ", command("--help").stdout, re.MULTILINE)
    return {one: command(one, "--help").stdout for one in names}


def test_the_commands_are_those_of_the_help() -> None:
    named = [text.removeprefix("consul-supervisor ").split()[0] for text in first_codes(README, "command")]
    assert set(named) == set(helps())


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_named_command_and_option_is_one(page: Path) -> None:
    for line in re.findall(r"consul-supervisor ((?:[a-z]+\b)[^`\n|&>]*)", "\n".join(code_of(page))):
        verb, *words = line.split()
        assert verb in helps(), f"consul-supervisor {line}"
        for option in (word for word in words if word.startswith("--")):
            assert option in helps()[verb], f"consul-supervisor {line}"
    for piece in code_of(page):
        assert not piece.startswith("--") or piece in "\n".join(helps().values()), piece


def test_the_exit_codes_are_those_of_the_help_and_the_program() -> None:
    listed = README.read_text().partition("Exit codes: ")[2].partition(".")[0]
    codes = [int(part.split()[0]) for part in listed.replace("\n", " ").split("; ")]
    known = [cli.DONE, cli.NEGATIVE, cli.USAGE, cli.UNREACHABLE, cli.BUG, cli.CONFIGURATION]
    assert codes == known
    shown = command("--help").stdout.partition("exit codes: ")[2]
    assert [int(number) for number in re.findall(r"(?:^|, )(\d+) ", shown)] == known


# --- beside consul lock -----------------------------------------------------------------------------


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
