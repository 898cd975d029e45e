"""Commands, options and exit codes: the only package that prints.

    table/              the table of commands: help, arguments, exit codes, function
    values.py           the values of arguments, checked
    arguments.py        the parser of the command line, made from the table
    exit_codes.py       the numbers of the exit codes
    terminal.py         errors and exit codes, questions, the terminal's width and colours, the event loop
    running.py          run
    checking.py         check, policy
    hook_commands.py    test-hook
    locking.py          lock
    consul_commands.py  leader, verify, limit: requests to Consul
    cluster_commands.py members, history, sessions, wait, status --cluster: requests about all nodes
    ordering.py         pause and resume --everywhere, step-down on any node
    daemon_commands.py  status, holds, wait, step-down, ...: requests to the running daemon
    without_daemon.py   what is known while no daemon answers
    event_commands.py   events: what happened on this node, also from before a restart
    draining.py         drain, undrain
    completing.py       complete: names for the completion of shells
    local_commands.py   plan, drill, demo, dev-agent, schema, help, version
    display/            tables, and lines for events

This module calls the command's function and does no work itself. A command imports what it needs when it
runs, so that ``--help`` stays quick. An error is one line on standard error and an exit code. The code is
2 or 78 for a fault of the operator, 69 for a fault of the peer, and 70 for a bug, whose trace comes first.
"""

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from supervisor.commands.cli.arguments import parser
from supervisor.commands.cli.exit_codes import BUG, CONFIGURATION, DONE, INTERRUPTED, NEGATIVE
from supervisor.commands.cli.table import COMMANDS
from supervisor.commands.cli.terminal import fail, progress, report
from supervisor.errors import CommandError

if TYPE_CHECKING:
    from supervisor.config import Problem

# These commands use the environment of their caller alone. The unit gives `run` the variables of the daemon,
# and `lock` passes its environment on to its command. The others read no configuration.
OWN_ENVIRONMENT = ("run", "lock", "plan", "demo", "dev-agent", "schema")
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO)  # when standard output cannot take more


def main(arguments: Sequence[str] | None = None) -> int:
    _open_closed()
    warnings: tuple[Problem, ...] = ()
    try:
        arguments = sys.argv[1:] if arguments is None else arguments
        options = parser(*arguments[:1]).parse_args(arguments)
        if options.command not in OWN_ENVIRONMENT:
            from supervisor.config import environment_file

            added = environment_file.read()  # as the unit gives them to the daemon
            warnings = added.warnings
            for name, value in added.values.items():
                os.environ.setdefault(name, value)
        module, _, name = COMMANDS[options.command].function.partition(":")
        code: int = getattr(import_module(f"{__name__}.{module}"), name)(options)
        sys.stdout.flush()
        return code
    except CommandError as error:
        code = report(error)
        for warning in warnings if error.has_places else ():  # it may explain why a variable is missing
            progress(f"warning: {warning}")
        return code
    except BrokenPipeError:  # the reader has closed the pipe
        _discard_output()
        return DONE
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            passes = options.command == "run"  # systemd starts that again, because a shortage may pass
            why = "cannot go on: too many open files: raise ulimit -n, or LimitNOFILE="
            return fail(NEGATIVE if passes else CONFIGURATION, why)
        if error.errno not in UNWRITABLE:
            return _bug()
        _discard_output()
        return fail(NEGATIVE, f"cannot write the answer: {error.strerror}")
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - the one place that turns a bug of ours into its exit code
        return _bug()


def _discard_output() -> None:
    """Send the rest of standard output to /dev/null, because Python writes it at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _bug() -> int:
    import traceback

    with suppress(OSError):  # standard error may have no reader
        traceback.print_exc()
    return fail(BUG, "cannot go on: a bug in consul-supervisor; please report the lines above")


def _open_closed() -> None:
    """Open /dev/null for each standard descriptor that is closed.

    Otherwise the next socket would get that number, and lines for the terminal would go to the socket.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(os.devnull, "w")
    sys.stderr = sys.stderr or open(os.devnull, "w")
