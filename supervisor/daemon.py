"""The loop: an event goes to the core, the actions that come back are carried out, in order.

The world that the driver's turns act upon: sockets, processes, files, signals and the clock. It
decides nothing about items: it tells the core what happened and when, and does what the core
says. One process, one thread, one asyncio loop; ``dispatch`` is synchronous to its end, and
nothing it starts may call it back before it has returned.
"""

import asyncio
import errno
import os
import random
import resource
import secrets
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from supervisor import __version__, signals
from supervisor.config import Config
from supervisor.consul import Consul
from supervisor.control import Command, ControlError, Reply
from supervisor.control import Outcome as CommandOutcome
from supervisor.control.server import Control, serve
from supervisor.core.actions import (
    Acquire,
    Action,
    CreateSession,
    DestroySession,
    Enroll,
    Finished,
    KillHook,
    Leave,
    Prepare,
    Release,
    Remember,
    Request,
    StartHook,
    StartRun,
    StopRun,
    TakeSlot,
    Watch,
)
from supervisor.core.events import (
    Answered,
    Event,
    FileLoaded,
    HookEnded,
    Outcome,
    RunEnded,
    StopAsked,
    Tick,
    Unknown,
)
from supervisor.core.node import Node
from supervisor.core.reload import Fate, fates_of
from supervisor.driver import Driver
from supervisor.history import History
from supervisor.hooks import Hooks
from supervisor.http_server import Peer
from supervisor.journal.flush import Flush
from supervisor.log import Level, Log
from supervisor.log.troubles import REPEAT_S
from supervisor.metrics import Metrics
from supervisor.notify import Notify
from supervisor.operations import Operator
from supervisor.records import Records
from supervisor.reload import CannotReload, read_again
from supervisor.status import Facts, Status
from supervisor.token import Token, TokenError
from supervisor.transport import Endpoint, ExchangeFailed, Transport
from supervisor.web import Listener, Routes
from supervisor.web.listener import LIMITS

EXIT_DONE = 0
EXIT_NOT_CLEAN = 1
EXIT_BUG = 70
WHY_CHARS_MAX = 4000  # of a file with many faults, in one line of the log
DESCRIPTORS_BASE = 128
DESCRIPTORS_EACH = 12  # its exchanges, the pipes of two hooks, its record
CLIENTS_MIN = 8  # over TCP, where descriptors are scarce: the items need theirs
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
WRITES = (Acquire, CreateSession, DestroySession, Enroll, Leave, Release, TakeSlot)


def boottime() -> float:
    """Seconds of CLOCK_BOOTTIME, which goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _allow_descriptors(items: int, clients: int) -> int:
    """Room for all items to run a hook at once and for so many clients over TCP, as far as the hard
    limit lets us; how many clients that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ours = DESCRIPTORS_BASE + DESCRIPTORS_EACH * items
    wanted = ours + clients
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(CLIENTS_MIN, wanted - ours)


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
        self._token = Token(
            config.consul,
            warn=lambda text: log.line("error", "token-file", why=text),
            renewed=lambda text: log.line("info", "token-renewed", why=text),
        )
        endpoint = Endpoint.of(config.consul.address, config.consul.tls)
        self._consul = Consul(config.consul, endpoint.base_url, self._token)
        self._transport = Transport(endpoint, warn=lambda text: log.line("error", "tls-files", why=text))
        self._flush = Flush()
        self._records = Records(config, log, self._flush.want)
        begun = self._records.start(boottime())
        self._hooks = Hooks(
            node=node_name,
            report=self._ended_child,
            log_line=log.output,
            spawned=self._records.group_began,
            environ=self._inherited(config),
            clock=boottime,
        )
        self._learnable = tuple(begun.settings)
        self._driver = Driver(Node(begun.contenders, begun.successors), self)
        self._operator = Operator(self._driver.node, self.dispatch, self._reload)
        self._history = history = History(time.time, boottime)
        self._notify = Notify(self._driver.node, environ, boottime, self._warn_systemd)
        where = None if path is None else str(path)
        facts = Facts(__version__, node_name, os.getpid(), where, config.consul.address)
        status = Status(self._driver.node, history, facts, time.time, boottime)
        self._metrics = Metrics(status, history, boottime, time.time)
        self._listeners: tuple[Listens, ...] = (log, history, self._metrics, self._operator, self._notify)
        self._routes = Routes(status, self._metrics)
        self._listener = self._new_listener(config, len(begun.contenders))
        self._listening = asyncio.Lock()
        self._control_settings = config.control
        self._control: Control | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._unsaid: deque[tuple[Event, list[Action]]] = deque()
        self._ended = asyncio.Event()
        self._crowded_at = -REPEAT_S
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
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        signals.let_through()
        await self._open_control()
        if self._listener is not None:
            await self._listener.open()
        self._log.line("info", "started", items=len(self._driver.node.contenders), pid=os.getpid())
        self.dispatch(Tick())
        asyncio.get_running_loop().call_soon(self._learn, 0)
        if self._only_wind_up:
            self.dispatch(StopAsked())
        await self._ended.wait()
        await self._close()
        clean = self._clean and not self._interrupted
        self._log.line("info", "stopped", clean=clean)
        self._log.finish()
        return EXIT_DONE if clean else EXIT_NOT_CLEAN

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
        if (self._stopping or self._only_wind_up) and self._driver.node.stopped:
            self._ended.set()

    def _ended_child(self, event: HookEnded | RunEnded) -> None:
        self._records.group_ended(event.started)
        self.dispatch(event)

    # --- the world that a turn acts upon ---------------------------------------------------------

    def now(self) -> float:
        """Seconds of CLOCK_BOOTTIME."""
        return boottime()

    def request(self, request: Request) -> None:
        """An exchange of its own connection; it sends in the loop's next turn."""
        self._start(self._exchange(request))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def prepare(self, prepare: Prepare) -> None:
        """A connection is opened ahead, and the bytes are laid ready."""
        self._transport.prepare(self._consul.prepare(prepare.request))

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

    def remember(self, remember: Remember) -> str:
        """A line of the journal."""
        return self._records.remember(remember)

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
        """Behind the exchanges that have just been begun: they send in the loop's next turn."""
        self._unsaid.append((event, actions))
        asyncio.get_running_loop().call_soon(self._say)

    def _say(self) -> None:
        while self._unsaid:
            event, actions = self._unsaid.popleft()
            for listener in self._listeners:
                listener.turn(event, actions)

    # --- exchanges -------------------------------------------------------------------------------

    async def _exchange(self, request: Request) -> None:
        self.dispatch(Answered(request, await self._outcome(request)))

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._bug(asyncio.get_running_loop(), {"message": "a task failed", "exception": error})

    async def _outcome(self, request: Request) -> Outcome:
        timeout_s = max(0.0, request.at + request.timeout_s - boottime())
        fresh = isinstance(request, WRITES)
        lag_s = request.lag_s if isinstance(request, Watch) else 0.0
        prepared = self._consul.encode(request)
        try:
            response = await self._transport.exchange(prepared, timeout_s=timeout_s, fresh=fresh, lag_s=lag_s)
        except ExchangeFailed as failure:
            return Unknown(str(failure))
        return self._consul.decode(request, response)

    # --- stopping --------------------------------------------------------------------------------

    def _stop(self) -> None:
        if not self._stopping:
            self._stopping = self._hears_one_stop = True
            asyncio.get_running_loop().call_soon(self._hears_the_next)
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

    async def _open_control(self) -> None:
        if self._control_settings is None:
            return
        try:
            self._control = await serve(
                self._control_settings, self._operator.ask, self._asked, self._routes.answer, self._warn
            )
        except ControlError:
            await self._close()
            raise

    def _asked(self, command: Command, reply: Reply, peer: Peer) -> None:
        level: Level = "info" if reply.outcome is CommandOutcome.DONE else "warning"
        name = "all" if command.name is None else command.name
        self._log.line(level, "command", verb=command.verb, name=name, uid=peer.uid, why=reply.error)

    def _tell_listening(self, level: Level, why: str) -> None:
        self._log.line(level, "http", why=why)

    def _tell_crowded(self, error: OSError) -> None:
        """It comes up to ACCEPTS_MAX times a second."""
        if boottime() - self._crowded_at >= REPEAT_S:
            self._crowded_at = boottime()
            self._tell_listening("warning", f"cannot let a client in: {error.strerror}; trying again")

    def _warn(self, why: str) -> None:
        self._log.line("warning", "control-socket", why=why)

    def _warn_systemd(self, why: str) -> None:
        self._log.line("warning", "systemd", why=why)

    async def _close(self) -> None:
        if self._control is not None:
            await self._control.close()
        if self._listener is not None:
            await self._listener.close()
        if self._timer is not None:
            self._timer.cancel()
        for task in tuple(self._tasks):
            task.cancel()
        await self._hooks.close()
        await self._transport.close()
        self._flush.close()
        self._records.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._say()

    # --- another file ----------------------------------------------------------------------------

    def _hang_up(self) -> None:
        """SIGHUP. What became of it is in the log."""
        with suppress(CannotReload):
            self._reload()

    def _reload(self) -> Mapping[str, Fate]:
        """What becomes of each item by the file as it is now. Raises CannotReload."""
        self._notify.reloading()
        try:
            return self._read_again()
        finally:
            self._notify.reloaded()

    def _read_again(self) -> Mapping[str, Fate]:
        try:
            if self._load is None or self._stopping:
                raise CannotReload("cannot reload: the daemon is stopping")
            config = read_again(self._load, self._config)
            self._token.change(config.consul)
        except (CannotReload, TokenError) as error:
            why = "; ".join((str(error), *getattr(error, "lines", ())))
            self._log.line("error", "reload-refused", why=why[:WHY_CHARS_MAX])
            self._metrics.reloaded(False)
            if isinstance(error, CannotReload):
                raise
            raise CannotReload(f"cannot reload: {error}") from None
        return self._follow(config)

    def _follow(self, config: Config) -> Mapping[str, Fate]:
        node = self._driver.node
        wanted = {settings.name: settings for settings in config.items}
        fates = fates_of(node.contenders, node.waiting, wanted)
        self._log.adjust(config.log.level, config.log.format)
        self._metrics.reloaded(True)
        for warning in config.warnings:
            self._log.line("warning", "configuration", why=str(warning))
        changed = {fate: [name for name in fates if fates[name] is fate] for fate in Fate}
        self._log.line("info", "reloaded", **{str(fate): ", ".join(names) for fate, names in changed.items()})
        listened, self._config = self._config.http, config
        self._hooks.inherit(self._inherited(config))
        self._learnable = config.items
        asyncio.get_running_loop().call_soon(self._learn, 0)
        self._history.keep({*node.contenders, *wanted})
        clients = 0 if config.http is None else LIMITS.clients_max
        _allow_descriptors(len(node.contenders) + len(wanted), clients)
        if config.http != listened:
            self._start(self._listen_anew())
        spread = tuple((settings, random.random()) for settings in config.items)
        self.dispatch(FileLoaded(spread, secrets.token_hex(8)))
        return fates

    def _new_listener(self, config: Config, items: int) -> Listener | None:
        """Descriptors are had for so many items, too."""
        clients = _allow_descriptors(items, 0 if config.http is None else LIMITS.clients_max)
        if config.http is None:
            return None
        limits = replace(LIMITS, clients_max=clients)
        return Listener(config.http, self._routes, self._tell_listening, limits)

    async def _listen_anew(self) -> None:
        async with self._listening:
            if self._listener is not None:
                await self._listener.close()
            self._listener = self._new_listener(self._config, len(self._driver.node.contenders))
            if self._listener is not None:
                await self._listener.open()

    def _inherited(self, config: Config) -> dict[str, str]:
        """What hooks may see of our environment."""
        withheld = config.withheld | self._records.withheld
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
            self._tell_crowded(error)
            return
        try:
            self._say()
            trace = "".join(traceback.format_exception(error)) if isinstance(error, BaseException) else ""
            self._log.line("error", "bug", what=str(context.get("message")), trace=trace)
            self._log.finish()
        finally:
            os._exit(EXIT_BUG)
