"""Trials of hooks: real Hooks, whose ends and lines are kept, and a check that nothing is left behind."""

import asyncio
import contextlib
import gc
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import psutil

from supervisor.adapters.filesystem.children import reap
from supervisor.adapters.hooks.attempts import Hooks
from supervisor.adapters.hooks.output import HookLine
from supervisor.core.actions import HookContext, KillHook, Reason, StartHook, StartRun, StopRun
from supervisor.core.events import Event, HookEnded, RunEnded
from supervisor.core.settings import Command, Hook, Run, Webhook
from tests.support.loop_time import skip
from tests.support.patience import PATIENCE_S

T = TypeVar("T")
CONTEXT = HookContext(
    event="acquire",
    name="namenode",
    key="service/hdfs/leader",
    reason=Reason.ACQUIRED,
    transition="f3b1c5d0-0001",
    session="8a2f6c1e-5d41-4b7b-9c55-0e6b8f3f0a11",
    lock_index=7,
    fencing_token=4711,
    leader=b"node-1",
    previous_leader=b"node-0",
)


class Trial:
    """Hooks under test, with all that they reported."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self.ends: list[HookEnded | RunEnded] = []
        self.lines: list[HookLine] = []
        self.delayed: list[tuple[StartHook | StartRun, str]] = []
        self.inside_call = False  # whether a call is under way, which must not report an end
        self._skipped_s = 0.0
        self.hooks = Hooks(
            node="node-1",
            report=self._report,
            log_line=self.lines.append,
            delayed=lambda started, why: self.delayed.append((started, why)),
            environ=dict(os.environ) if environ is None else environ,
            clock=self.now,
        )

    def now(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME) + self._skipped_s

    def skip(self, seconds: float) -> None:
        """Let so much time pass for the hooks at once."""
        self._skipped_s += seconds
        skip(seconds)

    def start(
        self, call: Command | Webhook | str, *, timeout_s: float = PATIENCE_S, **changes: object
    ) -> StartHook:
        """Start an attempt; a text is a command for the shell.

        changes: changes of the context, and the number of the attempt.
        """
        attempt = int(str(changes.pop("attempt", 1)))
        called = shell(call, kill_after_s=PATIENCE_S) if isinstance(call, str) else call
        hook = Hook("on_acquire[0]", called, timeout_s)
        action = StartHook(hook, attempt, replace(CONTEXT, **changes))  # type: ignore[arg-type]
        self._call(lambda: self.hooks.start(action))
        return action

    def start_run(self, command: Command | str, *, stop_timeout_s: float = PATIENCE_S) -> StartRun:
        """Start a run child; a text is a command for the shell."""
        call = shell(command) if isinstance(command, str) else command
        action = StartRun(Run(call, stop_timeout_s), CONTEXT)
        self._call(lambda: self.hooks.start(action))
        return action

    def kill(self, started: StartHook) -> None:
        self._call(lambda: self.hooks.stop(KillHook(started)))

    def stop_run(self, started: StartRun) -> None:
        self._call(lambda: self.hooks.stop(StopRun(started)))

    def kill_all(self) -> None:
        self._call(self.hooks.kill_all)

    async def end(self, started: StartHook | StartRun) -> HookEnded | RunEnded:
        """Return the end of this start, once it was reported."""
        return await self.until(lambda: next((end for end in self.ends if end.started == started), None))

    async def outcome(self, started: StartHook) -> tuple[bool, str]:
        """Return the end of this start as (ok, detail)."""
        ended = await self.end(started)
        assert isinstance(ended, HookEnded)
        return ended.ok, ended.detail

    async def run(self, call: Command | Webhook | str, **changes: object) -> tuple[bool, str]:
        """Start an attempt, wait for its end, and return it as (ok, detail)."""
        return await self.outcome(self.start(call, **changes))  # type: ignore[arg-type]

    async def says(self, text: str) -> None:
        """Wait until a child has written that line."""
        await self.until(lambda: any(line.text == text for line in self.lines) or None)

    async def until(self, look: Callable[[], T | None]) -> T:
        """Wait until ``look`` returns something, and return that."""
        async with asyncio.timeout(PATIENCE_S):
            while (seen := look()) is None:
                await asyncio.sleep(0.002)
        return seen

    def text(self, stream: str = "stdout") -> list[str]:
        return [line.text for line in self.lines if line.stream == stream]

    def _call(self, call: Callable[[], None]) -> None:
        self.inside_call = True
        call()
        self.inside_call = False

    def _report(self, event: Event) -> None:
        assert isinstance(event, HookEnded | RunEnded)
        assert not self.inside_call, "an end is never reported out of a call"
        assert all(end.started != event.started for end in self.ends), "an end is reported once"
        self.ends.append(event)


@contextlib.asynccontextmanager
async def trial(environ: Mapping[str, str] | None = None) -> AsyncIterator[Trial]:
    """Return a Trial that is closed in the end, with a check that none of its processes is left."""
    gc.collect()  # garbage of earlier tests would otherwise be collected meanwhile
    before = _possessions()
    raised: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: raised.append(what))
    one = Trial(environ)
    try:
        yield one
    finally:
        one.inside_call = False
        await one.hooks.close()
        await asyncio.sleep(0.005)  # longer than the time of any timer that should have been cancelled
    assert raised == []
    assert one.hooks.running == 0
    give_up_at = time.monotonic() + PATIENCE_S
    while left := _left(before):  # a killed process ends when the kernel next runs it
        assert time.monotonic() < give_up_at, left
        await asyncio.sleep(0.002)


def shell(text: str, **settings: object) -> Command:
    """Return the command that the loader makes from ``shell: text``."""
    return Command(("/bin/sh", "-c", text), **settings)  # type: ignore[arg-type]


def alive(pid: int) -> bool:
    """Return whether the process runs; a dead one that is not yet reaped does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _left(before: tuple[Any, Any, Any]) -> tuple[Any, Any, Any] | None:
    """Return the children, open files and threads that were not there before, if any."""
    reap()
    children, files, threads = (now - then for now, then in zip(_possessions(), before, strict=True))
    return (children, files, threads) if children or files or threads > 0 else None


def _possessions() -> tuple[Any, Any, Any]:
    """Return children, open files and the number of threads."""
    process = psutil.Process()
    return (
        {child.pid for child in process.children()},
        set(os.listdir("/proc/self/fd")),
        process.num_threads(),
    )
