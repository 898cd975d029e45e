"""``complete``: the names of elections and semaphores that can follow in a command line.

A shell runs it at each press of TAB, so it must be quick, change nothing and never hang. A fault is no name.
"""

import argparse
import os
import shlex
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from supervisor.cli.arguments import parser
from supervisor.cli.commands import COMMANDS, DEFAULT_CONFIG
from supervisor.cli.daemon_commands import socket_path
from supervisor.cli.exit_codes import DONE
from supervisor.errors import CommandError

COMPLETE_S = 1.0  # an operator waits for the shell, which waits for us
DAEMON_S = 0.3  # of these: the daemon answers in milliseconds, and otherwise the files are read
PROGRAM = "consul-supervisor"
KINDS = {"leader": ("election",), "limit": ("semaphore",)}  # other commands take both


def complete(options: argparse.Namespace) -> int:
    """Print the names that can follow in the line, one on each line."""
    # The kernel ends this process in time, also one that waits for a file system that does not answer.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, COMPLETE_S)
    names = _names(options.line)
    signal.setitimer(signal.ITIMER_REAL, 0)
    for name in names:
        print(name)
    return DONE


def _names(line: str) -> list[str]:
    from supervisor.control.protocol import NAME

    try:
        words = shlex.split(line)
    except ValueError:  # a quote is still open
        return []
    if not line[-1:].isspace():
        del words[-1:]  # the word that the name replaces
    given = _parsed([os.path.expanduser(os.path.expandvars(word)) for word in words])
    if given is None:
        return []
    kinds = KINDS.get(given.command, ("election", "semaphore"))
    # A name goes into a shell, which may evaluate other characters.
    return sorted({name for kind, name in _items(given) if kind in kinds and NAME.fullmatch(name)})


def _parsed(words: list[str]) -> argparse.Namespace | None:
    """Return the arguments that are given so far. None: there is no command yet.

    The program, which may stand behind sudo or have an alias, is missing in the words of zsh.
    """
    if words and words[0] not in COMMANDS:
        program = next((at for at, word in enumerate(words) if os.path.basename(word) == PROGRAM), 0)
        words = words[program + 1 :]
    return parser(unfinished=True).parse_args(words) if words else None


def _items(given: argparse.Namespace) -> Iterable[tuple[str, str]]:
    """Return kind and name of each item of the daemon, or of the configuration.

    The configuration counts if the command does not ask the daemon, or if the daemon does not answer.
    """
    from supervisor.config import items_at
    from supervisor.control import fetch

    if "socket" in given and "path" not in given:  # drill rehearses a configuration
        with suppress(CommandError):
            _, status = fetch.status(socket_path(given.socket, given.config), within_s=DAEMON_S)
            return [(item["kind"], item["name"]) for item in status["items"]]
    path: Path = given.path if "path" in given else given.config
    return items_at(path or DEFAULT_CONFIG)
