"""A page on the terminal, drawn again each second and at each resize.

The terminal must be left as it was, however the page ends: Ctrl-C, TERM, Ctrl-Z and back, or an error.
"""

import os
import signal
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from supervisor.commands.cli.display.text import truncate

EVERY_S = 1.0
ENTER = "\x1b[?1049h\x1b[?25l"  # the alternate screen, without a cursor
LEAVE = "\x1b[?25h\x1b[?1049l"
HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
AWAITED = (signal.SIGWINCH, signal.SIGTSTP)  # a resize, and Ctrl-Z

Page = Callable[[int], Sequence[str]]
"""Returns the lines of the page for a terminal with this number of columns."""


def watch(page: Page, write: Callable[[str], None], terminal: int) -> None:
    """Show the page until Ctrl-C or TERM. ``terminal``: the descriptor to which ``write`` writes."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    while True:
        try:
            with _screen(write, terminal):
                _until_suspended(page, write, terminal)
        except KeyboardInterrupt:
            return
        # The terminal belongs to the shell until the shell continues this process.
        os.kill(os.getpid(), signal.SIGSTOP)


def frame(lines: Sequence[str], columns: int, rows: int) -> str:
    """Return the text that draws at most ``rows`` of the lines.

    Each line is cleared before it is written, because clearing after a full line would remove its end.
    """
    if len(lines) > rows:
        lines = [*lines[: rows - 1], truncate(f"... {len(lines) - rows + 1} more lines", columns)]
    text = "\n".join(CLEAR_LINE + line for line in lines)
    return HOME + text + (f"\n{CLEAR_BELOW}" if len(lines) < rows else "")


def _until_suspended(page: Page, write: Callable[[str], None], terminal: int) -> None:
    while True:
        due_at = time.monotonic() + EVERY_S
        size = os.get_terminal_size(terminal)
        lines = page(size.columns)
        write(frame(lines, size.columns, size.lines))
        received = signal.sigtimedwait(AWAITED, max(0.0, due_at - time.monotonic()))
        if received is not None and received.si_signo == signal.SIGTSTP:
            return


@contextmanager
def _screen(write: Callable[[str], None], terminal: int) -> Iterator[None]:
    """Switch to the alternate screen and back. Keys typed meanwhile are discarded."""
    before = termios.tcgetattr(terminal)
    silent = termios.tcgetattr(terminal)
    silent[3] &= ~termios.ECHO
    try:
        termios.tcsetattr(terminal, termios.TCSADRAIN, silent)
        write(ENTER)
        yield
    finally:
        write(LEAVE)
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
