"""What tests stand on wherever they are started: their surroundings, their patience, what may be left."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.patience import PATIENCE_S, patient, stretch
from tests.support.supervisor import ROOT, assert_none_left, processes_of

OURS = "from tests.support.surroundings import make_our_own; make_our_own(); "
SHOW = "import os; os.execvp('sh', ['sh', '-c', \"grep -E 'Sig(Ign|Blk)' /proc/self/status; umask; env\"])"
IGNORED_BY_PYTHON = 1 << 12 | 1 << 24  # SIGPIPE and SIGXFSZ, which subprocess resets and execvp does not
STANDARD_SIGNALS = (1 << 31) - 1


@pytest.fixture
def left(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for each in started:
        each.kill()
        each.wait()


def test_what_started_the_tests_changes_nothing_of_what_they_start() -> None:
    """As nohup, a script's background job and a login with variables and a umask of its own do."""
    script = f"trap '' INT QUIT HUP USR1 CHLD; umask 077; exec {shlex.quote(sys.executable)} -c \"$0\""
    foreign = {"CONSUL_HTTP_ADDR": "http://192.0.2.1:1", "CONSUL_HTTP_TOKEN": "x", "XDG_STATE_HOME": "/x"}
    told = subprocess.run(
        ["sh", "-c", script, OURS + SHOW],
        env={
            "PATH": os.environ["PATH"],
            "LC_ALL": "C",
            "COLUMNS": "7",
            "http_proxy": "http://x:1",
            **foreign,
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    ).stdout
    *sets, umask = told.splitlines()[:3]
    assert [int(line.split()[1], 16) & STANDARD_SIGNALS & ~IGNORED_BY_PYTHON for line in sets] == [0, 0], told
    assert umask == "0022"
    for name in (*foreign, "LC_ALL", "COLUMNS"):
        assert f"\n{name}=" not in told
    assert "127.0.0.1" in told.partition("\nno_proxy=")[2].partition("\n")[0]


def test_patience_grows_with_what_the_machine_has_to_do() -> None:
    assert stretch() >= 1 and 1.0 <= patient(1.0) <= PATIENCE_S
    assert patient(2 * PATIENCE_S) == 2 * PATIENCE_S, "what is long already stays as it is"


@pytest.mark.long
def test_a_sync_may_be_left_for_a_while_and_nothing_else(
    left: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    def processes() -> list[psutil.Process]:
        return processes_of(str(tmp_path))

    left.append(subprocess.Popen(["sh", "-c", "sleep 2; :", "sync", "--data", "--", tmp_path / "a.journal"]))
    assert processes()
    assert_none_left(processes)
    assert not processes()
    left.append(subprocess.Popen(["sh", "-c", "sleep 60; :", "hook", tmp_path]))
    with pytest.raises(AssertionError, match="processes are left"):
        assert_none_left(processes)
