"""``status --watch``: the daemon's status, drawn again each second and at each resize.

The terminal must be left as it was, however the page ends: Ctrl-C, TERM, Ctrl-Z and back, or an error. While
the daemon does not answer, its last status is shown dim and with its age, because it may be outdated.
"""

import os
import signal
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from supervisor.commands.cli.display.table import DIM, RED, lines, of_item, painted
from supervisor.commands.cli.display.text import escape, truncate
from supervisor.reporting.control import fetch

EVERY_S = 1.0
ANSWER_S = 3.0  # a daemon that takes longer is shown as silent
STDOUT = 1
ENTER = "\x1b[?1049h\x1b[?25l"  # the alternate screen, without a cursor
LEAVE = "\x1b[?25h\x1b[?1049l"
HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
AWAITED = (signal.SIGWINCH, signal.SIGTSTP)  # a resize, and Ctrl-Z
_write = partial(print, end="", flush=True)


def watch(socket_path: str, name: str | None, *, colours: bool) -> None:
    """Show the status until Ctrl-C or TERM. ``name``: the only item to show. None: all items."""
    live = _LiveStatus(socket_path, name, colours=colours)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    while True:
        try:
            with _screen():
                _until_suspended(live)
        except KeyboardInterrupt:
            return
        # The terminal belongs to the shell until the shell continues this process.
        os.kill(os.getpid(), signal.SIGSTOP)


class _LiveStatus:
    """The pages of one daemon's status, also while it does not answer."""

    def __init__(self, socket_path: str, name: str | None, *, colours: bool) -> None:
        self._socket_path = socket_path
        self._name = name
        self._colours = colours
        self._last: dict[str, Any] | None = None
        self._answered_at = time.monotonic()

    def lines(self, columns: int) -> list[str]:
        try:
            _, status = fetch.status(self._socket_path, within_s=ANSWER_S)
        except fetch.DaemonUnreachable as error:
            return self._silent(str(error), columns)
        self._last, self._answered_at = status, time.monotonic()
        page = lines(self._chosen(status), columns, colours=self._colours)
        if self._name is not None and not self._chosen(status)["items"]:
            page.append(truncate(f"{self._name}: no such election or semaphore now", columns))
        return page

    def _silent(self, why: str, columns: int) -> list[str]:
        since_s = int(time.monotonic() - self._answered_at)
        text = f"no answer from the daemon for {since_s} s, trying again: {escape(why)}"
        page = [painted(truncate(text, columns), RED, self._colours)]
        if self._last is None:
            return page
        last = lines(self._chosen(self._last), columns, colours=False)
        return [*page, "", *(painted(line, DIM, self._colours) for line in ["the last status:", *last])]

    def _chosen(self, status: dict[str, Any]) -> dict[str, Any]:
        return status if self._name is None else of_item(status, self._name)


def frame(lines: Sequence[str], columns: int, rows: int) -> str:
    """Return the text that draws at most ``rows`` of the lines.

    Each line is cleared before it is written, because clearing after a full line would remove its end.
    """
    if len(lines) > rows:
        lines = [*lines[: rows - 1], truncate(f"... {len(lines) - rows + 1} more lines", columns)]
    text = "\n".join(CLEAR_LINE + line for line in lines)
    return HOME + text + (f"\n{CLEAR_BELOW}" if len(lines) < rows else "")


def _until_suspended(live: _LiveStatus) -> None:
    while True:
        due_at = time.monotonic() + EVERY_S
        size = os.get_terminal_size(STDOUT)
        _write(frame(live.lines(size.columns), size.columns, size.lines))
        received = signal.sigtimedwait(AWAITED, max(0.0, due_at - time.monotonic()))
        if received is not None and received.si_signo == signal.SIGTSTP:
            return


@contextmanager
def _screen() -> Iterator[None]:
    """Switch to the alternate screen and back. Keys typed meanwhile are discarded."""
    before = termios.tcgetattr(STDOUT)
    silent = termios.tcgetattr(STDOUT)
    silent[3] &= ~termios.ECHO
    try:
        termios.tcsetattr(STDOUT, termios.TCSADRAIN, silent)
        _write(ENTER)
        yield
    finally:
        _write(LEAVE)
        termios.tcsetattr(STDOUT, termios.TCSAFLUSH, before)
