"""The table of keys by the rules of Consul's state store: locks, check-and-set, tombstones, and all indexes.

The caller knows which sessions exist. The lock-delay is no matter of this table, because the leading server
looks at it before it decides a write.
"""

from dataclasses import dataclass, field, replace
from os.path import commonprefix


class Rejected(Exception):
    """The server refuses the request; the text is Consul's own and becomes the answer (500, or 409)."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One key."""

    key: str
    value: bytes = b""
    flags: int = 0
    session: str = ""
    lock_index: int = 0
    create_index: int = 0
    modify_index: int = 0  # of an entry that is to be written, the index that a check-and-set expects

    def same(self, other: "Entry") -> bool:
        """Return whether a write of one over the other changes nothing; Consul then writes nothing."""
        return replace(other, create_index=self.create_index, modify_index=self.modify_index) == self


@dataclass(frozen=True, slots=True)
class Touch:
    """One change of the table."""

    path: bytes
    beside: bytes | None  # a node of the radix tree that moves besides those on the way to the key


@dataclass(slots=True)
class KeyValues:
    """The table. Every write is given its raft index."""

    entries: dict[str, Entry] = field(default_factory=dict)
    tombstones: dict[str, int] = field(default_factory=dict)
    index: int = 0
    touched: list[Touch] = field(default_factory=list)  # the changes since the model last looked

    def copy(self) -> "KeyValues":
        """Return a copy, to which a transaction that fails goes back."""
        return KeyValues(dict(self.entries), dict(self.tombstones), self.index, list(self.touched))

    def get(self, key: str) -> Entry | None:
        return self.entries.get(key)

    def tree(self, prefix: str) -> list[Entry]:
        """Return all entries whose key begins with the prefix, in the order of their bytes."""
        found = [entry for key, entry in self.entries.items() if key.startswith(prefix)]
        return sorted(found, key=lambda entry: path_of(entry.key))

    def tree_index(self, prefix: str) -> int:
        """Return the index of a list: that of its newest entry or tombstone, else the table's."""
        indexes = [entry.modify_index for entry in self.tree(prefix)]
        indexes += [index for key, index in self.tombstones.items() if key.startswith(prefix)]
        return max(indexes, default=self.index) if prefix else self.index

    def node_of(self, sought: bytes) -> bytes:
        """Return the node of Consul's radix tree at which the search for a key or prefix ends.

        The tree has a node for every point where keys part, named by the bytes with which all keys below it
        begin. A query for an absent key waits on this node. A write replaces all nodes on the way to its key,
        so it also wakes the queries for absent keys that share a node with the written key.
        """
        paths = [path_of(key) for key in self.entries]
        shared = max((len(commonprefix([path, sought])) for path in paths), default=0)
        below = [path for path in paths if path.startswith(sought[:shared])]
        return commonprefix(below) or b"" if shared else b""

    def set(self, entry: Entry, index: int) -> Entry:
        """Write value and flags; the session that holds the key goes on holding it."""
        existing = self.get(entry.key)
        return self._write(replace(entry, session=existing.session if existing else ""), index)

    def cas(self, entry: Entry, index: int) -> Entry | None:
        """Write if the key's ModifyIndex is the entry's; 0 is that of an absent key."""
        existing = self.get(entry.key)
        if entry.modify_index != (existing.modify_index if existing else 0):
            return None
        return self.set(entry, index)

    def lock(self, entry: Entry, index: int) -> Entry | None:
        """Write and lock the key, unless another session holds it."""
        existing = self.get(entry.key)
        if existing is None:
            return self._write(replace(entry, lock_index=1), index)
        if existing.session not in ("", entry.session):
            return None
        lock_index = existing.lock_index + (0 if existing.session else 1)
        return self._write(replace(entry, lock_index=lock_index), index)

    def unlock(self, entry: Entry, index: int) -> Entry | None:
        """Write and free the key, if the entry's session holds it."""
        if not entry.session:
            raise Rejected("missing session")
        existing = self.get(entry.key)
        if existing is None or existing.session != entry.session:
            return None
        return self._write(replace(entry, session="", lock_index=existing.lock_index), index)

    def free(self, entry: Entry, index: int) -> None:
        """Take the lock of an ended session away; value and flags stay."""
        self._write(replace(entry, session=""), index)

    def delete(self, key: str, index: int) -> None:
        """Remove the key, whether or not a session holds it."""
        if key in self.entries:
            self._remove(key)
            self.tombstones[key] = index
            self.index = index

    def delete_cas(self, key: str, expected: int, index: int) -> bool:
        """Remove the key if its ModifyIndex is as expected; an absent key counts as removed."""
        existing = self.get(key)
        if existing is not None and existing.modify_index != expected:
            return False
        self.delete(key, index)
        return True

    def delete_tree(self, prefix: str, index: int) -> None:
        """Remove all keys with the prefix and leave one tombstone, or none when the whole table goes."""
        keys = [entry.key for entry in self.tree(prefix)]
        for key in keys:
            self._remove(key)
        if keys:
            self.index = index
        if keys and prefix:
            self.tombstones[prefix] = index

    def reap(self, index: int) -> None:
        """Forget the tombstones up to this index, so that a list's index may go backwards."""
        self.tombstones = {key: made for key, made in self.tombstones.items() if made > index}

    def _write(self, entry: Entry, index: int) -> Entry:
        existing = self.get(entry.key)
        created = existing.create_index if existing else index
        if existing is not None and existing.same(entry):
            return existing
        written = replace(entry, create_index=created, modify_index=index)
        path = path_of(entry.key)
        beside = None if existing else self.node_of(path)
        self.touched.append(Touch(path, beside))
        self.entries[entry.key] = written
        self.index = index
        return written

    def _remove(self, key: str) -> None:
        del self.entries[key]
        path = path_of(key)
        self.touched.append(Touch(path, self.node_of(path)))


def path_of(key: str) -> bytes:
    """Return a key's path in the radix tree; its last byte ends the key, so that no key is inside another."""
    return key.encode() + b"\0"
