"""Consul's HTTP API for the keys that order something for the whole fleet. Daemons only read them."""

from supervisor.adapters.consul.calls import RAW, Call, key_path
from supervisor.core.frozen import dataclass
from supervisor.core.requests import ReadKey, Request


@dataclass(frozen=True, slots=True)
class ReadOrder(ReadKey):
    """The consistent read of one key below the orders."""


@dataclass(frozen=True, slots=True)
class WriteOrder(Request):
    """``PUT`` or ``DELETE /v1/kv/KEY?cas=INDEX``, by a command."""

    key: str
    value: bytes | None  # None: the key is deleted
    index: int  # the ModifyIndex of what was read. 0: the key was absent


def orders_folder(prefix: str) -> str:
    return f"{prefix}/orders/"


def write(request: WriteOrder) -> Call:
    method = "DELETE" if request.value is None else "PUT"
    return Call(method, key_path(request.key), {"cas": str(request.index)}, request.value, RAW)
