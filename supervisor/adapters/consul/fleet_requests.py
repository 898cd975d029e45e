"""Consul's HTTP API for the keys below a fleet's prefix, which no contender waits for.

One key keeps the tenures of an election, and others order something for the whole fleet.
"""

import requests

from supervisor.adapters.consul.calls import RAW, Call, key_path
from supervisor.adapters.consul.responses import truth_of
from supervisor.core.frozen import dataclass
from supervisor.core.outcomes import Done, LostRace, Outcome
from supervisor.core.requests import ReadKey, Request


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


def written(request: WriteHistory, response: requests.Response) -> Outcome:
    """Return LostRace when the key has changed since it was read."""
    return Done() if truth_of(response) else LostRace()
