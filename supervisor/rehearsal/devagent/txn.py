"""Operations on keys, alone or in a transaction: Consul carries out all of these, or none.

A transaction reports every error. An operation alone is a request of ``/v1/kv/``, whose answer is only
whether it was carried out.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from supervisor.rehearsal.devagent.kv import Entry, Rejected
from supervisor.rehearsal.devagent.store import Store

OPERATIONS_MAX = 64
READS = frozenset({"get", "get-tree", "check-index", "check-session", "check-not-exists"})
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
    return store.write(lambda index: OPERATIONS[verb](store, entry, index), now) is not None


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
            shown = OPERATIONS[verb](store, entry, index)
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


def _checked(field: str, found: Entry | None, wanted: Entry) -> list[Entry] | None:
    """Return the entry that was found, to show. Raises Rejected when this field of it is another one."""
    if found is not None and (has := getattr(found, field)) != (expected := getattr(wanted, field)):
        differ = f"current {field.replace('_', ' ')} {json.dumps(has)} != {json.dumps(expected)}"
        check = field.removeprefix("modify_")
        raise Rejected(f'failed {check} check for key "{wanted.key}", {differ}')
    return _shown(found)


def _shown(entry: Entry | None) -> list[Entry] | None:
    return None if entry is None else [entry]


# What each verb does: the entries to show. None: it is refused, as _REFUSED says. Raises Rejected.
OPERATIONS: Mapping[str, Callable[[Store, Entry, int], list[Entry] | None]] = {
    "set": lambda store, entry, index: [store.kv.set(entry, index)],
    "cas": lambda store, entry, index: _shown(store.kv.cas(entry, index)),
    "lock": lambda store, entry, index: _shown(store.lock(entry, index)),
    "unlock": lambda store, entry, index: _shown(store.kv.unlock(entry, index)),
    "get": lambda store, entry, index: _shown(store.kv.get(entry.key)),
    "get-tree": lambda store, entry, index: store.kv.tree(entry.key),
    "check-session": lambda store, entry, index: _checked("session", store.kv.get(entry.key), entry),
    "check-index": lambda store, entry, index: _checked("modify_index", store.kv.get(entry.key), entry),
    "check-not-exists": lambda store, entry, index: None if store.kv.get(entry.key) else [],
    "delete": lambda store, entry, index: store.kv.delete(entry.key, index),
    "delete-cas": lambda store, entry, index: store.kv.delete_cas(entry, index),
    "delete-tree": lambda store, entry, index: store.kv.delete_tree(entry.key, index),
}
