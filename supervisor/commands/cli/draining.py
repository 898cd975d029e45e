"""``drain`` and ``undrain``: take this node out of all elections and semaphores, as for a patch, and back."""

import argparse
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from supervisor.adapters.consul.members import Members, Part, cluster_now
from supervisor.commands.cli.commands import DEFAULT_CONFIG
from supervisor.commands.cli.consul_commands import load_for
from supervisor.commands.cli.daemon_commands import DAEMON_EVERY_S, socket_path, told
from supervisor.commands.cli.display.text import escape
from supervisor.commands.cli.exit_codes import DONE, NEGATIVE
from supervisor.commands.cli.terminal import fail, run_async
from supervisor.config.environment import EVERY_ITEM
from supervisor.core.actions import Role
from supervisor.reporting.control import OperatorCommand, Reply, Result, Verb, fetch
from supervisor.reporting.control.fetch import ask

HOLDS = (Role.ACQUIRING, Role.HOLDING)
LOSES_S = 660.0  # the daemon's own limit for a step-down is shorter


def drain(options: argparse.Namespace) -> int:
    path = socket_path(options.socket, options.config)
    if not options.force and (refused := _refusal(options, fetch.status(path)[1])):
        return fail(NEGATIVE, f"cannot drain: {refused}; --force drains this node all the same")
    pause = OperatorCommand(Verb.PAUSE, note=options.note, pause_s=options.pause_s)
    if code := told(ask(path, pause), quiet=options.quiet):
        return code
    handed_over, deadline = True, time.monotonic() + LOSES_S
    while (busy := _items(path, (*HOLDS, Role.LOSING))) and time.monotonic() < deadline:
        held = [item for item in busy if item["role"] in HOLDS]
        if not held:  # on_lose runs
            signal.sigtimedwait((), DAEMON_EVERY_S)  # a pause that Ctrl-C ends
            continue
        reply = ask(path, OperatorCommand(Verb.STEP_DOWN, note=options.note))
        left = [_left(path, item) for item in held]
        holds, lacks_holder = (any(each) for each in zip(*left, strict=True))
        if reply.outcome is Result.DONE or holds or lacks_holder:
            handed_over &= told(reply, quiet=options.quiet) == DONE or not lacks_holder
        if holds and reply.outcome is not Result.DONE:
            return NEGATIVE
        if holds:  # it was lost meanwhile, and its on_lose runs
            signal.sigtimedwait((), DAEMON_EVERY_S)
    if stuck := [item["name"] for item in _items(path, (*HOLDS, Role.LOSING, Role.STUCK))]:
        return fail(NEGATIVE, f"cannot drain: this node still has a part in {', '.join(stuck)}, see `status`")
    return DONE if handed_over else NEGATIVE


def undrain(options: argparse.Namespace) -> int:
    path, deadline = socket_path(options.socket, options.config), time.monotonic() + (options.wait_s or 0.0)
    if code := told(_resumed(path, options.note, deadline), quiet=options.quiet):
        return code
    while options.wait_s is not None and (missing := _missing(path)):
        if (left_s := deadline - time.monotonic()) <= 0.0:
            return fail(NEGATIVE, f"not yet after {options.wait_s:g} s: {'; '.join(missing)}")
        signal.sigtimedwait((), min(DAEMON_EVERY_S, left_s))
    return DONE


def _resumed(path: str, note: str, deadline: float) -> Reply:
    """Return the daemon's reply to resume, and try until the deadline, because it may still start."""
    while True:
        try:
            return ask(path, OperatorCommand(Verb.RESUME, note=note))
        except fetch.DaemonUnreachable:
            if time.monotonic() >= deadline:
                raise
        signal.sigtimedwait((), DAEMON_EVERY_S)


def _items(path: str, roles: Sequence[Role]) -> list[dict[str, Any]]:
    return [item for item in fetch.status(path)[1]["items"] if item["role"] in roles]


def _left(path: str, before: Mapping[str, Any]) -> tuple[bool, bool]:
    """Return whether this node still holds the item, and whether the election has no leader.

    A slot may stay free, and a key may already have its next holder.
    """
    for item in fetch.status(path)[1]["items"]:
        if item["name"] == before["name"]:
            slots = {each["session"] for each in item["holders"] or ()}
            holds = item["role"] in (*HOLDS, Role.LOSING, Role.STUCK) or before["session"] in slots
            return holds, item["kind"] == "election" and item["leader"] is None
    return False, False


def _missing(path: str) -> list[str]:
    try:
        status = fetch.status(path)[1]
    except fetch.DaemonUnreachable as error:
        return [str(error)]
    found = []
    for item in status["items"]:
        if item["role"] == Role.WAITING and not item["session"]:
            found.append(f"{item['name']} has no session yet")
        elif item["role"] not in (Role.WAITING, Role.HOLDING, Role.OBSERVER):
            found.append(f"{item['name']} is {item['role']}")
    return [*found, *map(escape, status["troubles"])]


def _refusal(options: argparse.Namespace, status: Mapping[str, Any]) -> str:
    """Return why others would not take over all that this node holds, by Consul. Blank: they would."""
    held = {item["name"] for item in status["items"] if item["role"] in HOLDS}
    if not held:
        return ""
    file = options.config or Path(status["daemon"]["config"] or DEFAULT_CONFIG)
    config = load_for(EVERY_ITEM, file)
    items = [item for item in config.items if item.name in held]
    if missing := sorted(held - {item.name for item in items}):
        return f"{file} does not declare {', '.join(missing)}, so Consul cannot be asked who would take over"
    service = None if config.fleet is None else config.fleet.service
    found = run_async(cluster_now(config.consul, items, service)).items
    alone = [each.settings.name for each in found if not _has_heir(each)]
    return alone and f"as far as Consul shows, no other node would take over {', '.join(alone)}" or ""


def _has_heir(members: Members) -> bool:
    """Return whether another node waits; for a semaphore another holder is enough, because nothing stops.

    A former session of this node may still wait, until its TTL ends it.
    """
    holders = members.of_part(Part.HOLDER)
    ours = {each.listed.node for each in holders if each.listed is not None}
    elsewhere = any(each.consul_node not in ours for each in members.heirs)
    return elsewhere or (members.settings.kind == "semaphore" and len(holders) > 1)
