"""The terminal, which belongs to the command while it runs, as below a shell.

A command has a process group of its own. Only the foreground group of a terminal may read from it and
receives Ctrl-C, so the group of the command becomes the foreground group. Ctrl-Z stops the command, and then
this process as well, so that the shell continues.

In a pipeline the terminal is for all processes of our group, for example for a pager that reads our output.
There the command receives the terminal only once the kernel has stopped it because it lacks the terminal, as
with sudo. The same is true where standard input is no terminal, because a script may have started this
process beside itself. Until then Ctrl-C reaches our group, and ``holding`` passes it on.
"""

import os
import select
import signal
import stat
import time
from contextlib import suppress

from supervisor.hooks.leftovers import stat_of

CONTROLLING = "/dev/tty"
STDIN, STDOUT, STDERR = 0, 1, 2
NONE = -1  # a descriptor that is never open
# The kernel stops a process that reads from a terminal, or changes it, outside the foreground group.
LACKS_TERMINAL = frozenset({signal.SIGTTIN, signal.SIGTTOU})
STOP_S = 0.5  # a process that handles SIGTSTP restores the terminal before it stops
STOP_POLL_S = 0.01


class Terminal:
    """The controlling terminal, which is lent to the command. Without a terminal nothing is lent."""

    def __init__(self) -> None:
        """Open the terminal, and block the signals that would stop this process.

        The kernel stops our whole group when a pager reads from a terminal that is lent. SIGCONT has its
        effect also while it is blocked, and its pending shows that a shell has continued this process.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, {*LACKS_TERMINAL, signal.SIGCONT})
        try:
            self._fd = os.open(CONTROLLING, os.O_RDWR | os.O_NOCTTY)
        except OSError:  # as below cron
            self._fd = NONE
        self._lent_to = 0  # the group that has the terminal from this process. 0: none
        self._can_stop = True  # as far as known: a shell can continue this process

    def go_on(self, pgid: int) -> None:
        """Let the command run, with the terminal if no other process of our group may need that.

        In a command substitution of bash the kernel stops no process, so the command gets the terminal now.
        """
        is_piped = _is_pipe(STDOUT) or _is_pipe(STDERR)
        is_stoppable = signal.getsignal(signal.SIGTTIN) is not signal.SIG_IGN
        if os.isatty(STDIN) and not (is_piped and is_stoppable):
            self._lend(pgid)
        _signal(pgid, signal.SIGCONT)  # a process that read before it was in the foreground was stopped

    def take_back(self) -> None:
        """Make our group the foreground group again, if the command has the terminal.

        The terminal stays with any other group, because a shell may have taken it meanwhile.
        """
        lent_to, self._lent_to = self._lent_to, 0
        if not lent_to:
            return
        if self._foreground() == lent_to:
            self._set_foreground(os.getpgrp())
        os.killpg(0, signal.SIGCONT)  # a pager behind us in a pipeline was stopped meanwhile

    @property
    def is_ours(self) -> bool:
        """Whether our group is the foreground group, which receives Ctrl-C."""
        return self._foreground() == os.getpgrp()

    def stopped_by(self, pgid: int) -> int:
        """Return the signal that has stopped the command, if it has to stop this process as well. 0: none.

        A stop is reported once.

        A command that was stopped because it lacks the terminal gets it, if our group has it. Without a shell
        that could continue this process, such a command stays stopped alone.
        """
        try:
            stop = os.waitid(os.P_PID, pgid, os.WSTOPPED | os.WNOHANG)
        except ChildProcessError:  # it has ended
            return 0
        if stop is None:
            return 0
        if stop.si_status not in LACKS_TERMINAL:
            return signal.SIGTSTP if self._lent_to else 0  # any other process that stops it continues it
        if not self._lend(pgid):
            return stop.si_status if self._can_stop else 0
        _signal(pgid, signal.SIGCONT)
        return 0

    def stop_with(self, pgid: int, number: int) -> None:
        """Stop this process and the command until the shell continues this process. 0: there is no command.

        The command stays stopped, and the caller continues it. The kernel does not stop this process where
        no shell could continue it.

        number: the signal that stops our group. It is the one that has stopped the command, because timeout
            and other processes of our group may ignore it.
        """
        if pgid:
            # The command must not act while no process watches the lock. It may be another lock, which has to
            # stop its own command before.
            if number == signal.SIGTSTP and _acts(pgid):
                _signal(pgid, signal.SIGTSTP)
                _await_stop(pgid)
            _signal(pgid, signal.SIGSTOP)
        self.take_back()
        handler = signal.signal(number, signal.SIG_DFL)
        os.killpg(0, number)  # the other processes of our pipeline as well
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        signal.pthread_sigmask(signal.SIG_BLOCK, {number} & LACKS_TERMINAL)
        self._can_stop = signal.SIGCONT in signal.sigpending()  # a stop discards an earlier SIGCONT
        signal.signal(number, handler)

    def _lend(self, pgid: int) -> bool:
        """Make the group of the command the foreground group, if that is ours, and return whether it is."""
        ours = os.getpgrp()  # 0: it is outside our PID namespace, so the terminal could not be given back
        is_lent = ours != 0 and self._foreground() in (ours, pgid) and self._set_foreground(pgid)
        self._lent_to = pgid if is_lent else 0
        return is_lent

    def _foreground(self) -> int:
        try:
            return os.tcgetpgrp(self._fd)
        except OSError:  # there is no terminal, or it is gone
            return NONE

    def _set_foreground(self, pgid: int) -> bool:
        try:
            os.tcsetpgrp(self._fd, pgid)
        except OSError:  # the group, or the terminal, is gone
            return False
        return True


def _is_pipe(fd: int) -> bool:
    return stat.S_ISFIFO(os.fstat(fd).st_mode)


def _acts(pid: int) -> bool:
    """Return whether the process has neither stopped nor ended."""
    return stat_of(pid)[:1] not in ([], ["T"], ["Z"])


def _await_stop(pid: int) -> None:
    """Wait until the process has stopped or ended, STOP_S at most."""
    ends_at = time.monotonic() + STOP_S
    while _acts(pid) and time.monotonic() < ends_at:
        select.select((), (), (), STOP_POLL_S)


def _signal(pgid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it has ended, or runs as another user
        os.killpg(pgid, number)
