"""The daemon: one process, one thread, one asyncio loop, and all parts that the driver acts upon.

The daemon decides nothing about items: it reports each event with its time to the core, and carries out the
actions that the core decides. ``dispatch`` is synchronous to its end, and no part that it starts may call it
before it has returned.
"""

import asyncio
import errno
import os
import secrets
import signal
import time
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from supervisor import __version__
from supervisor.adapters.consul.client import ConsulClient
from supervisor.adapters.consul.token import TokenError
from supervisor.adapters.consul.wanted import wanted_of
from supervisor.adapters.hooks.attempts import Hooks
from supervisor.adapters.hooks.output import HookLine
from supervisor.adapters.journal.identity import place_here
from supervisor.adapters.runtime import signals
from supervisor.adapters.runtime.background import Background
from supervisor.adapters.runtime.clock import boottime
from supervisor.adapters.runtime.driver import STARTED_S, Driver, Effects, prepare_hand_over
from supervisor.adapters.runtime.notification import still_starting
from supervisor.config import Config
from supervisor.config.notification import may_stand_still_s
from supervisor.core.actions import (
    Action,
    Finished,
    KillHook,
    PrepareWrite,
    Reason,
    StartHook,
    StartRun,
    StopRun,
    WriteRecord,
)
from supervisor.core.contender.state import Contender
from supervisor.core.contenders import Contenders
from supervisor.core.events import ConfigLoaded, Event, StopAsked, SurvivorsChanged, Tick
from supervisor.core.reload import ReloadEffect, plan_reload, restarted_by
from supervisor.core.requests import Acquire, JoinSemaphore, LeaveSemaphore, Release, Request, TakeSlot
from supervisor.core.settings import ItemSettings, Place
from supervisor.daemon.events import Events
from supervisor.daemon.fleet.fleet import Fleet
from supervisor.daemon.fleet.presence import LEAVE_S, withdraw
from supervisor.daemon.listeners import Listeners
from supervisor.daemon.operator import OR_FORCE, Operator
from supervisor.daemon.outages import Outages
from supervisor.daemon.pauses import Pauses
from supervisor.daemon.preflight.monitor import HookMonitor
from supervisor.daemon.records import Records
from supervisor.daemon.reload import CannotReload, Reloaded, changes_of, read_again
from supervisor.daemon.shared import Shared
from supervisor.daemon.shots import KeptShots
from supervisor.reporting.control import ControlError
from supervisor.reporting.telemetry.facts import Facts
from supervisor.reporting.telemetry.history import History
from supervisor.reporting.telemetry.log import Level, Log
from supervisor.reporting.telemetry.status import Status
from supervisor.reporting.telemetry.systemd import SystemdNotifier

EXIT_DONE = 0
EXIT_NOT_CLEAN = 1
EXIT_BUG = 70
WHY_CHARS_MAX = 4000  # of a file with many faults, in one line of the log
DELIBERATE = "session.ttl"  # what `check` warns of here is so on purpose, once it runs
STOPPING = "cannot reload: the daemon is stopping"
AGAIN_S = 5.0  # between two looks at files that a start could not read
HANDOVER_QUIET_S = 0.005  # the time of an acquire and its answer, or until a hook runs
HANDS_OVER = (Acquire, JoinSemaphore, TakeSlot, Release, LeaveSemaphore, StartHook, StartRun)
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

Observe = Callable[[Event, Sequence[Action]], None]


class Daemon:
    """One running supervisor. ``run`` returns the exit code."""

    _timer: asyncio.TimerHandle | None = None
    _clean = True
    _step_at = 0.0  # of the step that the observers see
    _stopping = False
    _ignores_second_stop = False
    _interrupted = False

    def __init__(
        self,
        config: Config,
        node_name: str,
        environ: Mapping[str, str],
        log: Log,
        *,
        load: Callable[[], Awaitable[Config]] | None = None,
        path: Path | None = None,
        refused: str = "",
        reads_again: bool = False,
        place: Place | None = None,
    ) -> None:
        """Open the journal, end the hooks that a crashed process left running, and make all parts.

        load: reads the configuration again. None: none can be read, so the daemon only winds up the records.
        refused: why the configuration is not that of the present files. Blank: it is.
        reads_again: whether that may pass by itself.
        place: where this process says that it runs. None: on this machine.
        Raises JournalError or JournalBusy for state_dir.
        """
        self._log, self._environ = log, environ
        self._load, self._reads_again = load, reads_again
        self._only_wind_up = load is None
        self._place = place or place_here()
        self._config, self._kept = replace(config, kept=b""), config.kept
        self._background = Background(self._on_unhandled_exception)
        self._withdrawals = Background(self._on_unhandled_exception)
        self._pending: deque[tuple[float, Event, list[Action]]] = deque()  # with the time of each step
        self._ended = asyncio.Event()
        self._reload_lock = asyncio.Lock()
        self._log_warnings(config)
        self._history = History(time.time, boottime, refused)
        self._client = ConsulClient(
            config, lambda level, event, why: log.line(level, event, why=why), boottime, TokenError
        )
        self._driver = self._go_on(config, node_name)
        self._shared = shared = self._share(node_name, path)
        self._operator = Operator(shared, self._reload, self._records.made)
        self._pauses, self._outages = Pauses(shared), Outages(shared)
        self._shots = KeptShots(shared, config, self._records)
        self._fleet = Fleet(config, shared, self._records)
        self._listeners = Listeners(config, shared, self._operator.execute, self._fleet.shown)
        self._events = Events(shared, self._records.folder, self._records.machine)
        self._monitor = HookMonitor(self.dispatch, log, environ, path, self._on_unhandled_exception)
        self._notifier = SystemdNotifier(shared.contenders, environ, boottime, log)
        self._observers = self._new_observers()

    def _go_on(self, config: Config, node_name: str) -> Driver:
        """Open the journal, end what a crashed process left running, and return the driver of what begins.

        Each may take as long as systemd waits without a sign of life.
        """
        for_s = may_stand_still_s(self._environ)
        still_starting(self._environ, for_s)
        self._records = Records(config, self._log, self._history, self._environ)
        still_starting(self._environ, for_s)
        unwanted = Reason.SHUTDOWN if self._only_wind_up else Reason.CONFIG_CHANGED
        begun = self._records.start(wanted_of(config, place=self._place), boottime(), unwanted)
        self._place = replace(self._place, journal=self._records.id)
        self._items_to_preload = tuple(begun.settings)
        self._hooks = self._new_hooks(node_name)
        return Driver(Contenders(begun.contenders, begun.successors), self, self._effects())

    def _share(self, node_name: str, path: Path | None) -> Shared:
        contenders, history = self._driver.contenders, self._history
        address, failed = self._config.consul.address, self._on_unhandled_exception
        status = Status(contenders, history, node=node_name, consul=address, path=path)
        return Shared(node_name, contenders, self.dispatch, self._client, status, history, self._log, failed)

    def _new_hooks(self, node_name: str) -> Hooks:
        return Hooks(
            node=node_name,
            report=self.dispatch,
            log_line=self._on_output,
            spawned=self._records.group_began,
            ended=self._records.group_ended,
            survive=lambda item, left: self.dispatch(SurvivorsChanged(item, left)),
            delayed=self._log.delayed,
            environ=self._inherited(),
            clock=boottime,
        )

    def _new_observers(self) -> tuple[Observe, ...]:
        """Return what sees every step. A step has its meaning found out once, for those that need it."""
        counters = self._listeners.metrics.counters
        told = (self._log.on_step, self._history.on_step, counters.on_step, self._fleet.on_facts)
        facts = Facts(lambda: self._step_at, *told)
        kept = (self._pauses, self._outages, self._shots)
        observers = (facts, self._operator, self._notifier, *kept, self._fleet)
        return tuple(each.on_step for each in observers)

    def _effects(self) -> Effects:
        """Return the function for each action of the core that is neither a request nor a record."""
        return {
            PrepareWrite: self._client.prepare,
            StartHook: self._hooks.start,
            KillHook: self._hooks.stop,
            StartRun: self._hooks.start,
            StopRun: self._hooks.stop,
            Finished: self._finished,
        }

    async def run(self) -> int:
        """Take part in all items until a signal requests a stop. Return 0 if all ended in order, else 1.

        Raises ControlError when the control socket cannot be made.
        """
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._on_unhandled_exception)
        stop, again = self._on_stop_signal, lambda: self._background.start(self._reload_for_signal())
        signals.listen(loop, {signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGHUP: again})
        signals.unblock()
        try:
            await self._listeners.open()
        except ControlError:
            await self._close()
            await self._records.close()
            raise
        items = len(self._driver.contenders.by_name)
        self._log.line("info", "started", items=items, pid=os.getpid(), version=__version__)
        self._records.keep(self._kept)
        self._kept = b""
        if self._history.refused:
            self._refused(self._history.refused)
        for pgid, (item, _) in tuple(self._records.groups.items()):
            self._hooks.unkillable.watch(pgid, item)
        self.dispatch(Tick())
        self._pauses.look_again()
        self._background.start(self._preload_users(self._items_to_preload))
        loop.call_later(STARTED_S, prepare_hand_over)
        if self._only_wind_up:
            self.dispatch(StopAsked())
        else:  # after the first step, so that no adoption waits for the monitor
            loop.call_soon(self._start_monitor)
            self._fleet.begin(self._background)
        self._background.start(self._events.restore())
        if self._reads_again:
            self._background.start(self._reload_until_good())
        await self._ended.wait()
        self._notify_observers()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._withdrawals.ended(), 0.0 if self._interrupted else LEAVE_S)
        leaves = not (self._interrupted or self._only_wind_up)
        await self._fleet.close(in_haste=self._interrupted, leaves=leaves)
        await self._close()
        clean = self._clean and not self._interrupted
        self._log.line("info", "stopped", clean=clean)
        self._events.close()
        await self._records.close()
        self._log.finish()
        return EXIT_DONE if clean else EXIT_NOT_CLEAN

    def _start_monitor(self) -> None:
        if not self._stopping:
            self._monitor.follow(self._config)

    async def _preload_users(self, items: Sequence[ItemSettings]) -> None:
        """Look up the users of one item's hooks, then of the next item's, with other work between them."""
        for settings in items:
            await self._hooks.preload_users(settings)
            await asyncio.sleep(0)

    def dispatch(self, event: Event) -> None:
        """Run one step, unless the daemon has ended."""
        if self._ended.is_set():
            return
        self._driver.dispatch(event)
        if (self._stopping or self._only_wind_up) and self._driver.contenders.stopped:
            self._ended.set()

    def _on_output(self, line: HookLine) -> None:
        """Log a line of a hook, after the lines of the steps before it."""
        self._notify_observers()
        self._log.output(line)
        self._history.wrote(line)

    # --- the world that a step acts upon ---------------------------------------------------------

    def now(self) -> float:
        return boottime()

    def request(self, request: Request) -> None:
        """Send a request to Consul, before this returns if a connection is ready."""
        self._background.start(self._client.begin(request, self.dispatch))

    def write_record(self, write: WriteRecord) -> str:
        return self._records.write(write)

    def _finished(self, finished: Finished) -> None:
        """Note whether the item needs an operator: the exit code. Its instance goes, if no heir has it."""
        self._clean = self._clean and finished.clean
        self._outages.finished(self._driver.contenders.by_name[finished.item])
        if not ((heir := self._driver.contenders.not_begun.get(finished.item)) and heir.settings.service):
            self._withdrawals.start(self._withdraw(self._driver.contenders.by_name[finished.item]))

    async def _withdraw(self, ended: Contender) -> None:
        if notice := (await withdraw(self._shared, ended.service)).notice:
            self._log.line("warning", "notice", item=ended.settings.name, why=notice)

    def wake(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        delay_s = max(0.0, at - boottime())
        self._timer = asyncio.get_running_loop().call_later(delay_s, self.dispatch, Tick())

    def observe(self, event: Event, actions: list[Action]) -> None:
        """Report a step to the observers after everything that the step began, because that is urgent."""
        if not self._pending:
            asyncio.get_running_loop().call_soon(self._notify_soon)
        self._pending.append((boottime(), event, actions))

    def _notify_soon(self) -> None:
        """Notify the observers at once, or a little later when a hand-over needs the CPU."""
        if any(isinstance(action, HANDS_OVER) for *_, actions in self._pending for action in actions):
            asyncio.get_running_loop().call_later(HANDOVER_QUIET_S, self._notify_observers)
        else:
            self._notify_observers()

    def _notify_observers(self) -> None:
        while self._pending:
            self._step_at, event, actions = self._pending.popleft()
            for observe in self._observers:
                observe(event, actions)

    # --- stopping --------------------------------------------------------------------------------

    def _on_stop_signal(self) -> None:
        if not self._stopping:
            self._stopping = self._ignores_second_stop = True
            asyncio.get_running_loop().call_soon(self._accept_second_stop)
            self._monitor.close()
            self.dispatch(StopAsked())
            return
        if self._ignores_second_stop:
            return
        self._notify_observers()
        self._log.line("error", "interrupted", why="a second signal: hooks are killed, locks may stay taken")
        self._interrupted = True
        self._hooks.kill_all()
        self._ended.set()

    def _accept_second_stop(self) -> None:
        """Count signals that were pending together as one request to stop, not as "stop now"."""
        self._ignores_second_stop = False

    async def _close(self) -> None:
        await self._listeners.close()
        self._monitor.close()
        self._pauses.close()
        if self._timer is not None:
            self._timer.cancel()
        self._background.cancel()
        await self._hooks.close()
        await self._client.close()
        await self._background.ended()
        self._notify_observers()

    # --- reloading -------------------------------------------------------------------------------

    async def _reload_for_signal(self) -> None:
        with suppress(CannotReload):
            await self._reload()

    async def _reload_until_good(self) -> None:
        """Reload what a start could not read, because no person need have changed anything."""
        history = self._history
        while history.refused and not self._stopping:
            await asyncio.sleep(AGAIN_S)
            try:
                async with self._reload_lock:
                    if history.refused:
                        self._follow(await self._present())
            except CannotReload as error:
                if error.faulty:
                    history.refused = "; ".join((str(error), *error.lines[:1]))
                    self._refused(history.refused)
                    return
            except TokenError:
                continue

    async def _reload(self, force: bool = False) -> Reloaded:
        """Reload the configuration and return the changes. A reload waits for the end of an earlier one.

        force: also what gives up an item whose holder rides out a silence of Consul. Raises CannotReload.
        """
        async with self._reload_lock:
            self._notifier.reloading()
            try:
                return await self._read_again(force)
            finally:
                self._notifier.reloaded()

    async def _read_again(self, force: bool) -> Reloaded:
        try:
            return self._follow(await self._present(), force)
        except (CannotReload, TokenError) as error:
            self._refused("; ".join((str(error), *getattr(error, "lines", ()))))
            if isinstance(error, CannotReload):
                raise
            raise CannotReload(f"cannot reload: {error}") from None

    async def _present(self) -> Config:
        """Return the configuration as it is now. Raises CannotReload."""
        if self._load is None or self._stopping:
            raise CannotReload(STOPPING, faulty=False)
        config = await read_again(self._load, self._config)
        if self._stopping:  # a signal may have arrived meanwhile
            raise CannotReload(STOPPING, faulty=False)
        return config

    def _refused(self, why: str) -> None:
        self._log.line("error", "reload-refused", why=why[:WHY_CHARS_MAX])
        self._listeners.metrics.reloaded(False)

    def _follow(self, config: Config, force: bool = False) -> Reloaded:
        """Go on by the configuration. Raises CannotReload or TokenError, and then nothing has changed."""
        contenders = self._driver.contenders
        wanted = {settings.name: settings for settings in config.items}
        effects = plan_reload(contenders.by_name, contenders.not_begun, wanted)
        stops = (ReloadEffect.RESTARTS, ReloadEffect.ENDS)
        stopped = [name for name, effect in effects.items() if effect in stops]
        if not force and (why := self._shared.status.kept(stopped)):
            raise CannotReload(f"cannot reload: {why}; nothing changes{OR_FORCE}", faulty=False)
        self._client.token.change(config.consul)
        self._log.adjust(config.log.level, config.log.format)
        self._listeners.metrics.reloaded(True)
        self._history.refused = ""
        self._log_warnings(config, self._config)
        restarted = [name for name in effects if effects[name] is ReloadEffect.RESTARTS]
        keys = {name: f" ({restarted_by(contenders.by_name[name], wanted[name])})" for name in restarted}
        reloaded = Reloaded(effects, tuple(changes_of(self._config, config)), keys)
        changed = {
            str(effect): ", ".join(name + keys.get(name, "") for name in effects if effects[name] is effect)
            for effect in ReloadEffect
        }
        done = [f"{effect}: {names}" for effect, names in changed.items() if names and effect != "unchanged"]
        process, what = "; ".join(reloaded.process), "; ".join((*reloaded.process, *done))
        self._log.line("info", "reloaded", process=process, **changed, what=what)
        self._config = replace(config, kept=b"")
        self._records.follow(config)
        self._records.keep(config.kept)
        self._hooks.inherit(self._inherited())
        self._background.start(self._preload_users(config.items))
        if self._listeners.follow(config, {*contenders.by_name, *wanted}):
            self._background.start(self._listeners.move())
        self._client.follow(config)
        self._fleet.follow(config)
        going_on = [
            name
            for name, effect in effects.items()
            if effect in (ReloadEffect.UNCHANGED, ReloadEffect.CHANGES)
        ]
        self.dispatch(ConfigLoaded(wanted_of(config, going_on, self._place), secrets.token_hex(8)))
        self._monitor.follow(config)
        return reloaded

    def _log_warnings(self, config: Config, former: Config | None = None) -> None:
        """Log each warning about the configuration, unless the former configuration had it already."""
        said = {(each.path, each.message) for each in former.warnings} if former else ()
        for warning in config.warnings:
            if (warning.path, warning.message) not in said:
                level: Level = "info" if warning.path.endswith(DELIBERATE) else "warning"
                self._log.line(level, "configuration", why=str(warning))

    def _inherited(self) -> dict[str, str]:
        """Return the part of our environment that hooks may see."""
        withheld = self._records.withheld
        return {name: value for name, value in self._environ.items() if name not in withheld}

    def _on_unhandled_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """End the process, because an exception that no task awaits is our bug, and half a daemon is unsafe.

        A client that cannot be accepted is no bug: descriptors are short, and asyncio tries again soon.
        """
        error = context.get("exception")
        if (
            isinstance(error, OSError)
            and error.errno in NO_DESCRIPTORS
            and "accept" in str(context["message"])
        ):
            self._listeners.cannot_accept(error)
            return
        try:
            self._notify_observers()
            trace = "".join(traceback.format_exception(error)) if isinstance(error, BaseException) else ""
            self._log.line("error", "bug", what=str(context.get("message")), trace=trace)
            self._log.finish()
        finally:
            os._exit(EXIT_BUG)
