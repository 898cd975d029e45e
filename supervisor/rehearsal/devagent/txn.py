"""Operations on keys, alone or in a transaction: Consul carries out all of these, or none.

A transaction reports every error. An operation alone is a request of ``/v1/kv/``, whose answer is only
whether it was carried out.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from supervisor.rehearsal.devagent.kv import Entry, Rejected
from supervisor.rehearsal.devagent.store import Store

OPERATIONS_MAX = 64
READS = frozenset({"get", "get-tree", "check-index", "check-session", "check-not-exists"})
VERBS = READS | {"set", "cas", "lock", "unlock", "delete", "delete-cas", "delete-tree"}
# Why an operation is not carried out, by its verb.
_REFUSED = {
    "lock": 'failed to lock key "{}", lock is already held',
    "unlock": 'failed to unlock key "{}", lock isn\'t held, or is held by another session',
    "cas": 'failed to set key "{}", index is stale',
    "delete-cas": 'failed to delete key "{}", index is stale',
    "get": 'key "{}" doesn\'t exist',
    "check-session": 'failed to check session, key "{}" doesn\'t exist',
    "check-index": 'failed to check index, key "{}" doesn\'t exist',
    "check-not-exists": 'key "{}" exists',
}


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


def write_alone(store: Store, operation: Operation, now: float) -> bool:
    """Carry out one write, and return whether that was possible. Raises Rejected."""
    if operation.verb == "lock" and store.is_delayed(operation.entry.key, now):
        return False
    return store.write(lambda index: _operate(store, operation, index), now) is not None


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
        elif operation.verb == "lock" and store.is_delayed(key, now):
            errors.append((position, f'failed to lock key "{key}" due to lock delay'))
    return tuple(errors)


def _apply(store: Store, operations: tuple[Operation, ...], index: int) -> Outcome:
    results: list[Entry] = []
    errors: list[tuple[int, str]] = []
    for position, operation in enumerate(operations):
        try:
            shown = _operate(store, operation, index)
        except Rejected as refused:
            errors.append((position, str(refused)))
            continue
        if shown is None:
            errors.append((position, _REFUSED[operation.verb].format(operation.entry.key)))
            continue
        shows_values = operation.verb in ("get", "get-tree")
        results += [entry if shows_values else replace(entry, value=b"") for entry in shown]
    return Outcome(errors=tuple(errors)) if errors else Outcome(tuple(results))


def _operate(store: Store, operation: Operation, index: int) -> list[Entry] | None:
    """Carry out an operation, and return the entries to show. None: it is refused. Raises Rejected."""
    kv, entry = store.kv, operation.entry
    found: Entry | None
    match operation.verb:
        case "set":
            found = kv.set(entry, index)
        case "cas":
            found = kv.cas(entry, index)
        case "lock":
            found = store.lock(entry, index)
        case "unlock":
            found = kv.unlock(entry, index)
        case "get":
            found = kv.get(entry.key)
        case "check-session":
            found = _checked("session", kv.get(entry.key), entry)
        case "check-index":
            found = _checked("modify_index", kv.get(entry.key), entry)
        case "get-tree":
            return kv.tree(entry.key)
        case "check-not-exists":
            return None if kv.get(entry.key) else []
        case "delete-cas":
            return [] if kv.delete_cas(entry.key, entry.modify_index, index) else None
        case "delete-tree":
            kv.delete_tree(entry.key, index)
            return []
        case _:
            kv.delete(entry.key, index)
            return []
    return None if found is None else [found]


def _checked(field: str, found: Entry | None, wanted: Entry) -> Entry | None:
    """Return the entry that was found. Raises Rejected when this field of it is another one."""
    if found is not None and (has := getattr(found, field)) != (expected := getattr(wanted, field)):
        differ = f"current {field.replace('_', ' ')} {json.dumps(has)} != {json.dumps(expected)}"
        check = field.removeprefix("modify_")
        raise Rejected(f'failed {check} check for key "{wanted.key}", {differ}')
    return found
