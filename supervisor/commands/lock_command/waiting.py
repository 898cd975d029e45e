"""The process of the command, which waits from the start of ``lock`` until it holds, and its killer.

So the killer knows the group before the command begins. An exec takes longer, the more memory a process has,
so this one is forked before anything is imported. It has a process group of its own, is killed by the kernel
when its parent ends, and reads the arguments and the environment of the command from a pipe.

The kernel (PR_SET_PDEATHSIG) kills neither what the command has started, nor a command whose parent was
killed before it asked for that. So the killer, a shell in a process group of its own, waits on another pipe.
When our end of it is closed without a word, it kills the group of the command.
"""

import marshal
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from supervisor.commands.lock_command.terminal import ignore_stops

PR_SET_PDEATHSIG = 1
SHELL = "/bin/sh"
NAME = "consul-supervisor-killer"  # in a list of processes
_SCRIPT = 'read -r _ || kill -s KILL -- "-$1"'
STDERR = 2
READ_BYTES = 65536
CANNOT_EXECUTE = 126  # as shells report it
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}


class WaitsOnPipe:
    """A child that waits on a pipe, of which only this process has the other end."""

    pid: int
    _ours: int

    @property
    def is_waiting(self) -> bool:
        """Return whether the child still waits, and reap a child that was killed meanwhile."""
        if self._ours >= 0 and os.waitpid(self.pid, os.WNOHANG)[0] != 0:
            self._close()
        return self._ours >= 0

    def end(self) -> None:
        if self.is_waiting:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self._close()

    def _close(self) -> None:
        os.close(self._ours)
        self._ours = -1


class WaitingProcess(WaitsOnPipe):
    """A process that can become the command once."""

    def __init__(self) -> None:
        """Start the process. Raises OSError when that is not possible."""
        theirs, self._ours = os.pipe()
        parent = os.getpid()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            self.pid = os.fork()
            if self.pid == 0:
                os.close(self._ours)
                _wait_and_become(theirs, parent)
        except OSError:
            os.close(self._ours)
            raise
        finally:
            os.close(theirs)
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        os.setpgid(self.pid, self.pid)

    def become(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Let the process become this command. From now on it belongs to the caller, who reaps it.

        A signal that this process ignores stays ignored, as nohup requests. A program that cannot be executed
        ends with 126. Raises OSError when the process was killed.
        """
        content = memoryview(marshal.dumps((list(argv), dict(env))))
        try:
            while content:
                content = content[os.write(self._ours, content) :]
        finally:
            self._close()


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


def _wait_and_become(fd: int, parent: int) -> NoReturn:
    try:
        os.setpgid(0, 0)
        for number in SIGNALS:  # before a signal is let in, which a handler of ours would swallow
            if number in IGNORED_BY_PYTHON or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        ignore_stops()
        _die_with_parent()
        content = b""
        while os.getppid() == parent and (part := os.read(fd, READ_BYTES)):
            content += part
        if content:
            argv, env = marshal.loads(content)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            os.execvpe(argv[0], argv, env)
    except OSError as error:
        os.write(STDERR, f"consul-supervisor: cannot run {argv[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(CANNOT_EXECUTE)


def _die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, also after an exec (prctl(2)).

    Where Python has no ctypes, the killer ends it alone.
    """
    with suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
