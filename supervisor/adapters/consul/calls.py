"""A request to Consul as an HTTP call, without the parts that all requests share: address, scope, token."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from supervisor.core.requests import Answerer, Watch

JSON = "application/json"
RAW = "application/octet-stream"  # the content type of a key's value
REPEATED_MAX = 2048  # requests and answers of renewals, some 3 KB each, so that a process encodes each once


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP call to Consul."""

    method: str  # GET for a call that only reads, PUT for a call that writes
    path: str  # the path below ``/v1/``
    query: Mapping[str, str] = field(default_factory=dict)  # the parameters of the URL
    body: bytes | None = None  # the bytes to send. None: a call without a body, because it only reads
    content_type: str = JSON  # the type of ``body``
    # The operations of a transaction, sent instead of ``body``. Namespace and partition are fields of each
    # operation.
    operations: Sequence[Mapping[str, object]] = ()


def get(path: str, query: Mapping[str, str] | None = None) -> Call:
    return Call("GET", path, query or {})


def put(path: str, body: object | None = None) -> Call:
    """Return a call that writes ``body`` as JSON. None: the body is empty."""
    return Call("PUT", path, body=b"" if body is None else as_json(body))


def transaction(operations: Sequence[Mapping[str, object]]) -> Call:
    """Return the call for a transaction, of which Consul applies all operations on keys or none."""
    return Call("PUT", "txn", operations=operations)


def as_json(body: object) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def key_path(key: str) -> str:
    return f"kv/{quote(key)}"


def waiting(watch: Watch) -> dict[str, str]:
    query = {"index": str(watch.index), "wait": f"{watch.wait_s:g}s"}
    if watch.answerer is Answerer.SERVER:
        return {**query, "stale": ""}
    return {**query, "consistent": ""} if watch.consistent else query
