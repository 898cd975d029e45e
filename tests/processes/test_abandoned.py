"""Processes that a crash left running: they are ended, and no other process is."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor.adapters.hooks.abandoned import VARIABLE, Group, find_abandoned, kill_abandoned, started_at
from supervisor.adapters.hooks.group import members, runs
from supervisor.adapters.journal import Journal
from supervisor.config import Config, ConsulSettings, LogSettings
from supervisor.core.actions import Point, Reason, Record, WriteRecord
from supervisor.daemon.records import Records
from supervisor.reporting.telemetry.history import History
from tests.support.captured import captured
from tests.support.hung import needs_root, stuck
from tests.support.log_written import Written
from tests.support.patience import PATIENCE_S
from tests.support.supervisor import processes_of, until
from tests.unit.core.play import contender

WITHIN_S = PATIENCE_S


@pytest.fixture
def mark(unique: str) -> str:
    """Return a transition that only this test has."""
    return f"{unique}-lose"


@pytest.fixture
def children() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Return a list of processes, which are all ended after the test."""
    begun: list[subprocess.Popen[bytes]] = []
    yield begun
    for child in begun:
        child.kill()
        child.wait()


def begin(
    children: list[subprocess.Popen[bytes]], script: str, mark: str, tmp_path: Path
) -> tuple[subprocess.Popen[bytes], Group]:
    """Begin a hook as the daemon does, and return when it runs."""
    ready = tmp_path / f"ready{len(children)}"
    environment = {"PATH": os.environ["PATH"], "READY": str(ready)}
    if mark:
        environment[VARIABLE] = mark
    child = subprocess.Popen(["/bin/sh", "-c", script], env=environment, process_group=0)
    children.append(child)
    until(ready.exists, "the hook runs")
    started = started_at(child.pid)
    assert started is not None
    return child, Group(child.pid, started, mark)


def gone(child: subprocess.Popen[bytes]) -> bool:
    return child.poll() is not None


HOOK = "trap '' TERM; touch $READY; sleep 300 & wait; sleep 300"


def test_a_group_that_ignores_term_is_ended_and_no_other(
    children: list[subprocess.Popen[bytes]], mark: str, tmp_path: Path
) -> None:
    """It is known by its transition, or by the time of its start, without which its number proves nothing."""
    marked, group = begin(children, HOOK, mark, tmp_path)
    plain, by_time = begin(children, HOOK, "", tmp_path)
    other, reused = begin(children, HOOK, f"{mark}-failure", tmp_path)
    by_time = replace(by_time, transition="nobody-s")
    reused = replace(reused, transition="nobody-s", started=reused.started - 1)
    groups = [group, by_time, reused]
    assert kill_abandoned(groups, [mark, "nobody-s"], within_s=WITHIN_S) == []
    assert gone(marked) and gone(plain) and not gone(other)
    assert find_abandoned([mark]) == ()


def test_a_process_that_left_the_group_is_recognized_by_its_transition(
    children: list[subprocess.Popen[bytes]], mark: str, tmp_path: Path
) -> None:
    script = "setsid sh -c 'touch $READY; exec sleep 300' & exit 0"
    child = subprocess.Popen(
        ["/bin/sh", "-c", script],
        env={"PATH": os.environ["PATH"], "READY": str(tmp_path / "r"), VARIABLE: mark},
        process_group=0,
    )
    children.append(child)
    until((tmp_path / "r").exists, "the process runs")
    child.wait()
    (left,) = find_abandoned([mark])
    assert left.transition == mark
    assert kill_abandoned([], [mark], within_s=WITHIN_S) == []
    assert find_abandoned([mark]) == ()


def test_a_process_lives_on_in_another_thread_than_its_first(
    children: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """As one does whose other thread waits for a disk: to the kernel its first thread is a zombie."""
    script = "from ctypes import *; from threading import *; from time import sleep\n"
    script += "Thread(target=sleep, args=[300]).start(); CDLL(None).pthread_exit(None)"
    shell = f'touch $READY; exec {sys.executable} -c "{script}"'
    child, group = begin(children, shell, "", tmp_path)
    until(lambda: ") Z " in Path(f"/proc/{child.pid}/stat").read_text(), "its first thread ends")
    assert runs(child.pid) and [pid for _, pid in members([child.pid])[child.pid]] == [str(child.pid)]
    assert kill_abandoned([group], [], within_s=WITHIN_S) == []
    assert gone(child)


@needs_root
@pytest.mark.parametrize("leader_lives", [True, False])
async def test_a_group_stays_on_record_without_the_leader_while_a_process_of_it_lives(
    children: list[subprocess.Popen[bytes]], unique: str, tmp_path: Path, leader_lives: bool
) -> None:
    """Its leader is reaped before KILL or just after it, as process 1 does."""
    far = tmp_path / "far"
    far.mkdir()
    journal, session = Journal(str(tmp_path), ConsulSettings("")), f"{unique}-{leader_lives}"
    record = Record(Point.HOLDING, "k", session, 7, 3, 1, 0.0)
    assert journal.write(WriteRecord("n", record, contender())) == ""
    with stuck(far):
        script = f"touch $READY; cat {far}/file; exit"
        shell, group = begin(children, script, f"{session}-acquire", tmp_path)
        until(lambda: len(processes_of(str(far / "file"))) == 2, "the shell has begun its program")
        journal.group_began("n", group)
        journal.close()
        if not leader_lives:
            shell.kill()
        reaps = threading.Thread(target=shell.wait)
        reaps.start()
        if not leader_lives:
            reaps.join()
        config = Config(ConsulSettings(""), LogSettings(), (), str(tmp_path))
        records = Records(config, Written().log, History(float, float), {})
        records.start((), 10.0, Reason.CONFIG_CHANGED)
        reaps.join()
        await records.close()
        assert list(records.groups) == [group.pgid]


def test_the_daemon_and_its_parent_are_never_ended(tmp_path: Path, mark: str) -> None:
    """The environment of this process has the transition as well."""
    module = "supervisor.adapters.hooks.abandoned"
    script = f"from {module} import *; print(kill_abandoned([], [{mark!r}], within_s=1))"
    done = captured(
        ["/bin/sh", "-c", f'"$0" -c "{script}"; echo lives', sys.executable],
        env={**os.environ, VARIABLE: mark},
    )
    assert done.stdout == "[]\nlives\n", done.stderr


def test_each_process_has_a_start_time_of_its_own(
    children: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    first, one = begin(children, HOOK, "", tmp_path)
    time.sleep(0.05)  # clock ticks are 10 ms
    _, two = begin(children, HOOK, "", tmp_path)
    assert started_at(first.pid) == one.started < two.started
    assert started_at(2**22 + 1) is None
