"""Finds the session of a named node, so that an operator can hand a key over to that node. Pure functions.

The sessions of an item are known by the name that the configuration gives them, as in ``members``. Consul's
list names the node whose agent has made each.
"""

import re
from collections.abc import Collection, Iterable, Mapping

from supervisor.adapters.consul.endpoints import READS_SESSIONS
from supervisor.adapters.consul.members import DEFAULT_NAMES, name_pattern
from supervisor.adapters.consul.presence import Present
from supervisor.config.environment import ANY_TEXT
from supervisor.core.actions import Role
from supervisor.core.outcomes import ListedSession, SessionsView
from supervisor.core.settings import ItemSettings

SHOWN_MAX = 20  # candidates in one line for a person
NO_OTHER = "no other node has a session of this item"


class NoTarget(Exception):
    """The lock cannot be handed over to this node. The text has the reason."""


def target_of(
    node: str,
    settings: ItemSettings,
    seen: SessionsView,
    present: Collection[Present] | str,
    holds: tuple[str, ...],
    hostname: str,
    whose: str = "the token",
) -> ListedSession:
    """Return the session of the only candidate that ``node`` means. Raises NoTarget.

    node: the name of a Consul node, the ID of a session, or the name of a host that its session's name
        contains, or that its daemon tells the fleet.
    present: the daemons of the fleet, or why they are not known.
    holds: the session that holds, and names of its node.
    hostname: the name of this host, which ``session.name`` may contain.
    """
    holder = next((each for each in seen.sessions if each.id == holds[0]), None)
    if holder is None:
        raise NoTarget(f"Consul does not list the sessions; give {whose}: {READS_SESSIONS}")
    candidates = candidates_of(settings, seen, holds[0], hostname)
    known = () if isinstance(present, str) else present
    told = [(each, each.parts.get(settings.name, ("",))[0]) for each in known]
    waiting = [each for each, role in told if role == Role.WAITING]
    hosts = {each.id: [host.name for host in waiting if host.consul_node == each.node] for each in candidates}
    name = settings.session.name
    meant = [each for each in candidates if _means(node, each, hosts[each.id], name, hostname)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise NoTarget(f"{node} has {len(meant)} candidates, name a session: {_shown(meant, hosts)}")
    there_are = f"there are {_shown(candidates, hosts)}" if candidates else NO_OTHER
    if _is_one(node, (holder.node, *holds)):
        raise NoTarget(f"{node} holds it itself; {there_are}")
    is_now = next((f", it is {role}" for each, role in told if role and _is_one(node, (each.name,))), "")
    hidden = f"; to see all nodes, give {whose}: {READS_SESSIONS}" if seen.filtered or not candidates else ""
    raise NoTarget(f"{node} is no candidate{is_now}; {there_are}{hidden}")


def candidates_of(
    settings: ItemSettings, seen: SessionsView, ours: str, hostname: str
) -> list[ListedSession]:
    """Return the sessions of the nodes that wait, the oldest first. ``ours``: the session that holds."""
    pattern = _names(settings, hostname)
    waiting = (each for each in seen.sessions if each.id != ours and pattern.fullmatch(each.name))
    return sorted(waiting, key=lambda each: each.create_index)


def _names(settings: ItemSettings, hostname: str) -> re.Pattern[str]:
    """Return the pattern of the names of this item's sessions, in which each host may have its own name."""
    name = settings.session.name
    exact = re.compile(re.escape(name))
    if not hostname or name == f"{DEFAULT_NAMES}{settings.name}":  # the default, which contains no host
        return exact
    return name_pattern(name.replace(hostname, ANY_TEXT)) or exact


def _means(node: str, candidate: ListedSession, hosts: list[str], our_name: str, hostname: str) -> bool:
    if _is_one(node, (candidate.id, candidate.node, *hosts)):
        return True
    return bool(hostname) and hostname in our_name and our_name.replace(hostname, node) == candidate.name


def _is_one(node: str, names: Iterable[str]) -> bool:
    """Return whether it is one of these names of a node, of which Consul ignores the case."""
    return node.casefold() in map(str.casefold, names)


def _shown(candidates: Iterable[ListedSession], hosts: Mapping[str, Collection[str]]) -> str:
    names = {each.id: dict.fromkeys((*hosts[each.id], each.node)) for each in candidates}
    shown = [f"{' or '.join(names)} ({id_})" for id_, names in names.items()]
    more = f" and {len(shown) - SHOWN_MAX} more" if len(shown) > SHOWN_MAX else ""
    return ", ".join(shown[:SHOWN_MAX]) + more
