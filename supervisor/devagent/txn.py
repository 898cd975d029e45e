"""Transactions on keys: all operations are applied, or none and every error is told."""

from dataclasses import dataclass, replace

from supervisor.devagent.gotext import quote
from supervisor.devagent.kv import Entry, KeyValues
from supervisor.devagent.messages import Refused
from supervisor.devagent.store import Store

OPERATIONS_MAX = 64
WRITES = frozenset({"set", "cas", "lock", "unlock", "delete", "delete-cas", "delete-tree"})


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation; ``entry.modify_index`` is the Index that it names."""

    verb: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Outcome:
    """``results`` when there are no ``errors``; an error is (position of its operation, text)."""

    results: tuple[Entry, ...] = ()
    errors: tuple[tuple[int, str], ...] = ()


def is_write(operations: tuple[Operation, ...]) -> bool:
    """Whether the transaction goes through raft; one that only reads does not."""
    return any(operation.verb in WRITES for operation in operations)


def run(store: Store, operations: tuple[Operation, ...], now: float) -> Outcome:
    """Carry the transaction out at ``now``."""
    errors = _checked_before(store, operations, now)
    if errors:
        return Outcome(errors=errors)
    if not is_write(operations):
        return _apply(store, store.kv, operations, store.index)
    outcome = Outcome()

    def write(copy: KeyValues, index: int) -> bool:
        nonlocal outcome
        outcome = _apply(store, copy, operations, index)
        return not outcome.errors

    store.transact(write, now)
    return outcome


def _checked_before(
    store: Store, operations: tuple[Operation, ...], now: float
) -> tuple[tuple[int, str], ...]:
    """What the server that leads refuses before anything is written."""
    errors: list[tuple[int, str]] = []
    for position, operation in enumerate(operations):
        key = operation.entry.key
        if not key and operation.verb != "delete-tree":
            errors.append((position, "Must provide key"))
        elif operation.verb == "lock" and store.delays.holds(key, now):
            errors.append((position, f"failed to lock key {quote(key)} due to lock delay"))
    return tuple(errors)


def _apply(store: Store, kv: KeyValues, operations: tuple[Operation, ...], index: int) -> Outcome:
    results: list[Entry] = []
    errors: list[tuple[int, str]] = []
    for position, operation in enumerate(operations):
        try:
            results += _operate(store, kv, operation.verb, operation.entry, index)
        except Refused as refused:
            errors.append((position, str(refused)))
    return Outcome(errors=tuple(errors)) if errors else Outcome(tuple(results))


def _operate(store: Store, kv: KeyValues, verb: str, entry: Entry, index: int) -> list[Entry]:
    """The entries that this operation adds to the results; all but ``get`` leave the value out."""
    key = quote(entry.key)
    match verb:
        case "set":
            return [_blank(kv.set(entry, index))]
        case "cas":
            return [_blank(_done(kv.cas(entry, index), f"failed to set key {key}, index is stale"))]
        case "lock":
            locked = store.lock_at(kv, entry, index)
            return [_blank(_done(locked, f"failed to lock key {key}, lock is already held"))]
        case "unlock":
            text = f"failed to unlock key {key}, lock isn't held, or is held by another session"
            return [_blank(_done(kv.unlock(entry, index), text))]
        case "delete":
            kv.delete(entry.key, index)
            return []
        case "delete-cas":
            if not kv.delete_cas(entry.key, entry.modify_index, index):
                raise Refused(f"failed to delete key {key}, index is stale")
            return []
        case "delete-tree":
            kv.delete_tree(entry.key, index)
            return []
    return _read(kv, verb, entry)


def _read(kv: KeyValues, verb: str, entry: Entry) -> list[Entry]:
    key, existing = quote(entry.key), kv.get(entry.key)
    match verb:
        case "get":
            return [_done(existing, f"key {key} doesn't exist")]
        case "get-tree":
            return kv.tree(entry.key)
        case "check-not-exists":
            if existing is not None:
                raise Refused(f"key {key} exists")
            return []
        case "check-session":
            found = _done(existing, f"failed to check session, key {key} doesn't exist")
            if found.session != entry.session:
                names = f"current session {quote(found.session)} != {quote(entry.session)}"
                raise Refused(f"failed session check for key {key}, {names}")
            return [_blank(found)]
        case "check-index":
            found = _done(existing, f"failed to check index, key {key} doesn't exist")
            if found.modify_index != entry.modify_index:
                indexes = f"current modify index {found.modify_index} != {entry.modify_index}"
                raise Refused(f"failed index check for key {key}, {indexes}")
            return [_blank(found)]
    raise Refused(f"unknown KV verb {quote(verb)}")


def _done(entry: Entry | None, otherwise: str) -> Entry:
    if entry is None:
        raise Refused(otherwise)
    return entry


def _blank(entry: Entry) -> Entry:
    return replace(entry, value=b"")
