"""Commands, options and exit codes: the only package that prints.

    arguments.py        what an operator may type: commands, options, their values
    exit_codes.py       the meaning of each exit code
    terminal.py         words on standard error, the width, the loop
    running.py          run
    checking.py         check
    consul_commands.py  leader, verify, limit: they ask Consul
    daemon_commands.py  status, holds, reload, step-down, ...: they ask the daemon
    local_commands.py   demo, dev-agent, schema
    display/            tables, and pages that are drawn again and again

It dispatches and does no work itself; what a command needs is imported when it runs, so that
``--help`` stays quick. Whoever is at fault gets one line on standard error and a code: the
operator 2 or 78, the peer 69, we ourselves 70 (with the trace that a report of the bug needs).
"""

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence

from supervisor.cli import checking, consul_commands, daemon_commands, local_commands, running
from supervisor.cli.arguments import parser
from supervisor.cli.exit_codes import BUG, DONE, INTERRUPTED, NEGATIVE
from supervisor.cli.terminal import fail, report
from supervisor.errors import CommandError

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO)  # of standard output


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    _stand_in_for_closed()
    options = parser().parse_args(arguments)
    try:
        code = _COMMANDS[options.command](options)
        sys.stdout.flush()
        return code
    except CommandError as error:
        return report(error)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has had enough
        return DONE
    except OSError as error:
        if error.errno not in UNWRITABLE:
            return _bug()
        return fail(NEGATIVE, f"cannot write the answer: {error.strerror}")
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - the one place that turns a bug of ours into its exit code
        return _bug()


def _bug() -> int:
    import traceback

    traceback.print_exc()
    return fail(BUG, "cannot go on: a bug in consul-supervisor; please report the lines above")


def _stand_in_for_closed() -> None:
    """Closed standard descriptors would be given to the next sockets, and lines written into them."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(os.devnull, "w")
    sys.stderr = sys.stderr or open(os.devnull, "w")


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": running.run,
    "check": checking.check,
    "leader": consul_commands.leader,
    "verify": consul_commands.verify,
    "limit": consul_commands.limit,
    "status": daemon_commands.status,
    "holds": daemon_commands.holds,
    "recover": daemon_commands.operate,
    "pause": daemon_commands.operate,
    "resume": daemon_commands.operate,
    "step-down": daemon_commands.operate,
    "reload": daemon_commands.operate,
    "schema": local_commands.schema,
    "demo": local_commands.demo,
    "dev-agent": local_commands.dev_agent,
}
