"""Commands to the running daemon: those that the daemon carries out, and those that only read its status."""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from supervisor.commands.cli.display.text import escape
from supervisor.commands.cli.exit_codes import CONFIGURATION, DONE, NEGATIVE, USAGE
from supervisor.commands.cli.terminal import UnknownItem, columns, fail, has_colours
from supervisor.commands.cli.without_daemon import only_socket_is_given, readable_config, say_why_it_ended
from supervisor.reporting.control import OperatorCommand, Reply, Result, Verb, fetch
from supervisor.reporting.control.fetch import ask
from supervisor.reporting.control.protocol import REST_S

DAEMON_EVERY_S = 0.2  # a request that waits would keep one of the few connections of the control socket


def operate(options: argparse.Namespace) -> int:
    name, rest_s = getattr(options, "name", None), getattr(options, "rest_s", REST_S)
    note, to = getattr(options, "note", ""), getattr(options, "to", None) or ""
    if to and name is None:
        return fail(USAGE, "cannot use --to with --all: name the election that NODE is to take over")
    if getattr(options, "everywhere", False):
        from supervisor.commands.cli.ordering import everywhere

        if only_socket_is_given(options):
            return fail(USAGE, "cannot use --everywhere with --socket alone: --config says where orders go")
        return everywhere(options)
    pause_s = getattr(options, "pause_s", None)
    command = OperatorCommand(Verb(options.command), name, rest_s, note, to, pause_s)
    reply = ask(socket_path(options.socket, options.config), command)
    if reply.outcome is Result.ELSEWHERE and name is not None and not only_socket_is_given(options):
        from supervisor.commands.cli.ordering import step_down

        if (code := step_down(options, reply.error)) is not None:
            return code
    return told(reply, quiet=options.quiet)


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
        return _cluster(options)
    path = socket_path(options.socket, options.config)
    if options.watch:
        return _watch(options, path)
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


def _cluster(options: argparse.Namespace) -> int:
    from supervisor.commands.cli.cluster_commands import cluster

    for option, given in {
        "--watch": options.watch,
        "--exit-code": options.exit_code,
        "--socket": options.socket,
    }.items():
        if given:
            return fail(USAGE, f"cannot use {option} with --cluster, which asks Consul and not the daemon")
    return cluster(options)


def _watch(options: argparse.Namespace, path: str) -> int:
    from supervisor.commands.cli.display.screen import watch

    if options.exit_code:
        return fail(USAGE, "cannot use --exit-code with --watch: the status may change until Ctrl-C")
    if not sys.stdout.isatty():
        return fail(USAGE, "cannot watch: standard output is not a terminal; --json is for programs")
    watch(path, options.name, colours=has_colours())
    return DONE


def holds(options: argparse.Namespace) -> int:
    """Return DONE if this node holds the item, and NEGATIVE if not.

    Both answers print nothing, because cron sends a mail for each line.
    """
    path = socket_path(options.socket, options.config)
    held = fetch.holds(path, options.name)
    if held is None:
        raise no_such_item(options.name, fetch.status(path)[1])
    return DONE if held else NEGATIVE


def wait(options: argparse.Namespace) -> int:
    """Wait until the item is in the named state, and return the exit code. Print nothing if it is."""
    if options.state != "holding":
        from supervisor.commands.cli.cluster_commands import wait

        return wait(options)
    path = socket_path(options.socket, options.config)
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


def socket_path(given: str | None, config: Path | None) -> str:
    """Return the path of the daemon's control socket: the given one, or else that of the configuration.

    Print a warning on standard error where a fault of the configuration may hide another socket. Raises
    ConfigError when the configuration does not exist.
    """
    from supervisor.config.control import control_socket

    if given is not None:
        return given
    path, doubt = control_socket(readable_config(config), os.environ)
    if doubt:
        fail(DONE, f"warning: {doubt}; so {path} is asked, the usual control socket; --socket names another")
    return path
