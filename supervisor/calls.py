"""A request to Consul as HTTP has it, but for what all requests have in common: address, scope, token."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from supervisor.core.actions import Watch

JSON = "application/json"
RAW = "application/octet-stream"  # of a key's value


@dataclass(frozen=True, slots=True)
class Call:
    """``path`` stands below ``/v1/``. ``body`` None: the call has none, because it only asks."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = JSON


def get(path: str, query: Mapping[str, str] | None = None) -> Call:
    """A question."""
    return Call("GET", path, query or {})


def put(path: str, body: object | None = None) -> Call:
    """A write, with a body in JSON or an empty one."""
    data = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
    return Call("PUT", path, body=data)


def transaction(operations: list[dict[str, object]]) -> Call:
    """All of these operations on keys, or none."""
    return put("txn", [{"KV": operation} for operation in operations])


def key_path(key: str) -> str:
    """The path of this key."""
    return f"kv/{quote(key)}"


def waiting(watch: Watch) -> dict[str, str]:
    """The parameters of a blocking query."""
    query = {"index": str(watch.index), "wait": f"{watch.wait_s:g}s"}
    return {**query, "consistent": ""} if watch.consistent else query
