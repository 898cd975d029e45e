"""The parser of the command line, made from the table of commands. It runs no command."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from supervisor import __version__
from supervisor.commands.cli.exit_codes import USAGE
from supervisor.commands.cli.table import COMMANDS
from supervisor.commands.cli.table.spec import ARGV, OneOf, parsed

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_EPILOG = """\
consul-supervisor help COMMAND shows an example, and what each exit code of the command means.

exit codes: 0 done, 1 negative answer, 2 usage, 69 not reachable, 70 a bug of ours, 78 configuration
"""
# Options of Consul's own command, and what has their effect here.
_VARIABLES = {"http-addr": "CONSUL_HTTP_ADDR", "token": "CONSUL_HTTP_TOKEN", "ca-file": "CONSUL_CACERT"}


def parser(word: str = "", *, unfinished: bool = False) -> argparse.ArgumentParser:
    """Return the parser of the whole command line. Its result has the command's name as ``command``.

    word: the first word of the command line. If it is a command, the parser has no other, which saves time.
    unfinished: no argument of a command is required.
    """
    parser = _Parser(
        prog="consul-supervisor",
        description="Takes part in Consul leader elections and semaphores as a YAML file declares them,\n"
        "and runs hooks when this node acquires or loses a lock.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"consul-supervisor {__version__}")
    parsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, dest="command", parser_class=_CommandParser
    )
    for name, command in COMMANDS.items():
        if word in COMMANDS and name != word:
            continue
        codes = "".join(f"  {code:<3} {meaning}\n" for code, meaning in command.codes.items())
        added = parsers.add_parser(
            name,
            help=command.summary,
            description=command.summary[0].upper() + command.summary[1:] + ".",
            epilog=f"example: consul-supervisor {command.example}\n\nexit codes:\n{codes}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        for each in command.arguments:
            group: Any = added
            if isinstance(each, OneOf):
                group = added.add_mutually_exclusive_group(required=not unfinished)
            for argument, details in parsed(each):
                group.add_argument(argument, **(_unrequired(argument, details) if unfinished else details))
        if any(action.dest == ARGV for action in added._actions):
            added.runs_command()
    return parser


class _ReportingParser(argparse.ArgumentParser):
    """A parser that raises OSError when its help or version cannot be written. argparse ignores that."""

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        if file is not sys.stdout:
            super()._print_message(message, file)
            return
        print(message, end="", flush=True)


class _Parser(_ReportingParser):
    """The parser of the command line. It refuses an unknown command with the one that was probably meant."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse the whole command line, without which the help is printed as an error."""
        given = list(sys.argv[1:] if args is None else args)
        if not given:
            self.print_help(sys.stderr)
            self.exit(USAGE)
        at = next((at for at, word in enumerate(given) if not word.startswith("-")), len(given))
        _refuse_unknown_options(self, given[:at], "those of a command stand behind its name")
        if given[at:] and given[at] not in COMMANDS:
            self.error(_unknown("command", given[at], COMMANDS, "consul-supervisor help lists them"))
        return super().parse_known_args(given, namespace)


class _CommandParser(_ReportingParser):
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
        at = given.index("--") if "--" in given else len(given)
        before, argv = given[:at], given[at + 1 :]
        _refuse_unknown_options(self, before, f"{self.prog} --help lists them")
        if not self._runs_command:
            known, unknown = super().parse_known_args(given, namespace)
            if unknown:  # refused here, so that the printed usage is that of the command
                self.error(f"unrecognized arguments: {' '.join(unknown)}")
            return known, unknown
        if not argv and not {"-h", "--help"} & set(before):
            self.error("the command is missing: write it behind --")
        known, unknown = super().parse_known_args([*before, "--", *argv[:1]], namespace)
        known.argv = argv
        return known, unknown


def _refuse_unknown_options(parser: argparse.ArgumentParser, words: Iterable[str], remedy: str) -> None:
    """End the process if one of the words is an option that the parser does not have.

    argparse reports such an option only if everything else is right, and suggests no similar option.
    """
    actions = parser._actions  # argparse has no public way to list them
    known = [option for action in actions for option in action.option_strings]
    short = tuple(  # -n5 is -n 5
        option for each in actions if each.nargs != 0 for option in each.option_strings if len(option) == 2
    )
    for word in words:
        option = word.partition("=")[0]
        is_option = word.startswith("-") and len(word) > 2 and " " not in word
        if is_option and option not in known and not word.startswith(short):
            parser.error(_unknown("option", option, known, remedy))


def _unknown(kind: str, name: str, known: Iterable[str], remedy: str) -> str:
    from supervisor.config.problems import nearest

    if kind == "option" and (variable := _VARIABLES.get(name.lstrip("-"))):
        return f"no such option '{name}': set {variable} in the environment"
    match = nearest(name, list(known))
    return f"no such {kind} '{name}'" + (f", did you mean '{match}'?" if match else f": {remedy}")


def _unrequired(argument: str, details: dict[str, Any]) -> dict[str, Any]:
    if argument.startswith("-"):
        return {**details, "required": False}
    nargs = details.get("nargs")
    return {**details, "nargs": {None: "?", "+": "*"}.get(nargs, nargs)}
