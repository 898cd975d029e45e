"""Runs one command as a process group of its own, from its spawn to the end of its last process.

Exits are read from a pidfd: no signal handler, no thread, no child watcher. Nothing here decides
when a command is to run or what its end means. A group is signalled only while its leader is not
reaped or a process of it was seen moments ago: its number must never have become somebody else's.

How a group ends::

    leader exits by itself      KILL for the rest                        -> told
    terminate()                 TERM; all gone                           -> told
                                TERM; kill_after_s pass; KILL; all gone  -> told
    KILL does not end it        KILL_GRACE_S pass                        -> told, with a note
"""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping

from supervisor.core.settings import Command
from supervisor.hooks import group
from supervisor.hooks.output import Drain, Lines
from supervisor.hooks.privileges import RunAs
from supervisor.hooks.spawn import Spawned, spawn

KILL_GRACE_S = 0.2  # the kernel ends a killed process in milliseconds, or not at all (state D)
SWEEP_PAUSE_S = 0.005  # between looks whether the rest of a group has gone
CONVENTIONS = {126: "not executable, by convention", 127: "command not found, by convention"}


def keep_exit_statuses() -> None:
    """Undo an ignored SIGCHLD that our parent may have left us: the kernel would then reap our
    children itself, and nobody would learn how they ended."""
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


class Unwatched(OSError):
    """The process began, and was killed because nobody could have learnt of its end."""


class HookProcess:
    """A process group under way. Its end is told exactly once, by ``ended(ok, detail)``, from the
    loop: never out of the constructor, ``terminate`` or ``kill``."""

    def __init__(
        self,
        command: Command,
        identity: RunAs,
        *,
        env: Mapping[str, str],
        stdin: bytes,
        lines: tuple[Lines, Lines],
        ended: Callable[[bool, str], None],
    ) -> None:
        """The command is being executed when this returns; ``lines`` take its stdout and stderr.

        Raises OSError or ValueError as ``spawn`` does.
        """
        self._loop = asyncio.get_running_loop()
        self._ended = ended
        self._why = ""  # set once it is we who end it
        self._notes: list[str] = []
        self._code: int | None = None  # set once the leader is reaped
        self._told = False
        self.is_left = False  # its end was told although processes of it are left
        self._escalation: asyncio.TimerHandle | None = None
        place = os.eventfd(0)  # kept for the pidfd, for a process that cannot be watched must not begin
        try:
            spawned = spawn([*identity.prefix, *command.argv], command.cwd, env, stdin)
        finally:
            os.close(place)
        self.pgid = spawned.pid  # the number of the group, which is that of its leader
        self._pidfd = -1
        try:
            self._pidfd = os.pidfd_open(self.pgid)
            self._drains = (Drain(spawned.stdout, lines[0]), Drain(spawned.stderr, lines[1]))
            self._loop.add_reader(self._pidfd, self._exit)
        except OSError as error:
            self._abandon(spawned)
            raise Unwatched(*error.args) from error

    def terminate(self, why: str, kill_after_s: float) -> None:
        """Ask the group to end (TERM), and after ``kill_after_s`` end it (KILL)."""
        if self._told or self._why or self._exited:
            return
        self._why = why
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)  # a stopped process acts on TERM only once it continues
        self._escalate(kill_after_s, self._ignored_term)

    def terminate_after(self, timeout_s: float, why: str, kill_after_s: float) -> None:
        """The same, unless it has ended within ``timeout_s``."""
        self._escalate(timeout_s, lambda: self.terminate(why, kill_after_s))

    def kill(self, why: str) -> None:
        """End the group at once (KILL)."""
        if self._told or (not self._why and self._exited):
            return
        self._why = self._why or why
        self._end_group()

    @property
    def _exited(self) -> bool:
        """Whether the leader has ended; its status then counts, whatever was wanted meanwhile."""
        if self._code is not None:
            return True
        return os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _abandon(self, spawned: Spawned) -> None:
        """Nobody could learn of its end, nor read what it writes: it ends here."""
        self._signal(signal.SIGKILL)
        os.waitpid(self.pgid, 0)
        for fd in (self._pidfd, spawned.stdout, spawned.stderr):
            if fd >= 0:
                self._loop.remove_reader(fd)
                os.close(fd)

    def _exit(self) -> None:
        """The leader has ended."""
        if not self._exited:
            return  # a debugger is attached and has not seen the end yet
        if not self._why:
            self._end_group()
        self._reap()
        self._sweep(group.RemainingProcesses(self.pgid, self._loop.time()))

    def _reap(self) -> None:
        _, status = os.waitpid(self.pgid, 0)
        self._code = os.waitstatus_to_exitcode(status)
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)

    def _sweep(self, remains: group.RemainingProcesses) -> None:
        """Tell the end as soon as no process of the group is left."""
        if self._told:
            return
        if remains.any_running(self._loop.time()):
            self._loop.call_later(SWEEP_PAUSE_S, self._sweep, remains)
        else:
            self._tell()

    def _end_group(self) -> None:
        self._signal(signal.SIGKILL)
        self._escalate(KILL_GRACE_S, self._ignored_kill)

    def _ignored_term(self) -> None:
        self._notes.append("ignored TERM")
        self._end_group()

    def _ignored_kill(self) -> None:
        """It will still be reaped when it ends one day, but nobody waits for it any longer."""
        if group.runs(self.pgid):
            self.is_left = True
            self._notes.append(f"processes of it are left {KILL_GRACE_S:g}s after KILL")
        self._tell()

    def _tell(self) -> None:
        """What it wrote last is read behind what follows from its end, such as a release."""
        self._told = True
        self._escalate(0, None)
        code = -signal.SIGKILL if self._code is None else self._code
        self._ended(code == 0 and not self._why, ", ".join([self._why or _described(code), *self._notes]))
        for drain in self._drains:
            drain.close()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.pgid, number)
        except ProcessLookupError:
            pass  # it has ended: that is what the signal was to bring about
        except PermissionError:
            self._notes.append(f"{number.name} not permitted: it runs as another user")

    def _escalate(self, delay_s: float, step: Callable[[], None] | None) -> None:
        """What happens next to a group that does not end; it replaces what was to happen."""
        if self._escalation is not None:
            self._escalation.cancel()
        self._escalation = None if step is None else self._loop.call_later(delay_s, step)


def _described(code: int) -> str:
    if code in CONVENTIONS:
        return f"exit {code} ({CONVENTIONS[code]})"
    if code >= 0:
        return f"exit {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
