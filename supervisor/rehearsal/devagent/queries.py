"""Reads that a client can wait for: the result of each, and its index.

A query that names an index is answered as soon as its result is another one with a higher index. Consul also
wakes some whose result is the same, such as those for an absent key when one beside it in its tree changes.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from supervisor.rehearsal.devagent.kv import Entry
from supervisor.rehearsal.devagent.sessions import StoredSession
from supervisor.rehearsal.devagent.store import Store


@dataclass(frozen=True, slots=True)
class View:
    """What a read shows at one moment."""

    index: int
    result: Any  # bytes are shown as they are, None as 404, anything else as JSON


Query = Callable[[Store], View]


def of_key(store: Store, key: str, *, raw: bool) -> View:
    """Return one key. ``raw``: as its bare value.

    An absent key has the index of the table, so that a client can wait for the key.
    """
    entry = store.kv.get(key)
    if entry is None:
        return View(store.kv.index, None)
    return View(entry.modify_index, entry.value if raw else [entry_shape(entry)])


def of_tree(store: Store, prefix: str) -> View:
    entries = [entry_shape(entry) for entry in store.kv.tree(prefix)]
    return View(store.kv.tree_index(prefix), entries or None)


def of_names(store: Store, prefix: str, separator: str) -> View:
    """Return the names of these keys, each cut behind the separator. Blank: no name is cut.

    No name at all is 404, except for the whole table.
    """

    def cut(key: str) -> str:
        at = key.find(separator, len(prefix)) if separator else -1
        return key if at < 0 else key[: at + len(separator)]

    names = list(dict.fromkeys(cut(entry.key) for entry in store.kv.tree(prefix)))
    shown = names if names or not prefix else None
    return View(store.kv.tree_index(prefix), shown)


def of_session(store: Store, session_id: str) -> View:
    session = store.sessions.find(session_id)
    return View(store.sessions.index, [session_shape(session)] if session else [])


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
