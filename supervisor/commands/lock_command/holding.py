"""One item from the command line: the core, Consul and the command, from the first request to the release.

It ends the item after the command, or when ``judgement`` gives up. It writes no record, because the command
ends with this process, even in a crash.
"""

import asyncio
import os
import random
import secrets
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from supervisor.adapters.consul.client import ConsulClient
from supervisor.adapters.hooks.attempts import Hooks
from supervisor.adapters.runtime.background import Background
from supervisor.adapters.runtime.clock import boottime
from supervisor.adapters.runtime.driver import STARTED_S, Driver, Effects, prepare_hand_over
from supervisor.adapters.runtime.signals import listen
from supervisor.commands.lock_command import judgement
from supervisor.commands.lock_command.judgement import NotAcquired
from supervisor.commands.lock_command.period import Period
from supervisor.commands.lock_command.terminal import Terminal
from supervisor.commands.lock_command.waiting import CANNOT_EXECUTE, Killer, WaitingProcess
from supervisor.config import Config, ConsulSettings, LogSettings
from supervisor.core.actions import (
    Action,
    Finished,
    NoticeChanged,
    PrepareWrite,
    Role,
    RoleChanged,
    StartHook,
    StartRun,
    StopRun,
    WriteRecord,
)
from supervisor.core.contender.creation import contender_of
from supervisor.core.contender.state import Contender
from supervisor.core.contenders import Contenders
from supervisor.core.events import Answered, Event, HookEnded, RunEnded, SettingsChanged, StopAsked, Tick
from supervisor.core.frozen import dataclass, replace
from supervisor.core.outcomes import Dropped, KeyView
from supervisor.core.requests import Acquire, Request
from supervisor.core.settings import ElectionSettings, ItemSettings, Wanted
from supervisor.core.times import LONG_AGO
from supervisor.errors import CommandError, NotPossible

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
FORWARDED = (*ENDING, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGWINCH)
OF_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH)  # the kernel sends these to a foreground group
BY_SIGNAL = 128  # and the number of the signal, as shells report it
JUDGED_S = 1.0  # how long a start that was decided on may wait for its acquire
UNDECIDED = -1  # no key has this ModifyIndex
EXIT_BUG = 70


@dataclass(frozen=True, slots=True)
class Manner:
    """The manner in which the lock is acquired and lost."""

    wait_s: float | None  # how long to wait for the lock. 0: try once. None: no limit
    kills: bool  # whether a loss ends the command by KILL alone, without TERM
    say: Callable[[str], None]  # prints a line that every user should see
    explain: Callable[[str], None]  # prints a line for a reader who wants to follow what happens


class Holding:
    """One lock and its command. ``run`` returns the exit code."""

    _timer: asyncio.TimerHandle | None = None
    _killer: Killer | None = None
    _pgid = 0  # the process group of the command; 0: it does not run
    _begun = False  # the command has begun, or could not be started
    _code = CANNOT_EXECUTE
    _lost = False  # the lock was lost while the command ran
    _reason = "lock-lost"  # why this node holds no more
    _how_ended = ""  # of the command
    _why_not: CommandError | None = None
    _judged_at = LONG_AGO  # when it was decided last whether the command is due
    _judged_value: bytes | None = None  # what was to be acquired with, by that decision
    _not_due = ""  # why the command is not due; the lock is then held only to note that
    _hindrance = ""  # why Consul did not answer, or made no session; blank: it does

    def __init__(
        self,
        consul: ConsulSettings,
        settings: ItemSettings,
        manner: Manner,
        environ: Mapping[str, str],
        hostname: str,
        waiting: WaitingProcess | None,
        period: Period | None = None,
    ) -> None:
        """Make all parts. Raises TokenError when the token file cannot be used."""
        if period is not None and isinstance(settings, ElectionSettings):
            settings = replace(settings, only_index=UNDECIDED)
        self._settings, self._manner, self._period = settings, manner, period
        config = Config(consul, LogSettings(), (settings,), state_dir="")
        self._client = ConsulClient(config, lambda level, event, why: manner.say(why), boottime)
        self._hooks = Hooks(
            node=hostname,
            report=self._on_child_ended,
            log_line=lambda line: None,
            spawned=self._on_spawned,
            delayed=lambda started, why: manner.say(f"cannot start the command yet: {why}"),
            environ=environ,
            clock=boottime,
            attached=self._begin,
        )
        wanted = Wanted(settings, spread=random.random())
        contender = contender_of(wanted, instance=secrets.token_hex(8), now=boottime())
        self._contenders = Contenders((contender,))
        effects: Effects = {
            PrepareWrite: self._client.prepare,
            StartRun: self._start_run,
            StopRun: self._stop_run,
        }
        self._driver = Driver(self._contenders, self, effects)
        self._terminal, self._waiting = Terminal(), waiting
        self._background = Background(self._on_unhandled_exception)
        self._ended = asyncio.Event()

    async def run(self) -> int:
        """Hold the lock while the command runs, and return the exit code. Raises CommandError without it."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._on_unhandled_exception)
        self._on_child()  # starts the process of the command, and its killer
        # Our parent may not let a signal arrive: nohup, for example, ignores SIGHUP.
        heard = [number for number in FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]
        signals = {number: partial(self._on_signal, number) for number in heard}
        listen(loop, {**signals, signal.SIGCHLD: self._on_child})
        self._manner.explain(f"waiting for {self._settings.key}")
        self.dispatch(Tick())
        loop.call_later(STARTED_S, prepare_hand_over)
        if self._manner.wait_s:
            loop.call_later(self._manner.wait_s, self._on_wait_over)
        await self._ended.wait()
        await self._close()
        if self._lost:  # the reason of a loss may become known after the end of the command
            what = f"lost {self._settings.key} ({self._reason})"
            raise NotPossible(f"{what}: the command was ended: {self._how_ended}")
        if self._why_not is not None:
            raise self._why_not
        return self._code

    @property
    def _contender(self) -> Contender:
        return self._contenders.by_name[self._settings.name]

    def dispatch(self, event: Event) -> None:
        if self._ended.is_set():
            return
        self._driver.dispatch(event)
        if isinstance(event, Answered) and self._is_acquiring:
            self._judge(event)
        if self._period is not None and self._is_acquiring and self._contender.tenure is None:
            self._decide(self._period, isinstance(event, Answered) and isinstance(event.request, Acquire))
        if self._contenders.stopped:
            self._ended.set()

    # --- before the command -------------------------------------------------------------------------

    @property
    def _is_acquiring(self) -> bool:
        return not self._begun and not self._contender.winding_up

    def _judge(self, answered: Answered) -> None:
        """Give up when this answer shows that the lock cannot be had, or not in time."""
        contender, outcome = self._contender, answered.outcome
        if isinstance(outcome, Dropped) and contender.throttle.drops == 2:
            return  # it is repeated at once
        why_not: CommandError | None = judgement.fault(contender, answered)
        if why_not is None and self._manner.wait_s == 0:
            why_not = judgement.why_not_now(contender, outcome, boottime())
        hindrance = judgement.hindrance(outcome)
        if why_not is not None:
            self._give_up(why_not)
        elif hindrance or contender.session.id:
            if hindrance and not self._hindrance:
                self._manner.say(f"waiting on: {hindrance}")
            self._hindrance = hindrance

    def _decide(self, period: Period, has_failed: bool) -> None:
        """Decide whether the command is due, at the moment of the try, and for the key as it then is.

        has_failed: a try that was decided on has failed, so that the next one is decided on anew.
        """
        contender, now = self._contender, boottime()
        view, settings, lock = contender.lock.view, contender.settings, contender.lock
        if not isinstance(view, KeyView) or not isinstance(settings, ElectionSettings):
            return
        period.sees(view.value, now)
        if has_failed:
            decided = replace(settings, only_index=UNDECIDED)
        elif not contender.may_try or now < lock.try_at or not lock.is_surely_free(now):
            return
        elif lock.is_as_decided and now < self._judged_at + JUDGED_S:
            return
        else:
            judged, self._judged_at = period.judge(view.value, now, time.time()), now
            self._not_due, self._judged_value = judged.why_not, judged.value
            if judged.value is None:
                self._give_up(NotAcquired(f"cannot lock {settings.key}: {judged.why_not}"))
                return
            decided = replace(settings, value=judged.value, only_index=view.modify_index)
        self.dispatch(SettingsChanged(settings.name, decided))

    def _on_wait_over(self) -> None:
        contender = self._contender
        if self._is_acquiring and (contender.tenure is None or contender.guard is not None):
            why = self._hindrance
            self._give_up(judgement.hindered(contender, why) if why else judgement.not_acquired(contender))

    def _give_up(self, why_not: CommandError) -> None:
        self._why_not = why_not
        self.dispatch(StopAsked())

    # --- the command --------------------------------------------------------------------------------

    def _on_spawned(self, started: StartHook | StartRun, pgid: int) -> None:
        self._begun, self._pgid = True, pgid

    def _start_run(self, action: StartRun) -> None:
        tenure = self._contender.tenure
        if self._period is not None and tenure is not None and tenure.leader != self._judged_value:
            self._not_due = self._not_due or "an earlier try was applied late"  # and its value is another
        if self._not_due:
            asyncio.get_running_loop().call_soon(self._leave, action)
        else:
            self._hooks.start(action)

    def _leave(self, action: StartRun) -> None:
        """Release a lock that was only acquired to note in its value that this machine has seen the start."""
        self._why_not = NotAcquired(f"cannot lock {self._settings.key}: {self._not_due}")
        self.dispatch(RunEnded(action, self._not_due, began=False))
        self.dispatch(StopAsked())

    def _begin(self, argv: Sequence[str], env: Mapping[str, str]) -> int:
        """Let the command begin, and return its process id. Raises OSError when that is not possible."""
        waiting = self._prepare()
        self._terminal.lend(waiting.pid)
        waiting.become(argv, env)
        return waiting.pid

    def _prepare(self) -> WaitingProcess:
        """Return the process that becomes the command, and have a killer for its group. Raises OSError."""
        if self._waiting is None or not (self._begun or self._waiting.is_waiting):
            self._end_killer()
            self._waiting = WaitingProcess()
        if self._killer is None or not self._killer.is_waiting:
            self._killer = Killer(self._waiting.pid)
        return self._waiting

    def _end_killer(self) -> None:
        if self._killer is not None:
            self._killer.end()

    def _stop_run(self, action: StopRun) -> None:
        self._lost = bool(self._pgid)
        if self._manner.kills:
            self._hooks.kill_all()
        else:
            self._hooks.stop(action)

    def _on_child_ended(self, event: HookEnded | RunEnded) -> None:
        assert isinstance(event, RunEnded), "the item has no hooks"
        pgid, self._pgid, self._begun = self._pgid, 0, True
        if event.code is None:
            self._manner.say(f"the command {event.detail}")
        else:
            self._code = event.code if event.code >= 0 else BY_SIGNAL - event.code
        self._manner.explain(f"the command has ended: {event.detail}")
        if event.left:
            self._manner.say(f"the command ended, and what it left running was killed: {event.left}")
        self._how_ended = event.detail
        self.dispatch(event)
        self.dispatch(StopAsked())
        self._terminal.take_back(pgid)  # after the release, for which the next holder waits
        self._end_killer()

    def _on_signal(self, number: signal.Signals) -> None:
        """Pass a signal on to the command. Before the command begins, a signal to end is for this process."""
        if self._pgid:
            is_for_group = number in OF_TERMINAL and self._terminal.is_ours
            with suppress(ProcessLookupError, PermissionError):
                (os.killpg if is_for_group else os.kill)(self._pgid, number)
                if number in ENDING:  # a stopped process acts on it only once it continues
                    os.killpg(self._pgid, signal.SIGCONT)
        elif self._is_acquiring and number in ENDING:
            self._code = BY_SIGNAL + number
            self.dispatch(StopAsked())

    def _on_child(self) -> None:
        """Replace what another process has killed, and continue a command that has stopped itself."""
        if self._pgid or self._is_acquiring:
            with suppress(OSError):  # the start of the command tries again
                self._prepare()
        if self._pgid:
            with suppress(ChildProcessError, ProcessLookupError, PermissionError):
                stop = os.waitid(os.P_PID, self._pgid, os.WSTOPPED | os.WNOHANG)
                if stop is not None and stop.si_status == signal.SIGTSTP:
                    os.killpg(self._pgid, signal.SIGCONT)

    # --- the world that a step acts upon ------------------------------------------------------------

    def now(self) -> float:
        return boottime()

    def request(self, request: Request) -> None:
        self._background.start(self._client.begin(request, self.dispatch))

    def write_record(self, write: WriteRecord) -> str:
        """Write nothing, and return blank, because no later process has anything to wind up."""
        return ""

    def wake(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(max(0.0, at - boottime()), self.dispatch, Tick())

    def observe(self, event: Event, actions: list[Action]) -> None:
        """Tell the user of the step."""
        key, explain = self._settings.key, self._manner.explain
        for action in actions:
            match action:
                case RoleChanged(role=Role.HOLDING, session=session, token=token):
                    explain(f"holding {key} with session {session}, fencing token {token}")
                case RoleChanged(role=Role.LOSING, reason=reason):
                    self._reason = reason
                case NoticeChanged(notice=notice) if notice and not self._why_not:
                    # The wait for the key of another program ends at once, and reports the notice.
                    if not (self._is_acquiring and judgement.belongs_to_another_program(self._contender)):
                        self._manner.say(f"{key}: {notice}")
                case Finished() if self._begun and not self._contender.session.abandoned_id:
                    explain(f"released {key}")
                case Finished() if self._begun:
                    why = "it is free when the session expires"
                    self._manner.say(f"cannot release {key} without Consul: {why}")
                case _:
                    pass

    async def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._background.cancel()
        if self._waiting is not None and not self._begun:
            self._waiting.end()
        self._end_killer()
        await self._hooks.close()
        await self._client.close()
        await self._background.ended()

    def _on_unhandled_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """End the process and so the command, because an exception that nobody awaits is our bug."""
        error = context.get("exception")
        if isinstance(error, BaseException):
            traceback.print_exception(error, file=sys.stderr)
        what = context.get("message", "a task failed")
        self._manner.say(f"cannot go on: a bug in consul-supervisor: {what}")
        os._exit(EXIT_BUG)
