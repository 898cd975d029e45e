"""The reference by command in ``commands.md``, made from what argparse knows.

    python -m docs.commands            prints it
    python -m docs.commands --write    puts it into commands.md

``supervisor.cli.commands`` is the only source: what is wrong here is mended there. A test runs this
and compares.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from supervisor.cli.arguments import parser
from supervisor.cli.commands import codes_of
from supervisor.cli.exit_codes import OF_ALL

PAGE = Path(__file__).resolve().parent / "commands.md"
BEGIN = "<!-- from here on `python -m docs.commands` writes -->\n"
END = "<!-- to here -->\n"
COLUMNS = 1000  # no usage is broken into lines


def reference() -> str:
    """A section for each command, in the order of ``--help``."""
    return "\n".join(_section(name, command) for name, command in commands().items())


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command, by its name."""
    (choices,) = (action.choices for action in _actions(parser()) if action.nargs == argparse.PARSER)
    return dict(choices) if isinstance(choices, dict) else {}


def page(text: str) -> str:
    """The text of ``commands.md`` with the reference of now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{reference()}\n{END}{after}"


def _section(name: str, command: argparse.ArgumentParser) -> str:
    example = (command.epilog or "").partition("example: ")[2].partition("\n")[0]
    rows = "".join(f"| {_spelled(action)} | {_help(action, command)} |\n" for action in _told(command))
    arguments = f"| argument | what it says |\n|---|---|\n{rows}\n" if rows else ""
    codes = "".join(f"| {code} | {what} |\n" for code, what in codes_of(name).items() if _is_own(code, what))
    return (
        f"### {name}\n\n{command.description}\n\n`{_usage(command)}`\n\nFor example `{example}`.\n\n"
        f"{arguments}| exit code | when |\n|---|---|\n{codes}"
    )


def _usage(command: argparse.ArgumentParser) -> str:
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
    return re.sub(r"(?<![\w`])(--[a-z-]+)", r"`\1`", text).replace("|", "\\|")


def _is_own(code: int, what: str) -> bool:
    """Whether this is not said of all commands, above."""
    return OF_ALL.get(code) != what


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write(reference())
