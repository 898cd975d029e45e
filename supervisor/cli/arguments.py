"""The parser of the command line, made from the table of commands. It runs no command."""

import argparse
from collections.abc import Iterable

from supervisor import __version__
from supervisor.cli.commands import COMMANDS, Argument, OneOf, codes_of

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
    parsers = parser.add_subparsers(metavar="COMMAND", required=True, dest="command")
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
    return parser


def _add_arguments(parser: argparse.ArgumentParser, arguments: Iterable[Argument | OneOf]) -> None:
    for each in arguments:
        if isinstance(each, Argument):
            parser.add_argument(each.name, **each.details)
            continue
        group = parser.add_mutually_exclusive_group(required=each.required)
        for argument in (each.first, each.second):
            group.add_argument(argument.name, **argument.details)
