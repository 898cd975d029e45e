"""Commands to the running daemon: those that the daemon carries out, and those that only read its status."""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

from supervisor.commands.cli.display.text import escape
from supervisor.commands.cli.exit_codes import CONFIGURATION, DONE, NEGATIVE, USAGE
from supervisor.commands.cli.terminal import UnknownItem, columns, fail, has_colours
from supervisor.commands.cli.without_daemon import only_socket_is_given, say_why_it_ended
from supervisor.config.places import control_socket
from supervisor.reporting.control import OperatorCommand, Reply, Result, Verb, fetch
from supervisor.reporting.control.fetch import ask

DAEMON_EVERY_S = 0.2  # a request that waits would keep one of the few connections of the control socket


def operate(options: argparse.Namespace) -> int:
    return told(_asked(options), quiet=options.quiet)


def confirm_off(options: argparse.Namespace) -> int:
    if options.all_behind and options.machine:
        return fail(USAGE, "cannot use --machine with --all MACHINE, which names the machine that is off")
    options.machine = options.machine or options.all_behind
    return operate(options)


def pause_or_resume(options: argparse.Namespace) -> int:
    if not options.everywhere:
        return operate(options)
    if only_socket_is_given(options):
        return fail(USAGE, "cannot use --everywhere with --socket alone: --config says where orders go")
    from supervisor.commands.cli.ordering import everywhere

    return everywhere(options)


def step_down(options: argparse.Namespace) -> int:
    if options.to and options.name is None:
        return fail(USAGE, "cannot use --to with --all: name the election that NODE is to take over")
    reply = _asked(options)
    if reply.outcome is Result.ELSEWHERE and options.name and not only_socket_is_given(options):
        from supervisor.commands.cli.ordering import step_down

        if (code := step_down(options, reply.error)) is not None:
            return code
    return told(reply, quiet=options.quiet)


def _asked(options: argparse.Namespace) -> Reply:
    """Send the command with those of its fields that are given, and return the daemon's reply."""
    fields = {name: getattr(options, name, None) for name in OperatorCommand._fields}
    given = {name: value for name, value in fields.items() if value is not None}
    return ask(socket_path(options), OperatorCommand(Verb(options.command), **given))


def told(reply: Reply, *, quiet: bool) -> int:
    """Print the daemon's reply, and return the exit code."""
    done = reply.outcome is Result.DONE
    for line in () if done and quiet else reply.lines:
        print(escape(line), file=sys.stdout if done else sys.stderr)
    codes = {Result.UNKNOWN: USAGE, Result.FAULTY: CONFIGURATION}
    return DONE if done else fail(codes.get(reply.outcome, NEGATIVE), reply.error)


def status(options: argparse.Namespace) -> int:
    from supervisor.commands.cli.display.table import lines, of_item

    if options.cluster:
        from supervisor.commands.cli.cluster_commands import cluster

        if options.exit_code or options.socket:
            return fail(USAGE, "cannot use --exit-code or --socket with --cluster, which asks Consul")
        return cluster(options)
    path = socket_path(options)
    try:
        body, whole = fetch.status(path)
    except fetch.DaemonUnreachable:
        say_why_it_ended(options)
        raise
    shown = whole if options.name is None else of_item(whole, options.name)
    if options.name is not None and not shown["items"]:
        raise no_such_item(options.name, whole)
    if options.json:
        sys.stdout.buffer.write(body if shown is whole else json.dumps(shown).encode() + b"\n")
    else:
        print("\n".join(lines(shown, columns(), colours=has_colours())))
    return NEGATIVE if options.exit_code and not whole["healthy"] else DONE


def holds(options: argparse.Namespace) -> int:
    """Return DONE if this node holds the item, and NEGATIVE if not.

    Both answers print nothing, because cron sends a mail for each line.
    """
    path = socket_path(options)
    held = fetch.holds(path, options.name)
    if held is None:
        raise no_such_item(options.name, fetch.status(path)[1])
    return DONE if held else NEGATIVE


def wait(options: argparse.Namespace) -> int:
    """Wait until the item is in the named state, and return the exit code. Print nothing if it is."""
    if options.state != "holding":
        from supervisor.commands.cli.cluster_commands import wait

        return wait(options)
    path = socket_path(options)
    held = _held_within(path, options.name, options.timeout_s)
    if held is None:
        raise no_such_item(options.name, fetch.status(path)[1])
    if held:
        return DONE
    return fail(NEGATIVE, f"this node does not hold {options.name}, also after {options.timeout_s:g} s")


def _held_within(path: str, name: str, timeout_s: float) -> bool | None:
    """Return whether this node holds the item within the time. None: the daemon has no such item.

    Raises DaemonUnreachable when the daemon does not answer at the end of the time.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        left_s = max(0.0, deadline - time.monotonic())
        try:
            held = fetch.holds(path, name, within_s=min(fetch.FETCH_S, left_s + 1))
        except fetch.DaemonUnreachable:
            if left_s == 0.0:
                raise
        else:
            if held is not False or left_s == 0.0:
                return held
        signal.sigtimedwait((), min(DAEMON_EVERY_S, left_s))  # a pause that Ctrl-C ends


def no_such_item(name: str, status: Mapping[str, Any]) -> UnknownItem:
    from supervisor.config.problems import known_names

    known = known_names(name, sorted(item["name"] for item in status["items"]))
    return UnknownItem(f"cannot find {name}: no such election or semaphore, there are {known}")


def socket_path(options: argparse.Namespace) -> str:
    """Return the path of the daemon's control socket. Raises ConfigError when --config cannot be read."""
    return options.socket or control_socket(options.config, os.environ)
