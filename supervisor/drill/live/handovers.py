"""The hand-over to the other node, and the one back.

This module requests the first one from the daemon of this node. It waits for the second one, because only a
user of the other node may request that one.
"""

import asyncio
import os
import subprocess
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from supervisor.consul.members import cluster_now
from supervisor.control import fetch
from supervisor.control.client import DONE_S
from supervisor.core.actions import Role
from supervisor.core.lease import lease_of
from supervisor.core.outcomes import ListedSession
from supervisor.daemon.handover import candidates_of
from supervisor.demo.backstage import PACKAGE_PARENT
from supervisor.drill.bounds import hooks_s
from supervisor.drill.live.plan import NOTE, REST, LivePlan, back_command, shown_item
from supervisor.drill.live.sight import Handover, Sight, followed
from supervisor.drill.promises import ALLOWANCE_S, Played, Promise, at_most
from supervisor.formats.durations import format_duration

POLL_S = 0.05
STANDBY_POLL_S = 0.2
SEEN_S = 5.0  # after the daemon's reply, for the answer of Consul that shows the new holder
COMMAND_END_S = 20.0  # for --back-by to end, after the hand-over that it requested
SHELL = "/bin/sh"

# --- there ---------------------------------------------------------------------------------------


async def hand_over(plan: LivePlan) -> Handover:
    """Hand over to the other node. Raises DaemonUnreachable and LookupFailed."""
    sight = Sight(plan, f"{plan.here} hands over to {plan.there}", plan.ours.id)
    async with followed(plan, sight, DONE_S) as following:
        sight.mark(plan.here, f"`consul-supervisor step-down {plan.item.name} --to {plan.there}`")
        why_not = await _step_down(plan)
        await asyncio.wait((following,), timeout=0 if why_not else SEEN_S)
    sight.promises.append(Promise("step-down", "done", why_not or "done", not why_not))
    if (losing_s := _duration_s(shown_item(plan.socket, plan.item), "lose")) is not None:
        lose_time_s = lease_of(plan.item).lose_time_s
        sight.promises.append(at_most("losing has ended (lose_time)", lose_time_s, losing_s))
    terms = "lose_time + acquire_delay" if lease_of(plan.item).acquire_delay_s else "lose_time"
    taken_s = None if sight.taken_at is None else sight.taken_at - sight.began_at
    sight.promises.append(at_most(f"another node is holder ({terms})", plan.promised_s, taken_s))
    sight.compare(plan.target.id, plan.token)
    return sight.handover("there")


async def _step_down(plan: LivePlan) -> str:
    """Step down as an operator does. Return why that failed. Blank: the other node holds."""
    to, socket = plan.target.id, plan.socket
    words = ["step-down", plan.item.name, "--to", to, "--for", REST, "--reason", NOTE, "--socket", socket]
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "supervisor", *words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(PACKAGE_PARENT)},
    )
    try:
        _, errors = await child.communicate()
    finally:
        await _end(child)
    return "" if child.returncode == 0 else " ".join(errors.decode(errors="replace").split())


async def _end(child: Process) -> None:
    """End a child, if it still runs."""
    with suppress(ProcessLookupError):
        child.kill()
    await child.wait()


def _duration_s(shown: Mapping[str, Any], event: str) -> float | None:
    """Return how long the newest transition took. None: it is of another kind, or not over."""
    newest = next(
        (each for each in shown.get("transitions", ()) if each["event"] in ("acquire", "lose")), None
    )
    if newest is None or newest["event"] != event:
        return None
    duration_s = newest["duration_s"]
    return None if duration_s is None else float(duration_s)


# --- back ----------------------------------------------------------------------------------------


async def hand_back(
    plan: LivePlan, token: int, back_by: str, within_s: float, progress: Callable[[str], None]
) -> Handover:
    """Wait until the other node has handed back to this one.

    token: the fencing token of the other node.
    back_by: a shell command that requests the hand-over. Blank: the operator types it on the other node.
    within_s: how long to wait for this node to contend again, and then for the hand-over.
    progress: prints a line for the operator.
    Raises DaemonUnreachable and LookupFailed.
    """
    title = f"{plan.there} hands back to {plan.here}"
    ours, command = await _standby(plan, within_s)
    if ours is None:
        promise = Promise(f"{plan.here} contends again", "yes", f"no, {command}", kept=False)
        return Handover(Played("back", title, (promise,)), None, plan.target.id, plan.there, None)
    sight = Sight(replace(plan, ours=ours), title, plan.target.id)
    async with followed(plan, sight, within_s) as following:
        if not back_by:
            progress(f"within {format_duration(within_s)}, run on {plan.there}: {command}")
            child = None
        else:
            filled = back_by.replace("{node}", plan.target.node).replace("{command}", command)
            sight.mark("", f"`{filled}`")
            child = await asyncio.create_subprocess_exec(
                SHELL, "-c", filled, stdin=subprocess.DEVNULL, stdout=sys.stderr
            )
        try:
            while not following.done() and not (child is not None and child.returncode):
                await asyncio.wait((following,), timeout=POLL_S)
            if following.done():
                await following
            code = None if child is None else await _code(child)
        finally:
            if child is not None:
                await _end(child)
    sight.compare(ours.id, token)
    if sight.view.session == ours.id:
        sight.promises.append(await _acquired(plan, sight))
    if back_by:
        shown = "it did not end" if code is None else str(code)
        sight.promises.append(Promise("exit code of --back-by", "0", shown, code == 0))
    return sight.handover("back")


async def _code(child: Process) -> int | None:
    """Return the exit code of the command for the way back. None: it has not ended in time."""
    with suppress(TimeoutError):
        return await asyncio.wait_for(child.wait(), COMMAND_END_S)
    return None


async def _standby(plan: LivePlan, within_s: float) -> tuple[ListedSession | None, str]:
    """Wait until this node contends again. Return its session, and the command that hands back to it.

    None: it does not contend within the time, and the text says why.
    """
    deadline = time.monotonic() + within_s
    while True:
        shown = shown_item(plan.socket, plan.item)
        if shown.get("role") == Role.WAITING and shown["session"]:
            found = (await cluster_now(plan.consul, [plan.item])).sessions
            waiting = candidates_of(plan.item, found, plan.target.id, "")
            ours = next((each for each in waiting if each.id == shown["session"]), None)
            if ours is not None:
                return ours, back_command(plan, ours, waiting)
        if time.monotonic() > deadline:
            return None, f"also after {format_duration(within_s)} (role: {shown.get('role', 'none')})"
        await asyncio.sleep(STANDBY_POLL_S)


async def _acquired(plan: LivePlan, sight: Sight) -> Promise:
    """Return the promise that this node holds, with on_acquire finished, within its timeouts."""
    limit_s, taken_at = hooks_s(plan.item.on_acquire), sight.taken_at
    assert taken_at is not None, "this node is holder in Consul"
    held_s = None
    while held_s is None and time.monotonic() < taken_at + limit_s + ALLOWANCE_S:
        if fetch.holds(plan.socket, plan.item.name):
            held_s = time.monotonic() - taken_at
            sight.mark(plan.here, "holds: on_acquire has finished")
        else:
            await asyncio.sleep(POLL_S)
    return at_most("on_acquire has finished (its timeouts)", limit_s, held_s)
