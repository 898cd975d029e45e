"""Consul's HTTP API for the keys below a fleet's prefix, which no contender waits for.

One key keeps the tenures of an election, one the notes of shots, and others order something for all nodes.
"""

import time

import requests

from supervisor.adapters.consul.calls import RAW, Call, key_path
from supervisor.adapters.consul.keys import shown
from supervisor.adapters.consul.responses import index_of, truth_of
from supervisor.config.formats import shot_notes
from supervisor.core.frozen import dataclass
from supervisor.core.outcomes import Done, KeyView, LostRace, NotesShown, Outcome, Refused
from supervisor.core.requests import ReadKey, ReadNotes, Request, WriteNotes


@dataclass(frozen=True, slots=True)
class ReadHistory(ReadKey):
    """The consistent read of the tenures of an election, below the fleet's ``prefix``."""


@dataclass(frozen=True, slots=True)
class ReadOrder(ReadKey):
    """The consistent read of one key of the orders, below the fleet's ``prefix``."""


@dataclass(frozen=True, slots=True)
class WriteHistory(Request):
    """``PUT`` or ``DELETE /v1/kv/KEY?cas=INDEX``: check-and-set."""

    key: str
    prefix: str  # of the fleet
    value: bytes | None  # None: the key is deleted
    index: int  # the ModifyIndex of what was read. 0: the key was absent


@dataclass(frozen=True, slots=True)
class WriteOrder(WriteHistory):
    """Such a check-and-set of one key of the orders, which commands send. Daemons only read orders."""


def history_key(prefix: str, item: str) -> str:
    return f"{prefix}/history/{item}"


def orders_folder(prefix: str) -> str:
    return f"{prefix}/orders/"


def write(request: WriteHistory) -> Call:
    method = "DELETE" if request.value is None else "PUT"
    return Call(method, key_path(request.key), {"cas": str(request.index)}, request.value, RAW)


def write_notes(request: WriteNotes) -> Call:
    value = shot_notes.encoded(request.notes, time.time() - request.at)
    return Call("PUT", key_path(request.key), {"cas": str(request.index)}, value, RAW)


def notes_shown(request: ReadNotes, response: requests.Response) -> Outcome:
    """Return the notes, or Refused for what is not to be written over."""
    view = shown(request, response)
    try:
        if isinstance(view, KeyView) and not (view.foreign_flags or view.is_marked):
            notes = shot_notes.decoded(view.value, time.time() - request.at)
            return NotesShown(notes, view.modify_index)
    except shot_notes.ForeignNotes:
        pass
    return Refused(
        f"{request.key} holds no notes of shots, so it is left alone: delete it, or give fleet another prefix"
    )


def no_notes(request: ReadNotes, response: requests.Response) -> Outcome:
    index_of(response)  # else another program has sent the 404
    return NotesShown(())


def written(request: WriteHistory | WriteNotes, response: requests.Response) -> Outcome:
    """Return LostRace when the key has changed since it was read."""
    return Done() if truth_of(response) else LostRace()
