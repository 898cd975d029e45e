"""The reference by command in ``commands.md``, made from what argparse knows.

    python -m docs.commands            prints it
    python -m docs.commands --write    puts it into commands.md

``supervisor.commands.cli.table`` is the only source: correct mistakes there. A test runs this
and compares.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from supervisor.commands.cli.arguments import parser
from supervisor.commands.cli.exit_codes import DONE, OF_ALL, UNREACHABLE
from supervisor.commands.cli.table import COMMANDS

PAGE = Path(__file__).resolve().parent / "commands.md"
BEGIN = "<!-- from here on `python -m docs.commands` writes -->\n"
END = "<!-- to here -->\n"
COLUMNS = 1000  # no usage is broken into lines
SOCKET, CONFIG = "`--socket PATH`", "`--config PATH`"
SHARED_MIN = 3  # so many commands of a group have what its section says for all
EXAMPLE = r" -|[>'{]|&&"  # an example with one of these shows more than the usage
SAID = re.compile(  # the page says so for all commands
    r"- `NAME`: an election or semaphore of the (configuration|daemon)\n"
    r"|- `PATH`: configuration: a file or a directory\n"
)
CODES = "Exit codes:\n\n"


def reference() -> str:
    """Return what commands share, then a section for each command, in the order of ``--help``."""
    sections = [_section(name, command) for name, command in commands().items()]
    return "\n".join([*(_shared_section(peer) for peer in _groups()), *sections])


def commands(whole: argparse.ArgumentParser | None = None) -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command, by its name.

    whole: the parser of the command line to which they belong. None: a new one.
    """
    (choices,) = (action.choices for action in _actions(whole or parser()) if action.nargs == argparse.PARSER)
    return dict(choices) if isinstance(choices, dict) else {}


def page(text: str) -> str:
    """Return the text of ``commands.md`` with the present reference."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{reference()}\n{END}{after}"


@cache
def _groups() -> dict[str, tuple[str, ...]]:
    """Return the commands that ask each peer and share arguments and exit codes."""
    asking: dict[str, tuple[str, ...]] = {"the daemon": (), "Consul": ()}
    for name, command in commands().items():
        arguments = _arguments(command)
        if SOCKET in arguments:
            asking["the daemon"] += (name,)
        elif CONFIG in arguments and UNREACHABLE in COMMANDS[name].codes:
            asking["Consul"] += (name,)
    return asking


def _shared_section(peer: str) -> str:
    """Return the arguments and exit codes that all commands have which ask this peer."""
    asking = _groups()[peer]
    rows = Counter(row for name in asking for row in _rows(name))
    codes = [row for row in rows if row in _shared(asking) and row[2].isdigit()]
    arguments = "".join(row for row in rows if row in _shared(asking) and row not in codes)
    names = ", ".join(f"`{name}`" for name in asking)
    return (
        f"### Commands that ask {peer}\n\n{names}. Their usage shows which of these arguments they take, "
        f"and their sections have what differs.\n\n{arguments}\n{CODES}{''.join(sorted(codes))}"
    )


def _section(name: str, command: argparse.ArgumentParser) -> str:
    usage, example = usage_of(command), (command.epilog or "").partition("example: ")[2].partition("\n")[0]
    shared = {row for asking in _groups().values() if name in asking for row in _shared(asking)}
    rows = "".join(row for row in _arguments(command).values() if row not in shared)
    codes = "".join(row for row in _codes(name) if row not in shared)
    parts = [f"### {name}\n\n{command.description}\n\n`{usage}`"]
    if re.search(EXAMPLE, example):
        parts.append(f"For example `{example}`.")
    if rows:
        parts.append(rows.rstrip())
    if set(COMMANDS[name].codes) - set(OF_ALL) != {DONE}:
        parts.append(f"{CODES}{codes.rstrip()}")
    return "\n\n".join(parts) + "\n"


def _arguments(command: argparse.ArgumentParser) -> dict[str, str]:
    """Return the entry of each argument that the page has not explained, by its name and value."""
    rows = {
        _spelled(action): f"- {_spelled(action)}: {_help(action, command)}\n" for action in _told(command)
    }
    return {name: row for name, row in rows.items() if not SAID.fullmatch(row)}


def _codes(name: str) -> list[str]:
    """Return the entries of the exit codes that not all commands have."""
    codes = COMMANDS[name].codes
    return [f"- {code}: {what}\n" for code, what in codes.items() if OF_ALL.get(code) != what]


def _rows(name: str) -> list[str]:
    return [*_arguments(commands()[name]).values(), *_codes(name)]


@cache
def _shared(asking: tuple[str, ...]) -> frozenset[str]:
    """Return the entries that enough of these commands have."""
    made = Counter(row for name in asking for row in _rows(name))
    return frozenset(row for row, times in made.items() if times >= SHARED_MIN)


def usage_of(command: argparse.ArgumentParser) -> str:
    """Return the usage of a command in one line, without its option for help."""
    formatter = argparse.HelpFormatter(command.prog, width=COLUMNS)
    formatter.add_usage(command.usage, command._actions, command._mutually_exclusive_groups, prefix="")
    return formatter.format_help().strip().replace("[-h] ", "").replace(" [-h]", "")


def _told(command: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    return (action for action in _actions(command) if "--help" not in action.option_strings)


def _actions(command: argparse.ArgumentParser) -> list[argparse.Action]:
    return command._actions  # argparse has no public way to list them


def _spelled(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else str(action.metavar)
    return f"`{' '.join(filter(None, (', '.join(action.option_strings), value)))}`"


def _help(action: argparse.Action, command: argparse.ArgumentParser) -> str:
    formatter = argparse.HelpFormatter(command.prog, width=COLUMNS)
    text = formatter._expand_help(action)  # with %(default)s filled in, as --help shows it
    return re.sub(r"(?<![\w`])(--[a-z-]+)", r"`\1`", text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write(reference())
