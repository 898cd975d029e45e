"""Reads that a client can wait for: the result of each, its index, and the changes that wake it.

Consul answers a query that names an index as soon as the result has a higher one. Consul looks at the
result again only when something changes on which the query waits. For keys that is a node of a radix tree.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from supervisor.rehearsal.devagent.kv import Touch, path_of
from supervisor.rehearsal.devagent.shapes import entry_shape, session_shape
from supervisor.rehearsal.devagent.store import Store


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes that the last writes have made."""

    touched: tuple[Touch, ...]
    ended: frozenset[str]


@dataclass(frozen=True, slots=True)
class Watch:
    """The condition that wakes a query: the one field that is not None, or any change when all are None."""

    key: bytes | None = None  # the path of an existing key
    node: bytes | None = None  # the path of a node of the radix tree
    session: str | None = None  # the id of a session, whose end wakes

    def fires(self, changes: Changes) -> bool:
        """Return whether the query has to look at its result again."""
        if self.key is not None:
            return any(touch.path == self.key for touch in changes.touched)
        if self.node is not None:
            return any(
                touch.path.startswith(self.node) or touch.beside == self.node for touch in changes.touched
            )
        return self.session is None or self.session in changes.ended


class Query(Protocol):
    """A read. Index, result and watch are of the same moment."""

    def index(self, store: Store) -> int:
        """Return the result's index."""

    def result(self, store: Store) -> Any:
        """Return what the answer shows: bytes as they are, None as 404, anything else as JSON."""

    def watch(self, store: Store) -> Watch:
        """Return what would change the result."""


def take_changes(store: Store) -> Changes:
    """Return what was changed since the last call."""
    changes = Changes(tuple(store.kv.touched), frozenset(store.sessions.ended))
    store.kv.touched.clear()
    store.sessions.ended.clear()
    return changes


@dataclass(frozen=True, slots=True)
class KeyQuery:
    """One key. An absent key has the table's index, so that a client can wait for the key."""

    key: str
    raw: bool = False  # whether the answer is the bare value

    def index(self, store: Store) -> int:
        entry = store.kv.get(self.key)
        return entry.modify_index if entry else store.kv.index

    def result(self, store: Store) -> Any:
        entry = store.kv.get(self.key)
        if entry is None:
            return None
        return entry.value if self.raw else [entry_shape(entry)]

    def watch(self, store: Store) -> Watch:
        """Return the key if it exists, else the node of the radix tree where the search for it ended."""
        path = path_of(self.key)
        if store.kv.get(self.key) is not None:
            return Watch(key=path)
        return Watch(node=store.kv.node_of(path))


@dataclass(frozen=True, slots=True)
class TreeQuery:
    """All keys with a prefix."""

    prefix: str
    names: bool = False  # whether the answer has the keys' names only
    separator: str = ""  # text behind which each name is cut. Blank: no name is cut.

    def index(self, store: Store) -> int:
        return store.kv.tree_index(self.prefix)

    def result(self, store: Store) -> Any:
        """Return a list; an empty list is 404, except for the names of the whole table."""
        entries = store.kv.tree(self.prefix)
        if self.names:
            names = list(dict.fromkeys(self._cut(entry.key) for entry in entries))
            return names if names or not self.prefix else None
        return [entry_shape(entry) for entry in entries] or None

    def watch(self, store: Store) -> Watch:
        """Return the node of the radix tree below which all such keys are."""
        return Watch(node=store.kv.node_of(self.prefix.encode()))

    def _cut(self, key: str) -> str:
        at = key.find(self.separator, len(self.prefix)) if self.separator else -1
        return key if at < 0 else key[: at + len(self.separator)]


@dataclass(frozen=True, slots=True)
class SessionQuery:
    """One session."""

    id: str

    def index(self, store: Store) -> int:
        """Return the index of the table of sessions."""
        return store.sessions.index

    def result(self, store: Store) -> Any:
        session = store.sessions.find(self.id)
        return [] if session is None else [session_shape(session)]

    def watch(self, store: Store) -> Watch:
        """Return the session's end; for an absent session, any change."""
        return Watch() if store.sessions.find(self.id) is None else Watch(session=self.id)


@dataclass(frozen=True, slots=True)
class SessionsQuery:
    """All sessions, or those of one node."""

    node: str = ""  # Blank: of all nodes

    def index(self, store: Store) -> int:
        """Return the index of the table of sessions."""
        return store.sessions.index

    def result(self, store: Store) -> Any:
        sessions = store.sessions.sorted()
        return [session_shape(each) for each in sessions if self.node in ("", each.node)]

    def watch(self, store: Store) -> Watch:
        """Return any change."""
        return Watch()
