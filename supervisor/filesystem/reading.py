"""Reads a file by a child with a time limit, because its file system may not answer.

For what lies on no disk of this machine: the child hangs in our place. It is coreutils' ``head``, which
writes into a file in memory, so that nobody has to read along. There is one child for each path at most,
as long as its owner keeps one ``Reader`` for it, and never more than ``HUNG_MAX`` that were killed and hang.
"""

import asyncio
import errno
import os
import re
import select
import signal
from contextlib import suppress

from supervisor.filesystem.mounts import is_local

PROGRAM = "/usr/bin/head"
WITHIN_S = 1.0  # a file system that works answers in milliseconds, another machine's in some ten
ERROR_BYTES_MAX = 1000
HUNG_MAX = 4  # of one path: some file systems keep even a killed child, and hooks need room for theirs
_CODES = {os.strerror(code): code for code in errno.errorcode}
_unreaped: dict[int, str] = {}  # killed children that have not ended yet, by their paths: those hang


class NoAnswer(OSError):
    """The file system did not answer in time."""

    def __init__(self, path: str, within_s: float = WITHIN_S) -> None:
        super().__init__(errno.ETIMEDOUT, f"its file system did not answer within {within_s:g} s", path)


class Reader:
    """A child that reads the first bytes of a file. ``pidfd`` can be read from when it has ended; then
    ``content`` is due, and in any case ``close``."""

    def __init__(self, path: str, bytes_max: int) -> None:
        """Raises OSError when no child can be started, and NoAnswer when too many hang already."""
        _reap()
        if list(_unreaped.values()).count(path) >= HUNG_MAX:
            raise NoAnswer(path)
        self._path, self._bytes_max = path, bytes_max
        fds: list[int] = []
        try:
            fds += [os.memfd_create("content", os.MFD_CLOEXEC), os.memfd_create("error", os.MFD_CLOEXEC)]
            fds.append(os.eventfd(0))  # the place of the pidfd: a child that begins can be watched
            self._pid = _started(path, bytes_max, fds[0], fds[1])
            os.close(fds.pop())
            self.pidfd = os.pidfd_open(self._pid)  # has the place that was kept for it
        except OSError:
            for fd in fds:
                os.close(fd)
            raise
        self._content, self._error = fds
        self._reaped = False

    @property
    def ended(self) -> bool:
        """Whether the content is there, or the error."""
        return self.within(0.0)

    def within(self, seconds: float) -> bool:
        """The same, and waits so long for it."""
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def content(self) -> bytes:
        """What it has read. Raises OSError as reading the file here would."""
        _, status = os.waitpid(self._pid, 0)
        self._reaped = True
        if os.waitstatus_to_exitcode(status) == 0:
            return os.pread(self._content, self._bytes_max, 0)
        said = os.pread(self._error, ERROR_BYTES_MAX, 0).decode(errors="replace")
        why = re.split(r": ", said.strip())[-1]
        raise OSError(_CODES.get(why, errno.EIO), why or "it cannot be read", self._path)

    def close(self) -> None:
        """Close the child, because nobody waits for its answer any more."""
        if not self._reaped:
            os.kill(self._pid, signal.SIGKILL)
            _unreaped[self._pid] = self._path
            self._reaped = True
        for fd in (self.pidfd, self._content, self._error):
            os.close(fd)
        _reap()


def read_within(path: str, bytes_max: int, within_s: float = WITHIN_S) -> bytes:
    """The first bytes of the file; waits for them. Raises OSError, which is NoAnswer when time is up."""
    reader = Reader(path, bytes_max)
    try:
        if not reader.within(within_s):
            raise NoAnswer(path, within_s)
        return reader.content()
    finally:
        reader.close()


async def read(path: str, bytes_max: int, within_s: float = WITHIN_S) -> bytes:
    """The same, while the loop goes on."""
    reader, loop = Reader(path, bytes_max), asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(reader.pidfd, ended.set)
    try:
        async with asyncio.timeout(within_s):
            await ended.wait()
        return reader.content()
    except TimeoutError:
        raise NoAnswer(path, within_s) from None
    finally:
        loop.remove_reader(reader.pidfd)
        reader.close()


class Pulse:
    """Whether the file system of a path answers: asked by a child, of which there is one at most, unless
    it is a disk of this machine."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._reader: Reader | None = None

    def check(self, within_s: float) -> None:
        """Raises NoAnswer: after this time, or at once while an earlier question has no answer yet. Raises
        another OSError when nobody can be asked."""
        if self._reader is None:
            if is_local(self._path):
                return
            self._reader = Reader(self._path, 1)
            self._reader.within(within_s)
        if not self._reader.ended:
            raise NoAnswer(self._path, within_s)
        self.close()

    def close(self) -> None:
        """Close the question, because nobody waits for its answer any more."""
        if self._reader is not None:
            self._reader.close()
        self._reader = None


def await_answer(path: str, within_s: float) -> None:
    """Wait until the file system of the path says whether something is there, and what.

    A path on a disk of this machine is not waited for. Raises NoAnswer when the time is up.
    """
    if is_local(path):
        return
    try:
        read_within(path, 1, within_s)
    except NoAnswer:
        raise
    except OSError:
        pass  # an error is an answer, too


def _started(path: str, bytes_max: int, out: int, err: int) -> int:
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, out, 1),
        (os.POSIX_SPAWN_DUP2, err, 2),
    ]
    argv = [PROGRAM, "-c", str(bytes_max), "--", path]
    return os.posix_spawn(PROGRAM, argv, {"LC_ALL": "C"}, file_actions=actions, setpgroup=0)


def _reap() -> None:
    """Return the children that have ended by now."""
    for pid in tuple(_unreaped):
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
        del _unreaped[pid]
