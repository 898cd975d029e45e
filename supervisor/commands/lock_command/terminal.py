"""The terminal: the command has it while it runs, and no key stops the command or this process.

A command has a process group of its own. Only the foreground group of a terminal may read from it and
receives Ctrl-C. So that group becomes the foreground group before the command begins, where standard input
is that terminal. In a pipeline another process of our group may need the terminal, such as a pager that reads
our output. There, and with another standard input, Ctrl-C reaches our group, and ``holding`` passes it on.

There is no job control: a stopped command would hold the lock for as long as nobody continues it. So Ctrl-Z
is ignored, and a command without the terminal gets an error (EIO) when it reads from it, and is not stopped.
"""

import os
import signal
import stat

CONTROLLING = "/dev/tty"
STDIN, STDOUT, STDERR = 0, 1, 2
NONE = -1  # a descriptor that is never open
STOPS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


class Terminal:
    """The controlling terminal. Without one, as below cron, nothing happens."""

    def __init__(self) -> None:
        """Open the terminal, and ignore the signals by which it stops a process."""
        ignore_stops()
        try:
            self._fd = os.open(CONTROLLING, os.O_RDWR | os.O_NOCTTY)
        except OSError:
            self._fd = NONE

    def lend(self, pgid: int) -> None:
        """Make the group of the command the foreground group.

        Do nothing where standard input is no terminal, in a pipeline and in the background.
        """
        ours = os.getpgrp()  # 0: it is outside our PID namespace, so the terminal could not be given back
        is_piped = _is_pipe(STDOUT) or _is_pipe(STDERR)
        if os.isatty(STDIN) and not is_piped and ours != 0 and self._foreground() == ours:
            self._set_foreground(pgid)

    def take_back(self, pgid: int) -> None:
        """Make our group the foreground group again.

        The terminal stays with any other group than that of the command, because a shell may have taken it.
        """
        if self._foreground() == pgid:
            self._set_foreground(os.getpgrp())

    @property
    def is_ours(self) -> bool:
        """Whether our group is the foreground group, which receives Ctrl-C."""
        return self._foreground() == os.getpgrp()

    def _foreground(self) -> int:
        try:
            return os.tcgetpgrp(self._fd)
        except OSError:  # there is no terminal, or it is gone
            return NONE

    def _set_foreground(self, pgid: int) -> None:
        try:
            os.tcsetpgrp(self._fd, pgid)
        except OSError:  # the group, or the terminal, is gone
            pass


def ignore_stops() -> None:
    """Ignore the signals by which a terminal stops this process. A program that it executes does so, too."""
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)


def _is_pipe(fd: int) -> bool:
    return stat.S_ISFIFO(os.fstat(fd).st_mode)
