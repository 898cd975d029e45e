"""Finds the session of a named node, so that an operator can hand a key over to that node. Pure functions.

The sessions of an item are known by the name that the configuration gives them, as in ``members``. Consul's
list names the node whose agent has made each.
"""

import re
from collections.abc import Iterable

from supervisor.adapters.consul.endpoints import READS_SESSIONS
from supervisor.adapters.consul.members import DEFAULT_NAMES, name_pattern
from supervisor.config.environment import ANY_TEXT
from supervisor.core.outcomes import ListedSession, SessionsView
from supervisor.core.settings import ItemSettings

SHOWN_MAX = 20  # candidates in one line for a person


class NoTarget(Exception):
    """The lock cannot be handed over to this node. The text has the reason."""


def target_of(
    node: str, settings: ItemSettings, seen: SessionsView, *, ours: str, hostname: str
) -> ListedSession:
    """Return the session of the only candidate that ``node`` means. Raises NoTarget.

    node: the name of a Consul node, the ID of a session, or the name of a host that its session's name
        contains.
    ours: the session of this node, which holds.
    hostname: the name of this host, which ``session.name`` may contain.
    """
    holder = next((each for each in seen.sessions if each.id == ours), None)
    if holder is None:
        raise NoTarget(f"Consul does not list the sessions; give the token: {READS_SESSIONS}")
    candidates = candidates_of(settings, seen, ours, hostname)
    meant = [each for each in candidates if _means(node, each, settings.session.name, hostname)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise NoTarget(f"{node} has {len(meant)} candidates, name a session: {_shown(meant)}")
    if _is_same(node, holder.node) or node in (ours, hostname):
        raise NoTarget(f"this node holds it itself; {_there_are(candidates)}")
    hidden = f"; to see all nodes, give the token: {READS_SESSIONS}"
    raise NoTarget(
        f"{node} is no candidate; {_there_are(candidates)}{hidden if seen.filtered or not candidates else ''}"
    )


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


def _means(node: str, candidate: ListedSession, our_name: str, hostname: str) -> bool:
    if node == candidate.id or _is_same(node, candidate.node):
        return True
    return bool(hostname) and hostname in our_name and our_name.replace(hostname, node) == candidate.name


def _is_same(node: str, other: str) -> bool:
    """Return whether two names are those of one node, of which Consul ignores the case."""
    return node.casefold() == other.casefold()


def _there_are(candidates: list[ListedSession]) -> str:
    return f"there are {_shown(candidates)}" if candidates else "no other node has a session of this item"


def _shown(candidates: Iterable[ListedSession]) -> str:
    shown = [f"{each.node} ({each.id})" for each in candidates]
    more = f" and {len(shown) - SHOWN_MAX} more" if len(shown) > SHOWN_MAX else ""
    return ", ".join(shown[:SHOWN_MAX]) + more
