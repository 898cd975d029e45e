"""Ends the command when this process is killed.

The kernel kills the command itself when this process ends (PR_SET_PDEATHSIG), but not the processes that the
command has started, and not a command whose parent was killed before it asked for that. So a shell in a
process group of its own waits on a pipe, of which only this process has the other end. When that end is
closed without a word, the shell kills the group of the command.
"""

import os
import signal

from supervisor.commands.lock_command.waiting import WaitsOnPipe

SHELL = "/bin/sh"
NAME = "consul-supervisor-killer"  # in a list of processes
_SCRIPT = 'read -r _ || kill -s KILL -- "-$1"'


class Killer(WaitsOnPipe):
    """The killer of one process group, from its start to ``end``. Another process may kill it before."""

    def __init__(self, pgid: int) -> None:
        """Start the killer. Raises OSError when it cannot start."""
        theirs, self._ours = os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        ends = ((0, theirs), (1, null), (2, null))
        try:
            self.pid = os.posix_spawn(
                SHELL,
                [SHELL, "-c", _SCRIPT, NAME, str(pgid)],
                {},
                file_actions=[(os.POSIX_SPAWN_DUP2, end, number) for number, end in ends],
                setpgroup=0,
                setsigmask=signal.valid_signals(),  # only KILL ends it before its time
            )
        except OSError:
            os.close(self._ours)
            raise
        finally:
            os.close(theirs)
            os.close(null)
