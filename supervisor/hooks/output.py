"""What a child writes, as bounded, printable lines for the log.

A child may write anything at any speed. It must never fill the log, hide something from its
reader (control characters) or keep the loop from its other work: beyond the limits below its
output is still read, so that it does not block, but thrown away, and what was thrown away is
counted.
"""

import asyncio
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

LINE_BYTES_MAX = 4096  # a long stack frame fits; syslog receivers cut at 2 to 8 KiB
LINES_MAX = 1000  # in LINES_WINDOW_S, for both streams together: a verbose script, no flood
LINES_WINDOW_S = 10.0
READ_BYTES_MAX = 4096  # in one turn of the loop while lines are kept: some 60 usual lines
DRAIN_BYTES_MAX = 65_536  # in one turn while they are thrown away: what a pipe holds
DRAIN_PAUSE_S = 0.001  # between such turns: a flood passes at 64 MB/s and takes 4 % of a core
LAST_BYTES_MAX = 1_048_576  # the most that a pipe can be made to hold (fs.pipe-max-size)

# C0 and C1 (terminal escapes), line separators, and the marks that reorder text on a terminal.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"  # but not tab
)


@dataclass(frozen=True, slots=True)
class HookLine:
    """One line that a child wrote; ``text`` is printable and without its newline."""

    item: str
    hook: str
    transition: str
    stream: Literal["stdout", "stderr"]
    text: str


def printable(raw: bytes | bytearray) -> str:
    """The bytes as text that a terminal shows as it is: nothing in it acts or hides."""
    return _UNPRINTABLE.sub(_escaped, raw.decode(errors="replace"))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class LineBudget:
    """How many lines may still be logged: ``lines_max`` in each window of LINES_WINDOW_S."""

    def __init__(self, clock: Callable[[], float], lines_max: int = LINES_MAX) -> None:
        self._clock = clock
        self._lines_max = lines_max
        self._ends_at = clock() + LINES_WINDOW_S
        self._left = lines_max
        self._dropped = 0

    def take(self) -> bool:
        """Whether one more line may be logged; it counts as logged."""
        if self.exhausted:
            return False
        self._left -= 1
        return True

    def drop(self, lines: int) -> None:
        """Count lines that are not logged."""
        self._dropped += lines

    def settle(self) -> int:
        """The lines dropped since the last call, which the caller now tells."""
        dropped, self._dropped = self._dropped, 0
        return dropped

    @property
    def exhausted(self) -> bool:
        """Whether lines are dropped now."""
        if self._clock() >= self._ends_at:
            self._ends_at, self._left = self._clock() + LINES_WINDOW_S, self._lines_max
        return self._left == 0


class Lines:
    """One stream of bytes, cut into lines. Its memory is LINE_BYTES_MAX, whatever it is fed."""

    def __init__(self, emit: Callable[[str], None], allowance: LineBudget) -> None:
        self._emit = emit
        self._allowance = allowance
        self._line = bytearray()
        self._cut_bytes = 0

    @property
    def wasted(self) -> bool:
        """Whether what comes next is, for all we know, thrown away."""
        return self._cut_bytes > 0 or self._allowance.exhausted

    def feed(self, data: bytes) -> None:
        """Take what was read; whole lines are logged or dropped at once."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            if not self._allowance.take():
                start = self._drop(data, start)
                break
            self._keep(data[start:end])
            self._log()
            start = end + 1
        self._keep(data[start:])

    def close(self) -> None:
        """The stream is over: log a last line without a newline, and what was dropped."""
        if self._line:
            if self._allowance.take():
                self._log()
            else:
                self._allowance.drop(1)
        self._log_dropped()

    def _drop(self, data: bytes, start: int) -> int:
        """Drop all whole lines from ``start`` on; where the rest begins."""
        self._allowance.drop(data.count(b"\n", start))
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
        if dropped := self._allowance.settle():
            self._emit(f"… {dropped} lines dropped: more than {LINES_MAX} in {LINES_WINDOW_S:g}s")


class Drain:
    """Reads one pipe of a child into ``lines`` as it fills, until EOF or ``close``. Owns the pipe."""

    def __init__(self, pipe: int, lines: Lines) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = pipe
        self._lines = lines
        self._paused: asyncio.TimerHandle | None = None
        os.set_blocking(self._fd, False)
        self._listen()

    def close(self) -> None:
        """Take what is in the pipe now and close it; waits for nobody who still holds it open."""
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
        """What is there, b"" at EOF, None when nothing is there."""
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
