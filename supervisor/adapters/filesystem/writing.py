"""Text to a descriptor whose reader may be slow, stuck or gone, without ever waiting or raising.

A terminal held by Ctrl-S, a frozen journal or a pager that nobody scrolls must not stop the loop, and with it
renewals and on_lose. Text that cannot be written yet is kept up to WAITING_BYTES_MAX. Text beyond that, or
text that cannot be written at all (a full disk, no reader), is dropped and counted.

The command of ``lock`` writes to the same terminal, pipe or socket. It may fill it at any moment, also
between a poll and a write, so a write must be unable to wait. O_NONBLOCK on the shared open file would
change the writes of the command as well.
"""

import asyncio
import os
import select
import socket
import stat
import time
from contextlib import suppress

WAITING_BYTES_MAX = 1 << 20  # some thousand lines: for a reader that pauses, not for one that is gone
CHUNK_BYTES_MAX = select.PIPE_BUF  # a pipe that is ready takes that much without waiting, pipe(7)
RETRY_S = 0.1
LAST_WAIT_MS = 200  # for the last lines, when the process ends


class LateWriter:
    """A writer that never waits: the loop writes the rest a little later. A subclass says how to write."""

    def __init__(self, retry_s: float) -> None:
        self._retry_s = retry_s
        self._timer: asyncio.TimerHandle | None = None

    def flush(self) -> None:
        """Write what can be written now. Without a loop the next line tries to write the rest."""
        if not self._drain(0) and self._timer is None:
            with suppress(RuntimeError):
                self._timer = asyncio.get_running_loop().call_later(self._retry_s, self._again)

    def finish(self) -> None:
        """Wait at most LAST_WAIT_MS to write the rest."""
        if self._timer is not None:
            self._timer.cancel()
        self._drain(LAST_WAIT_MS)

    def _again(self) -> None:
        self._timer = None
        self.flush()

    def _drain(self, wait_ms: int) -> bool:
        """Write, and wait for that no longer than this time in all. Return whether nothing is left."""
        raise NotImplementedError


class NonBlockingWriter(LateWriter):
    """A file, as far as a logger needs one. ``dropped`` is the number of lines that were lost."""

    def __init__(self, fd: int) -> None:
        super().__init__(RETRY_S)
        self._fd = _unshared(fd)
        self._is_socket = _is_socket(fd)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLOUT)
        self._waiting = bytearray()
        self.dropped = 0

    def isatty(self) -> bool:
        return os.isatty(self._fd)

    def write(self, text: str) -> int:
        """Take a line, which ``flush`` writes, now or later. Return its length."""
        data = text.encode("utf-8", "backslashreplace")
        if len(self._waiting) + len(data) > WAITING_BYTES_MAX:
            self.dropped += 1
        else:
            self._waiting += data
        return len(text)

    def _drain(self, wait_ms: int) -> bool:
        ends_at = time.monotonic() + wait_ms / 1000
        while self._waiting and self._poll.poll(max(0.0, ends_at - time.monotonic()) * 1000):
            try:
                written = self._write_now(self._waiting[:CHUNK_BYTES_MAX])
            except BlockingIOError:
                break
            except OSError:
                self.dropped += self._waiting.count(b"\n")
                written = len(self._waiting)
            del self._waiting[:written]
        return not self._waiting

    def _write_now(self, data: bytearray) -> int:
        """Write at least one byte, and return how many. Raises BlockingIOError instead of a wait."""
        if not self._is_socket:
            return os.write(self._fd, data)
        with socket.fromfd(self._fd, socket.AF_UNIX, socket.SOCK_STREAM) as ours:  # any family can send
            return ours.send(data, socket.MSG_DONTWAIT)


def _unshared(fd: int) -> int:
    """Return a new descriptor of the same pipe or terminal, whose writes never wait.

    Return ``fd`` where that is not possible: for a file, and for a pipe that another user has made. A write
    to such a pipe follows a poll, and waits only if another process fills the pipe between the two.
    """
    try:
        if stat.S_ISFIFO(os.fstat(fd).st_mode) or os.isatty(fd):
            return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:  # another user's, no reader, or closed
        pass
    return fd


def _is_socket(fd: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError:  # closed
        return False
