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
import signal
import stat
from contextlib import suppress

CONTROLLING = "/dev/tty"
STDIN, STDOUT = 0, 1
NONE = -1  # a descriptor that is never open
# The kernel stops a process that reads from a terminal, or changes it, outside the foreground group.
LACKS_TERMINAL = (signal.SIGTTIN, signal.SIGTTOU)


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
        self._lent = False
        self._can_stop = True  # as far as known: a shell can continue this process

    def go_on(self, pgid: int) -> None:
        """Let the command run, with the terminal if no other process of our group may need that.

        In a command substitution of bash the kernel stops no process, so the command gets the terminal now.
        """
        is_piped = stat.S_ISFIFO(os.fstat(STDOUT).st_mode)
        is_stoppable = signal.getsignal(signal.SIGTTIN) is not signal.SIG_IGN
        if os.isatty(STDIN) and not (is_piped and is_stoppable):
            self._lend(pgid)
        _signal(pgid, signal.SIGCONT)  # a process that read before it was in the foreground was stopped

    def take_back(self) -> None:
        """Make our group the foreground group again, if the command had the terminal."""
        if not self._lent:
            return
        self._lent = False
        self._set_foreground(os.getpgrp())
        os.killpg(0, signal.SIGCONT)  # a pager behind us in a pipeline was stopped meanwhile

    @property
    def is_ours(self) -> bool:
        """Whether our group is the foreground group, which receives Ctrl-C."""
        return self._foreground() == os.getpgrp()

    def has_stopped(self, pgid: int) -> bool:
        """Return whether this process has to stop because the command was stopped, which is reported once.

        A command that was stopped because it lacks the terminal gets it, if our group has it. Without a shell
        that could continue this process, such a command stays stopped alone.
        """
        try:
            stop = os.waitid(os.P_PID, pgid, os.WSTOPPED | os.WNOHANG)
        except ChildProcessError:  # it has ended
            return False
        if stop is None:
            return False
        if stop.si_status not in LACKS_TERMINAL:
            return self._lent  # Ctrl-Z; any other process that stops the command also continues it
        if not self._lend(pgid):
            return self._can_stop
        _signal(pgid, signal.SIGCONT)
        return False

    def stop_with(self, pgid: int) -> None:
        """Stop this process and the command until the shell continues this process. 0: there is no command.

        The command stays stopped, and the caller continues it. The kernel does not stop this process where
        no shell could continue it.
        """
        if pgid:
            _signal(pgid, signal.SIGSTOP)  # the command must not act while no process watches the lock
        self.take_back()
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.killpg(0, signal.SIGTSTP)  # the other processes of our pipeline as well
        self._can_stop = signal.SIGCONT in signal.sigpending()  # a stop discards an earlier SIGCONT
        signal.signal(signal.SIGTSTP, handler)

    def _lend(self, pgid: int) -> bool:
        """Make the group of the command the foreground group, if that is ours, and return whether it is."""
        self._lent = self._foreground() in (os.getpgrp(), pgid) and self._set_foreground(pgid)
        return self._lent

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


def _signal(pgid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it has ended, or runs as another user
        os.killpg(pgid, number)
