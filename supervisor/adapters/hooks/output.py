"""The output of a child as bounded, printable lines for the log.

A child may write anything at any speed. Its output must never fill the log, hide something from a reader of
the log (control characters) or keep the loop from its other work. Beyond the limits below, output is still
read, so that the child does not block, but it is dropped, and the dropped lines are counted.
"""

import asyncio
import os
import re
from collections.abc import Callable
from typing import Literal

from supervisor.core.frozen import dataclass

LINE_BYTES_MAX = 4096  # a long stack frame fits; syslog receivers cut at 2 to 8 KiB
LINES_MAX = 1000  # in LINES_WINDOW_S, of both streams together: enough for a verbose script
LINES_WINDOW_S = 10.0
READ_BYTES_MAX = 4096  # in one callback of the loop while lines are kept: some 60 usual lines
DRAIN_BYTES_MAX = 65_536  # in one callback while lines are dropped: the usual capacity of a pipe, pipe(7)
DRAIN_PAUSE_S = 0.001  # between such callbacks: a flood passes at 64 MB/s and takes 4 % of a core
LAST_BYTES_MAX = 1_048_576  # the largest capacity of a pipe (fs.pipe-max-size, proc(5))

# C0 and C1 (terminal escapes), line separators, and the marks that reorder text on a terminal.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"  # all except tab
)


@dataclass(frozen=True, slots=True)
class HookLine:
    """One line that a child wrote. ``text`` is printable and without its newline."""

    item: str
    hook: str
    transition: str
    stream: Literal["stdout", "stderr"]
    text: str


def printable(raw: bytes | bytearray) -> str:
    """Return the bytes as text in which nothing acts on a terminal or is hidden by it."""
    return _UNPRINTABLE.sub(_escaped, raw.decode(errors="replace"))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class LineBudget:
    """The number of lines that may still be logged: ``lines_max`` in each window of LINES_WINDOW_S."""

    def __init__(self, clock: Callable[[], float], lines_max: int = LINES_MAX) -> None:
        self._clock = clock
        self._lines_max = lines_max
        self._ends_at = clock() + LINES_WINDOW_S
        self._left = lines_max

    def take(self) -> bool:
        """Return whether one more line may be logged. If so, count it as logged."""
        if self.exhausted:
            return False
        self._left -= 1
        return True

    @property
    def exhausted(self) -> bool:
        if self._clock() >= self._ends_at:
            self._ends_at, self._left = self._clock() + LINES_WINDOW_S, self._lines_max
        return self._left == 0


class Lines:
    """One stream of bytes, cut into lines, of which at most LINE_BYTES_MAX bytes are kept."""

    def __init__(self, emit: Callable[[str], None], budget: LineBudget) -> None:
        self._emit = emit
        self._budget = budget
        self._line = bytearray()
        self._cut_bytes = 0
        self._dropped = 0  # lines of this stream that are not reported yet

    @property
    def wasted(self) -> bool:
        """Whether the next bytes will probably be dropped."""
        return self._cut_bytes > 0 or self._budget.exhausted

    def feed(self, data: bytes) -> None:
        """Take bytes that were read. Each whole line is logged or dropped at once."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            if not self._budget.take():
                start = self._drop(data, start)
                break
            self._keep(data[start:end])
            self._log()
            start = end + 1
        self._keep(data[start:])

    def close(self) -> None:
        """End the stream: log a last line without a newline, and the number of dropped lines."""
        if self._line:
            if self._budget.take():
                self._log()
            else:
                self._dropped += 1
        self._log_dropped()

    def _drop(self, data: bytes, start: int) -> int:
        """Drop all whole lines from ``start`` on. Return the position behind them."""
        self._dropped += data.count(b"\n", start)
        self._line.clear()
        self._cut_bytes = 0
        return data.rfind(b"\n") + 1

    def _keep(self, piece: bytes) -> None:
        room = LINE_BYTES_MAX - len(self._line)
        self._line += piece[:room]
        self._cut_bytes += max(0, len(piece) - room)

    def _log(self) -> None:
        self._log_dropped()
        mark = f" … ({self._cut_bytes} bytes cut)" if self._cut_bytes else ""
        self._emit(printable(self._line.removesuffix(b"\r")) + mark)
        self._line.clear()
        self._cut_bytes = 0

    def _log_dropped(self) -> None:
        if self._dropped:
            lines = "line" if self._dropped == 1 else "lines"
            self._emit(f"… {self._dropped} {lines} dropped: more than {LINES_MAX} in {LINES_WINDOW_S:g}s")
            self._dropped = 0


class Drain:
    """The reading end of one pipe of a child, owned here. It feeds ``lines`` until EOF or ``close``."""

    def __init__(self, pipe: int, lines: Lines) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = pipe
        self._lines = lines
        self._paused: asyncio.TimerHandle | None = None
        os.set_blocking(self._fd, False)
        self._listen()

    def close(self) -> None:
        """Read the bytes that are in the pipe now and close it, even if its other end is still open."""
        if self._fd < 0:
            return
        self._lines.feed(self._read(LAST_BYTES_MAX) or b"")
        self._end()

    def _listen(self) -> None:
        self._loop.add_reader(self._fd, self._readable)

    def _readable(self) -> None:
        data = self._read(DRAIN_BYTES_MAX if self._lines.wasted else READ_BYTES_MAX)
        if data is None:
            return
        if not data:
            self._end()
            return
        self._lines.feed(data)
        if self._lines.wasted:
            self._loop.remove_reader(self._fd)
            self._paused = self._loop.call_later(DRAIN_PAUSE_S, self._listen)

    def _read(self, bytes_max: int) -> bytes | None:
        """Return the bytes in the pipe. b"": EOF. None: the pipe is empty."""
        try:
            return os.read(self._fd, bytes_max)
        except BlockingIOError:
            return None

    def _end(self) -> None:
        if self._paused is not None:
            self._paused.cancel()
        self._loop.remove_reader(self._fd)
        self._lines.close()
        os.close(self._fd)
        self._fd = -1
