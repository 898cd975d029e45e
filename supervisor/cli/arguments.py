"""The parser of the command line, made from the table of commands. It runs no command."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from supervisor import __version__
from supervisor.cli.commands import ARGV, COMMANDS, Argument, CommandSpec, OneOf, codes_of

_EPILOG = """\
consul-supervisor COMMAND --help shows an example, and what each exit code of the command means.

exit codes: 0 done, 1 negative answer, 2 usage, 69 not reachable, 70 a bug of ours, 78 configuration
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line. Its result has the command's name as ``command``."""
    parser = argparse.ArgumentParser(
        prog="consul-supervisor",
        description="Takes part in Consul leader elections and semaphores as a YAML file declares them,\n"
        "and runs hooks when this node acquires or loses a lock.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"consul-supervisor {__version__}")
    parsers = parser.add_subparsers(
        metavar="COMMAND", required=True, dest="command", parser_class=_CommandParser
    )
    for name, command in COMMANDS.items():
        codes = "".join(f"  {code:<3} {meaning}\n" for code, meaning in codes_of(name).items())
        added = parsers.add_parser(
            name,
            help=command.summary,
            description=command.summary[0].upper() + command.summary[1:] + ".",
            epilog=f"example: consul-supervisor {command.example}\n\nexit codes:\n{codes}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        _add_arguments(added, command.arguments)
        if takes_command(command):
            added.runs_command()
    return parser


def takes_command(command: CommandSpec) -> bool:
    """Return whether the command runs another command, which follows ``--``."""
    return ARGV in command.arguments


class _CommandParser(argparse.ArgumentParser):
    """The parser of one command. Everything behind the first ``--`` may be another command."""

    _runs_command = False

    def runs_command(self) -> None:
        """Expect another command behind ``--``, whose own options and ``--`` are left as they are."""
        self._runs_command = True
        usage = self.format_usage().removeprefix("usage: ").strip()
        self.usage = " ".join(usage.replace("COMMAND [COMMAND ...]", "-- COMMAND [ARGUMENT ...]").split())

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse the part before ``--`` as usual, and take the rest as the other command."""
        given = list(args or ())
        if not self._runs_command:
            return super().parse_known_args(given, namespace)
        at = given.index("--") if "--" in given else len(given)
        before, argv = given[:at], given[at + 1 :]
        if not argv and not {"-h", "--help"} & set(before):
            self.error("the command is missing: write it behind --")
        known, unknown = super().parse_known_args([*before, "--", *argv[:1]], namespace)
        known.argv = argv
        return known, unknown


def _add_arguments(parser: argparse.ArgumentParser, arguments: Iterable[Argument | OneOf]) -> None:
    for each in arguments:
        if isinstance(each, Argument):
            parser.add_argument(each.name, **each.details)
            continue
        group = parser.add_mutually_exclusive_group(required=each.required)
        for argument in (each.first, each.second):
            group.add_argument(argument.name, **argument.details)
