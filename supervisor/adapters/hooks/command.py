"""Runs one command as a process group of its own, from its spawn to the end of its last process.

Exits are read from a pidfd, without a signal handler, a thread or a child watcher. Nothing here decides when
a command runs or what follows from its end. A group is signalled only while its leader is not reaped or a
process of the group was seen moments ago, because the kernel may give its number to another group afterwards.

How a group ends::

    the leader exits by itself  all gone                                 -> reported
                                LEFT_GRACE_S pass; KILL; all gone        -> reported, with what was left
    terminate()                 TERM; all gone                           -> reported
                                TERM; kill_after_s pass; KILL; all gone  -> reported
    KILL does not end it        KILL_GRACE_S pass                        -> reported, with a note
"""

import asyncio
import math
import os
import signal
from collections.abc import Callable, Mapping, Sequence

from supervisor.adapters.hooks import group
from supervisor.adapters.hooks.output import Drain, Lines
from supervisor.adapters.hooks.privileges import RunAs
from supervisor.adapters.hooks.spawn import Spawned, spawn
from supervisor.core.settings import Command

# For what the leader has left running, such as a tee that copies its output; it counts against the timeout.
LEFT_GRACE_S = 0.2
KILL_GRACE_S = 0.2  # the kernel ends a killed process in milliseconds, or not at all (state D)
SWEEP_PAUSE_S = 0.005  # between two checks whether a group has any process left
CONVENTIONS = {126: "not executable, by convention", 127: "command not found, by convention"}


def keep_exit_statuses() -> None:
    """Undo an ignored SIGCHLD that our parent may have left us.

    While SIGCHLD is ignored, the kernel reaps our children itself and drops their exit status (wait(2)).
    """
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


Attached = Callable[[Sequence[str], Mapping[str, str]], int]
"""Starts a command in a process group of its own, which dies with this process; its process id."""


class Unwatched(OSError):
    """A process began and was killed at once, because its end could not have been observed."""


class HookProcess:
    """A process group under way.

    ``ended(ok, detail)`` reports its end exactly once, from the loop: never out of the constructor,
    ``terminate`` or ``kill``.
    """

    def __init__(
        self,
        command: Command,
        identity: RunAs,
        *,
        env: Mapping[str, str],
        stdin: bytes,
        lines: tuple[Lines, ...],
        attached: Attached | None = None,
        ended: Callable[[bool, str], None],
    ) -> None:
        """Spawn the command, which is being executed when this returns.

        ``lines`` receive its stdout and stderr. A command that ``attached`` starts has the standard streams
        of this process in place of ``stdin`` and ``lines``. Raises Unwatched when the command began and had
        to be killed, and else OSError or ValueError as ``spawn`` does.
        """
        self._loop = asyncio.get_running_loop()
        self._ended = ended
        self._why = ""  # why this process ends the group; blank: it does not
        self._notes: list[str] = []
        self.code: int | None = None  # the exit status of the leader, negative for a signal. None: not reaped
        self._reported = False
        self.left = ""  # the names of the processes that the leader left running, and that were killed
        self._escalation: asyncio.TimerHandle | None = None
        # Keeps a descriptor free for the pidfd, because a process that cannot be watched must not begin.
        place = os.eventfd(0)
        try:
            if attached is None:
                spawned = spawn([*identity.prefix, *command.argv], command.cwd, env, stdin)
            else:
                spawned = Spawned(attached(command.argv, env))
        finally:
            os.close(place)
        self.pgid = spawned.pid  # the number of the group, which is that of its leader
        self._pidfd = -1
        try:
            self._pidfd = os.pidfd_open(self.pgid)
            pipes = [pipe for pipe in (spawned.stdout, spawned.stderr) if pipe >= 0]
            self._drains = [Drain(pipe, each) for pipe, each in zip(pipes, lines, strict=attached is None)]
            self._loop.add_reader(self._pidfd, self._exit)
        except OSError as error:
            self._abandon(spawned)
            raise Unwatched(*error.args) from error

    def terminate(self, why: str, kill_after_s: float) -> None:
        """Send TERM to the group, and KILL after ``kill_after_s`` seconds.

        Do nothing when the leader has ended, or when the group is being ended already.
        """
        if self._reported or self._why or self._exited:
            return
        self._why = why
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)  # a stopped process acts on TERM only once it continues
        self._escalate(kill_after_s, self._ignored_term)

    def terminate_after(self, timeout_s: float, why: str, kill_after_s: float) -> None:
        """Call ``terminate`` after ``timeout_s`` seconds, unless the group has ended by then."""
        self._escalate(timeout_s, lambda: self.terminate(why, kill_after_s))

    def kill(self, why: str) -> None:
        """Send KILL to the group at once, unless the leader has ended by itself."""
        if self._reported or (not self._why and self._exited):
            return
        self._why = self._why or why
        self._end_group()

    @property
    def _exited(self) -> bool:
        """Whether the leader has ended. Its exit status then counts, even if ``kill`` is called later."""
        if self.code is not None:
            return True
        return os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _abandon(self, spawned: Spawned) -> None:
        """Kill and reap a process whose end and output cannot be observed."""
        self._signal(signal.SIGKILL)
        os.waitpid(self.pgid, 0)
        for fd in (self._pidfd, spawned.stdout, spawned.stderr):
            if fd >= 0:
                self._loop.remove_reader(fd)
                os.close(fd)

    def _exit(self) -> None:
        if not self._exited:
            return  # a debugger that is attached has not seen the end yet
        _, status = os.waitpid(self.pgid, 0)
        self.code = os.waitstatus_to_exitcode(status)
        now = self._loop.time()
        remains = group.RemainingProcesses(self.pgid, now)
        if not (self._why or self._reported) and remains.any_running(now):
            timeout_at = math.inf if self._escalation is None else self._escalation.when()
            self._escalate(min(LEFT_GRACE_S, timeout_at - now), self._kill_left)
        self._sweep(remains)
        self._loop.remove_reader(self._pidfd)  # only now, because a release waits for the report of the end
        os.close(self._pidfd)

    def _sweep(self, remains: group.RemainingProcesses) -> None:
        """Report the end as soon as no process of the group is left."""
        if self._reported:
            return
        if remains.any_running(self._loop.time()):
            self._loop.call_later(SWEEP_PAUSE_S, self._sweep, remains)
        else:
            self._report_end()

    def _kill_left(self) -> None:
        self.left = ", ".join(group.names(self.pgid))
        if not self.left:  # only the dead, which nobody has reaped yet
            self._report_end()
            return
        self._notes.append(f"killed what it left running: {self.left}")
        self._end_group()

    def _end_group(self) -> None:
        self._signal(signal.SIGKILL)
        self._escalate(KILL_GRACE_S, self._ignored_kill)

    def _ignored_term(self) -> None:
        self._notes.append("ignored TERM")
        self._end_group()

    def _ignored_kill(self) -> None:
        """Report the end although processes may be left. The leader is still reaped when it ends."""
        if group.runs(self.pgid):
            self._notes.append(f"processes of it are left {KILL_GRACE_S:g}s after KILL")
        self._report_end()

    def _report_end(self) -> None:
        """Report the end, then read the rest of the output, so that no release waits for the output."""
        self._reported = True
        self._escalate(0, None)
        code = -signal.SIGKILL if self.code is None else self.code
        self._ended(code == 0 and not self._why, ", ".join([self._why or _described(code), *self._notes]))
        for drain in self._drains:
            drain.close()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.pgid, number)
        except ProcessLookupError:
            pass  # the group has ended already
        except PermissionError:
            self._notes.append(f"{number.name} not permitted: it runs as another user")

    def _escalate(self, delay_s: float, step: Callable[[], None] | None) -> None:
        """Set the next step against a group that does not end, instead of an earlier one. None: no step."""
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
