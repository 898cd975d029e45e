"""The surroundings of tests: inherited settings, patience, and processes that may be left."""

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


def test_programs_that_tests_start_inherit_nothing_from_the_parent_of_the_tests() -> None:
    """nohup, a background job of a script, or a login may have set signals, a umask and variables."""
    script = f"trap '' INT QUIT HUP USR1 CHLD; umask 077; exec {shlex.quote(sys.executable)} -c \"$0\""
    foreign = {"CONSUL_HTTP_ADDR": "http://192.0.2.1:1", "CONSUL_HTTP_TOKEN": "x", "XDG_STATE_HOME": "/x"}
    printed = subprocess.run(
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
    *sets, umask = printed.splitlines()[:3]
    assert [int(line.split()[1], 16) & STANDARD_SIGNALS & ~IGNORED_BY_PYTHON for line in sets] == [0, 0], (
        printed
    )
    assert umask == "0022"
    for name in (*foreign, "LC_ALL", "COLUMNS"):
        assert f"\n{name}=" not in printed
    assert "127.0.0.1" in printed.partition("\nno_proxy=")[2].partition("\n")[0]


def test_patience_grows_with_the_load_of_the_machine() -> None:
    assert stretch() >= 1 and 1.0 <= patient(1.0) <= PATIENCE_S
    assert patient(2 * PATIENCE_S) == 2 * PATIENCE_S, "a long time stays unchanged"


@pytest.mark.long
def test_a_sync_may_be_left_for_a_while_and_no_other_process(
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
