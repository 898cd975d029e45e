"""A page on the terminal that follows what it shows: drawn anew each second and at each resize.

It must leave the terminal as it was, however it ends: Ctrl-C, TERM, Ctrl-Z and back, or an error. It
blocks between two frames, for there is nothing else to do in this process.
"""

import os
import signal
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from supervisor.cli.display.text import truncate

EVERY_S = 1.0
ENTER = "\x1b[?1049h\x1b[?25l"  # the alternate screen, without a cursor
LEAVE = "\x1b[?25h\x1b[?1049l"
HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
HEARD = (signal.SIGWINCH, signal.SIGTSTP)

Page = Callable[[int], Sequence[str]]
"""Lines for so many columns."""


def watch(page: Page, write: Callable[[str], None], terminal: int) -> None:
    """Show the page until Ctrl-C or TERM. ``terminal``: the descriptor of what ``write`` writes to."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    while True:
        try:
            with _screen(write, terminal):
                _until_suspended(page, write, terminal)
        except KeyboardInterrupt:
            return
        os.kill(os.getpid(), signal.SIGSTOP)  # the terminal is the shell's until it lets us go on


def frame(lines: Sequence[str], columns: int, rows: int) -> str:
    """One picture of at most so many rows. A line is cleared before it is written: behind a full one
    the clearing would take its last letter."""
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
        heard = signal.sigtimedwait(HEARD, max(0.0, due_at - time.monotonic()))
        if heard is not None and heard.si_signo == signal.SIGTSTP:
            return


@contextmanager
def _screen(write: Callable[[str], None], terminal: int) -> Iterator[None]:
    """The alternate screen; what is typed meanwhile is neither shown nor left for the shell."""
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
