"""The terminal, which belongs to the command while it runs, as below a shell.

A command has a process group of its own. Only the foreground group of a terminal may read from it and
receives Ctrl-C, so the group of the command becomes the foreground group. Ctrl-Z stops the command, and then
this process as well, so that the shell continues.
"""

import os
import signal
from contextlib import suppress

STDIN = 0


class Terminal:
    """The terminal on standard input, if this process is in its foreground group when the command begins."""

    def __init__(self) -> None:
        """Keep the kernel from stopping this process when it writes to the terminal from the background."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        self._lent = False

    def lend(self, pgid: int) -> None:
        """Make the group of the command the foreground group, if our group is that now."""
        if not _is_ours():
            return
        self._lent = _set_foreground(pgid)
        # A process that read before it was in the foreground was stopped.
        with suppress(ProcessLookupError):
            os.killpg(pgid, signal.SIGCONT)

    def take_back(self) -> None:
        """Make our group the foreground group again, if the command had the terminal."""
        if not self._lent:
            return
        self._lent = False
        _set_foreground(os.getpgrp())
        os.killpg(0, signal.SIGCONT)  # a pager behind us in a pipeline was stopped meanwhile

    def has_stopped(self, pgid: int) -> bool:
        """Return whether Ctrl-Z has stopped the command, which is reported once."""
        if not self._lent:
            return False
        try:
            return os.waitid(os.P_PID, pgid, os.WSTOPPED | os.WNOHANG) is not None
        except ChildProcessError:  # it has ended
            return False

    def stop_with(self, pgid: int) -> None:
        """Stop this process and the command until the shell continues this process.

        The command stays stopped, and the caller continues it. The kernel does not stop this process where
        no shell could continue it.
        """
        os.killpg(pgid, signal.SIGSTOP)  # the command must not act while no process watches the lock
        self.take_back()
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.killpg(0, signal.SIGTSTP)  # the other processes of our pipeline as well
        signal.signal(signal.SIGTSTP, handler)


def _is_ours() -> bool:
    try:
        return os.tcgetpgrp(STDIN) == os.getpgrp()
    except OSError:  # no terminal, or not that of our session
        return False


def _set_foreground(pgid: int) -> bool:
    try:
        os.tcsetpgrp(STDIN, pgid)
    except OSError:  # the group, or the terminal, is gone
        return False
    return True
