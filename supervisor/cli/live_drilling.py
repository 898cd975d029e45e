"""``drill --live``: one real hand-over of an election to another node, and one back."""

import argparse
import socket
from typing import TYPE_CHECKING

from supervisor.cli.consul_commands import load_item, not_found
from supervisor.cli.daemon_commands import no_such_item, socket_path
from supervisor.cli.exit_codes import DONE, NEGATIVE
from supervisor.cli.terminal import confirm, fail, progress, run_async, say

if TYPE_CHECKING:
    from supervisor.config import ConsulSettings
    from supervisor.core.settings import ItemSettings
    from supervisor.drill.live.plan import LivePlan
    from supervisor.drill.live.sight import Handover

TIMEOUT_S = 300.0  # for the way back, which a person types


def drill_live(options: argparse.Namespace) -> int:
    """Hand over and back, print promises and measurements, and return the exit code."""
    from supervisor.control import fetch

    config, item = load_item(options.path, options.live)
    if item is None:
        return not_found("election", config, options.path, options.live)
    options.socket = socket_path(options.socket, options.path)
    status = fetch.status(options.socket)[1]
    if item.name not in {each["name"] for each in status["items"]}:
        return no_such_item(item.name, status)
    return _drill(options, config.consul, item)


def _drill(options: argparse.Namespace, consul: "ConsulSettings", item: "ItemSettings") -> int:
    """Print the plan, hand over if the operator agrees, and print the result."""
    from supervisor.drill.live.plan import PLAIN_NODE
    from supervisor.drill.live.report import as_json, begin_lines, end_line, handover_lines

    plan, back_by = _plan(options, consul, item), options.back_by or ""
    if "{node}" in back_by and not PLAIN_NODE.fullmatch(plan.target.node):
        why = f"{plan.target.node} is no plain name for a shell; write the host in place of {{node}}"
        return fail(NEGATIVE, f"cannot use --back-by: {why}")
    for line in begin_lines(plan, back_by, one_way=options.one_way):
        progress(line) if options.json else say(line)
    if not options.yes:
        refused = f"{item.name} was not handed over"
        if code := confirm("hand over", refused):
            return code
        if _plan(options, consul, item) != plan:
            return fail(NEGATIVE, f"{refused}: its holder or candidates have changed")
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
    from supervisor.drill.live.plan import prepare

    to, hostname = options.to or "", socket.gethostname()
    work = prepare(consul, item, options.socket, to=to, hostname=hostname, one_way=options.one_way)
    return run_async(work)


async def _hand_over_and_back(options: argparse.Namespace, plan: "LivePlan", seen: "list[Handover]") -> None:
    """Hand over, then back unless the drill is one way, and add each hand-over to ``seen``."""
    from supervisor.drill.live.handovers import hand_back, hand_over

    progress(f"{plan.item.name}: {plan.here} hands over to {plan.there}")
    there = await hand_over(plan)
    seen.append(there)
    if options.one_way or there.holder != plan.target.id or there.token is None:
        return
    within_s = TIMEOUT_S if options.timeout_s is None else options.timeout_s
    seen.append(await hand_back(plan, there.token, options.back_by or "", within_s, progress))
