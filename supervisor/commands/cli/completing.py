"""``complete``: the names of elections and semaphores, and the values of options, that can follow in a line.

A shell runs it at each press of TAB, so it must be quick, change nothing and never hang. A fault is no name.
"""

import argparse
import os
import shlex
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from supervisor.commands.cli.arguments import parser
from supervisor.commands.cli.daemon_commands import socket_path
from supervisor.commands.cli.exit_codes import DONE
from supervisor.commands.cli.table import COMMANDS
from supervisor.commands.cli.table.spec import DEFAULT_CONFIG, parsed
from supervisor.errors import CommandError
from supervisor.reporting.control import fetch
from supervisor.reporting.control.protocol import NAME

COMPLETE_S = 1.0  # an operator waits for the shell, which waits for us
DAEMON_S = 0.3  # of these: the daemon answers in milliseconds, and otherwise the files are read
PROGRAM = "consul-supervisor"
KINDS = {"leader": ["election"], "limit": ["semaphore"]}  # all other commands take both


def complete(options: argparse.Namespace) -> int:
    # The kernel ends this process in time, also one that waits for a file system that does not answer.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, COMPLETE_S)
    names = _names(options.line)
    signal.setitimer(signal.ITIMER_REAL, 0)
    for name in names:
        print(name)
    return DONE


def _names(line: str) -> Sequence[str]:
    try:
        words = shlex.split(line)
    except ValueError:  # a quote is still open
        return []
    if not line[-1:].isspace() and words:
        before, equals, _ = words.pop().partition("=")  # the word that the name replaces
        if equals and before.startswith("-"):
            words.append(before)
    words = _from_command([os.path.expanduser(os.path.expandvars(word)) for word in words])
    if not words:
        return []
    if (choices := _choices(words)) is not None:
        return choices
    try:
        given = parser(unfinished=True).parse_args(words)
    except SystemExit:  # of a command line that is wrong already
        return []
    kinds = KINDS.get(given.command, ["election", "semaphore"])
    found = _items(given)
    # A name goes into a shell, which may evaluate other characters.
    return sorted({name for kind, name in found if kind in kinds and NAME.fullmatch(name)})


def _from_command(words: list[str]) -> list[str]:
    """Return the words from the command on. Empty: there is no command yet.

    The program, which may stand behind sudo or have an alias, is missing in the words of zsh.
    """
    if words and words[0] not in COMMANDS:
        program = next((at for at, word in enumerate(words) if os.path.basename(word) == PROGRAM), 0)
        return words[program + 1 :]
    return words


def _choices(words: list[str]) -> Sequence[str] | None:
    """Return the values of the option that is the last word. None: that is no option with a value."""
    if words[0] in COMMANDS and "--" not in words:
        for each in COMMANDS[words[0]].arguments:
            for argument, details in parsed(each):
                if argument == words[-1] and argument.startswith("-") and "action" not in details:
                    return tuple(details.get("choices", ()))
    return None


def _items(given: argparse.Namespace) -> Iterable[tuple[str, str]]:
    """Return kind and name of each item of the daemon, or of the configuration.

    The configuration counts if the command does not ask the daemon, or if the daemon does not answer.
    """
    from supervisor.config.loader import items_at

    if "path" not in given and "config" not in given:  # the command takes no configuration
        return []
    path: Path = given.path if "path" in given else given.config
    if "socket" in given:
        with suppress(CommandError):
            _, status = fetch.status(socket_path(given), within_s=DAEMON_S)
            return [(item["kind"], item["name"]) for item in status["items"]]
    return items_at(path or DEFAULT_CONFIG)
