"""Every attempt of a hook that is under way: its start, its deadline, and its one end."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any

from supervisor.adapters.hooks.command import Attached, HookProcess, Unwatched, keep_exit_statuses
from supervisor.adapters.hooks.context import as_environment, as_json, base_environment, facts
from supervisor.adapters.hooks.output import HookLine, LineBudget, Lines
from supervisor.adapters.hooks.privileges import Privileges, PrivilegesRefused
from supervisor.adapters.hooks.shortage import RETRY_PAUSE_S, Spare, is_passing, lacks_descriptors
from supervisor.adapters.hooks.spawn import keep_descriptors
from supervisor.adapters.hooks.unkillable import Unkillable, owner_of
from supervisor.adapters.hooks.webhook import Webhooks
from supervisor.config.formats.templates import Fact
from supervisor.core.actions import LOSE_SIDE, KillHook, StartHook, StartRun, StopRun
from supervisor.core.events import HookEnded, RunEnded
from supervisor.core.settings import Command, ItemSettings, Webhook

LATE_S = 1.0  # a retry this late means a stall, after which the newest contact may be too old to begin
TOO_MANY_LEFT = "KILL has not ended its earlier attempts: check whether the file systems that it uses answer"
STOPPED_EARLY = "stopped before it could start"

Started = StartHook | StartRun
# A timer: the start lacked something, and is tried again when the timer fires.
UnderWay = HookProcess | asyncio.Task[Any] | asyncio.TimerHandle | None


class Hooks:
    """All hooks and run children of this process. ``environ`` is the daemon's own environment."""

    def __init__(
        self,
        *,
        node: str,
        report: Callable[[HookEnded | RunEnded], None],
        log_line: Callable[[HookLine], None],
        spawned: Callable[[Started, int], None] = lambda action, pgid: None,
        ended: Callable[[int], None] = lambda pgid: None,
        survive: Callable[[str, str], None] = lambda item, processes: None,
        delayed: Callable[[Started, str], None] = lambda action, why: None,
        environ: Mapping[str, str],
        clock: Callable[[], float],
        attached: Attached | None = None,
    ) -> None:
        keep_exit_statuses()
        keep_descriptors()
        self._node = node
        self._report = report  # receives each HookEnded and RunEnded, one for each start
        self._log_line = log_line  # receives each line that a child writes
        self._spawned = spawned  # receives each action whose process group has begun, and the group's number
        self._delayed = delayed  # receives each action that cannot start yet, and why
        # Starts commands that have the standard streams and the whole environment of this process, as below a
        # shell. None: they have neither.
        self._attached = attached
        self._environ = base_environment(environ) if attached is None else dict(environ)
        self._privileges = Privileges()
        self._clock = clock  # the core's clock, in seconds
        self._webhooks = Webhooks()
        self._spare = Spare()
        self.unkillable = Unkillable(ended, survive)
        # None: the action could not be started, and its end is about to be reported.
        self._under_way: dict[Started, UnderWay] = {}
        self._idle = asyncio.Event()

    @property
    def running(self) -> int:
        """The number of starts that have not been answered by an end yet."""
        return len(self._under_way)

    def inherit(self, environ: Mapping[str, str]) -> None:
        """Let hooks that begin from now on inherit this environment, without the daemon's own variables."""
        self._environ = base_environment(environ)

    async def preload_users(self, settings: ItemSettings) -> None:
        """Look up the users of the item's hooks now, because their directory may be out of reach at on_lose.

        A user that is not found causes no error here.
        """
        commands = [(hook.call, False) for hook in settings.hooks if isinstance(hook.call, Command)]
        commands += [] if settings.run is None else [(settings.run.command, True)]
        for command, dies_with_us in commands:
            # The start of the hook reports this error, unless the user exists by then.
            with suppress(PrivilegesRefused, OSError, ValueError):
                await self._privileges.look_up(command, dies_with_us=dies_with_us)

    def start(self, action: Started) -> None:
        """Start an attempt, or a run child, which the kernel kills when this process ends before the child.

        The command is being executed when this returns, unless it cannot start yet.
        """
        assert action not in self._under_way, "an attempt is begun once"
        if isinstance(action, StartHook) and isinstance(action.hook.call, Webhook):
            self._send(action, action.hook.call)
        else:
            self._try(action, self._clock())

    def stop(self, action: KillHook | StopRun) -> None:
        """End it early: TERM, and KILL after kill_after or stop_timeout. Do nothing when it has ended."""
        under_way = self._under_way.get(action.started)
        if not isinstance(under_way, HookProcess):
            self._call_off(action.started, under_way)
        elif isinstance(action, KillHook):
            under_way.terminate("stopped", action.started.hook.kill_after_s)
        else:
            under_way.terminate("stopped", action.started.run.stop_timeout_s)

    def kill_all(self) -> None:
        """Kill everything that is under way (KILL). Each end is still reported."""
        for started, under_way in self._under_way.items():
            if isinstance(under_way, HookProcess):
                under_way.kill("stopped")
            else:
                self._call_off(started, under_way)

    async def close(self) -> None:
        """Kill all attempts that are under way, and return when every end has been reported.

        This takes at most ``command.LEFT_GRACE_S`` and ``command.KILL_GRACE_S``. Nothing may be started
        meanwhile or afterwards.
        """
        self.kill_all()
        if self._under_way:
            self._idle.clear()
            await self._idle.wait()
        await self._webhooks.close()
        self._spare.release()

    def _try(self, action: Started, requested_at: float) -> None:
        """Start the action, or postpone the start when the means that it lacks may be there a moment later.

        requested_at: the time from which the timeout of the action counts.
        """
        if self.unkillable.too_many(action):
            self._end_soon(action, f"cannot start: {TOO_MANY_LEFT}")
            return
        try:
            child = self._spawn_with_spare(action)
        except (PrivilegesRefused, OSError, ValueError) as error:
            self._cannot_start(action, requested_at, error)
            return
        if child is None:
            self._look_up_user(action, requested_at)
        elif isinstance(action, StartHook):
            hook = action.hook
            left_s = requested_at + hook.timeout_s - self._clock()
            why = f"timed out after {hook.timeout_s:g}s"
            child.terminate_after(max(0.0, left_s), why, hook.kill_after_s)

    def _look_up_user(self, action: Started, requested_at: float) -> None:
        command, dies_with_us = _what(action)[0], self._dies_with_us(action)
        task = asyncio.create_task(self._privileges.look_up(command, dies_with_us=dies_with_us))
        self._under_way[action] = task
        task.add_done_callback(partial(self._looked_up, action, requested_at))

    def _looked_up(self, action: Started, requested_at: float, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, PrivilegesRefused | OSError | ValueError):
            raise error  # so that the loop's exception handler ends the daemon
        if task.cancelled() or self._under_way[action] is None:
            self._end(action, False, STOPPED_EARLY, began=False)
        elif error is None:
            self._try_again(action, requested_at, requested_at, "the directory of users answered too late")
        else:
            self._lend_spare(action, error)
            self._cannot_start(action, requested_at, error)

    def _spawn_with_spare(self, action: Started) -> HookProcess | None:
        """Spawn the action. When descriptors are short, a hook that ends a tenure may use those kept back.

        None: its user has to be looked up first.
        """
        try:
            return self._spawn(action)
        except OSError as error:
            if not self._lend_spare(action, error):
                raise
        try:
            return self._spawn(action)
        finally:
            self._spare.fill()

    def _lend_spare(self, action: Started, error: BaseException) -> bool:
        """Give up what is kept back, if a hook that ends a tenure lacks that. Return whether it does."""
        lacks = lacks_descriptors(error) and action.context.event in LOSE_SIDE
        if lacks:
            self._spare.release()
        return lacks

    def _dies_with_us(self, action: Started) -> bool:
        return self._attached is None and isinstance(action, StartRun)

    def _spawn(self, action: Started) -> HookProcess | None:
        command, name, attempt = _what(action)
        identity = self._privileges.identity(command, dies_with_us=self._dies_with_us(action))
        if identity is None:
            return None
        event_facts = self._facts(action, attempt)
        env = {**self._environ, **identity.env, **dict(command.env), **as_environment(event_facts)}
        child = HookProcess(
            command,
            identity,
            env=env,
            stdin=as_json(event_facts) + b"\n",
            lines=self._lines(action, name),
            attached=self._attached,
            ended=partial(self._end, action),
        )
        self._under_way[action] = child
        self._spawned(action, child.pgid)
        return child

    def _cannot_start(
        self, action: Started, requested_at: float, error: PrivilegesRefused | OSError | ValueError
    ) -> None:
        """Try again soon while there is time and the error may pass, else report the end from the loop."""
        why, loop, now = _reason(error), asyncio.get_running_loop(), self._clock()
        end_by = action.begin_by
        if isinstance(action, StartHook):
            end_by = min(end_by, requested_at + action.hook.timeout_s)
        if is_passing(error) and not isinstance(error, Unwatched) and now + RETRY_PAUSE_S < end_by:
            if action not in self._under_way:
                self._delayed(action, why)
            again = partial(self._try_again, action, requested_at, now + RETRY_PAUSE_S, why)
            self._under_way[action] = loop.call_later(RETRY_PAUSE_S, again)
            return
        self._end_soon(action, f"cannot start: {why}", began=isinstance(error, Unwatched))

    def _end_soon(self, action: Started, detail: str, *, began: bool = False) -> None:
        """Report the end from the loop, because nothing of the action runs."""
        self._under_way[action] = None
        asyncio.get_running_loop().call_soon(partial(self._end, action, False, detail, began=began))

    def _try_again(self, action: Started, requested_at: float, due_at: float, why: str) -> None:
        if action.begin_by < inf and self._clock() > min(due_at + LATE_S, action.begin_by):
            self._end(action, False, f"cannot start: {why}", began=False)
            return
        self._try(action, requested_at)

    def _call_off(self, action: Started, under_way: asyncio.Task[Any] | asyncio.TimerHandle | None) -> None:
        """Cancel a start that has no process. None: its end is about to be reported already."""
        if isinstance(under_way, asyncio.TimerHandle):
            under_way.cancel()
            self._end_soon(action, STOPPED_EARLY)
        elif under_way is not None and not under_way.cancel():
            self._under_way[action] = None  # it is done, and its callback comes in the next turn of the loop

    def _send(self, action: StartHook, webhook: Webhook) -> None:
        event_facts = self._facts(action, action.attempt)
        lacks = partial(self._on_shortage, action)
        task = asyncio.create_task(self._webhooks.send(webhook, event_facts, action.hook.timeout_s, lacks))
        self._under_way[action] = task
        task.add_done_callback(partial(self._sent, action))

    def _on_shortage(self, action: StartHook, error: OSError) -> None:
        """Log that a webhook lacks something. A hook that ends a tenure gets what is kept back for it."""
        self._delayed(action, str(error.strerror))
        self._lend_spare(action, error)

    def _sent(self, action: StartHook, task: asyncio.Task[tuple[bool, str]]) -> None:
        if task.cancelled():
            self._end(action, False, "stopped")
        elif (error := task.exception()) is None:
            self._end(action, *task.result())
        else:
            self._end(action, False, f"cannot send: a bug: {type(error).__name__}")
            raise error  # so that the loop's exception handler ends the daemon

    def _end(self, action: Started, ok: bool, detail: str, *, began: bool = True) -> None:
        under_way, code, left = self._under_way.pop(action), None, ""
        if isinstance(under_way, HookProcess):
            code, left = under_way.code, under_way.left
            self.unkillable.watch(under_way.pgid, *owner_of(action))
        self._spare.fill()
        if not self._under_way:
            self._idle.set()
        if isinstance(action, StartHook):
            self._report(HookEnded(action, ok, detail, began, left))
        else:
            self._report(RunEnded(action, detail, began, code, left))

    def _facts(self, action: Started, attempt: int) -> dict[str, Fact]:
        now, at = self._clock(), time.time()
        return facts(action.context, attempt=attempt, node=self._node, now=now, at=at)

    def _lines(self, action: Started, name: str) -> tuple[Lines, Lines]:
        budget, context = LineBudget(self._clock), action.context
        line = partial(HookLine, context.name, name, context.transition)
        return (
            Lines(lambda text: self._log_line(line("stdout", text)), budget),
            Lines(lambda text: self._log_line(line("stderr", text)), budget),
        )


def _what(action: Started) -> tuple[Command, str, int]:
    """Return the command, its name in the log, and the number of the attempt."""
    if isinstance(action, StartRun):
        return action.run.command, "run", 1
    assert isinstance(action.hook.call, Command)
    return action.hook.call, action.hook.name, action.attempt


def _reason(error: PrivilegesRefused | OSError | ValueError) -> str:
    if not isinstance(error, OSError):
        return str(error)
    return f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
