"""A start that lacks descriptors, or whose program is being written, and is retried within its own time."""

import asyncio
import os
import pwd
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from supervisor.core.actions import StartHook, StartRun
from supervisor.core.events import HookEnded, RunEnded
from supervisor.core.settings import Command, Hook, Run, Webhook
from tests.processes.hooks.test_webhook import receiver
from tests.processes.hooks.trial import CONTEXT, Trial, shell, trial
from tests.support.captured import captured

ROOT = Path(__file__).parents[3]
SHORT = "cannot start: Too many open files"


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Leave this process no free descriptor."""
    taken = [os.open("/dev/null", os.O_RDONLY)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 40, hard))
    try:
        while True:
            try:
                taken.append(os.dup(taken[0]))
            except OSError:
                break
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in taken:
            os.close(fd)


async def delayed(one: Trial) -> None:
    await one.until(lambda: one.delayed or None)


async def test_a_hook_waits_for_descriptors_and_then_runs_to_its_end() -> None:
    async with trial() as one:
        with no_descriptors():
            started = one.start("exit 0")
            await delayed(one)
            await asyncio.sleep(0.12)  # longer than a pause, so that the start is retried more than once
            assert one.hooks.running == 1 and not one.ends
        assert await one.end(started) == HookEnded(started, True, "exit 0")
        assert one.delayed == [(started, "Too many open files")]


async def test_a_program_that_is_being_written_runs_when_it_is_written(tmp_path: Path) -> None:
    script = tmp_path / "hook"
    script.write_text("#!/bin/sh\nexit 3\n")
    script.chmod(0o755)
    async with trial() as one:
        with script.open("a"):
            started = one.start(Command((str(script),)))
            await delayed(one)
        assert await one.end(started) == HookEnded(started, False, "exit 3")
        assert one.delayed == [(started, f"Text file busy: {script}")]


@pytest.mark.parametrize("event", ["lose", "lose-failure"])
async def test_hooks_that_end_a_tenure_have_reserved_descriptors(event: str) -> None:
    async with trial() as one:
        with no_descriptors():
            for number in (1, 2, 3):
                assert await one.run("exit 0", event=event, attempt=number) == (True, "exit 0")
        assert not one.delayed


async def test_the_user_of_on_lose_is_looked_up_on_reserved_descriptors() -> None:
    call = shell("exit 0", user=pwd.getpwuid(os.geteuid()).pw_name)
    async with trial() as one:
        with no_descriptors():
            assert await one.run(call, event="lose") == (True, "exit 0")


async def test_several_hooks_that_end_tenures_run_at_once_on_reserved_descriptors() -> None:
    async with trial() as one:
        with no_descriptors():
            started = [one.start("sleep 0.1", event="lose", attempt=number) for number in range(1, 6)]
            assert [(await one.outcome(each))[0] for each in started] == [True] * 5
        assert not one.delayed


async def test_a_webhook_waits_for_descriptors_and_is_then_sent_once() -> None:
    async with receiver() as there, trial() as one:
        with no_descriptors():
            started = one.start(Webhook(f"{there.origin}/hook"))
            await delayed(one)
        assert await one.outcome(started) == (True, "204 No Content")
        assert one.delayed == [(started, "Too many open files")] and len(there.received) == 1


async def test_a_hook_that_cannot_start_within_its_timeout_has_never_begun() -> None:
    async with trial() as one:
        with no_descriptors():
            started = one.start("exit 0", timeout_s=1000)
            await delayed(one)
            one.skip(600)
            await asyncio.sleep(0.12)  # longer than a pause
            assert not one.ends
            one.skip(400)
            assert await one.end(started) == HookEnded(started, False, SHORT, began=False)


async def test_the_timeout_of_a_delayed_hook_counts_from_its_first_start() -> None:
    async with trial() as one:
        with no_descriptors():
            started = one.start("echo ready; exec sleep 3000", timeout_s=1000)
            await delayed(one)
            one.skip(600)
        await one.says("ready")
        one.skip(400)
        assert await one.outcome(started) == (False, "timed out after 1000s")


async def test_a_delayed_start_does_not_begin_after_its_deadline() -> None:
    async with trial() as one:
        begin_by = one.now() + 1000
        hook = StartHook(Hook("on_acquire[0]", shell("exit 0"), 3000.0), 1, CONTEXT, begin_by)
        run = StartRun(Run(shell("exit 0")), CONTEXT, begin_by)
        with no_descriptors():
            one.hooks.start(hook)
            one.hooks.start(run)
            one.skip(1000)
            assert await one.end(hook) == HookEnded(hook, False, SHORT, began=False)
            assert await one.end(run) == RunEnded(run, SHORT, began=False)


async def test_a_kill_ends_a_hook_and_a_run_child_that_cannot_start() -> None:
    async with trial() as one:
        with no_descriptors():
            hook, run = one.start("exit 0"), one.start_run("exit 0")
            assert len(one.delayed) == 2
            one.kill(hook)
            one.kill(hook)
            one.stop_run(run)
            said = "stopped before it could start"
            assert await one.end(hook) == HookEnded(hook, False, said, began=False)
            assert await one.end(run) == RunEnded(run, said, began=False)


async def test_kill_all_ends_a_hook_that_cannot_start() -> None:
    async with trial() as one:
        with no_descriptors():
            started = one.start("exit 0")
            one.kill_all()
            assert not (await one.end(started)).began


NO_PROCESSES = """
import asyncio, os, resource, time
from dataclasses import replace
from supervisor.core.actions import StartHook
from supervisor.core.settings import Hook
from supervisor.adapters.hooks.attempts import Hooks
from tests.processes.hooks.trial import CONTEXT, shell

async def main():
    ended, delayed = asyncio.Queue(), []
    hooks = Hooks(
        node="a", report=ended.put_nowait, log_line=print, environ={}, clock=time.monotonic,
        delayed=lambda started, why: delayed.append(why),
    )
    if os.geteuid() == 0:
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, hard))
    hooks.start(StartHook(Hook("on_lose[0]", shell("exit 0"), 100.0), 1, replace(CONTEXT, event="lose")))
    await asyncio.sleep(0.2)
    assert ended.empty(), "the hook waits"
    resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
    print(delayed, (await ended.get()).detail)
    await hooks.close()

asyncio.run(main())
"""


def test_on_lose_waits_for_processes_and_then_runs() -> None:
    """The limit applies to another user, because root has none. That user need not be able to read this."""
    done = captured(
        [sys.executable, "-c", NO_PROCESSES], cwd=ROOT, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    )
    assert done.stdout == "['Resource temporarily unavailable: /bin/sh'] exit 0\n", done.stderr
