"""Ends the command when this process is killed.

The kernel kills the command itself when this process ends (PR_SET_PDEATHSIG), but not the processes that the
command has started, and not a command whose parent was killed before it asked for that. So a shell in a
process group of its own reads from a pipe, of which only this process has the other end. The command writes
the number of its group there before it begins. When that end is closed, the shell kills the group.
"""

import os
import signal
from contextlib import suppress

SHELL = "/bin/sh"
NAME = "consul-supervisor-guard"  # in a list of processes
_SCRIPT = 'read -r group && ! read -r _ && kill -s KILL -- "-$group"'


class Guard:
    """The guard of one command, from before its start to ``end``."""

    _pid = 0  # of the shell; 0: it does not run
    _ours = -1  # our end of the pipe

    def start(self, pgid: int = 0) -> None:
        """Start the guard, unless it runs. Another process may have killed the former one.

        pgid: the group of a command that has begun already. 0: none has.
        Raises OSError when the guard cannot start.
        """
        if self._pid and os.waitpid(self._pid, os.WNOHANG)[0] == 0:
            return
        self._close()
        theirs, self._ours = os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        ends = ((0, theirs), (1, null), (2, null))
        try:
            self._pid = os.posix_spawn(
                SHELL,
                [SHELL, "-c", _SCRIPT, NAME],
                {},
                file_actions=[(os.POSIX_SPAWN_DUP2, end, number) for number, end in ends],
                setpgroup=0,
                setsigmask=signal.valid_signals(),  # only KILL ends it before its time
            )
        finally:
            os.close(theirs)
            os.close(null)
        if pgid:
            self.tell(pgid)

    def tell(self, pgid: int) -> None:
        """Tell the guard the group of the command. A guard that is missing is started later and told then."""
        with suppress(OSError):
            os.write(self._ours, b"%d\n" % pgid)

    def end(self) -> None:
        """End the guard, because nothing of the group is left."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        self._close()

    def _close(self) -> None:
        if self._ours >= 0:
            os.close(self._ours)
        self._pid, self._ours = 0, -1
