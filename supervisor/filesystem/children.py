"""A child process that reads in our place, because the file system of a path may not answer.

The child writes its result into a file in memory, so that nobody has to read along. Of one path never more
than ``HUNG_MAX`` children stay behind that were killed and hang.
"""

import asyncio
import errno
import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress

WITHIN_S = 1.0  # a file system that works answers in milliseconds, another machine's in some ten
ERROR_BYTES_MAX = 1000
HUNG_MAX = 4  # of one path: some file systems keep even a killed child, and hooks need room for theirs
_unreaped: dict[int, str] = {}  # killed children that have not ended yet, by their paths: those hang


class NoAnswer(OSError):
    """A file could not be read in time, mostly because its file system does not answer."""

    def __init__(
        self, path: str, within_s: float = WITHIN_S, what: str = "its file system did not answer"
    ) -> None:
        super().__init__(errno.ETIMEDOUT, f"{what} within {within_s:g} s", path)


class Child:
    """A child that reads ``path``. When ``pidfd`` is readable, the child has ended and its owner calls
    ``wait``. In any case the owner calls ``close``."""

    def __init__(self, path: str, start: Callable[[int, int], int]) -> None:
        """Start the child by ``start``, which returns its process id. The child writes its result to the
        first descriptor that ``start`` gets, and what went wrong to the second.

        Raises OSError when no child can be started, and NoAnswer when too many hang already.
        """
        _reap()
        if list(_unreaped.values()).count(path) >= HUNG_MAX:
            raise NoAnswer(path)
        self.path = path
        fds: list[int] = []
        try:
            fds += [os.memfd_create("result", os.MFD_CLOEXEC), os.memfd_create("error", os.MFD_CLOEXEC)]
            fds.append(os.eventfd(0))  # the place of the pidfd: a child that begins can be watched
            self._pid = start(fds[0], fds[1])
            os.close(fds.pop())
            self.pidfd = os.pidfd_open(self._pid)  # has the place that was kept for it
        except OSError:
            for fd in fds:
                os.close(fd)
            raise
        self._result, self._error = fds
        self._reaped = False

    @property
    def ended(self) -> bool:
        """Return whether the child has ended."""
        return self.within(0.0)

    def within(self, seconds: float) -> bool:
        """Wait at most ``seconds`` for the child's end; return whether it has ended."""
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    async def comes_to_end(self, within_s: float) -> bool:
        """Wait at most ``within_s`` for the child's end while the loop goes on; return whether it came."""
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

    def wait(self) -> int:
        """Return the exit code, negative for a signal."""
        _, status = os.waitpid(self._pid, 0)
        self._reaped = True
        return os.waitstatus_to_exitcode(status)

    def result(self) -> bytes:
        """Return what the child has written as its result."""
        return os.pread(self._result, os.fstat(self._result).st_size, 0)

    def error(self) -> str:
        """Return the end of what the child has written of its failure."""
        size = os.fstat(self._error).st_size
        start = max(0, size - ERROR_BYTES_MAX)
        return os.pread(self._error, ERROR_BYTES_MAX, start).decode(errors="replace").strip()

    def close(self) -> None:
        """Kill the child if it has not ended, and close its descriptors."""
        if not self._reaped:
            os.kill(self._pid, signal.SIGKILL)
            _unreaped[self._pid] = self.path
            self._reaped = True
        for fd in (self.pidfd, self._result, self._error):
            os.close(fd)
        _reap()


def _reap() -> None:
    """Collect the exit of each killed child that has ended by now."""
    for pid in tuple(_unreaped):
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
        del _unreaped[pid]
