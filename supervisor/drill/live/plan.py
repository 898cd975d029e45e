"""The plan of a live drill: which node hands over to which, and why a drill is not possible now.

Nothing is changed here.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from supervisor.config import ConsulSettings
from supervisor.consul.endpoints import READS_SESSIONS
from supervisor.consul.members import Cluster, Part, cluster_now
from supervisor.control import fetch
from supervisor.core.lease import lease_of
from supervisor.core.outcomes import ListedSession
from supervisor.core.settings import ItemSettings
from supervisor.daemon.handover import NoTarget, candidates_of, target_of
from supervisor.errors import NotPossible

NOTE = "drill"  # the reason of both step-downs, for status, events and hooks
REST = "1s"  # how long a node that has handed over rests, so that it is a standby again soon
# neither a shell nor ssh takes such a name for an option
PLAIN_NODE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")


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
    shown = shown_item(socket, item)
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


def shown_item(socket: str, item: ItemSettings) -> Mapping[str, Any]:
    """Return the item in the status of this node's daemon. Empty: the daemon does not have it."""
    items = fetch.status(socket)[1]["items"]
    return next((each for each in items if each["name"] == item.name), {})
