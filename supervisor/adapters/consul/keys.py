"""Consul's HTTP API for the key of an election: how each request is sent, and what each answer means.

Error texts are those of Consul 1.8.7, as ``responses.error_text`` returns them.
"""

import base64
from typing import Any

import requests

from supervisor.adapters.consul.calls import RAW, Call, get, key_path, transaction, waiting
from supervisor.adapters.consul.permissions import PERMISSION_DENIED
from supervisor.adapters.consul.responses import (
    MalformedResponse,
    entries_of,
    error_text,
    failed,
    index_of,
    json_of,
    number,
    text,
    truth_of,
    value_of,
    why,
)
from supervisor.adapters.consul.semaphore import SEMAPHORE_FLAGS
from supervisor.adapters.consul.shared.listing import GUARDED_FLAGS, LOCK_FLAGS, LONG_FLAGS, view_of
from supervisor.config.formats import tenure_record
from supervisor.core.claim.record import TENURE_SUFFIX, TenureRecord
from supervisor.core.outcomes import (
    Denied,
    Done,
    Hinted,
    KeyView,
    LockDelayed,
    LostRace,
    Outcome,
    RecordExists,
    Refused,
    SessionGone,
    TenureShown,
    Won,
)
from supervisor.core.requests import (
    Acquire,
    HintKey,
    MarkTenure,
    ReadKey,
    Release,
    Request,
    Rewrite,
    WatchKey,
    WatchTenure,
)

# Of ``kvsCheckIndexTxn`` in agent/consul/state/kvs.go, and of KVCheckNotExists in agent/consul/state/txn.go.
CHANGED = ("failed index check", "failed to check index", '" exists')

# --- locks ---------------------------------------------------------------------------------------


def acquire(request: Acquire) -> Call:
    """Encode the acquire as the verb ``lock`` of a transaction.

    The first operation refuses a key that has changed since it was read: ``lock`` itself ignores its flags.
    """
    unchanged: dict[str, object] = {"Verb": "check-not-exists", "Key": request.key}
    if request.index:
        unchanged = {"Verb": "check-index", "Key": request.key, "Index": request.index}
    has_record = request.over_record or request.record is not None
    operations = [unchanged, _lock(request, _flags(has_record, request.is_long))]
    if request.record is not None:
        operations += [_record(request, "check-not-exists"), _record(request, "set", request.record)]
    return transaction(operations)


def _flags(has_record: bool, is_long: bool) -> int:
    return LOCK_FLAGS if not has_record else LONG_FLAGS if is_long else GUARDED_FLAGS


def _record(
    request: Acquire | Release | Rewrite | MarkTenure, verb: str, record: TenureRecord | None = None
) -> dict[str, object]:
    operation: dict[str, object] = {"Verb": verb, "Key": request.key + TENURE_SUFFIX}
    return operation if record is None else operation | {"Value": _base64(tenure_record.encoded(record))}


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _lock(request: Acquire | Release | Rewrite, flags: int, verb: str = "lock") -> dict[str, object]:
    return {
        "Verb": verb,
        "Key": request.key,
        "Value": _base64(request.value),
        "Flags": flags,
        "Session": request.session,
    }


def won(request: Acquire, response: requests.Response) -> Outcome:
    """Return Won with the indexes of the key, which the transaction must show with our session on it."""
    entry = _written(request, response)
    if text(entry, "Session") != request.session:
        raise MalformedResponse("a lock of another session")
    return Won(number(entry, "CreateIndex"), number(entry, "ModifyIndex"), number(entry, "LockIndex"))


def not_locked(request: Acquire | Release | Rewrite | MarkTenure, response: requests.Response) -> Outcome:
    """Return the outcome of a refused write, by Consul's text. The files are those of Consul 1.8.7."""
    words = error_text(response)
    if "due to lock delay" in words:  # agent/consul/txn_endpoint.go, preCheck
        return LockDelayed()
    if "lock is already held" in words:  # agent/consul/state/txn.go, txnKVS
        return LostRace()
    if "invalid session" in words:  # agent/consul/state/kvs.go, kvsLockTxn
        return SessionGone()
    if f'"{request.key}{TENURE_SUFFIX}" exists' in words:  # agent/consul/state/txn.go, KVCheckNotExists
        return RecordExists()
    if any(each in words for each in CHANGED):
        return LostRace()
    if PERMISSION_DENIED in words:  # a status of 403 never comes here: see ``endpoints.outcome_of``
        return Denied(why(response))
    return failed(response)


# --- values --------------------------------------------------------------------------------------


def rewrite(request: Rewrite) -> Call:
    """Encode the write of a value as one transaction: a check of the session, then a lock.

    The lock alone would acquire a key that was released meanwhile. A plain write would set LockIndex to 0
    (agent/consul/state/kvs.go, kvsSetTxn: only a lock carries it on).
    """
    record, index = request.record, request.record_index
    flags = SEMAPHORE_FLAGS if request.of_slot else _flags(record is not None, request.is_long)
    check: dict[str, object] = {"Verb": "check-session", "Key": request.key, "Session": request.session}
    operations = [check, _lock(request, flags)]
    if record is not None or (request.ends_record and index):
        verb = "cas" if record is not None else "delete-cas"
        operations.append(_record(request, verb, record) | {"Index": index})
    elif request.ends_record:
        operations.append(_record(request, "check-not-exists"))
    return transaction(operations)


def rewritten(request: Rewrite, response: requests.Response) -> Outcome:
    """Return Done with the index of the tenure record, if this transaction has written one."""
    _written(request, response)
    if request.record is None:
        return Done()
    return Done(record_index=number(_written(request, response, TENURE_SUFFIX), "ModifyIndex"))


def written(request: Rewrite | Release, response: requests.Response) -> Outcome:
    _written(request, response)
    return Done()


def not_written(request: Rewrite, response: requests.Response) -> Outcome:
    """Return LostRace when our session does not hold the key, RecordExists when the record has changed."""
    words = error_text(response)
    if "failed session check" in words:  # agent/consul/state/kvs.go, kvsCheckSessionTxn
        return LostRace()
    stale = f'"{request.key}{TENURE_SUFFIX}", index is stale' in words  # agent/consul/state/txn.go, KVCAS
    return RecordExists() if stale else not_locked(request, response)


def _written(request: Acquire | Release | Rewrite, response: requests.Response, suffix: str = "") -> object:
    """Return the entry of the key that the last operation on it in a transaction has written."""
    ours = [entry for entry in entries_of(response) if text(entry, "Key") == request.key + suffix]
    if not ours:
        raise MalformedResponse("another key than was asked for")
    return ours[-1]


# --- releases ------------------------------------------------------------------------------------


def release(request: Release) -> Call:
    """Encode the release as a plain PUT, because a transaction limits the value to less than a key may hold.

    A transaction releases an empty value, because newer versions of Consul may refuse a PUT without a body,
    and deletes our tenure record with it.
    """
    flags = _flags(request.over_record, request.is_long)
    if request.ends_record:
        return transaction([_lock(request, flags, "unlock"), _record(request, "delete")])
    if not request.value:
        return transaction([_lock(request, flags, "unlock")])
    query = {"release": request.session, "flags": str(flags)}
    return Call("PUT", key_path(request.key), query, request.value, RAW)


def released(request: Release, response: requests.Response) -> Outcome:
    """Return Done for ``true`` and ``false``. The latter means that the session does not hold the key."""
    if not request.value or request.ends_record:
        return written(request, response)
    truth_of(response)
    return Done()


def not_released(request: Release, response: requests.Response) -> Outcome:
    """Return Done when Consul's text says that the session does not hold the key."""
    if "lock isn't held" in error_text(response):
        return Done(held=False)
    return not_locked(request, response)


def refused(request: Request, response: requests.Response) -> Outcome:
    return Refused(why(response))


# --- tenure records ------------------------------------------------------------------------------


def watch_tenure(request: WatchTenure) -> Call:
    waits = waiting(request) if request.index else {"consistent": ""}
    return get(key_path(request.key + TENURE_SUFFIX), waits)


def tenure_shown(request: WatchTenure, response: requests.Response) -> Outcome:
    entry = _only_entry(response, request.key + TENURE_SUFFIX)
    made_at, changed_at = number(entry, "CreateIndex"), number(entry, "ModifyIndex")
    return TenureShown(index_of(response), changed_at, tenure_record.decoded(value_of(entry), made_at))


def no_tenure(request: WatchTenure, response: requests.Response) -> Outcome:
    return TenureShown(index_of(response))


def mark_tenure(request: MarkTenure) -> Call:
    return transaction([_record(request, "cas", request.record) | {"Index": request.index}])


def not_marked(request: MarkTenure, response: requests.Response) -> Outcome:
    """Return LostRace when the record has changed since it was read."""
    stale = "index is stale" in error_text(response)  # agent/consul/state/txn.go, KVCAS
    return LostRace() if stale else not_locked(request, response)


# --- reads ---------------------------------------------------------------------------------------


def read(request: ReadKey) -> Call:
    return get(key_path(request.key), {"consistent": ""})


def watch(request: WatchKey) -> Call:
    return get(key_path(request.key), waiting(request))


def shown(request: ReadKey | WatchKey, response: requests.Response) -> Outcome:
    return view_of(_only_entry(response, request.key), index_of(response))


def _only_entry(response: requests.Response, key: str) -> Any:
    entries = json_of(response, list)
    if len(entries) != 1 or text(entries[0], "Key") != key:
        raise MalformedResponse("another key than was asked for")
    return entries[0]


def hinted(request: HintKey, response: requests.Response) -> Outcome:
    return Hinted(index_of(response), present=response.status_code == 200)


def absent(request: ReadKey | WatchKey, response: requests.Response) -> Outcome:
    """Return a view without a key. A 404 without an index raises, because another program has sent it."""
    return KeyView(index_of(response))
