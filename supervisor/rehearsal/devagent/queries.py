"""Reads that a client can wait for: the result of each, its index, and the changes that wake it.

Consul answers a query that names an index as soon as the result has a higher one. Consul looks at the
result again only when something changes on which the query waits. For keys that is a node of a radix tree.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from supervisor.rehearsal.devagent.kv import Entry, Touch, path_of
from supervisor.rehearsal.devagent.sessions import StoredSession
from supervisor.rehearsal.devagent.store import Store


class Changes(NamedTuple):
    """The changes that the last writes have made."""

    touched: tuple[Touch, ...]
    ended: frozenset[str]  # sessions


Watch = Callable[[Changes], bool]
"""Returns whether these changes wake a query."""


@dataclass(frozen=True, slots=True)
class View:
    """What a read shows at one moment."""

    index: int
    result: Any  # bytes are shown as they are, None as 404, anything else as JSON
    watch: Watch = lambda changes: True  # what would change the result


Query = Callable[[Store], View]


def take_changes(store: Store) -> Changes:
    changes = Changes(tuple(store.kv.touched), frozenset(store.sessions.ended))
    store.kv.touched.clear()
    store.sessions.ended.clear()
    return changes


def of_key(store: Store, key: str, *, raw: bool) -> View:
    """Return one key. ``raw``: as its bare value.

    An absent key has the index of the table, so that a client can wait for the key: then the query waits on
    the node of the radix tree where the search for it ended.
    """
    entry, path = store.kv.get(key), path_of(key)
    if entry is None:
        return View(store.kv.index, None, _below(store, path))
    shown = entry.value if raw else [entry_shape(entry)]
    return View(
        entry.modify_index, shown, lambda changes: any(touch.path == path for touch in changes.touched)
    )


def of_tree(store: Store, prefix: str) -> View:
    """Return all keys with a prefix. The query waits on the node below which all of them are."""
    entries = [entry_shape(entry) for entry in store.kv.tree(prefix)]
    return View(store.kv.tree_index(prefix), entries or None, _below(store, prefix.encode()))


def of_names(store: Store, prefix: str, separator: str) -> View:
    """Return the names of these keys, each cut behind the separator. Blank: no name is cut.

    No name at all is 404, except for the whole table.
    """

    def cut(key: str) -> str:
        at = key.find(separator, len(prefix)) if separator else -1
        return key if at < 0 else key[: at + len(separator)]

    names = list(dict.fromkeys(cut(entry.key) for entry in store.kv.tree(prefix)))
    shown = names if names or not prefix else None
    return View(store.kv.tree_index(prefix), shown, _below(store, prefix.encode()))


def _below(store: Store, sought: bytes) -> Watch:
    node = store.kv.node_of(sought)
    return lambda changes: any(
        touch.path.startswith(node) or touch.beside == node for touch in changes.touched
    )


def of_session(store: Store, session_id: str) -> View:
    """Return one session. The query waits for its end; for an absent session, for any change."""
    session = store.sessions.find(session_id)
    if session is None:
        return View(store.sessions.index, [])
    return View(store.sessions.index, [session_shape(session)], lambda changes: session_id in changes.ended)


def of_sessions(store: Store, node: str = "") -> View:
    """Return the sessions of this node. Blank: of all nodes."""
    shown = [session_shape(each) for each in store.sessions.sorted() if node in ("", each.node)]
    return View(store.sessions.index, shown)


def entry_shape(entry: Entry) -> dict[str, Any]:
    """Return a key as Consul's JSON; an empty value is null, and a blank session is left out."""
    holder = {"Session": entry.session} if entry.session else {}
    return {
        "LockIndex": entry.lock_index,
        "Key": entry.key,
        "Flags": entry.flags,
        "Value": base64.b64encode(entry.value).decode() if entry.value else None,
        **holder,
        "CreateIndex": entry.create_index,
        "ModifyIndex": entry.modify_index,
    }


def session_shape(session: StoredSession) -> dict[str, Any]:
    """Return a session as Consul's JSON; LockDelay is in nanoseconds, as the client sent it."""
    services = [{"ID": name, "Namespace": ""} for name in session.service_checks]
    return {
        "ID": session.id,
        "Name": session.name,
        "Node": session.node,
        "LockDelay": session.lock_delay_ns,
        "Behavior": session.behavior,
        "TTL": session.ttl,
        "NodeChecks": list(session.node_checks),
        "ServiceChecks": services or None,
        "CreateIndex": session.create_index,
        "ModifyIndex": session.create_index,
    }
