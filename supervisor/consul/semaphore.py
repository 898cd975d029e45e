"""Consul's HTTP API as semaphores use it: their transactions, and lists of all below a prefix.

The part of ``supervisor.consul`` that elections do not need. It decides nothing, and raises
MalformedResponse for whatever is not Consul's answer.
"""

import base64
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import requests

from supervisor.consul.calls import Call, get, transaction, waiting
from supervisor.consul.permissions import PERMISSION_DENIED
from supervisor.consul.responses import (
    MalformedResponse,
    index_of,
    is_filtered,
    json_of,
    number,
    said,
    text,
    value_of,
    why,
)
from supervisor.consul.shared import NO_FLAGS
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
    ReadSlots,
    Roster,
    TakeSlot,
    WatchSlots,
    WriteSemaphoreRecord,
)
from supervisor.core.settings import LOCK_SUFFIX
from supervisor.formats import semaphore_record as rosters

SEMAPHORE_FLAGS = 16210313421097356768  # api.SemaphoreFlagValue of Consul's own client


def step(action: JoinSemaphore | TakeSlot | LeaveSemaphore | WriteSemaphoreRecord) -> Call:
    """The transaction of this step."""
    return transaction(_operations(action))


def _operations(
    action: JoinSemaphore | TakeSlot | LeaveSemaphore | WriteSemaphoreRecord,
) -> list[dict[str, object]]:
    if isinstance(action, WriteSemaphoreRecord):
        return [_lock_operation(action.prefix, action.roster, action.index)]
    key = f"{action.prefix}/{action.session}"
    match action:
        case JoinSemaphore(session=session, value=value):
            first = {"Verb": "lock", "Key": key, "Session": session, "Flags": SEMAPHORE_FLAGS}
            steps: list[dict[str, object]] = [first | {"Value": base64.b64encode(value).decode()}]
        case TakeSlot(session=session):
            steps = [{"Verb": "check-session", "Key": key, "Session": session}]
        case LeaveSemaphore():
            steps = [{"Verb": "delete", "Key": key}]
    if action.roster is not None:
        steps.append(_lock_operation(action.prefix, action.roster, action.index))
    return steps


def _lock_operation(prefix: str, roster: Roster, index: int) -> dict[str, object]:
    value = base64.b64encode(rosters.encoded(roster)).decode()
    flags = {"Flags": SEMAPHORE_FLAGS}
    return {"Verb": "cas", "Key": prefix + LOCK_SUFFIX, "Value": value, "Index": index} | flags


def seated(action: JoinSemaphore | TakeSlot, response: requests.Response) -> SlotWritten:
    """What the transaction wrote."""
    results = json_of(response, dict).get("Results")
    if not isinstance(results, list) or not all(isinstance(each, dict) for each in results):
        raise MalformedResponse("a transaction without its results")
    entries = {text(entry, "Key"): entry for entry in (each.get("KV") for each in results)}
    ours = entries.get(f"{action.prefix}/{action.session}")
    lock = entries.get(action.prefix + LOCK_SUFFIX)
    if ours is None or text(ours, "Session", "") != action.session:
        raise MalformedResponse("a contender key of another session")
    if action.roster is not None and lock is None:
        raise MalformedResponse("a transaction without all of its results")
    return SlotWritten(_indexes(ours), None if lock is None else _indexes(lock))


def stepped(action: LeaveSemaphore | WriteSemaphoreRecord, response: requests.Response) -> Outcome:
    """The transaction wrote what it was to write."""
    if not isinstance(json_of(response, dict).get("Results", ""), list | None):
        raise MalformedResponse("a transaction without its results")
    return Done()


def not_stepped(
    action: JoinSemaphore | TakeSlot | LeaveSemaphore | WriteSemaphoreRecord, response: requests.Response
) -> Outcome:
    """A check-and-set was lost, our contender key is not ours any more, or our session is gone."""
    words = said(response)
    if "invalid session" in words:
        return SessionGone()
    if PERMISSION_DENIED in words:
        return Denied(why(response))
    return LostRace()


def _indexes(entry: Any) -> KeyIndexes:
    return KeyIndexes(*(number(entry, name) for name in ("CreateIndex", "ModifyIndex", "LockIndex")))


class SlotsReader:
    """Reads the answers of one semaphore. Of what is as it was in the last one nothing is made anew: a
    change wakes whoever waits, on machines that may have better to do, and concerns one key of many."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._last: dict[str, tuple[object, ContenderKey]] = {}

    def view(self, index: int, response: requests.Response) -> SlotsView:
        """All below the prefix; keys that are no contenders' are passed over. Raises MalformedResponse."""
        filtered = is_filtered(response)
        if response.status_code == 404:
            return SlotsView(index, filtered=filtered)
        return self._of(index, json_of(response, list), filtered=filtered)

    def view_in_parts(self, responses: Sequence[requests.Response]) -> SlotsView:
        """What single reads show, as a list that shows nothing else would. Raises MalformedResponse."""
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
    """Ask for a consistent list of all below the prefix."""
    return get(_path_of(request.prefix), {"recurse": "", "consistent": ""})


def watch(request: WatchSlots) -> Call:
    """Ask by a blocking query for all below the prefix."""
    return get(_path_of(request.prefix), {"recurse": "", **waiting(request)})


def _path_of(prefix: str) -> str:
    """Of the list of all below it: with the / at its end, or a longer name would be below it, too."""
    return f"kv/{quote(prefix)}/"


def shown(request: ReadSlots | WatchSlots, response: requests.Response) -> Outcome:
    """All below the prefix as Consul shows it; a 404 without an index is another program's."""
    return reader_of(request.prefix).view(index_of(response), response)


def reader_of(prefix: str) -> SlotsReader:
    """Find the reader that knows the last answer about this prefix."""
    if len(_readers) > READERS_MAX:
        _readers.clear()
    return _readers.setdefault(prefix, SlotsReader(prefix))


READERS_MAX = 1000  # prefixes of which the last answer is kept: more than one file has semaphores
_readers: dict[str, SlotsReader] = {}  # only saves work: whatever differs from the last answer is read anew
