"""Defines what a handler gets and returns: a request with the process that sent it, and an answer."""

import json
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

CREDENTIALS = "=iII"  # struct ucred: pid, uid, gid
SO_PEERGROUPS = 59  # asm-generic/socket.h; Python has no name for it
GROUPS_BYTES_MAX = 1024  # the limit of Python's getsockopt: 256 groups


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
class Peer:
    """The process that connected to a unix socket: effective ids and supplementary groups."""

    pid: int
    uid: int
    gid: int
    groups: tuple[int, ...] = ()


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


def peer_of(sock: socket.socket) -> Peer | None:
    """Return the process at the other end of a connection. None: the connection uses TCP.

    The ids are those of the moment when the process connected, so a later change gives it no rights.
    """
    if sock.family != socket.AF_UNIX:
        return None
    size = struct.calcsize(CREDENTIALS)
    found = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    try:
        packed = sock.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, GROUPS_BYTES_MAX)
    except OSError:  # a kernel before 4.13, or a process in more groups than that
        packed = b""
    pid, uid, gid = struct.unpack(CREDENTIALS, found)
    return Peer(pid, uid, gid, tuple(group for (group,) in struct.iter_unpack("=I", packed)))


def refusal(status: int, error: str, *headers: tuple[str, str]) -> HttpAnswer:
    """Return an answer whose one line says what cannot be done."""
    return HttpAnswer(status, json.dumps({"error": error}).encode() + b"\n", (JSON, *headers))


Handler = Callable[[HttpRequest], Awaitable[HttpAnswer]]
