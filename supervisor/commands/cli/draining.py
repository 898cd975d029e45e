"""``drain`` and ``undrain``: take this node out of all elections and semaphores, as for a patch, and back."""

import argparse
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from supervisor.adapters.consul.endpoints import READS_SESSIONS
from supervisor.adapters.consul.members import Members, Part, cluster_now
from supervisor.commands.cli.consul_commands import load_for
from supervisor.commands.cli.daemon_commands import DAEMON_EVERY_S, socket_path, told
from supervisor.commands.cli.display.text import escape
from supervisor.commands.cli.exit_codes import DONE, NEGATIVE
from supervisor.commands.cli.table.spec import DEFAULT_CONFIG
from supervisor.commands.cli.terminal import fail, run_async
from supervisor.config.environment import EVERY_ITEM
from supervisor.core.actions import Role
from supervisor.errors import CommandError
from supervisor.reporting.control import OperatorCommand, Reply, Result, Verb, fetch
from supervisor.reporting.control.fetch import ask
from supervisor.reporting.control.protocol import DONE_S, NOTE_CHARS_MAX
from supervisor.reporting.telemetry.formatting import kept_in_silence

HOLDS = (Role.ACQUIRING, Role.HOLDING)
HELD_OR_WAITS = (*HOLDS, Role.WAITING, Role.RESTING)
SEES_ALL = f"to see all nodes, give the token: {READS_SESSIONS}"
UNCLEAR = "whether for an operator's word (contend: manual), nobody can tell without fleet"


def drain(options: argparse.Namespace) -> int:
    path = socket_path(options)
    if not options.force and (refused := _refusal(options, fetch.status(path)[1], warns=True)):
        return fail(NEGATIVE, f"cannot drain: {refused}; --force drains this node all the same")
    if options.dry_run and fetch.status(path):
        return DONE
    pause = OperatorCommand(Verb.DRAIN, note=options.note, pause_s=options.pause_s, force=options.force)
    if code := told(ask(path, pause), quiet=options.quiet):
        return code
    handed_over, deadline = True, time.monotonic() + DONE_S
    while (busy := _items(path, (*HOLDS, Role.LOSING))) and time.monotonic() < deadline:
        held = [item for item in busy if item["role"] in HOLDS]
        if not held:  # on_lose runs
            signal.sigtimedwait((), DAEMON_EVERY_S)  # a pause that Ctrl-C ends
            continue
        try:
            refused = "" if options.force else _refusal(options, fetch.status(path)[1])
        except CommandError as error:
            refused = str(error)
        if refused:
            return _taken_back(path, refused)
        reply = ask(path, OperatorCommand(Verb.STEP_DOWN, note=options.note, force=options.force))
        names = {item["name"] for item in held}
        left = [item for item in fetch.status(path)[1]["items"] if item["name"] in names]
        holds = any(item["role"] in (*HOLDS, Role.LOSING, Role.STUCK) for item in left)
        lacks_holder = any(item["kind"] == "election" and item["leader"] is None for item in left)
        if reply.outcome is Result.DONE or holds or lacks_holder:
            handed_over &= told(reply, quiet=options.quiet) == DONE or not lacks_holder
        if holds and reply.outcome is not Result.DONE:
            return NEGATIVE
        if holds:  # it was lost meanwhile, and its on_lose runs
            signal.sigtimedwait((), DAEMON_EVERY_S)
    if stuck := [item["name"] for item in _items(path, (*HOLDS, Role.LOSING, Role.STUCK))]:
        return fail(NEGATIVE, f"cannot drain: this node still has a part in {', '.join(stuck)}, see `status`")
    if ended := [item["name"] for item in _items(path, HELD_OR_WAITS) if not item["paused"]]:
        return fail(
            NEGATIVE, f"cannot drain: its drain was ended meanwhile, and it contends for {', '.join(ended)}"
        )
    if not (handed_over or options.force):
        return _taken_back(path, "nobody took over")
    return DONE if handed_over else NEGATIVE


def _taken_back(path: str, why: str) -> int:
    """Let this node contend again, so that not all nodes are drained at once."""
    told(ask(path, OperatorCommand(Verb.UNDRAIN, note=why[:NOTE_CHARS_MAX])), quiet=True)
    return fail(NEGATIVE, f"cannot drain: {why}; so this node contends again")


def undrain(options: argparse.Namespace) -> int:
    path, deadline = socket_path(options), time.monotonic() + (options.wait_s or 0.0)
    if options.dry_run and (options.wait_s or fetch.status(path)):
        return DONE
    if code := told(_resumed(path, options.note, deadline), quiet=options.quiet):
        return code
    while options.wait_s is not None and (missing := _missing(path)):
        if (left_s := deadline - time.monotonic()) <= 0.0:
            return fail(NEGATIVE, f"not yet after {options.wait_s:g} s: {'; '.join(missing)}")
        signal.sigtimedwait((), min(DAEMON_EVERY_S, left_s))
    return DONE


def _resumed(path: str, note: str, deadline: float) -> Reply:
    """Return the daemon's reply, and try until the deadline, because it may still start."""
    while True:
        try:
            return ask(path, OperatorCommand(Verb.UNDRAIN, note=note))
        except fetch.DaemonUnreachable:
            if time.monotonic() >= deadline:
                raise
        signal.sigtimedwait((), DAEMON_EVERY_S)


def _items(path: str, roles: Sequence[Role]) -> list[dict[str, Any]]:
    return [item for item in fetch.status(path)[1]["items"] if item["role"] in roles]


def _missing(path: str) -> list[str]:
    try:
        status = fetch.status(path)[1]
    except fetch.DaemonUnreachable as error:
        return [str(error)]
    found = []
    for item in status["items"]:
        if item["role"] == Role.WAITING and not item["session"]:
            found.append(f"{item['name']} has no session yet")
        elif item["role"] not in (Role.WAITING, Role.HOLDING, Role.OBSERVER, Role.PAUSED):  # by others
            found.append(f"{item['name']} is {item['role']}")
    return [*found, *map(escape, status["troubles"])]


def _refusal(options: argparse.Namespace, status: Mapping[str, Any], *, warns: bool = False) -> str:
    """Return why others would not take over all that this node holds, by Consul. Blank: they would.

    warns: also print where only this node waits, and what Consul cannot tell.
    """
    roles = (*HOLDS, Role.WAITING) if warns else HOLDS
    ours = {item["name"]: item for item in status["items"] if item["role"] in roles}
    if not ours:
        return ""
    if kept := kept_in_silence({name: item.get("silent_since") for name, item in ours.items()}):
        return kept
    file = options.config or Path(status["daemon"]["config"] or DEFAULT_CONFIG)
    config = load_for(EVERY_ITEM, file)
    items = [item for item in config.items if item.name in ours]
    if missing := sorted(ours.keys() - {item.name for item in items}):
        return f"{file} does not declare {', '.join(missing)}, so Consul cannot be asked who would take over"
    service = None if config.fleet is None else config.fleet.service
    found = {each.settings.name: each for each in run_async(cluster_now(config.consul, items, service)).items}
    held = [name for name in found if ours[name]["role"] in HOLDS]
    alone = [name for name in found if not _has_heir(found[name], ours[name]["session"])]
    if last := ", ".join(name for name in alone if name not in held):
        fail(DONE, f"warning: as far as Consul shows, only this node waits for {last}; {SEES_ALL}")
    unclear = ", ".join(name for name in held if name not in alone and not found[name].nodes)
    if warns and unclear and not options.quiet:
        print(f"{unclear}: another node waits; {UNCLEAR}", flush=True)
    left = ", ".join(name for name in alone if name in held)
    return left and f"as far as Consul shows, no other node would take over {left}; {SEES_ALL}"


def _has_heir(members: Members, ours: str) -> bool:
    """Return whether another node waits; for a semaphore another holder is enough, because nothing stops.

    A former session of this node may still wait, until its TTL ends it.
    """
    here = {each.consul_node for each in members.members if each.session == ours}
    others = [each for each in members.of_part(Part.HOLDER) if each.session != ours]
    elsewhere = any(each.consul_node not in here for each in members.heirs)
    return elsewhere or (members.settings.kind == "semaphore" and bool(others))
