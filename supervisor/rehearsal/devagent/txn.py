"""Operations on keys, alone or in a transaction: Consul carries out all of these, or none.

A transaction reports every error. An operation alone is a request of ``/v1/kv/``, whose answer is only
whether it was carried out.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

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


Operation = tuple[str, Entry]
"""A verb, and the entry with what the operation names; its ``modify_index`` is the Index."""

Errors = list[tuple[int, str]]
"""The position of each operation that failed, and why it failed."""


def write_alone(store: Store, operation: Operation, now: float) -> bool:
    """Carry out one write, and return whether that was possible. Raises Rejected."""
    verb, entry = operation
    if verb == "lock" and store.is_delayed(entry.key, now):
        return False
    return store.write(lambda index: _operate(store, verb, entry, index), now) is not None


def run(store: Store, operations: Sequence[Operation], now: float) -> tuple[list[Entry], Errors]:
    """Carry out a transaction, and return the entries to show if there are no errors, and the errors."""
    if errors := _checked_before(store, operations, now):
        return [], errors
    if is_read(operations):
        return _apply(store, operations, store.index)
    return store.write(lambda index: _apply(store, operations, index), now)


def is_read(operations: Iterable[Operation]) -> bool:
    return all(verb in READS for verb, _ in operations)


def _checked_before(store: Store, operations: Sequence[Operation], now: float) -> Errors:
    """Return what the leading server refuses before anything is written."""
    errors: Errors = []
    for position, (verb, entry) in enumerate(operations):
        if not entry.key:
            errors.append((position, "Must provide key"))
        elif verb == "lock" and store.is_delayed(entry.key, now):
            errors.append((position, f'failed to lock key "{entry.key}" due to lock delay'))
    return errors


def _apply(store: Store, operations: Sequence[Operation], index: int) -> tuple[list[Entry], Errors]:
    before, results = store.kv.copy(), list[Entry]()
    errors: Errors = []
    for position, (verb, entry) in enumerate(operations):
        try:
            shown = _operate(store, verb, entry, index)
        except Rejected as refused:
            errors.append((position, str(refused)))
            continue
        if shown is None:
            errors.append((position, _REFUSED[verb].format(entry.key)))
            continue
        shows_values = verb in ("get", "get-tree")
        results += [each if shows_values else replace(each, value=b"") for each in shown]
    if errors:
        store.kv = before
    return results, errors


def _operate(store: Store, verb: str, entry: Entry, index: int) -> list[Entry] | None:
    """Carry out an operation, and return the entries to show. None: it is refused. Raises Rejected."""
    kv = store.kv
    found: Entry | None
    match verb:
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
