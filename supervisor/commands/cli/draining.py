"""``drain`` and ``undrain``: take this node out of all elections and semaphores, as for a patch, and back."""

import argparse
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from supervisor.adapters.consul.members import Members, Part, cluster_now
from supervisor.commands.cli.commands import DEFAULT_CONFIG
from supervisor.commands.cli.consul_commands import load_for
from supervisor.commands.cli.daemon_commands import DAEMON_EVERY_S, socket_path
from supervisor.commands.cli.display.text import escape
from supervisor.commands.cli.exit_codes import DONE, NEGATIVE
from supervisor.commands.cli.terminal import fail, run_async
from supervisor.config.environment import EVERY_ITEM
from supervisor.core.actions import Role
from supervisor.reporting.control import OperatorCommand, Reply, Result, Verb, fetch
from supervisor.reporting.control.client import ask

HOLDS = (Role.ACQUIRING, Role.HOLDING)
OCCUPIED = (*HOLDS, Role.LOSING, Role.STUCK)
SETTLED = (Role.WAITING, Role.HOLDING, Role.OBSERVER)


def drain(options: argparse.Namespace) -> int:
    """Pause all items, hand over those that this node holds, and return the exit code once that is done."""
    path = socket_path(options.socket, options.config)
    held = [item["name"] for item in _items(path, HOLDS)]
    if not options.force and (alone := _without_heir(options, held)):
        why = "no other node would take over now; --force drains this node all the same"
        return fail(NEGATIVE, f"cannot drain: {', '.join(alone)}: {why}")
    if not _carried_out(options, ask(path, OperatorCommand(Verb.PAUSE, note=options.note))):
        return NEGATIVE
    handed_over = True
    for item in _items(path, HOLDS):
        reply = ask(path, OperatorCommand(Verb.STEP_DOWN, item["name"], note=options.note))
        if reply.outcome is not Result.DONE and item["kind"] == "semaphore":
            continue  # a slot may stay free, and whether this node has given it up is looked at below
        handed_over = _carried_out(options, reply) and handed_over
    if left := [item["name"] for item in _items(path, OCCUPIED)]:
        return fail(NEGATIVE, f"cannot drain: this node still has a part in {', '.join(left)}, see `status`")
    return DONE if handed_over else NEGATIVE


def undrain(options: argparse.Namespace) -> int:
    """End the pause of all items, and return the exit code; with --wait once this node takes part again."""
    path, deadline = socket_path(options.socket, options.config), time.monotonic() + (options.wait_s or 0.0)
    _await_daemon(path, deadline)
    if not _carried_out(options, ask(path, OperatorCommand(Verb.RESUME, note=options.note))):
        return NEGATIVE
    while options.wait_s is not None and (missing := list(_unsettled(path))):
        if (left_s := deadline - time.monotonic()) <= 0.0:
            return fail(NEGATIVE, f"not yet after {options.wait_s:g} s: {'; '.join(missing)}")
        signal.sigtimedwait((), min(DAEMON_EVERY_S, left_s))  # a pause that Ctrl-C ends
    return DONE


def _await_daemon(path: str, deadline: float) -> None:
    """Return once the daemon answers, as after a boot, or at the deadline."""
    while time.monotonic() < deadline:
        try:
            fetch.status(path)
            return
        except fetch.DaemonUnreachable:
            signal.sigtimedwait((), DAEMON_EVERY_S)


def _items(path: str, roles: Sequence[Role]) -> list[dict[str, Any]]:
    """Return the items in which this node has one of these roles, as the status has them."""
    return [item for item in fetch.status(path)[1]["items"] if item["role"] in roles]


def _unsettled(path: str) -> Iterator[str]:
    """Yield why this node does not take part as it should, for each item and for the daemon."""
    status = fetch.status(path)[1]
    yield from (
        f"{item['name']} is {item['role']}" for item in status["items"] if item["role"] not in SETTLED
    )
    yield from map(escape, status["troubles"])


def _carried_out(options: argparse.Namespace, reply: Reply) -> bool:
    """Print the daemon's reply, and return whether the command was carried out."""
    done = reply.outcome is Result.DONE
    for line in () if done and options.quiet else reply.lines:
        print(escape(line), file=sys.stdout if done else sys.stderr)
    if not done:
        fail(NEGATIVE, reply.error)
    return done


def _without_heir(options: argparse.Namespace, held: Sequence[str]) -> list[str]:
    """Return those of the items that nobody else takes part in, by Consul."""
    if not held:
        return []
    config = load_for(EVERY_ITEM, options.config or DEFAULT_CONFIG)
    items = [item for item in config.items if item.name in held]
    found = run_async(cluster_now(config.consul, items)).items
    return [each.settings.name for each in found if not _has_heir(each)]


def _has_heir(members: Members) -> bool:
    """Return whether a candidate waits; for a semaphore another holder is enough, because nothing stops."""
    others = len(members.of_part(Part.HOLDER)) - 1 if members.settings.kind == "semaphore" else 0
    return bool(members.of_part(Part.CANDIDATE)) or others > 0
