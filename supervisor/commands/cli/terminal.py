"""The terminal as all commands use it: errors, exit codes, questions, width, colours, loop and garbage."""

import gc
import os
import sys
from collections.abc import Coroutine
from typing import TypeVar

from supervisor.commands.cli.display.text import escape
from supervisor.commands.cli.exit_codes import CONFIGURATION, DONE, NEGATIVE, UNREACHABLE, USAGE
from supervisor.errors import CommandError, NotPossible, OperatorError, PeerError

T = TypeVar("T")
COLLECTED_AT = (10_000, 20, 20)  # objects: a few MB, where a process lasts


class UnknownItem(CommandError):
    """A name of an election or semaphore that the configuration or the daemon does not have."""


EXIT_CODES = {OperatorError: CONFIGURATION, PeerError: UNREACHABLE, NotPossible: NEGATIVE, UnknownItem: USAGE}


def fail(code: int, text: str) -> int:
    _print_error(f"consul-supervisor: {escape(text)}")
    return code


def report(error: CommandError) -> int:
    """Print the error on standard error, and return the exit code of its kind."""
    code = next(code for kind, code in EXIT_CODES.items() if isinstance(error, kind))
    if error.has_places:
        _print_error(str(error))
        return code
    return fail(code, "; ".join(filter(None, (str(error), error.remedy))))


def _print_error(text: str) -> None:
    """Print the text on standard error. The exit code is that of the error, also if nobody can read it."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:  # no reader, or a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # Python flushes once more at the end


def say(line: str) -> None:
    """Print a line at once, also into a pipe."""
    print(line, flush=True)


def progress(line: str) -> None:
    """Print a line on standard error at once, beside a result on standard output."""
    print(line, file=sys.stderr, flush=True)


def confirm(deed: str, refused: str) -> int:
    """Ask whether to do something; DONE if the answer is yes, else print why not. ``deed``: an infinitive."""
    if not sys.stdin.isatty():
        return fail(USAGE, f"cannot ask whether to {deed}: standard input is no terminal; add --yes")
    print(f"{deed.capitalize()}? [y/N] ", end="", file=sys.stderr, flush=True)
    return DONE if sys.stdin.readline().strip().lower() in ("y", "yes") else fail(NEGATIVE, refused)


def run_async(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine and return its result. The loop is imported here, because few commands need one."""
    import asyncio

    try:
        return asyncio.run(work)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def collect_rarely() -> None:
    """Let the garbage collector leave alone what exists now, because that stays until the end.

    Searching the modules for garbage would take a sixth of the time that a thousand elections need at rest,
    and could delay a hand-over. At most a few MB of other objects wait for the collector.
    """
    gc.freeze()
    gc.set_threshold(*COLLECTED_AT)


def columns() -> int | None:
    """Return the width of the terminal. None: output goes to a pipe or a file, which gets whole lines."""
    from shutil import get_terminal_size  # with many imports of its own

    return get_terminal_size(fallback=(0, 0)).columns or None


def has_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
