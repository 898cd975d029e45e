"""Consul's HTTP API for the key that keeps the tenures of an election, which no contender waits for."""

import requests

from supervisor.adapters.consul.calls import RAW, Call, key_path
from supervisor.adapters.consul.responses import MalformedResponse
from supervisor.core.frozen import dataclass
from supervisor.core.outcomes import Done, LostRace, Outcome
from supervisor.core.requests import ReadKey, Request


@dataclass(frozen=True, slots=True)
class ReadHistory(ReadKey):
    """The consistent read of the key before it is written."""


@dataclass(frozen=True, slots=True)
class WriteHistory(Request):
    """``PUT /v1/kv/KEY?cas=INDEX``: check-and-set."""

    key: str
    value: bytes
    index: int  # the ModifyIndex of what was read. 0: the key was absent


def history_key(prefix: str, item: str) -> str:
    return f"{prefix}/history/{item}"


def write(request: WriteHistory) -> Call:
    return Call("PUT", key_path(request.key), {"cas": str(request.index)}, request.value, RAW)


def written(request: Request, response: requests.Response) -> Outcome:
    """Return LostRace when the key has changed since it was read."""
    if (answer := response.content.strip()) not in (b"true", b"false"):
        raise MalformedResponse("neither true nor false")
    return Done() if answer == b"true" else LostRace()
