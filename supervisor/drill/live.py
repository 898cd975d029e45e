"""A live drill: one real hand-over of an election to another node, and one back.

The nodes hand over by ``step-down --to``. This module requests the first hand-over from the daemon of this
node. It waits for the second, because only a user of the other node may request that one. It follows the key
by blocking queries, so it measures the gap that a client of Consul sees.
"""

import asyncio
import os
import re
import subprocess
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from supervisor.config import ConsulSettings
from supervisor.consul.awaiting import wait_until
from supervisor.consul.endpoints import READS_SESSIONS
from supervisor.consul.members import Cluster, Part, cluster_now
from supervisor.consul.query import LOOKUP_S, LookupFailed
from supervisor.control import fetch
from supervisor.control.client import DONE_S
from supervisor.core.actions import Role
from supervisor.core.lease import lease_of
from supervisor.core.outcomes import KeyView, ListedSession, View
from supervisor.core.settings import ItemSettings
from supervisor.daemon.handover import NoTarget, candidates_of, target_of
from supervisor.demo.backstage import PACKAGE_PARENT
from supervisor.drill.bounds import hooks_s
from supervisor.drill.promises import ALLOWANCE_S, NEVER, Line, Played, Promise, at_most
from supervisor.errors import CommandError, NotPossible
from supervisor.formats.durations import format_duration

NOTE = "drill"  # the reason of both step-downs, for status, events and hooks
REST = "1s"  # how long a node that has handed over rests, so that it is a standby again soon
POLL_S = 0.05
STANDBY_POLL_S = 0.2
SEEN_S = 5.0  # after the daemon's reply, for the answer of Consul that shows the new holder
COMMAND_END_S = 20.0  # for --back-by to end, after the hand-over that it requested
# neither a shell nor ssh takes such a name for an option
PLAIN_NODE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")
SHELL = "/bin/sh"


class CannotDrill(NotPossible):
    """A live drill is not possible now; nothing was changed."""


@dataclass(frozen=True, slots=True)
class LivePlan:
    """The plan of a live drill.

    socket: the path of the control socket of this node's daemon.
    ours: the session by which this node holds.
    target: the session of the node that is to take over.
    token: the fencing token of this node.
    """

    consul: ConsulSettings
    item: ItemSettings
    socket: str
    ours: ListedSession
    target: ListedSession
    token: int

    @property
    def here(self) -> str:
        """This node's name for people: its name in Consul, or its session if both nodes share an agent."""
        return self.ours.node if self.ours.node != self.target.node else self.ours.id

    @property
    def there(self) -> str:
        """The other node's name for people."""
        return self.target.node if self.ours.node != self.target.node else self.target.id

    @property
    def promised_s(self) -> float:
        """How long after step-down another node holds at the latest, by the figures of ``check``."""
        lease = lease_of(self.item)
        return lease.lose_time_s + lease.acquire_delay_s


@dataclass(frozen=True, slots=True)
class Handover:
    """One hand-over as a client saw it.

    played: its time line and its promises.
    gap_s: how long no node was holder. None: no node has taken over.
    holder: the session that holds at its end. Blank: none does.
    node: the node of that session, for people.
    token: the fencing token of the new holder. None: no node has taken over.
    """

    played: Played
    gap_s: float | None
    holder: str
    node: str
    token: int | None


# --- before the drill ----------------------------------------------------------------------------


async def prepare(
    consul: ConsulSettings,
    item: ItemSettings,
    socket: str,
    *,
    to: str,
    hostname: str,
    one_way: bool,
) -> LivePlan:
    """Return the plan of a live drill. This changes nothing.

    to: the node that is to take over. Blank: the candidate that has waited the longest.
    Raises CannotDrill, DaemonUnreachable, and LookupFailed when Consul gives no usable answer.
    """
    shown = _shown(socket, item)
    if item.kind != "election":
        why = "a slot of a semaphore goes to the contender that is first in line, so no node can hand it back"
        raise _cannot(item, why)
    if shown.get("key") != item.key:
        raise _cannot(item, "the daemon follows another configuration: run consul-supervisor reload first")
    found = await cluster_now(consul, [item])
    if not shown["holds"]:
        raise _cannot(item, f"this node does not hold it (role: {shown['role']}); {_whose(found)}")
    if shown["paused"] and not one_way:
        why = f"this node is paused and would not take it back; first: consul-supervisor resume {item.name}"
        raise _cannot(item, why)
    ours = next((each for each in found.sessions.sessions if each.id == shown["session"]), None)
    if ours is None:
        raise _cannot(item, f"Consul does not list this node's session; give the token: {READS_SESSIONS}")
    waiting = candidates_of(item, found.sessions, ours.id, hostname)
    if not waiting:
        hint = f", or the token lacks: {READS_SESSIONS}" if found.is_hidden else ""
        raise _cannot(item, f"no other node waits for it{hint}")
    try:
        target = target_of(to or waiting[0].id, item, found.sessions, ours=ours.id, hostname=hostname)
    except NoTarget as error:
        raise _cannot(item, str(error)) from None
    return LivePlan(consul, item, socket, ours, target, shown["fencing_token"])


def _cannot(item: ItemSettings, why: str) -> CannotDrill:
    return CannotDrill(f"cannot drill {item.name} live: {why}")


def _whose(found: Cluster) -> str:
    """Return which node holds the item, and so where the drill can run."""
    for holder in found.items[0].of_part(Part.HOLDER):
        node = holder.listed.node if holder.listed else holder.node
        return f"{node or holder.session} holds it: run the drill there"
    return "no node holds it"


def back_command(plan: LivePlan, ours: ListedSession, candidates: Sequence[ListedSession]) -> str:
    """Return the command that hands the lock back, for a shell of the other node.

    ours: the session by which this node waits now.
    candidates: the sessions of all nodes that wait.
    """
    is_only = sum(each.node.casefold() == ours.node.casefold() for each in candidates) == 1
    to = ours.node if is_only and PLAIN_NODE.fullmatch(ours.node) else ours.id
    name = plan.item.name
    return f"consul-supervisor step-down {name} --to {to} --for {REST} --reason {NOTE}"


# --- what a client sees --------------------------------------------------------------------------


class Sight:
    """The key of an election during one hand-over, as a client that follows the key sees it."""

    def __init__(self, plan: LivePlan, title: str, former: str) -> None:
        """Expect a new holder after the session ``former``."""
        self._plan, self._title, self._former = plan, title, former
        self.began_at = time.monotonic()
        self.answered = asyncio.Event()
        self.freed_at: float | None = None
        self.taken_at: float | None = None
        self.view = KeyView(0)
        self.lines: list[Line] = []
        self.promises: list[Promise] = []

    def see(self, view: View) -> bool:
        """Note an answer of Consul, and return whether another node holds."""
        assert isinstance(view, KeyView), "an election has one key"
        now, is_former = time.monotonic(), view.session == self._former
        self.view = view
        self.answered.set()
        if not view.session and self.freed_at is None:
            self.freed_at = now
            self.mark("", "no node is holder in Consul")
        if view.session and not is_former:
            self.taken_at = now
            self.mark(self.name(view.session), f"is holder in Consul, fencing token {view.modify_index}")
        return self.taken_at is not None

    def name(self, session: str) -> str:
        """Return the name of a session's node, for people."""
        names = {self._plan.ours.id: self._plan.here, self._plan.target.id: self._plan.there}
        return names.get(session, session)

    def mark(self, node: str, text: str) -> None:
        """Add a line to the time line."""
        self.lines.append(Line(time.monotonic() - self.began_at, node, text))

    @property
    def gap_s(self) -> float | None:
        """How long no node was holder. 0: every answer showed a holder."""
        if self.taken_at is None:
            return None
        return 0.0 if self.freed_at is None else self.taken_at - self.freed_at

    def compare(self, expected: str, token: int) -> None:
        """Add the promises that both hand-overs have in common.

        expected: the session that was to take over.
        token: the fencing token of the tenure before.
        """
        holder = self.view.session
        found = self.name(holder) if holder else "nobody"
        if holder and self.taken_at is None:
            found = f"{found} still holds it"
        is_expected = self.taken_at is not None and holder == expected
        self.promises.append(Promise("the next holder", self.name(expected), found, is_expected))
        delay_s = lease_of(self._plan.item).acquire_delay_s
        self.promises.append(at_most("no node is holder (acquire_delay)", delay_s, self.gap_s))
        newer = self.view.modify_index if self.taken_at is not None else None
        shown = NEVER if newer is None else str(newer)
        is_greater = newer is not None and newer > token
        self.promises.append(Promise("the fencing token", f"more than {token}", shown, is_greater))

    def handover(self, play: str) -> Handover:
        """Return the hand-over as the client saw it."""
        played = Played(play, self._title, tuple(self.promises), tuple(self.lines))
        token = None if self.taken_at is None else self.view.modify_index
        holder = self.view.session
        return Handover(played, self.gap_s, holder, self.name(holder) if holder else "", token)


@asynccontextmanager
async def _followed(plan: LivePlan, sight: Sight, within_s: float) -> AsyncIterator[asyncio.Task[bool]]:
    """Follow the key until another node holds it, and begin the block after Consul's first answer.

    Raises LookupFailed.
    """
    following = asyncio.create_task(wait_until(plan.consul, plan.item, sight.see, within_s))
    answered = asyncio.create_task(sight.answered.wait())
    try:
        await asyncio.wait((following, answered), timeout=LOOKUP_S, return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            await following
        if not sight.answered.is_set():
            raise LookupFailed(f"cannot ask Consul: no answer within {LOOKUP_S:g} s")
        sight.began_at = time.monotonic()
        yield following
    finally:
        for task in (following, answered):
            task.cancel()
            with suppress(asyncio.CancelledError, CommandError):
                await task


# --- there ---------------------------------------------------------------------------------------


async def hand_over(plan: LivePlan) -> Handover:
    """Hand over to the other node. Raises DaemonUnreachable and LookupFailed."""
    sight = Sight(plan, f"{plan.here} hands over to {plan.there}", plan.ours.id)
    async with _followed(plan, sight, DONE_S) as following:
        sight.mark(plan.here, f"`consul-supervisor step-down {plan.item.name} --to {plan.there}`")
        why_not = await _step_down(plan)
        await asyncio.wait((following,), timeout=0 if why_not else SEEN_S)
    sight.promises.append(Promise("step-down", "done", why_not or "done", not why_not))
    if (losing_s := _duration_s(_shown(plan.socket, plan.item), "lose")) is not None:
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


def _shown(socket: str, item: ItemSettings) -> Mapping[str, Any]:
    """Return the item in the status of this node's daemon. Empty: the daemon does not have it."""
    items = fetch.status(socket)[1]["items"]
    return next((each for each in items if each["name"] == item.name), {})


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
    async with _followed(plan, sight, within_s) as following:
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
        shown = _shown(plan.socket, plan.item)
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
