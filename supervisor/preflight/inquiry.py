"""One run of ``looker``, whose lines and whose end are reported to the daemon's loop as they come.

The loop never waits for the answer, and a process that takes too long is killed. The process gets an empty
environment, and its question on standard input.
"""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from supervisor.hooks.spawn import spawn
from supervisor.preflight import ENDS_S, LOOK_S

READ_BYTES = 65_536  # in one turn of the loop, as much as a pipe holds
GOOD = (0, -signal.SIGKILL)  # looker kills its own process group after it has reported a worker that hangs
REASON_CHARS_MAX = 500


class Inquiry:
    """One process that looks.

    line: is called with each value that the process writes.
    ended: is called once, with why the process could not go on. Blank: the process ended by itself.
    Both are called only after the constructor has returned and before ``close``.
    """

    def __init__(
        self, argv: list[str], question: bytes, line: Callable[[Any], None], ended: Callable[[str], None]
    ) -> None:
        """Start the process. Raises OSError when it cannot be started."""
        self._loop = asyncio.get_running_loop()
        self._line = line
        self._ended = ended
        self._buffer = b""
        self._over = False
        spawned = spawn(argv, None, {}, question)
        self._pid, self._out, self._err = spawned.pid, spawned.stdout, spawned.stderr
        self._pidfd = self._watch()
        for fd in (self._out, self._err):
            os.set_blocking(fd, False)
        self._loop.add_reader(self._out, self._read)
        self._loop.add_reader(self._pidfd, self._exited)
        self._limit = self._loop.call_later(LOOK_S + ENDS_S, self._too_late)

    @property
    def group(self) -> int:
        """The number of the process group, which exists as long as one of its processes."""
        return self._pid

    def close(self) -> None:
        """Kill the process, because its answer is not needed any more."""
        if not self._over:
            self._kill()
            self._stop_reading()

    def _watch(self) -> int:
        try:
            return os.pidfd_open(self._pid)
        except OSError:
            self._kill()
            os.waitpid(self._pid, 0)
            os.close(self._out)
            os.close(self._err)
            raise

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)

    def _read(self) -> bool:
        """Read once, and report each whole line. Return whether there was something to read."""
        try:
            content = os.read(self._out, READ_BYTES)
        except BlockingIOError:
            return False
        if not content:
            self._loop.remove_reader(self._out)
            return False
        *lines, self._buffer = (self._buffer + content).split(b"\n")
        for line in lines:
            self._line(json.loads(line))
        return True

    def _exited(self) -> None:
        """Report the end of the process, after everything that it wrote."""
        while not self._over and self._read():
            pass
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        _, status = os.waitpid(self._pid, 0)
        if self._over:
            return
        code, why = os.waitstatus_to_exitcode(status), self._last_words()
        self._stop_reading()
        self._ended("" if code in GOOD else f"the process that looks ended with {code}: {why}")

    def _last_words(self) -> str:
        """Return the last line on standard error: of a trace it has the reason, as after an upgrade."""
        try:
            written = os.read(self._err, READ_BYTES).decode(errors="replace").strip()
        except BlockingIOError:
            return ""
        return written.rpartition("\n")[2][-REASON_CHARS_MAX:]

    def _too_late(self) -> None:
        self.close()
        self._ended(f"there was no answer within {LOOK_S + ENDS_S:g} s")

    def _stop_reading(self) -> None:
        self._over = True
        self._limit.cancel()
        self._loop.remove_reader(self._out)
        os.close(self._out)
        os.close(self._err)
