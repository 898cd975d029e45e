"""Transactions on keys: Consul carries out all operations, or none and reports every error."""

from dataclasses import dataclass, replace

from supervisor.devagent.kv import Entry, KeyValues
from supervisor.devagent.messages import Rejected
from supervisor.devagent.store import Store

OPERATIONS_MAX = 64
VERBS = frozenset({"lock", "unlock", "cas", "delete", "check-session", "check-not-exists"})


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
    """Carry the transaction out at ``now``."""
    outcome = Outcome(errors=_checked_before(store, operations, now))

    def write(copy: KeyValues, index: int) -> bool:
        nonlocal outcome
        outcome = _apply(store, copy, operations, index)
        return not outcome.errors

    if not outcome.errors:
        store.transact(write, now)
    return outcome


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


def _apply(store: Store, kv: KeyValues, operations: tuple[Operation, ...], index: int) -> Outcome:
    results: list[Entry] = []
    errors: list[tuple[int, str]] = []
    for position, operation in enumerate(operations):
        try:
            entry = _operate(store, kv, operation.verb, operation.entry, index)
        except Rejected as refused:
            errors.append((position, str(refused)))
        else:
            results += [] if entry is None else [replace(entry, value=b"")]
    return Outcome(errors=tuple(errors)) if errors else Outcome(tuple(results))


def _operate(store: Store, kv: KeyValues, verb: str, entry: Entry, index: int) -> Entry | None:
    """Carry one operation out. Return the entry for the results, which show no value; None: no entry."""
    key = f'"{entry.key}"'
    match verb:
        case "lock":
            why = f"failed to lock key {key}, lock is already held"
            return _done(store.lock_at(kv, entry, index), why)
        case "unlock":
            why = f"failed to unlock key {key}, lock isn't held, or is held by another session"
            return _done(kv.unlock(entry, index), why)
        case "cas":
            return _done(kv.cas(entry, index), f"failed to set key {key}, index is stale")
        case "delete":
            kv.delete(entry.key, index)
            return None
        case "check-not-exists":
            if kv.get(entry.key) is not None:
                raise Rejected(f"key {key} exists")
            return None
    assert verb == "check-session", verb
    found = _done(kv.get(entry.key), f"failed to check session, key {key} doesn't exist")
    if found.session != entry.session:
        names = f'current session "{found.session}" != "{entry.session}"'
        raise Rejected(f"failed session check for key {key}, {names}")
    return found


def _done(entry: Entry | None, otherwise: str) -> Entry:
    if entry is None:
        raise Rejected(otherwise)
    return entry
