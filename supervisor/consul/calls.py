"""A request to Consul as HTTP has it, but for what all requests have in common: address, scope, token."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from supervisor.core.requests import Watch

JSON = "application/json"
RAW = "application/octet-stream"  # of a key's value


@dataclass(frozen=True, slots=True)
class Call:
    """``path`` stands below ``/v1/``. ``body`` None: the call has none, because it only asks.

    ``operations``: those of a transaction, instead of a body: namespace and partition are fields of each.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = JSON
    operations: Sequence[Mapping[str, object]] = ()


def get(path: str, query: Mapping[str, str] | None = None) -> Call:
    """Make a request that only asks."""
    return Call("GET", path, query or {})


def put(path: str, body: object | None = None) -> Call:
    """Make a request that writes, with a body in JSON or an empty one."""
    return Call("PUT", path, body=b"" if body is None else as_json(body))


def transaction(operations: Sequence[Mapping[str, object]]) -> Call:
    """Make a transaction: Consul carries out all of these operations on keys, or none."""
    return Call("PUT", "txn", operations=operations)


def as_json(body: object) -> bytes:
    """Encode a body, as briefly as JSON has it."""
    return json.dumps(body, separators=(",", ":")).encode()


def key_path(key: str) -> str:
    """Return the path of this key."""
    return f"kv/{quote(key)}"


def waiting(watch: Watch) -> dict[str, str]:
    """Return the parameters of a blocking query."""
    query = {"index": str(watch.index), "wait": f"{watch.wait_s:g}s"}
    return {**query, "consistent": ""} if watch.consistent else query
