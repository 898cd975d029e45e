"""Transactions on keys: Consul carries out all operations, or none and reports every error."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from supervisor.rehearsal.devagent.kv import Entry
from supervisor.rehearsal.devagent.messages import Rejected
from supervisor.rehearsal.devagent.store import Store

OPERATIONS_MAX = 64
READS = frozenset({"get", "get-tree", "check-index", "check-session", "check-not-exists"})
VERBS = READS | {"set", "cas", "lock", "unlock", "delete", "delete-cas", "delete-tree"}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation."""

    verb: str
    entry: Entry  # its ``modify_index`` is the Index that the operation names


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a transaction."""

    results: tuple[Entry, ...] = ()  # the entries to show when there are no errors
    errors: tuple[tuple[int, str], ...] = ()  # the position of each operation that failed, and why it failed


def run(store: Store, operations: tuple[Operation, ...], now: float) -> Outcome:
    if errors := _checked_before(store, operations, now):
        return Outcome(errors=errors)
    if is_read(operations):
        return _apply(store, operations, store.index)

    def write(index: int) -> Outcome:
        before = store.kv.copy()
        outcome = _apply(store, operations, index)
        if outcome.errors:
            store.kv = before
        return outcome

    return store.write(write, now)


def is_read(operations: Iterable[Operation]) -> bool:
    return all(operation.verb in READS for operation in operations)


def _checked_before(
    store: Store, operations: tuple[Operation, ...], now: float
) -> tuple[tuple[int, str], ...]:
    """Return what the leading server refuses before anything is written."""
    errors: list[tuple[int, str]] = []
    for position, operation in enumerate(operations):
        key = operation.entry.key
        if not key:
            errors.append((position, "Must provide key"))
        elif operation.verb == "lock" and store.delays.holds(key, now):
            errors.append((position, f'failed to lock key "{key}" due to lock delay'))
    return tuple(errors)


def _apply(store: Store, operations: tuple[Operation, ...], index: int) -> Outcome:
    results: list[Entry] = []
    errors: list[tuple[int, str]] = []
    for position, operation in enumerate(operations):
        try:
            shown = _operate(store, operation.verb, operation.entry, index)
        except Rejected as refused:
            errors.append((position, str(refused)))
        else:
            shows_values = operation.verb in ("get", "get-tree")
            results += [entry if shows_values else replace(entry, value=b"") for entry in shown]
    return Outcome(errors=tuple(errors)) if errors else Outcome(tuple(results))


def _operate(store: Store, verb: str, entry: Entry, index: int) -> list[Entry]:
    kv, key = store.kv, f'"{entry.key}"'
    match verb:
        case "set":
            return [kv.set(entry, index)]
        case "lock":
            why = f"failed to lock key {key}, lock is already held"
            return _done(store.lock_now(entry, index), why)
        case "unlock":
            why = f"failed to unlock key {key}, lock isn't held, or is held by another session"
            return _done(kv.unlock(entry, index), why)
        case "cas":
            return _done(kv.cas(entry, index), f"failed to set key {key}, index is stale")
        case "delete":
            kv.delete(entry.key, index)
        case "delete-cas":
            if not kv.delete_cas(entry.key, entry.modify_index, index):
                raise Rejected(f"failed to delete key {key}, index is stale")
        case "delete-tree":
            kv.delete_tree(entry.key, index)
        case "check-not-exists":
            if kv.get(entry.key) is not None:
                raise Rejected(f"key {key} exists")
        case "get":
            return _done(kv.get(entry.key), f"key {key} doesn't exist")
        case "get-tree":
            return kv.tree(entry.key)
        case "check-session" | "check-index":
            what = verb.removeprefix("check-")
            field = "session" if what == "session" else "modify_index"
            (found,) = _done(kv.get(entry.key), f"failed to check {what}, key {key} doesn't exist")
            if (has := getattr(found, field)) != (wanted := getattr(entry, field)):
                differ = f"current {field.replace('_', ' ')} {json.dumps(has)} != {json.dumps(wanted)}"
                raise Rejected(f"failed {what} check for key {key}, {differ}")
            return [found]
    return []


def _done(entry: Entry | None, otherwise: str) -> list[Entry]:
    if entry is None:
        raise Rejected(otherwise)
    return [entry]
