"""The key-value table: entries, locks, check-and-set, tombstones and the indexes of all these.

The rules are those of Consul's state store. Whether a session exists is for the caller to know;
lock-delay is not looked at here (it is asked before a write is decided, by the one who leads).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from supervisor.devagent import radix
from supervisor.devagent.messages import Refused


@dataclass(frozen=True, slots=True)
class Entry:
    """One key. ``modify_index`` of an entry to be written is the index that a cas expects."""

    key: str
    value: bytes = b""
    flags: int = 0
    session: str = ""
    lock_index: int = 0
    create_index: int = 0
    modify_index: int = 0

    def same(self, other: "Entry") -> bool:
        """Whether writing one over the other changes nothing: then nothing is written."""
        return self.content == other.content

    @property
    def content(self) -> tuple[object, ...]:
        """All but the indexes of the writes."""
        return (self.key, self.value, self.flags, self.session, self.lock_index)


@dataclass(frozen=True, slots=True)
class Touch:
    """One change of the table; ``beside``: a node of the radix tree that it moved as well."""

    path: bytes
    beside: bytes | None


@dataclass(slots=True)
class KeyValues:
    """The table. Every write is given its raft index; ``touched`` is what changed since last asked."""

    entries: dict[str, Entry] = field(default_factory=dict)
    tombstones: dict[str, int] = field(default_factory=dict)
    index: int = 0
    touched: list[Touch] = field(default_factory=list)

    def copy(self) -> "KeyValues":
        """For a transaction, which is kept whole or dropped whole."""
        return KeyValues(dict(self.entries), dict(self.tombstones), self.index, list(self.touched))

    # --- reading ---------------------------------------------------------------------------------

    def get(self, key: str) -> Entry | None:
        """The entry, None when absent."""
        return self.entries.get(key)

    def tree(self, prefix: str) -> list[Entry]:
        """All entries whose key begins with the prefix, in the order of their bytes."""
        found = [entry for key, entry in self.entries.items() if key.startswith(prefix)]
        return sorted(found, key=lambda entry: _path(entry.key))

    def tree_index(self, prefix: str) -> int:
        """The index of a list: that of its newest entry or tombstone, the table's when it has none."""
        indexes = [entry.modify_index for entry in self.tree(prefix)]
        indexes += [index for key, index in self.tombstones.items() if key.startswith(prefix)]
        return max(indexes, default=self.index) if prefix else self.index

    def node_of(self, sought: bytes) -> bytes:
        """The node on which a query waits that found nothing."""
        return radix.end_of_search(map(_path, self.entries), sought)

    # --- writing ---------------------------------------------------------------------------------

    def set(self, entry: Entry, index: int) -> Entry:
        """Write over whatever is there; who holds the key goes on holding it."""
        existing = self.get(entry.key)
        return self._write(replace(entry, session=existing.session if existing else ""), index)

    def cas(self, entry: Entry, index: int) -> Entry | None:
        """Write if the key's ModifyIndex is the entry's; 0 is that of an absent key."""
        existing = self.get(entry.key)
        if entry.modify_index != (existing.modify_index if existing else 0):
            return None
        return self.set(entry, index)

    def lock(self, entry: Entry, index: int) -> Entry | None:
        """Write if nobody else holds the key; it is then held by the entry's session."""
        existing = self.get(entry.key)
        if existing is None:
            return self._write(replace(entry, lock_index=1), index)
        if existing.session not in ("", entry.session):
            return None
        lock_index = existing.lock_index + (0 if existing.session else 1)
        return self._write(replace(entry, lock_index=lock_index), index)

    def unlock(self, entry: Entry, index: int) -> Entry | None:
        """Write if the entry's session holds the key; nobody holds it then."""
        if not entry.session:
            raise Refused("missing session")
        existing = self.get(entry.key)
        if existing is None or existing.session != entry.session:
            return None
        return self._write(replace(entry, session="", lock_index=existing.lock_index), index)

    def free(self, entry: Entry, index: int) -> None:
        """Take a lock away whose session has ended; value and flags stay."""
        self._write(replace(entry, session=""), index)

    def delete(self, key: str, index: int) -> None:
        """Remove the key, whoever holds it."""
        if key in self.entries:
            self._remove(key)
            self.tombstones[key] = index
            self.index = index

    def delete_cas(self, key: str, expected: int, index: int) -> bool:
        """Remove the key if its ModifyIndex is as expected; an absent one is as good as removed."""
        existing = self.get(key)
        if existing is not None and existing.modify_index != expected:
            return False
        self.delete(key, index)
        return True

    def delete_tree(self, prefix: str, index: int) -> None:
        """Remove all keys with the prefix; one tombstone stands for them, none for a whole table."""
        keys = [entry.key for entry in self.tree(prefix)]
        for key in keys:
            self._remove(key)
        if keys:
            self.index = index
        if keys and prefix:
            self.tombstones[prefix] = index

    def reap(self, index: int) -> None:
        """Forget the tombstones up to this index: a list's index may go backwards."""
        self.tombstones = {key: made for key, made in self.tombstones.items() if made > index}

    def _write(self, entry: Entry, index: int) -> Entry:
        existing = self.get(entry.key)
        created = existing.create_index if existing else index
        if existing is not None and existing.same(entry):
            return existing
        written = replace(entry, create_index=created, modify_index=index)
        path = _path(entry.key)
        beside = None if existing else radix.split_by(map(_path, self.entries), path)
        self.touched.append(Touch(path, beside))
        self.entries[entry.key] = written
        self.index = index
        return written

    def _remove(self, key: str) -> None:
        del self.entries[key]
        path = _path(key)
        self.touched.append(Touch(path, radix.merged_by(map(_path, self.entries), path)))


def held_by(entries: Iterable[Entry], session: str) -> list[Entry]:
    """The entries that a session holds, found by its id whatever the case of its letters."""
    return [entry for entry in entries if entry.session.replace("-", "").lower() == session]


def _path(key: str) -> bytes:
    """A key as the radix tree has it: its end is a byte, so that no key is inside another."""
    return key.encode("utf-8", "surrogateescape") + b"\0"
