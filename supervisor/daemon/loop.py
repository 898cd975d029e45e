"""The loop: an event goes to the core, the actions that come back are carried out, in order.

The world that the driver's turns act upon: sockets, processes, files, signals and the clock. It
decides nothing about items: it tells the core what happened and when, and does what the core
says. One process, one thread, one asyncio loop; ``dispatch`` is synchronous to its end, and
nothing it starts may call it back before it has returned.
"""

import asyncio
import errno
import os
import secrets
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from supervisor.config import Config
from supervisor.consul.client import Exchanges, wanted_of
from supervisor.consul.token import TokenError
from supervisor.control import ControlError
from supervisor.core.actions import (
    Action,
    Finished,
    KillHook,
    PrepareWrite,
    Request,
    StartHook,
    StartRun,
    StopRun,
    WriteRecord,
)
from supervisor.core.contenders import Contenders
from supervisor.core.events import (
    ConfigLoaded,
    Event,
    HookEnded,
    RunEnded,
    StopAsked,
    Tick,
)
from supervisor.core.reload import ReloadEffect, plan_reload
from supervisor.daemon import signals
from supervisor.daemon.driver import Driver
from supervisor.daemon.hearing import listen
from supervisor.daemon.listeners import Doors
from supervisor.daemon.operator import Operator
from supervisor.daemon.records import Records
from supervisor.daemon.reload import CannotReload, Reloaded, changes_of, read_again
from supervisor.hooks import Hooks
from supervisor.journal.fsync import Flush
from supervisor.preflight.lookout import Lookout
from supervisor.telemetry.log import Log
from supervisor.telemetry.systemd import Notify

EXIT_DONE = 0
EXIT_NOT_CLEAN = 1
EXIT_BUG = 70
WHY_CHARS_MAX = 4000  # of a file with many faults, in one line of the log
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def boottime() -> float:
    """Seconds of CLOCK_BOOTTIME, which goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Listens(Protocol):
    """Who is told of every turn: the log, history, metrics."""

    def turn(self, event: Event, actions: Sequence[Action]) -> None:
        """An event, and what was decided about it."""


class Daemon:
    """One running supervisor. ``run`` returns the exit code."""

    def __init__(
        self,
        config: Config,
        node_name: str,
        environ: Mapping[str, str],
        log: Log,
        *,
        load: Callable[[], Config] | None = None,
        path: Path | None = None,
    ) -> None:
        """``load`` reads the configuration again; None: there is none that could be read, so the daemon
        ends as soon as what is on record is wound up. ``path``: of the configuration.

        Raises TokenError when the token file cannot be used, JournalError when state_dir cannot.
        """
        self._log = log
        self._config = config
        self._load = load
        self._environ = environ
        self._exchanges = Exchanges(
            config, lambda level, event, why: log.line(level, event, why=why), boottime
        )
        self._flush = Flush()
        self._records = Records(config, log, self._flush.want)
        begun = self._records.start(wanted_of(config), boottime())
        self._hooks = Hooks(
            node=node_name,
            report=self._ended_child,
            log_line=log.output,
            spawned=self._records.group_began,
            delayed=log.delayed,
            environ=self._inherited(),
            clock=boottime,
        )
        self._learnable = tuple(begun.settings)
        self._driver = Driver(Contenders(begun.contenders, begun.successors), self)
        self._operator = Operator(self._driver.contenders, self.dispatch, self._reload)
        self._doors = Doors(
            config, self._driver.contenders, self._operator.ask, log, boottime, node_name=node_name, path=path
        )
        self._lookout = Lookout(self.dispatch, log, environ, path)
        self._notify = Notify(self._driver.contenders, environ, boottime, self._warn_systemd)
        told = (log, self._doors.history, self._doors.metrics, self._operator, self._notify)
        self._listeners: tuple[Listens, ...] = told
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._unsaid: deque[tuple[Event, list[Action]]] = deque()
        self._ended = asyncio.Event()
        self._clean = True
        self._stopping = False
        self._hears_one_stop = False
        self._only_wind_up = load is None
        self._interrupted = False

    async def run(self) -> int:
        """Take part in all items until a signal says stop; 0 when all wound up in order.

        Raises ControlError when the control socket cannot be made.
        """
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._bug)
        stop, again = self._stop, self._hang_up
        listen(loop, {signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGHUP: again})
        signals.let_through()
        try:
            await self._doors.open()
        except ControlError:
            await self._close()
            raise
        self._log.line("info", "started", items=len(self._driver.contenders.by_name), pid=os.getpid())
        self.dispatch(Tick())
        asyncio.get_running_loop().call_soon(self._learn, 0)
        if self._only_wind_up:
            self.dispatch(StopAsked())
        else:  # behind the first turn: no adoption waits for it
            loop.call_soon(self._begin_to_look)
        await self._ended.wait()
        await self._close()
        clean = self._clean and not self._interrupted
        self._log.line("info", "stopped", clean=clean)
        self._log.finish()
        return EXIT_DONE if clean else EXIT_NOT_CLEAN

    def _begin_to_look(self) -> None:
        if not self._stopping:
            self._lookout.follow(self._config)

    def _learn(self, number: int) -> None:
        """One item's users after the other, with whatever else is due between them."""
        if number < len(self._learnable) and not self._ended.is_set():
            self._hooks.learn(self._learnable[number])
            asyncio.get_running_loop().call_later(0.0, self._learn, number + 1)

    def dispatch(self, event: Event) -> None:
        """One turn, unless all is over."""
        if self._ended.is_set():
            return
        self._driver.dispatch(event)
        if (self._stopping or self._only_wind_up) and self._driver.contenders.stopped:
            self._ended.set()

    def _ended_child(self, event: HookEnded | RunEnded) -> None:
        """Usually what follows is on record, too: with the end of this, in one line."""
        self._records.group_ended(event.started)
        self.dispatch(event)
        self._records.settle(event.started.context.name)

    # --- the world that a turn acts upon ---------------------------------------------------------

    def now(self) -> float:
        """Seconds of CLOCK_BOOTTIME."""
        return boottime()

    def request(self, request: Request) -> None:
        """Sent before this returns, where a connection is ready."""
        self._start(self._exchanges.begin(request, self.dispatch))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._bug(asyncio.get_running_loop(), {"message": "a task failed", "exception": error})

    def prepare(self, prepare: PrepareWrite) -> None:
        """A connection is opened ahead, and the bytes are laid ready."""
        self._exchanges.prepare(prepare)

    def start_hook(self, start: StartHook) -> None:
        """A child or a webhook."""
        self._hooks.start(start)

    def kill_hook(self, kill: KillHook) -> None:
        """TERM, then KILL, to its process group."""
        self._hooks.kill(kill)

    def start_run(self, start: StartRun) -> None:
        """A child."""
        self._hooks.start_run(start)

    def stop_run(self, stop: StopRun) -> None:
        """TERM, then KILL, to its process group."""
        self._hooks.stop_run(stop)

    def write_record(self, write: WriteRecord) -> str:
        """A line of the journal."""
        return self._records.write(write)

    def finished(self, finished: Finished) -> None:
        """Whether an operator is needed decides the exit code."""
        self._clean = self._clean and finished.clean

    def wake(self, at: float) -> None:
        """One timer for all items."""
        if self._timer is not None:
            self._timer.cancel()
        delay_s = max(0.0, at - boottime())
        self._timer = asyncio.get_running_loop().call_later(delay_s, self.dispatch, Tick())

    def tell(self, event: Event, actions: list[Action]) -> None:
        """Behind all that this turn has begun; no answer comes before the loop's next turn."""
        self._unsaid.append((event, actions))
        asyncio.get_running_loop().call_soon(self._say)

    def _say(self) -> None:
        while self._unsaid:
            event, actions = self._unsaid.popleft()
            for listener in self._listeners:
                listener.turn(event, actions)

    # --- stopping --------------------------------------------------------------------------------

    def _stop(self) -> None:
        if not self._stopping:
            self._stopping = self._hears_one_stop = True
            asyncio.get_running_loop().call_soon(self._hears_the_next)
            self._lookout.close()
            self.dispatch(StopAsked())
            return
        if self._hears_one_stop:
            return
        self._log.line("error", "interrupted", why="a second signal: hooks are killed, locks may stay")
        self._interrupted = True
        self._hooks.kill_all()
        self._ended.set()

    def _hears_the_next(self) -> None:
        """Signals that were there together, before we could hear, are one stop and no haste."""
        self._hears_one_stop = False

    def _warn_systemd(self, why: str) -> None:
        self._log.line("warning", "systemd", why=why)

    async def _close(self) -> None:
        await self._doors.close()
        self._lookout.close()
        if self._timer is not None:
            self._timer.cancel()
        for task in tuple(self._tasks):
            task.cancel()
        await self._hooks.close()
        await self._exchanges.close()
        self._flush.close()
        self._records.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._say()

    # --- another file ----------------------------------------------------------------------------

    def _hang_up(self) -> None:
        """SIGHUP. What became of it is in the log."""
        with suppress(CannotReload):
            self._reload()

    def _reload(self) -> Reloaded:
        """What has changed by the file as it is now. Raises CannotReload."""
        self._notify.reloading()
        try:
            return self._read_again()
        finally:
            self._notify.reloaded()

    def _read_again(self) -> Reloaded:
        try:
            if self._load is None or self._stopping:
                raise CannotReload("cannot reload: the daemon is stopping", faulty=False)
            config = read_again(self._load, self._config)
            self._exchanges.token.change(config.consul)
        except (CannotReload, TokenError) as error:
            why = "; ".join((str(error), *getattr(error, "lines", ())))
            self._log.line("error", "reload-refused", why=why[:WHY_CHARS_MAX])
            self._doors.metrics.reloaded(False)
            if isinstance(error, CannotReload):
                raise
            raise CannotReload(f"cannot reload: {error}") from None
        return self._follow(config)

    def _follow(self, config: Config) -> Reloaded:
        contenders = self._driver.contenders
        wanted = {settings.name: settings for settings in config.items}
        effects = plan_reload(contenders.by_name, contenders.waiting, wanted)
        self._log.adjust(config.log.level, config.log.format)
        self._doors.metrics.reloaded(True)
        for warning in config.warnings:
            self._log.line("warning", "configuration", why=str(warning))
        reloaded = Reloaded(effects, tuple(changes_of(self._config, config)))
        changed = {
            str(effect): ", ".join(name for name in effects if effects[name] is effect)
            for effect in ReloadEffect
        }
        self._log.line("info", "reloaded", process="; ".join(reloaded.process), **changed)
        self._config = config
        self._records.follow(config)
        self._hooks.inherit(self._inherited())
        self._learnable = config.items
        asyncio.get_running_loop().call_soon(self._learn, 0)
        if self._doors.follow(config, {*contenders.by_name, *wanted}):
            self._start(self._doors.move())
        self._exchanges.follow(config)
        going_on = [
            name
            for name, effect in effects.items()
            if effect in (ReloadEffect.UNCHANGED, ReloadEffect.CHANGES)
        ]
        self.dispatch(ConfigLoaded(wanted_of(config, going_on), secrets.token_hex(8)))
        self._lookout.follow(config)
        return reloaded

    def _inherited(self) -> dict[str, str]:
        """What hooks may see of our environment."""
        withheld = self._records.withheld
        return {name: value for name, value in self._environ.items() if name not in withheld}

    def _bug(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """An exception that nobody awaits is a bug of ours: dying is safer than half a daemon.

        But for a client that could not be let in, for the machine or this process has no descriptors:
        asyncio tries again in a second.
        """
        error = context.get("exception")
        if (
            isinstance(error, OSError)
            and error.errno in NO_DESCRIPTORS
            and "accept" in str(context["message"])
        ):
            self._doors.crowded(error)
            return
        try:
            self._say()
            trace = "".join(traceback.format_exception(error)) if isinstance(error, BaseException) else ""
            self._log.line("error", "bug", what=str(context.get("message")), trace=trace)
            self._log.finish()
        finally:
            os._exit(EXIT_BUG)
