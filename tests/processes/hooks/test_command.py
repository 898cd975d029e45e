"""Commands as hooks: real processes, their input, their output, and every way to end."""

import asyncio
import errno
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from supervisor.adapters.hooks import command
from supervisor.adapters.hooks.output import DRAIN_BYTES_MAX
from supervisor.core.actions import Reason
from supervisor.core.events import HookEnded
from supervisor.core.settings import Command
from tests.processes.hooks.trial import CONTEXT, alive, shell, trial
from tests.support.patience import PATIENCE_S

FACTS = {
    "event": "lose",
    "kind": "election",
    "name": "namenode",
    "key": "service/hdfs/leader",
    "session": "8a2f6c1e-5d41-4b7b-9c55-0e6b8f3f0a11",
    "lock_index": 7,
    "fencing_token": 4711,
    "reason": "lease-expired",
    "leader": "node-1",
    "previous_leader": None,
    "transition": "f3b1c5d0-0001",
    "attempt": 3,
    "node": "node-1",
    "note": "",
}


FLOOD_BYTES = 2_000_000
STANDARD = {number for number in signal.valid_signals() if number < 32}
STANDARD_SIGNALS = (
    1 << 31
) - 1  # without 32 and 33, which the C library uses and a hook may inherit as ignored


def python(program: str, *arguments: str) -> Command:
    return Command((sys.executable, "-c", program, *arguments))


# --- the input of a hook ------------------------------------------------------------------------


async def test_a_hook_sees_every_fact_in_its_environment_and_on_standard_input() -> None:
    program = "import json, os, sys; print(json.dumps([json.loads(sys.stdin.read()), dict(os.environ)]))"
    losing = {"event": "lose", "reason": Reason.LEASE_EXPIRED, "previous_leader": None, "attempt": 3}
    async with trial() as one:
        rival_at = one.now() + 2 * PATIENCE_S
        assert await one.run(python(program), **losing, rival_at=rival_at) == (True, "exit 0")
    document, environ = json.loads(one.text()[0])
    time_left, at = document.pop("time_left"), document.pop("time")
    assert document == FACTS
    assert datetime.fromisoformat(at).timestamp() == pytest.approx(time.time(), abs=PATIENCE_S)
    assert environ.pop("CONSUL_SUPERVISOR_TIME") == at
    assert PATIENCE_S < time_left <= 2 * PATIENCE_S
    assert environ.pop("CONSUL_SUPERVISOR_TIME_LEFT") == str(time_left)
    ours = {name: value for name, value in environ.items() if name.startswith("CONSUL_SUPERVISOR_")}
    text = {name: "" if value is None else str(value) for name, value in FACTS.items()}
    assert ours == {f"CONSUL_SUPERVISOR_{name.upper()}": value for name, value in text.items()}


async def test_a_hooks_own_variables_replace_inherited_ones_and_never_the_facts() -> None:
    own = (("SITE", "paris"), ("CONSUL_SUPERVISOR_LEADER", "forged"))
    async with trial({**os.environ, "SITE": "berlin"}) as one:
        await one.run(shell('echo "$SITE $CONSUL_SUPERVISOR_LEADER"', env=own))
    assert one.text() == ["paris node-1"]


async def test_a_hook_may_ignore_an_input_larger_than_any_pipe() -> None:
    async with trial() as one:
        assert await one.run("exit 0", leader=b"x" * 512_000) == (True, "exit 0")


async def test_a_large_value_is_whole_on_standard_input() -> None:
    program = """
import json, os, sys
print(len(json.load(sys.stdin)['leader']), 'CONSUL_SUPERVISOR_LEADER' in os.environ)
"""
    async with trial() as one:
        await one.run(python(program), leader=b"x" * 512_000)
    assert one.text() == ["512000 False"]


async def test_a_hook_runs_in_a_group_of_its_own_and_has_no_descriptor_of_ours(tmp_path: Path) -> None:
    program = """
import os
descriptors = sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:-1]  # without that of the listing itself
print(os.getpid() == os.getpgrp(), descriptors)
"""
    with (tmp_path / "ours").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)  # our parent may have left us such a descriptor
        async with trial() as one:
            await one.run(python(program))
    assert one.text() == ["True [0, 1, 2]"]


@pytest.mark.parametrize("cwd", [None, "/"])
def test_a_hook_begins_with_default_signals_even_if_the_daemon_ignores_or_blocks_them(
    cwd: str | None,
) -> None:
    """nohup, or a shell script that starts us in the background, may leave us signals that are ignored."""
    shown = replace(shell("grep -E 'Sig(Ign|Blk)' /proc/self/status"), cwd=cwd)

    async def main() -> None:
        async with trial() as one:
            await one.run(shown)
        assert {int(line.split()[1], 16) & STANDARD_SIGNALS for line in one.text()} == {0}, one.text()

    numbers = STANDARD - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
    former = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGHUP})
    try:
        asyncio.run(main())
        assert {signal.getsignal(number) for number in numbers} == {signal.SIG_IGN}, "ours are as they were"
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) >= {signal.SIGUSR1, signal.SIGHUP}
    finally:
        for number, disposition in former.items():
            signal.signal(number, disposition)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


async def test_a_command_is_looked_up_in_the_path_that_it_gets(tmp_path: Path) -> None:
    program = tmp_path / "only-here"
    program.write_text("#!/bin/sh\necho $0\n")
    program.chmod(0o755)
    path = (("PATH", f"{tmp_path}:/usr/bin:/bin"),)
    async with trial() as one:
        await one.run(Command(("only-here",), env=path))
        missing = await one.run(Command(("only-here",)), attempt=2)
    assert one.text() == [str(program)]
    assert missing == (False, "cannot start: No such file or directory: only-here")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_has_all_standard_streams_even_if_the_daemons_are_closed(closed: str) -> None:
    program = """
import os, sys
from supervisor.adapters.hooks.spawn import spawn
spawned = spawn(["sh", "-c", "cat; echo said >&2"], None, dict(os.environ), b"input ")
os.waitpid(spawned.pid, 0)
output = os.read(spawned.stdout, 99) + os.read(spawned.stderr, 99)
os._exit(0 if output == b"input said\\n" else 1)
"""
    line = f"{shlex.quote(sys.executable)} -c {shlex.quote(program)} {closed}"
    assert subprocess.run(["sh", "-c", line], check=False, timeout=PATIENCE_S).returncode == 0


async def test_a_command_runs_in_its_folder(tmp_path: Path) -> None:
    async with trial() as one:
        await one.run(shell("pwd", cwd=str(tmp_path)))
    assert one.text() == [str(tmp_path)]


# --- the end of a hook --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "ok", "detail"),
    [
        ("exit 0", True, "exit 0"),
        ("exit 3", False, "exit 3"),
        ("exit 127", False, "exit 127 (command not found, by convention)"),
        ("kill -SEGV $$", False, "killed by SIGSEGV"),
        ("kill -40 $$", False, "killed by signal 40"),
    ],
)
async def test_the_detail_says_how_a_command_ended(text: str, ok: bool, detail: str) -> None:
    async with trial() as one:
        assert await one.run(f"ulimit -c 0; {text}") == (ok, detail)


async def test_a_command_that_cannot_be_started_is_reported_with_the_reason(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    commands = {
        Command(("/absent/program",)): "No such file or directory: /absent/program",
        Command((str(plain),)): f"Permission denied: {plain}",
        Command((str(tmp_path),)): f"Permission denied: {tmp_path}",
        Command(("/bin/true",), cwd="/absent"): "No such file or directory: /absent",
        Command(("/bin/true", "a\0b")): "embedded null byte",
        Command(("/bin/true", "x" * 200_000)): "Argument list too long: /bin/true",
    }
    async with trial() as one:
        for call, why in commands.items():
            started = one.start(call)
            assert one.hooks.running == 1
            one.kill(started)
            assert await one.outcome(started) == (False, f"cannot start: {why}")


async def test_a_hook_that_takes_too_long_gets_term() -> None:
    async with trial() as one:
        text = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
        started = one.start(text, timeout_s=1000)
        await one.says("ready")
        one.skip(1000)
        assert await one.outcome(started) == (False, "timed out after 1000s")
    assert one.text() == ["ready", "bye"]


async def test_a_hook_that_ignores_term_is_killed() -> None:
    async with trial() as one:
        call = shell("trap '' TERM; echo ready; while :; do sleep 1; done", kill_after_s=0.1)
        started = one.start(call, timeout_s=1000)
        await one.says("ready")
        one.skip(1000)
        assert await one.outcome(started) == (False, "timed out after 1000s, ignored TERM")


async def test_a_stopped_process_still_acts_on_term() -> None:
    async with trial() as one:
        call = "trap 'echo bye; exit 0' TERM; echo $$; kill -STOP $$; sleep 300 & wait"
        started = one.start(call, timeout_s=1000)
        [pid] = await one.until(lambda: one.text() or None)
        process = psutil.Process(int(pid))
        await one.until(lambda: process.status() == psutil.STATUS_STOPPED or None)
        one.skip(1000)
        assert await one.outcome(started) == (False, "timed out after 1000s")
    assert one.text() == [pid, "bye"]


async def test_a_hook_without_kill_after_is_killed_right_after_term() -> None:
    async with trial() as one:
        ok, detail = await one.run(shell("trap '' TERM; sleep 60", kill_after_s=0.0), timeout_s=0.1)
        assert (ok, detail.partition(",")[0]) == (False, "timed out after 0.1s")


# --- the process group of a hook ----------------------------------------------------------------


async def test_processes_left_in_a_hooks_group_are_killed_before_its_end_is_reported() -> None:
    async with trial() as one:
        text = "trap '' TERM; (trap '' TERM; sleep 301) & echo $!; (sleep 302 & echo $!); exit 0"
        ended = await one.end(one.start(text))
        left = [int(line) for line in one.text()]
        assert len(left) == 2 and not any(map(alive, left))
        assert (ended.detail, ended.left) == ("exit 0, killed what it left running: sleep", "sleep")


async def test_a_process_that_ends_soon_after_its_hook_keeps_its_output_and_is_not_named() -> None:
    """As a tee does that copies the output of the whole script."""
    async with trial() as one:
        ended = await one.end(one.start("(sleep 0.05; seq 1000) & exit 0"))
        assert (ended.detail, ended.left) == ("exit 0", "")
        await one.says("1000")


async def test_what_a_hook_leaves_running_is_killed_within_its_timeout() -> None:
    async with trial() as one:
        now = asyncio.get_running_loop().time
        begun_at = now()
        ended = await one.end(one.start("sleep 0.35; exec 2>&-; sleep 60 & exit 0", timeout_s=0.4))
        assert isinstance(ended, HookEnded) and now() - begun_at < PATIENCE_S
        kinds = [
            f"exit 0, killed what it left running: {name}" for name in ("sleep", "sh")
        ]  # before its exec
        assert ended.detail in (*kinds, "timed out after 0.4s")


async def test_after_term_the_whole_group_has_kill_after_to_end_in_order() -> None:
    """TERM ends a shell at once, and the processes that it has started must keep their time to end."""
    slow = "trap 'sleep 0.3; echo saved; exit' TERM; echo ready; while :; do sleep 0.05; done"
    async with trial() as one:
        started = one.start(f'sh -c "{slow}"; true')
        await one.says("ready")
        one.kill(started)
        assert await one.outcome(started) == (False, "stopped")
    assert one.text() == ["ready", "saved"]


async def test_after_term_the_rest_of_a_dead_leaders_group_is_killed() -> None:
    async with trial() as one:
        text = "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.1; done'; true"
        started = one.start(shell(text, kill_after_s=0.3))
        await one.until(lambda: one.text() or None)
        one.kill(started)
        assert await one.outcome(started) == (False, "stopped, ignored TERM")
        assert not alive(int(one.text()[0]))


async def test_a_process_that_left_the_group_and_holds_the_pipes_delays_no_end() -> None:
    async with trial() as one:
        left = 'until test "$(cut -d " " -f 5 /proc/$!/stat)" = $!; do :; done'
        ended = await one.end(one.start(f"echo before; setsid sleep 300 & echo $!; {left}"))
        assert ended.detail == "exit 0"
        pid = int(one.text()[1])
        try:
            assert one.text()[0] == "before"
            assert alive(pid), "a process that left the group is not killed"
        finally:
            os.kill(pid, signal.SIGKILL)


# --- kill ---------------------------------------------------------------------------------------


async def test_kill_ends_a_hook_and_ignores_hooks_that_ended_or_never_began() -> None:
    async with trial() as one:
        started = one.start("sleep 60")
        one.kill(started)
        one.kill(started)
        assert await one.outcome(started) == (False, "stopped")
        one.kill(started)
        one.kill(replace(started, attempt=2))
        await asyncio.sleep(0.05)
        assert len(one.ends) == 1


async def test_a_kill_after_the_exit_does_not_change_the_reported_end() -> None:
    async with trial() as one:
        before = set(psutil.Process().children())
        started = one.start("exit 0")
        (child,) = set(psutil.Process().children()) - before
        while child.status() != psutil.STATUS_ZOMBIE:
            pass  # without the loop, which must not see the end before the kill
        one.kill(started)
        one.kill_all()
        assert await one.outcome(started) == (True, "exit 0")


async def test_kill_all_ends_even_hooks_that_ignore_term_and_reports_each() -> None:
    async with trial() as one:
        text = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
        started = [one.start(shell(text, kill_after_s=100), attempt=attempt) for attempt in range(1, 4)]
        run = one.start_run("trap '' TERM; echo ready; while :; do sleep 0.1; done", stop_timeout_s=100)
        await one.until(lambda: len(one.text()) == 4 or None)
        one.kill(started[0])
        one.kill_all()
        assert [await one.outcome(each) for each in started] == [(False, "stopped")] * 3
        assert (await one.end(run)).detail == "stopped"


async def test_close_ends_running_hooks_and_returns_when_each_end_is_reported() -> None:
    async with trial() as one:
        started = one.start("sleep 60")
        await one.hooks.close()
        assert [end.started for end in one.ends] == [started]


# --- many hooks, and long output ----------------------------------------------------------------


async def test_the_output_of_a_hook_is_logged_line_by_line_with_its_origin() -> None:
    async with trial() as one:
        await one.run(r"echo one; printf 'two\377\033[1m' ; echo three >&2")
    assert one.text("stdout") == ["one", "two\ufffd\\x1b[1m"]
    assert one.text("stderr") == ["three"]
    origins = {(line.item, line.hook, line.transition) for line in one.lines}
    assert origins == {("namenode", "on_acquire[0]", CONTEXT.transition)}


async def test_lines_are_logged_while_the_hook_still_runs() -> None:
    async with trial() as one:
        one.start("echo early; sleep 60")
        await one.says("early")
        assert one.ends == []


@pytest.mark.parametrize("flood", ["yes", "cat /dev/zero"])
async def test_a_flood_neither_stalls_the_loop_nor_fills_the_log(
    flood: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one turn of the loop little of the flood is read, so everything else has its turn as well."""
    sizes: list[int] = []
    read = os.read

    def counted(fd: int, bytes_max: int) -> bytes:
        sizes.append(len(data := read(fd, bytes_max)))
        return data

    async with trial() as one:
        monkeypatch.setattr(os, "read", counted)
        started = one.start(flood, timeout_s=1000)
        turns = [0]
        async with asyncio.timeout(PATIENCE_S):
            while sum(turns) < FLOOD_BYTES:
                await asyncio.sleep(0)
                turns.append(sum(sizes))
                sizes.clear()
        one.kill(started)
        await one.end(started)
        monkeypatch.undo()
    assert max(turns) <= DRAIN_BYTES_MAX
    assert len(one.lines) <= 1002
    assert sum(len(line.text) for line in one.lines) < 20_000


async def test_a_long_output_does_not_block_the_hook_that_writes_it() -> None:
    async with trial() as one:
        program = "import sys; sys.stdout.write('x' * 10_000_000); print('written', file=sys.stderr)"
        assert await one.run(python(program)) == (True, "exit 0")
    assert one.text("stderr") == ["written"]
    (line,) = one.text()
    assert line.startswith("x" * 4096) and line.endswith(f" … ({10_000_000 - 4096} bytes cut)")


async def test_output_written_just_before_the_exit_is_not_lost() -> None:
    async with trial() as one:
        await one.run(python("print('x' * 60 + '\\n' * 1, end='')\nfor n in range(900): print(n)"))
    assert one.text()[1:] == [str(number) for number in range(900)]


async def test_a_process_that_outlives_sigkill_is_reported_in_time_and_reaped_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A debugger keeps the dead process for a while, which looks like a wait in the kernel (state D)."""
    hook = """
import ctypes, os, time
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1))  # PR_SET_PTRACER, PR_SET_PTRACER_ANY
print(os.getpid(), flush=True)
time.sleep(300)
"""
    debugger = """
import ctypes, sys, time
assert ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None) == 0  # PTRACE_SEIZE
print("attached", flush=True)
time.sleep(300)
"""
    monkeypatch.setattr(command, "KILL_GRACE_S", 0.2)
    async with trial() as one:
        started = one.start(python(hook))
        (pid,) = await one.until(lambda: one.text() or None)
        with subprocess.Popen([sys.executable, "-c", debugger, pid], stdout=subprocess.PIPE) as attached:
            assert attached.stdout is not None and attached.stdout.readline() == b"attached\n"
            one.kill(started)
            assert await one.outcome(started) == (False, "stopped, ignored TERM")
            assert one.hooks.running == 0 and psutil.pid_exists(int(pid))
            attached.kill()
        await one.until(lambda: None if psutil.pid_exists(int(pid)) else True)


async def test_a_child_that_could_not_be_watched_is_ended_and_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process has no descriptor left after the spawn."""

    def refuse(pid: int) -> int:
        raise OSError(24, "Too many open files")

    async with trial() as one:
        monkeypatch.setattr(os, "pidfd_open", refuse)
        assert await one.run("sleep 60") == (False, "cannot start: Too many open files")
        monkeypatch.undo()


@pytest.mark.parametrize("nth", [1, 2, 3])
async def test_a_child_that_epoll_cannot_watch_is_ended_and_not_started_again(
    monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    """epoll may refuse each of the child's descriptors, and such a child has begun, so on_lose is due."""
    calls = 0
    loop = asyncio.get_running_loop()
    add_reader = loop.add_reader

    def short(fd: int, *call: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        add_reader(fd, *call)

    async with trial() as one:
        monkeypatch.setattr(loop, "add_reader", short)
        assert await one.run("sleep 60") == (False, "cannot start: Cannot allocate memory")
        monkeypatch.undo()
        [end] = one.ends
        assert isinstance(end, HookEnded)
        got = end
    assert got.began and calls == nth


def test_exit_statuses_are_read_even_if_sigchld_was_ignored_at_the_start() -> None:
    """The kernel would drop the statuses, and an unknown end could pass for a success."""

    async def main() -> None:
        async with trial() as one:
            assert await one.run("exit 3") == (False, "exit 3")

    former = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        asyncio.run(main())
    finally:
        signal.signal(signal.SIGCHLD, former)
