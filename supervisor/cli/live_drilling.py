"""``drill --live``: one real hand-over of an election to another node, and one back."""

import argparse
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.cli.commands import DEFAULT_CONFIG
from supervisor.cli.daemon_commands import no_such_item
from supervisor.cli.exit_codes import DONE, NEGATIVE, USAGE
from supervisor.cli.terminal import fail, run_async, say

if TYPE_CHECKING:
    from supervisor.config import ConsulSettings
    from supervisor.core.settings import ItemSettings
    from supervisor.drill.live import Handover, LivePlan

TIMEOUT_S = 300.0  # for the way back, which a person types


def drill_live(options: argparse.Namespace) -> int:
    """Hand over and back, print promises and measurements, and return the exit code."""
    from supervisor.config import load_for_question
    from supervisor.config.problems import known_names
    from supervisor.control import fetch

    path = options.path or DEFAULT_CONFIG
    config = load_for_question(path, options.live, os.environ, socket.gethostname())
    item = next((each for each in config.items if each.name == options.live), None)
    if item is None:
        known = known_names(options.live, sorted(each.name for each in config.items))
        return fail(USAGE, f"cannot find election {options.live} in {path}: it has {known}")
    options.socket = _socket_path(options, path)
    status = fetch.status(options.socket)[1]
    if item.name not in {each["name"] for each in status["items"]}:
        return no_such_item(item.name, status)
    return _drill(options, config.consul, item)


def _socket_path(options: argparse.Namespace, path: Path) -> str:
    """Return the path of the daemon's control socket. Raises ConfigError."""
    from supervisor.config import control_settings

    return str(options.socket) if options.socket is not None else control_settings(path, os.environ).path


def _drill(options: argparse.Namespace, consul: "ConsulSettings", item: "ItemSettings") -> int:
    """Print the plan, hand over if the operator agrees, and print the result."""
    from supervisor.drill.live import PLAIN_NODE
    from supervisor.drill.live_report import as_json, begin_lines, end_line, handover_lines

    plan, back_by = _plan(options, consul, item), options.back_by or ""
    if "{node}" in back_by and not PLAIN_NODE.fullmatch(plan.target.node):
        why = f"{plan.target.node} is no plain name for a shell; write the host in place of {{node}}"
        return fail(NEGATIVE, f"cannot use --back-by: {why}")
    for line in begin_lines(plan, back_by, one_way=options.one_way):
        _progress(line) if options.json else say(line)
    if not options.yes:
        if not sys.stdin.isatty():
            return fail(USAGE, "cannot ask whether to hand over: standard input is no terminal; add --yes")
        print("Hand over? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return fail(NEGATIVE, f"{item.name} was not handed over")
        if _plan(options, consul, item) != plan:
            return fail(NEGATIVE, f"{item.name} was not handed over: its holder or candidates have changed")
    seen: list[Handover] = []
    try:
        run_async(_hand_over_and_back(options, plan, seen))
    finally:  # also those before an error or Ctrl-C
        for handover in () if options.json else seen:
            for line in handover_lines(handover):
                say(line)
    print(as_json(plan, seen) if options.json else f"\n{end_line(plan, seen)}")
    return DONE if all(each.played.kept for each in seen) else NEGATIVE


def _plan(options: argparse.Namespace, consul: "ConsulSettings", item: "ItemSettings") -> "LivePlan":
    """Return the plan of the drill. Raises CommandError when the drill is not possible."""
    from supervisor.drill.live import prepare

    to, hostname = options.to or "", socket.gethostname()
    work = prepare(consul, item, options.socket, to=to, hostname=hostname, one_way=options.one_way)
    return run_async(work)


async def _hand_over_and_back(options: argparse.Namespace, plan: "LivePlan", seen: "list[Handover]") -> None:
    """Hand over, then back unless the drill is one way, and add each hand-over to ``seen``."""
    from supervisor.drill.live import hand_back, hand_over

    _progress(f"{plan.item.name}: {plan.here} hands over to {plan.there}")
    there = await hand_over(plan)
    seen.append(there)
    if options.one_way or there.holder != plan.target.id or there.token is None:
        return
    within_s = TIMEOUT_S if options.timeout_s is None else options.timeout_s
    seen.append(await hand_back(plan, there.token, options.back_by or "", within_s, _progress))


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
