"""A command as the table describes it, and the arguments and exit codes that several commands have."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from supervisor.commands.cli import exit_codes, values

DEFAULT_CONFIG = Path("/etc/consul-supervisor")
ARGV = "argv"  # where the words behind `--` are in the parsed arguments


Arguments = Mapping[str, str | dict[str, Any]]
"""The help of each argument, or its details, by its spelling: ``[NAME]``, ``--quiet``, ``--port N=8500``.

An optional argument stands in brackets, and a default behind the placeholder of the value.
"""


class OneOf(NamedTuple):
    """Arguments of which exactly one must be given."""

    arguments: Arguments


class CommandSpec:
    """One command."""

    def __init__(
        self, summary: str, example: str, function: str, *arguments: Arguments | OneOf, **codes: str
    ) -> None:
        self.summary = summary  # the effect of the command, in one line
        self.example = example  # an example of the text after ``consul-supervisor``
        # ``module:name`` in this package, which takes the parsed arguments and returns the code.
        self.function = function
        self.arguments = arguments
        own = {getattr(exit_codes, name.upper()): what for name, what in {"done": "done", **codes}.items()}
        self.codes: dict[int, str] = dict(sorted({**exit_codes.OF_ALL, **own}.items()))  # and their meaning


def parsed(group: Arguments | OneOf) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each argument, and its details as ``ArgumentParser.add_argument`` takes them.

    A duration is parsed as ``option_s``, and an option without a value is a flag.
    """
    arguments = group.arguments if isinstance(group, OneOf) else group
    for spelled, given in arguments.items():
        left, has_default, default = spelled.strip("[]").partition("=")
        name, _, metavar = left.rpartition(" ")
        details = {"help": given} if isinstance(given, str) else given
        if left.startswith("--") and not name:
            yield left, {"action": "store_true", **details}
            continue
        usual: dict[str, Any] = {"metavar": metavar, "type": _TYPES.get(left) or _TYPES.get(metavar, str)}
        usual |= {"default": default} if has_default else {}
        usual |= {"nargs": "?"} if spelled.startswith("[") else {}
        if metavar == "DURATION":
            usual["dest"] = f"{name.removeprefix('--').replace('-', '_')}_s"
        yield name or metavar.lower(), {**usual, **details}


# By the placeholder of the value, where the option before it has no other.
_TYPES: dict[str, Callable[[str], Any]] = {
    "CHECKS": values.checks,
    "DURATION": values.duration_s,
    "ID": values.session,
    "KEY": values.key,
    "N": values.limit,
    "NAME": values.name,
    "NODE": values.node,
    "PATH": Path,
    "TEXT": values.note,
    "--every DURATION": values.every_s,
    "--lock-delay DURATION": values.lock_delay_s,
    "--lock-index N": values.index,
    "--machine NAME": values.node,
    "--node NAME": values.node,
    "--outage DURATION": values.outage_s,
    "--port N": values.port,
    "--probe-interval DURATION": values.probe_interval_s,
    "--socket PATH": values.socket,
    "--speed N": values.speed,
    "--suspicion-mult N": values.suspicion_mult,
    "--timeout DURATION": values.timeout_s,
    "--ttl DURATION": values.ttl_s,
    "--wait DURATION": values.wait_s,
}
CONFIG = {f"--config PATH={DEFAULT_CONFIG}": "configuration (default: %(default)s)"}
JSON = {"--json": "print one JSON document"}
CONFIGURED = "an election or semaphore of the configuration"
ASKS_CONSUL = {
    "unreachable": "Consul is unreachable or did not answer",
    "configuration": "the configuration, a CONSUL_ variable or the token file cannot be used",
}
