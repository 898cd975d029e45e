"""The file with the daemon's variables: its syntax is systemd's, and commands add what their shell lacks.

tests/system/machine/test_package.py compares the values with those of a real systemd.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from supervisor.commands.cli import main
from supervisor.config import environment_file
from supervisor.config.environment_file import FILE_BYTES_MAX, parse
from tests.support.captured import captured
from tests.support.supervisor import ENVIRON, PATIENCE_S, ROOT

FILE = "/etc/default/consul-supervisor"
Check = Callable[..., subprocess.CompletedProcess[str]]
CONFIG = "consul: {token: '${SECRET}'}\nelections: {app: {key: 'a/${NODE}'}}\n"
# ``consul-supervisor`` with another file in the place of /etc/default/consul-supervisor.
COMMAND = (
    "import sys; from pathlib import Path; from supervisor.config import environment_file;"
    "environment_file.FILE = Path(sys.argv.pop(1)); from supervisor.__main__ import main; sys.exit(main())"
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("# A=1\n; B=2\n\n", {}),
        ("A=1\nB=two words  \r\n C = 3\n", {"A": "1", "B": "two words", "C": "3"}),
        ("A=\nB=''\n", {"A": "", "B": ""}),
        ("A=1\nA=2", {"A": "2"}),
        ("A=a=b # c", {"A": "a=b # c"}),
        ("A='a b'\nB=\"a b \"  \n", {"A": "a b", "B": "a b "}),
        ("A='a'\"b\" 'c'd'e\n", {"A": "abcd'e"}),
        ("A='$HOME \\\"\nB'", {"A": '$HOME \\"\nB'}),
        ('A="\\"\\\\\\`\\$HOME\\n \\\nB"', {"A": '"\\`$HOME\\n B'}),
        ("A=a\\ b\\\\\\\n c\\ \n", {"A": "a b\\ c "}),
        ("A=it's", {"A": "it's"}),
        ("A='to the end\nB=1\n", {"A": "to the end\nB=1\n"}),
    ],
)
def test_a_file_has_the_values_that_systemd_takes(text: str, values: dict[str, str]) -> None:
    assert parse(text) == (values, ())


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (
            "A=1\n\nexport B=2\n",
            3,
            "write NAME=value, with a name of letters, digits and _, and without export",
        ),
        ("A=1\n1B=2\n", 2, "write NAME=value, with a name of letters, digits and _, and without export"),
        ("B\nA=1", 1, "write NAME=value"),
        ("B=9\nA=1\nB=\x1b[0m\n", 3, "its value has control characters"),
    ],
)
def test_a_line_that_systemd_ignores_is_a_warning(text: str, line: int, why: str) -> None:
    values, (warning,) = parse(text)
    assert values == {"A": "1"}
    assert str(warning) == f"{FILE}:{line}:1: systemd ignores this line: {why}"


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    """Return ``check`` in this process, or another command, whose file of variables is in this folder."""
    monkeypatch.setattr(environment_file, "FILE", tmp_path / "variables")
    (tmp_path / "c.yaml").write_text(CONFIG)

    def run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        words = words or ("check", str(tmp_path / "c.yaml"))
        with mock.patch.dict(os.environ, {**ENVIRON, **environ}, clear=True):
            code = main(words)
        return subprocess.CompletedProcess(words, code, *capsys.readouterr())

    return run


def test_a_command_adds_the_variables_and_its_environment_wins(tmp_path: Path, check: Check) -> None:
    assert check().returncode == 78
    file = tmp_path / "variables"
    file.write_text("NODE=node1\nSECRET=s\n")
    file.chmod(0o640)
    assert "  key          a/node1\n" in check().stdout
    assert "  key          a/node2\n" in check(NODE="node2").stdout
    assert str(file) not in check().stdout


def test_check_warns_of_lines_that_systemd_ignores(tmp_path: Path, check: Check) -> None:
    (tmp_path / "variables").write_text("export A=secret-value\nNODE=node1\n")
    done = check(SECRET="s")
    assert done.returncode == 0
    assert f"warning: {tmp_path}/variables:1:1: systemd ignores this line" in done.stdout
    assert "secret-value" not in done.stdout + done.stderr


@pytest.mark.parametrize("variable", ["SECRET", "CONSUL_HTTP_TOKEN"])
def test_check_warns_when_everybody_can_read_a_secret_in_the_file(
    tmp_path: Path, variable: str, check: Check
) -> None:
    file = tmp_path / "variables"
    file.write_text(f"NODE=node1\n{variable}=secret-value\n")
    file.chmod(0o644)
    done = check(SECRET="s")
    assert f"{file}: everybody can read this secret: chmod o= {file}" in done.stdout, done
    assert "secret-value" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"NODE=\xff\n", "it is not UTF-8"),
        (b"A" * (FILE_BYTES_MAX + 1), "larger than 128 KiB"),
        (None, "Is a directory, so this command lacks variables that the daemon may have"),
    ],
    ids=["bytes", "large", "folder"],
)
def test_a_file_that_cannot_be_read_stops_no_command(
    tmp_path: Path, content: bytes | None, why: str, check: Check
) -> None:
    file = tmp_path / "variables"
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    done = check(NODE="node1", SECRET="s")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"warning: {file}: cannot be read: {why}\n" in done.stdout
    assert os.fspath(file) not in check("schema").stdout


@pytest.mark.parametrize("command", ["check", "members"])
def test_a_warning_is_also_printed_with_a_refused_configuration(
    tmp_path: Path, command: str, check: Check
) -> None:
    """The warning explains why the variable is missing."""
    (tmp_path / "variables").write_text("export NODE=node1\n")
    arguments = {
        "check": (str(tmp_path / "c.yaml"),),
        "members": ("app", "--config", str(tmp_path / "c.yaml")),
    }
    done = check(command, *arguments[command], SECRET="s")
    assert (done.returncode, done.stdout) == (78, "")
    fault, warning, *verdict = done.stderr.splitlines()
    assert "the environment has no NODE" in fault
    assert warning.startswith(f"warning: {tmp_path}/variables:1:1: systemd ignores this line")
    assert verdict == ([f"{tmp_path}/c.yaml: not valid, 1 fault, 1 warning"] if command == "check" else [])


def test_json_of_a_refused_configuration_has_the_warnings_and_quiet_only_counts_them(
    tmp_path: Path, check: Check
) -> None:
    (tmp_path / "variables").write_bytes(b"NODE=\xff\n")
    document = json.loads(check("check", "--json", str(tmp_path / "c.yaml"), SECRET="s").stdout)
    assert not document["valid"] and len(document["errors"]) == 1
    assert document["warnings"][0]["message"] == "cannot be read: it is not UTF-8"
    quiet = check("check", "--quiet", str(tmp_path / "c.yaml"), SECRET="s").stderr
    assert "not UTF-8" not in quiet and quiet.endswith("not valid, 1 fault, 1 warning\n")


@pytest.mark.parametrize("command", ["run", "lock"])
def test_run_and_lock_use_the_environment_of_their_caller_alone(tmp_path: Path, command: str) -> None:
    """Neither fails as it would with the variables of the file."""
    (tmp_path / "variables").write_text("NODE=node1\nSECRET=s\nCONSUL_HTTP_TOKEN='not a token'\n")
    (tmp_path / "c.yaml").write_text(CONFIG)

    def run(*words: str, **environ: str) -> tuple[int, str]:
        argv = [sys.executable, "-c", COMMAND, str(tmp_path / "variables"), *words]
        done = captured(argv, cwd=ROOT, env={**ENVIRON, **environ}, timeout=PATIENCE_S)
        return done.returncode, done.stderr

    if command == "run":
        code, error = run("run", str(tmp_path / "c.yaml"), STATE_DIRECTORY=str(tmp_path / "state"))
        assert code == 78 and "the environment has no NODE" in error
    else:
        nobody = "http://127.0.0.1:1"
        assert run("lock", "--wait", "0", "a/b", "--", "true", CONSUL_HTTP_ADDR=nobody)[0] == 69
        code, error = run("leader", "--key", "a/b", CONSUL_HTTP_ADDR=nobody)
        assert code == 78 and "CONSUL_HTTP_TOKEN" in error
