"""The request that a handler gets, and the answer that it returns: plain values, without a connection."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from supervisor.reporting.http_server.peer import Peer


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits for the clients of one server."""

    # The number of clients. When one more connects, the server closes the connection of the client that has
    # been idle longest, or the new connection if no client is idle.
    clients_max: int = 200  # as Consul's http_max_conns_per_client
    # The number of clients that have not read their answer yet, because each answer is in memory meanwhile.
    slow_readers_max: int = 200
    head_bytes_max: int = 65536  # the size of a request's head
    body_bytes_max: int = 1 << 20  # the size of a request's body
    receive_s: float = 30.0  # the time for a complete request, from its first byte
    send_s: float = 30.0  # the time for a complete answer
    idle_s: float = 300.0  # the time between two requests


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request."""

    method: str  # the method, as GET
    target: str  # the target of the request line
    headers: tuple[tuple[str, str], ...]  # the headers, with names in lower case
    body: bytes  # the complete body
    peer: Peer | None = None  # the process that sent the request. None: it came over TCP


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One answer. ``close``: whether the connection ends with it."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    close: bool = False


JSON = ("Content-Type", "application/json")
TEXT = ("Content-Type", "text/plain; charset=utf-8")


def refusal(status: int, error: str, *headers: tuple[str, str]) -> HttpAnswer:
    """Return an answer whose one line says what cannot be done."""
    return HttpAnswer(status, json.dumps({"error": error}).encode() + b"\n", (JSON, *headers))


Handler = Callable[[HttpRequest], Awaitable[HttpAnswer]]
