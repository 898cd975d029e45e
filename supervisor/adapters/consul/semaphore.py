"""Consul's HTTP API for semaphores: their transactions, and lists of all keys below a prefix."""

import base64
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import requests

from supervisor.adapters.consul.calls import Call, get, transaction, waiting
from supervisor.adapters.consul.permissions import PERMISSION_DENIED
from supervisor.adapters.consul.responses import (
    MalformedResponse,
    entries_of,
    error_text,
    index_of,
    is_filtered,
    json_of,
    number,
    text,
    value_of,
    why,
)
from supervisor.adapters.consul.shared.listing import NO_FLAGS
from supervisor.config.formats import slot_record as rosters
from supervisor.core.frozen import dataclass
from supervisor.core.outcomes import (
    ContenderKey,
    Denied,
    Done,
    KeyIndexes,
    LockKey,
    LostRace,
    Outcome,
    SessionGone,
    SlotsView,
    SlotWritten,
)
from supervisor.core.requests import (
    JoinSemaphore,
    LeaveSemaphore,
    Pruned,
    ReadSlots,
    Request,
    SlotRecord,
    SlotRequest,
    TakeSlot,
    WatchSlots,
)
from supervisor.core.settings import LOCK_SUFFIX

SEMAPHORE_FLAGS = 16210313421097356768  # api.SemaphoreFlagValue of Consul's own client


@dataclass(frozen=True, slots=True)
class WriteSlotRecord(SlotRequest):
    """A change of ``.lock``, if its index still is ``index``, which only commands send."""

    slot_record: SlotRecord
    index: int


def step(action: JoinSemaphore | TakeSlot | LeaveSemaphore | WriteSlotRecord) -> Call:
    if isinstance(action, WriteSlotRecord):
        return transaction([_lock_operation(action.prefix, action.slot_record, action.index)])
    key = f"{action.prefix}/{action.session}"
    match action:
        case JoinSemaphore(session=session, value=value):
            first = {"Verb": "lock", "Key": key, "Session": session, "Flags": SEMAPHORE_FLAGS}
            steps: list[dict[str, object]] = [first | {"Value": base64.b64encode(value).decode()}]
        case TakeSlot(session=session):
            steps = [{"Verb": "check-session", "Key": key, "Session": session}]
        case LeaveSemaphore():
            steps = [{"Verb": "delete", "Key": key}]
    if not isinstance(action, LeaveSemaphore):
        steps += [_check(action.prefix, pruned) for pruned in action.pruned]
    if action.slot_record is not None:
        steps.append(_lock_operation(action.prefix, action.slot_record, action.index))
    return transaction(steps)


def _check(prefix: str, pruned: Pruned) -> dict[str, object]:
    key = f"{prefix}/{pruned.session}"
    if pruned.shown is None:
        return {"Verb": "check-not-exists", "Key": key}
    return {"Verb": "check-session", "Key": key, "Session": pruned.shown}


def _lock_operation(prefix: str, slot_record: SlotRecord, index: int) -> dict[str, object]:
    value = base64.b64encode(rosters.encoded(slot_record)).decode()
    flags = {"Flags": SEMAPHORE_FLAGS}
    return {"Verb": "cas", "Key": prefix + LOCK_SUFFIX, "Value": value, "Index": index} | flags


def slot_written(action: JoinSemaphore | TakeSlot, response: requests.Response) -> SlotWritten:
    entries = {text(entry, "Key"): entry for entry in entries_of(response)}
    ours = entries.get(f"{action.prefix}/{action.session}")
    lock = entries.get(action.prefix + LOCK_SUFFIX)
    if ours is None or text(ours, "Session", "") != action.session:
        raise MalformedResponse("a contender key of another session")
    if action.slot_record is not None and lock is None:
        raise MalformedResponse("a transaction without all of its results")
    return SlotWritten(_indexes(ours), None if lock is None else _indexes(lock))


def written(action: Request, response: requests.Response) -> Outcome:
    if not isinstance(json_of(response, dict).get("Results", ""), list | None):
        raise MalformedResponse("a transaction without its results")
    return Done()


def not_written(
    action: JoinSemaphore | TakeSlot | LeaveSemaphore | WriteSlotRecord, response: requests.Response
) -> Outcome:
    """Return why Consul has refused the transaction.

    LostRace: another contender changed ``.lock`` first, our session does not hold its contender key, or a
    holder that was to be pruned lives.
    """
    words = error_text(response)
    if "invalid session" in words:
        return SessionGone()
    if PERMISSION_DENIED in words:
        return Denied(why(response))
    return LostRace()


def _indexes(entry: Any) -> KeyIndexes:
    return KeyIndexes(*(number(entry, name) for name in ("CreateIndex", "ModifyIndex", "LockIndex")))


class SlotsReader:
    """The decoder of one semaphore's answers, which decodes only what has changed since the last one.

    Each change wakes all contenders and concerns one key of many.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._last: dict[str, tuple[object, ContenderKey]] = {}

    def view(self, index: int, response: requests.Response) -> SlotsView:
        """Return the contender keys and ``.lock`` below the prefix. Raises MalformedResponse."""
        filtered = is_filtered(response)
        if response.status_code == 404:
            return SlotsView(index, filtered=filtered)
        return self._of(index, json_of(response, list), filtered=filtered)

    def view_in_parts(self, responses: Sequence[requests.Response]) -> SlotsView:
        """Return the keys that single reads show, as a list of these keys. Raises MalformedResponse."""
        found = [entry for each in responses if each.status_code == 200 for entry in json_of(each, list)]
        return self._of(max(map(index_of, responses)), found, filtered=False)

    def _of(self, index: int, entries: list[Any], *, filtered: bool) -> SlotsView:
        lock: LockKey | None = None
        read: dict[str, tuple[object, ContenderKey]] = {}
        for entry in entries:
            key = text(entry, "Key")
            if not key.startswith(f"{self._prefix}/"):
                raise MalformedResponse("another key than was asked for")
            name = key.removeprefix(f"{self._prefix}/")
            if f"/{name}" == LOCK_SUFFIX:
                lock = _lock_key(entry)
            elif (last := self._last.get(name)) is not None and last[0] == entry:
                read[name] = last
            elif "/" in name:
                continue
            elif text(entry, "Session", "") == name or number(entry, "Flags") == SEMAPHORE_FLAGS:
                read[name] = (entry, _contender_key(name, entry))
        self._last = read
        contenders = tuple(key for _, key in read.values())
        return SlotsView(index, lock, contenders, filtered)


def _lock_key(entry: Any) -> LockKey:
    indexes = number(entry, "CreateIndex"), number(entry, "ModifyIndex")
    if text(entry, "Session", ""):
        return LockKey(*indexes, None, "a session holds it as a lock", is_lock=True)
    if number(entry, "Flags") not in (SEMAPHORE_FLAGS, NO_FLAGS):
        return LockKey(*indexes, None, "its flags are not those of a semaphore", is_lock=True)
    try:
        return LockKey(*indexes, rosters.decoded(value_of(entry)))
    except rosters.InvalidRecord as why:
        return LockKey(*indexes, None, str(why))


def _contender_key(name: str, entry: Any) -> ContenderKey:
    value = value_of(entry)
    return ContenderKey(
        name=name,
        session=text(entry, "Session", ""),
        value=value,
        create_index=number(entry, "CreateIndex"),
        lock_index=number(entry, "LockIndex"),
        prune_delay_s=rosters.prune_delay_s(value),
    )


def read(request: ReadSlots) -> Call:
    return get(_path_of(request.prefix), {"recurse": "", "consistent": ""})


def watch(request: WatchSlots) -> Call:
    return get(_path_of(request.prefix), {"recurse": "", **waiting(request)})


def _path_of(prefix: str) -> str:
    """Return the path of the list below this prefix. The slash at its end excludes longer names."""
    return f"kv/{quote(prefix)}/"


def shown(request: ReadSlots | WatchSlots, response: requests.Response) -> Outcome:
    """Return all below the prefix. A 404 without an index raises, because another program has sent it."""
    return reader_of(request.prefix).view(index_of(response), response)


def reader_of(prefix: str) -> SlotsReader:
    """Return the reader that keeps the last answer about this prefix."""
    if len(_readers) > READERS_MAX:
        _readers.clear()
    return _readers.setdefault(prefix, SlotsReader(prefix))


READERS_MAX = 1000  # prefixes whose last answer is kept; one file has fewer semaphores
_readers: dict[str, SlotsReader] = {}  # by prefix; a cache that only saves work
