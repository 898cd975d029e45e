"""What can be asked and waited for: a read of the store, its index, and what wakes who waits for it.

Consul's rule: a query that names an index is answered as soon as its result has a higher one. It
looks again only when what it watches changes, which is a node of a radix tree for keys.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from supervisor.devagent.kv import Touch
from supervisor.devagent.shapes import check_shape, entry_shape, session_shape
from supervisor.devagent.store import Store


@dataclass(frozen=True, slots=True)
class Changes:
    """What the last writes changed."""

    touched: tuple[Touch, ...]
    ended: frozenset[str]


@dataclass(frozen=True, slots=True)
class Watch:
    """What wakes a query: a key, a node of the tree of keys, a session's end; else any change."""

    key: bytes | None = None
    node: bytes | None = None
    session: str | None = None

    def fires(self, changes: Changes) -> bool:
        """Whether the query has to look again."""
        if self.key is not None:
            return any(touch.path == self.key for touch in changes.touched)
        if self.node is not None:
            return any(
                touch.path.startswith(self.node) or touch.beside == self.node for touch in changes.touched
            )
        return self.session is None or self.session in changes.ended


class Query(Protocol):
    """A read. All three are of the same moment."""

    def index(self, store: Store) -> int:
        """The result's index."""

    def result(self, store: Store) -> Any:
        """What is shown as JSON; bytes are shown as they are; None is 404."""

    def watch(self, store: Store) -> Watch:
        """What would change the result."""


def take_changes(store: Store) -> Changes:
    """What was changed since the last call."""
    changes = Changes(tuple(store.kv.touched), frozenset(store.sessions.ended))
    store.kv.touched.clear()
    store.sessions.ended.clear()
    return changes


@dataclass(frozen=True, slots=True)
class KeyQuery:
    """One key. An absent one has the table's index, so that it can be waited for."""

    key: str
    raw: bool = False

    def index(self, store: Store) -> int:
        """Its ModifyIndex."""
        entry = store.kv.get(self.key)
        return entry.modify_index if entry else store.kv.index

    def result(self, store: Store) -> Any:
        """A list of one, or the bare value."""
        entry = store.kv.get(self.key)
        if entry is None:
            return None
        return entry.value if self.raw else [entry_shape(entry)]

    def watch(self, store: Store) -> Watch:
        """The key if it exists, else the tree's node where the search for it ended."""
        path = self.key.encode("utf-8", "surrogateescape") + b"\0"
        if store.kv.get(self.key) is not None:
            return Watch(key=path)
        return Watch(node=store.kv.node_of(path))


@dataclass(frozen=True, slots=True)
class TreeQuery:
    """All keys with a prefix: entries, or only their names, cut behind ``separator``."""

    prefix: str
    names: bool = False
    separator: str = ""

    def index(self, store: Store) -> int:
        """That of the newest change below the prefix."""
        return store.kv.tree_index(self.prefix)

    def result(self, store: Store) -> Any:
        """A list; 404 when empty, but for the names of the whole table."""
        entries = store.kv.tree(self.prefix)
        if self.names:
            cut = [self._cut(entry.key) for entry in entries]
            names = [name for at, name in enumerate(cut) if at == 0 or name != cut[at - 1]]
            return names if names or not self.prefix else None
        return [entry_shape(entry) for entry in entries] or None

    def watch(self, store: Store) -> Watch:
        """The tree's node below which all such keys are."""
        return Watch(node=store.kv.node_of(self.prefix.encode("utf-8", "surrogateescape")))

    def _cut(self, key: str) -> str:
        at = key.find(self.separator, len(self.prefix)) if self.separator else -1
        return key if at < 0 else key[: at + len(self.separator)]


@dataclass(frozen=True, slots=True)
class SessionQuery:
    """One session, by its id."""

    id: str

    def index(self, store: Store) -> int:
        """The table's."""
        return store.sessions.index

    def result(self, store: Store) -> Any:
        """A list of one or none."""
        session = store.sessions.find(self.id)
        return [] if session is None else [session_shape(session)]

    def watch(self, store: Store) -> Watch:
        """Its end; for one that does not exist, any change."""
        session = store.sessions.find(self.id)
        return Watch() if session is None else Watch(session=session.id.replace("-", ""))


@dataclass(frozen=True, slots=True)
class SessionsQuery:
    """All sessions, or those of one node."""

    node: str = ""

    def index(self, store: Store) -> int:
        """The table's."""
        return store.sessions.index

    def result(self, store: Store) -> Any:
        """A list."""
        return [session_shape(session) for session in store.sessions.of_node(self.node)]

    def watch(self, store: Store) -> Watch:
        """Any session's begin or end."""
        return Watch()


@dataclass(frozen=True, slots=True)
class ChecksQuery:
    """The checks of one node."""

    node: str

    def index(self, store: Store) -> int:
        """The catalog's."""
        return store.catalog.index

    def result(self, store: Store) -> Any:
        """A list, by the checks' ids."""
        node = store.catalog.node(self.node)
        checks = sorted(node.checks.items()) if node else []
        return [check_shape(node.name, check) for _, check in checks] if node else []

    def watch(self, store: Store) -> Watch:
        """Any change of a check."""
        return Watch()
