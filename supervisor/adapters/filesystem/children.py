"""A child process that reads in our place, because the file system of a path may not answer.

The child writes its result into a file in memory, so that its owner need not read a pipe meanwhile. At most
``HUNG_MAX`` killed children of one path hang at a time.
"""

import asyncio
import errno
import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

WITHIN_S = 1.0  # because a file system that works answers in milliseconds, over the network in some tens
ERROR_BYTES_MAX = 1000
HUNG_MAX = 4  # for each path, because some file systems keep even a killed child, and hooks need processes
_unreaped: dict[int, str] = {}  # by process id: the path of a killed child that has not ended yet


class NoAnswer(OSError):
    """A read that did not end in time, mostly because the file system does not answer."""

    def __init__(
        self, path: str, within_s: float = WITHIN_S, what: str = "its file system did not answer"
    ) -> None:
        super().__init__(errno.ETIMEDOUT, f"{what} within {within_s:g} s", path)


class Child:
    """A child that reads ``path``. Its owner must call ``close``, and ``wait`` once ``pidfd`` is readable."""

    def __init__(self, path: str, start: Callable[[int, int], int]) -> None:
        """Start the child by ``start``, which returns its process id.

        ``start`` gets two descriptors. The child writes its result to the first and its error to the second.
        Raises OSError when no child can be started, and NoAnswer when too many children hang already.
        """
        reap()
        if list(_unreaped.values()).count(path) >= HUNG_MAX:
            raise NoAnswer(path)
        self.path = path  # the path that the child reads
        fds: list[int] = []
        try:
            fds += [os.memfd_create("result", os.MFD_CLOEXEC), os.memfd_create("error", os.MFD_CLOEXEC)]
            fds.append(os.eventfd(0))  # reserves a descriptor for the pidfd, so that opening it cannot fail
            self._pid = start(fds[0], fds[1])
            os.close(fds.pop())
            self.pidfd = os.pidfd_open(self._pid)  # uses the descriptor that was reserved
        except OSError:
            for fd in fds:
                os.close(fd)
            raise
        self._result, self._error = fds
        self._reaped = False

    @property
    def ended(self) -> bool:
        return self.within(0.0)

    def within(self, seconds: float) -> bool:
        """Wait at most ``seconds`` for the child's end, and return whether the child has ended."""
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    async def comes_to_end(self, within_s: float) -> bool:
        """Wait at most ``within_s`` for the child's end while the loop runs. Return whether it has ended."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self.pidfd, ended.set)
        try:
            async with asyncio.timeout(within_s):
                await ended.wait()
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(self.pidfd)
        return True

    def progress(self) -> object:
        """Return what is equal only if the child has not run in between, and did not wait for its turn."""
        state, *counted = Path(f"/proc/{self._pid}/stat").read_text().rpartition(") ")[2].split()
        return object() if state == "R" else counted[6:12]  # its page faults and its time

    def wait(self) -> int:
        """Wait for the child's end and reap it. Return the exit code, which is negative for a signal."""
        _, status = os.waitpid(self._pid, 0)
        self._reaped = True
        return os.waitstatus_to_exitcode(status)

    def result(self) -> bytes:
        return os.pread(self._result, os.fstat(self._result).st_size, 0)

    def error(self) -> str:
        """Return the last ERROR_BYTES_MAX of the error that the child has written."""
        size = os.fstat(self._error).st_size
        start = max(0, size - ERROR_BYTES_MAX)
        return os.pread(self._error, ERROR_BYTES_MAX, start).decode(errors="replace").strip()

    def close(self) -> None:
        """Kill the child unless it was reaped, and close its descriptors."""
        if not self._reaped:
            os.kill(self._pid, signal.SIGKILL)
            _unreaped[self._pid] = self.path
            self._reaped = True
        for fd in (self.pidfd, self._result, self._error):
            os.close(fd)
        reap()


def spawn(argv: list[str], environ: dict[str, str], out: int, err: int) -> int:
    """Start a program as a child, with these descriptors for its output and error. Return its process id."""
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, out, 1),
        (os.POSIX_SPAWN_DUP2, err, 2),
    ]
    return os.posix_spawn(argv[0], argv, environ, file_actions=actions, setpgroup=0)


def reap() -> None:
    """Reap each killed child that has ended by now. The start and the end of another child do so, too."""
    for pid in tuple(_unreaped):
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
        del _unreaped[pid]
