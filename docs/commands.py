"""The reference by command in ``commands.md``, made from what argparse knows.

    python -m docs.commands            prints it
    python -m docs.commands --write    puts it into commands.md

``supervisor.commands.cli.commands`` is the only source: correct mistakes there. A test runs this
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
from supervisor.commands.cli.commands import codes_of
from supervisor.commands.cli.exit_codes import OF_ALL

PAGE = Path(__file__).resolve().parent / "commands.md"
BEGIN = "<!-- from here on `python -m docs.commands` writes -->\n"
END = "<!-- to here -->\n"
COLUMNS = 1000  # no usage is broken into lines
SOCKET = "`--socket PATH`"
SHARED_MIN = 8  # of the commands that ask the daemon most take a name
CODES = "Exit codes:\n\n"


def reference() -> str:
    """Return what commands share, then a section for each command, in the order of ``--help``."""
    sections = [_section(name, command) for name, command in commands().items()]
    return "\n".join([_shared_section(), *sections])


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


def _shared_section() -> str:
    """Return the arguments and exit codes that all commands with a ``--socket`` have."""
    asking = [name for name, command in commands().items() if SOCKET in _arguments(command)]
    arguments = "".join(row for row in _arguments(commands()["reload"]).values() if _is_shared(row))
    codes = "".join(row for row in _codes("holds") if _is_shared(row))
    names = ", ".join(f"`{name}`" for name in asking)
    return (
        f"### Commands that ask the daemon\n\n{names} have these arguments and exit codes, which their "
        f"sections leave out.\n\n{arguments}\n{CODES}{codes}"
    )


def _section(name: str, command: argparse.ArgumentParser) -> str:
    example = (command.epilog or "").partition("example: ")[2].partition("\n")[0]
    rows = "".join(row for row in _arguments(command).values() if not _is_shared(row))
    arguments = f"{rows}\n" if rows else ""
    codes = "".join(row for row in _codes(name) if not _is_shared(row))
    return (
        f"### {name}\n\n{command.description}\n\n`{usage_of(command)}`\n\nFor example `{example}`.\n\n"
        f"{arguments}{CODES}{codes}"
    )


def _arguments(command: argparse.ArgumentParser) -> dict[str, str]:
    """Return the entry of each argument, by its name and value."""
    return {
        _spelled(action): f"- {_spelled(action)}: {_help(action, command)}\n" for action in _told(command)
    }


def _codes(name: str) -> list[str]:
    """Return the entries of the exit codes that not all commands have."""
    return [f"- {code}: {what}\n" for code, what in codes_of(name).items() if OF_ALL.get(code) != what]


@cache
def _rows_of_all() -> Counter[str]:
    """Return how many commands have each entry."""
    made = ([*_arguments(command).values(), *_codes(name)] for name, command in commands().items())
    return Counter(row for rows in made for row in rows)


def _is_shared(row: str) -> bool:
    return _rows_of_all()[row] >= SHARED_MIN


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
