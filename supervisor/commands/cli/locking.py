"""``lock``: one lock around one command."""

import argparse
import os
import shlex
import shutil
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from typing import TYPE_CHECKING, TextIO, cast

from supervisor.commands.cli.display.text import escape
from supervisor.commands.cli.exit_codes import NEGATIVE, NOT_EXECUTABLE, NOT_FOUND, USAGE
from supervisor.commands.cli.terminal import collect_rarely, fail, report, run_async
from supervisor.core.settings import LOCK_SUFFIX
from supervisor.errors import CommandError, OperatorError

if TYPE_CHECKING:
    from supervisor.commands.lock_command.period import Period
    from supervisor.commands.lock_command.waiting import WaitingProcess

WAIT_MIN_S = 1.0  # with --every, because another machine may hold the lock to note what it has seen
STOP_TIMEOUT_S = 5.0  # between TERM and KILL, as `consul lock` leaves it


def lock(options: argparse.Namespace) -> int:
    from supervisor.adapters.runtime.init import stay_as_init

    stay_as_init()  # first, so that process 1 stays small
    with _never_waiting():
        try:
            return _lock(options)
        except CommandError as error:
            return report(error)


def _lock(options: argparse.Namespace) -> int:
    if options.limit is not None and options.key.endswith(LOCK_SUFFIX):
        return fail(
            USAGE,
            f"cannot use the prefix {options.key}: with -n it is that of `consul lock -n`, without /.lock",
        )
    if options.limit is not None and options.every_s is not None:
        return fail(USAGE, "cannot use --every with -n: a period has one start, remove one of the two")
    if options.limit == 1:  # as `consul lock -n=1`, which is no semaphore
        options.key, options.limit = options.key + LOCK_SUFFIX, None
    if refused := _why_not_executable(options.argv):
        code, why = refused
        return fail(code, f"cannot run {options.argv[0]}: {why}")
    from supervisor.commands.lock_command.waiting import WaitingProcess

    waiting = None
    with suppress(OSError):  # the start of the command tries again
        waiting = WaitingProcess()  # first, while this process is small
    from supervisor.commands.lock_command.judgement import NotAcquired

    try:
        return run_async(_hold(options, waiting))
    except NotAcquired as error:  # no fault, so cron sends no mail
        return fail(NEGATIVE, str(error)) if options.verbose else NEGATIVE


async def _hold(options: argparse.Namespace, waiting: "WaitingProcess | None") -> int:
    """Hold the lock while the command runs, and return the exit code. Raises CommandError."""
    from supervisor.commands.lock_command.holding import Holding, Manner
    from supervisor.config.command_line import lock_settings
    from supervisor.config.consul import from_environment

    kills, hostname = options.on_lost == "KILL", socket.gethostname()
    settings = lock_settings(
        key=options.key,
        limit=options.limit,
        argv=options.argv,
        times={"ttl": options.ttl_s, "lock_delay": options.lock_delay_s},
        stop_timeout_s=0.0 if kills else STOP_TIMEOUT_S,
        environ=os.environ,
        hostname=hostname,
    )
    consul, period = from_environment(os.environ), _period(options.every_s, hostname)
    wait_s = options.wait_s if period is None or options.wait_s is None else max(options.wait_s, WAIT_MIN_S)
    manner = Manner(wait_s, kills, _say, _say if options.verbose else lambda text: None)
    environ = {**os.environ, "CONSUL_LOCK_HELD": "true"}  # as `consul lock` sets it
    collect_rarely()
    return await Holding(consul, settings, manner, environ, hostname, waiting, period).run()


def _period(every_s: float | None, hostname: str) -> "Period | None":
    """Return the period of --every. None: it is not given. Raises OperatorError."""
    if every_s is None:
        return None
    from supervisor.adapters.journal.identity import place_here
    from supervisor.commands.lock_command.period import Period

    if not (boot := place_here().boot):
        raise OperatorError("cannot use --every: this process may not read the kernel's boot_id")
    return Period(every_s, boot, hostname)


@contextmanager
def _never_waiting() -> Iterator[None]:
    """Print to standard error without waiting for its reader, and without an error if there is no reader.

    The command shares standard error and may have filled it. The loop has to renew the session, and to end
    the command after a loss.
    """
    from supervisor.adapters.filesystem.writing import NonBlockingWriter

    outlet = NonBlockingWriter(sys.stderr.fileno())
    with redirect_stderr(cast(TextIO, outlet)):  # also for the trace of a bug
        try:
            yield
        finally:
            outlet.finish()


def _why_not_executable(argv: Sequence[str]) -> tuple[int, str] | None:
    """Return the exit code of a shell for a program that cannot run, and why. None: it seems that it can."""
    from supervisor.adapters.filesystem.executable import CannotExecute, check_executable

    program = argv[0]
    found = shutil.which(program)
    if found is None and os.path.dirname(program) and os.path.exists(program):
        return NOT_EXECUTABLE, "it is not executable"
    if found is None:
        is_for_shell = any(sign in program for sign in " |&;<>$")
        hint = f"; no shell reads it: write -- sh -c {shlex.quote(' '.join(argv))}" if is_for_shell else ""
        return NOT_FOUND, f"there is no such program{hint}"
    try:
        check_executable(found, os.environ.get("PATH", os.defpath))
    except CannotExecute as error:
        return NOT_EXECUTABLE, ": ".join(error.args)
    return None


def _say(text: str) -> None:
    """Print one line, in which no character of a value from Consul acts on the terminal."""
    print(f"consul-supervisor: {escape(text)}", file=sys.stderr, flush=True)
