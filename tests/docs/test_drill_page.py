"""drill.md is true: the shown file is drilled, the agent started, and both print the shown lines."""

import os
import re
import sys
from contextlib import closing
from pathlib import Path

import pytest

from supervisor.rehearsal.drill.bounds import MACHINE_S
from supervisor.rehearsal.drill.plays import CONTENDER, FENCED, LASTING
from supervisor.rehearsal.drill.promises import ALLOWANCE_S
from supervisor.rehearsal.drill.shortened import HOOK_MIN_S, ROOM_S, TTL_MIN_S
from tests.support.captured import captured
from tests.support.configured import loaded
from tests.support.consul import HOST, free_ports
from tests.support.pages import DRILL, ROOT, Shown, rows
from tests.support.shell import Shell, replay
from tests.support.supervisor import command

SHOWN = Shown(DRILL)
(FILE, PRINTED) = SHOWN.of(DRILL, "What it prints")
WITHIN_S = 120.0
TEXT = DRILL.read_text()


def test_every_block_of_the_page_has_a_test() -> None:
    assert SHOWN.untested() == []


@SHOWN.by(DRILL, "", "sh")
def test_the_shown_command_names_a_configuration(shown: str) -> None:
    program, verb, path = shown.split()
    assert (program, verb, path.startswith("/")) == ("consul-supervisor", "drill", True)


def form(line: str) -> str:
    """Return a line without its figures, and without the names of nodes."""
    return re.sub(r"node-[abc]", "node-X", re.sub(r"\b\d+(\.\d+)?", "N", line)).strip()


@pytest.mark.long
def test_the_shown_lines_are_printed(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(FILE.text)
    done = captured(
        [sys.executable, "-m", "supervisor", "drill", "app.yaml"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(DRILL.parents[1])},
        timeout=WITHIN_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed = map(form, done.stdout.splitlines())
    for line in filter(None, map(form, PRINTED.text.splitlines())):
        assert line == "…" or line in printed, f"not printed, or not in this place: {line}"


def test_the_shown_file_is_valid(tmp_path: Path) -> None:
    assert loaded(tmp_path, FILE.text, {}, "node-a").warnings == ()


def test_the_page_names_each_play() -> None:
    assert len(rows(DRILL, "play")) == len(CONTENDER + FENCED + LASTING)


def test_the_figures_of_the_page_are_those_of_the_code() -> None:
    assert f"ttl is at least {TTL_MIN_S:g} s, a timeout of a recorder {HOOK_MIN_S:g} s" in TEXT
    assert f"leaves at least {ROOM_S:g} s of room" in TEXT
    assert f"{ALLOWANCE_S:g} s more is allowed" in TEXT
    assert f"({MACHINE_S:g} s in each play)" in TEXT
    assert f"leave the lease {ROOM_S:g} s of room" in " ".join(command("drill", "--help").stdout.split())


@pytest.mark.long
@SHOWN.session(DRILL, "The embedded agent")
def test_the_session_with_the_embedded_agent_prints_the_shown_output(shown: str, tmp_path: Path) -> None:
    """Only the port differs, which is the test's own."""
    (port,) = free_ports(1)
    with closing(
        Shell(tmp_path, tmp_path, {"PYTHONPATH": str(ROOT), "CONSUL_HTTP_ADDR": f"{HOST}:{port}"})
    ) as shell:
        other = f'$([ "$1" != dev-agent ] || echo --port {port})'
        shell.provide("consul-supervisor", f'"{sys.executable}" -m supervisor "$@" {other}')
        replay(shell, shown.replace("http://127.0.0.1:8500", f"http://{HOST}:{port}"))
