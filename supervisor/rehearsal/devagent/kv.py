"""The table of keys by the rules of Consul's state store: locks, check-and-set, tombstones, and all indexes.

The caller knows which sessions exist. The lock-delay is no matter of this table, because the leading server
looks at it before it decides a write.
"""

from dataclasses import dataclass, field, replace


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


@dataclass(slots=True)
class KeyValues:
    """The table. Every write is given its raft index."""

    entries: dict[str, Entry] = field(default_factory=dict)
    tombstones: dict[str, int] = field(default_factory=dict)
    index: int = 0

    def copy(self) -> "KeyValues":
        """Return a copy, to which a transaction that fails goes back."""
        return KeyValues(dict(self.entries), dict(self.tombstones), self.index)

    def get(self, key: str) -> Entry | None:
        return self.entries.get(key)

    def tree(self, prefix: str) -> list[Entry]:
        """Return all entries whose key begins with the prefix, in the order of their bytes."""
        found = [entry for key, entry in self.entries.items() if key.startswith(prefix)]
        return sorted(found, key=lambda entry: entry.key.encode())

    def tree_index(self, prefix: str) -> int:
        """Return the index of a list: that of its newest entry or tombstone, else the table's."""
        indexes = [entry.modify_index for entry in self.tree(prefix)]
        indexes += [index for key, index in self.tombstones.items() if key.startswith(prefix)]
        return max(indexes, default=self.index) if prefix else self.index

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

    def delete(self, key: str, index: int) -> list[Entry]:
        """Remove the key, whether or not a session holds it. No removal has an entry to show."""
        if key in self.entries:
            del self.entries[key]
            self.tombstones[key] = index
            self.index = index
        return []

    def delete_cas(self, entry: Entry, index: int) -> list[Entry] | None:
        """Remove the key if its ModifyIndex is the entry's; an absent key counts as removed."""
        existing = self.get(entry.key)
        if existing is not None and existing.modify_index != entry.modify_index:
            return None
        return self.delete(entry.key, index)

    def delete_tree(self, prefix: str, index: int) -> list[Entry]:
        """Remove all keys with the prefix and leave one tombstone, or none when the whole table goes."""
        keys = [entry.key for entry in self.tree(prefix)]
        for key in keys:
            del self.entries[key]
        if keys:
            self.index = index
        if keys and prefix:
            self.tombstones[prefix] = index
        return []

    def _write(self, entry: Entry, index: int) -> Entry:
        existing = self.get(entry.key)
        created = existing.create_index if existing else index
        if existing is not None and existing.same(entry):
            return existing
        written = self.entries[entry.key] = replace(entry, create_index=created, modify_index=index)
        self.index = index
        return written
