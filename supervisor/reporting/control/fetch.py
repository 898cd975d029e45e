"""The client's end of the control socket: commands, and requests that only read.

A cron job runs it each minute and watch(1) each second, so it must start fast. It uses one blocking socket
with one deadline, and imports no module that takes long. So it reads the answer by itself and without h11:
the daemon declares the length of each answer.
"""

import json
import os
import re
import socket
import time
from typing import Any

from supervisor.errors import PeerError
from supervisor.reporting.control.protocol import (
    DONE_S,
    OperatorCommand,
    Reply,
    Verb,
    error_of,
    reply_of,
    request_body,
    request_path,
)

FETCH_S = 10.0  # the daemon answers in milliseconds, unless its machine or its disk hangs
BODY_BYTES_MAX = 64 << 20  # a thousand items, each with twenty transitions and their hooks
HEAD_BYTES_MAX = 1 << 14  # the daemon's have some hundred
RECEIVE_BYTES = 1 << 16
STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([2-5][0-9][0-9])(?: [^\r\n]*)?\r\n")
LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]{1,9})\r\n", re.IGNORECASE)
VERSION = 1  # of the status and of the events
NOT_HTTP = "it does not speak HTTP, or closed the connection before the end of its answer"
NO_ANSWER = "not an answer of a consul-supervisor"


class DaemonUnreachable(PeerError):
    """The daemon did not reply, so it is unknown whether it executed the command. The text says why."""

    remedy = "if it runs, --socket or --config says where it listens"


def status(socket_path: str, *, within_s: float = FETCH_S) -> tuple[bytes, dict[str, Any]]:
    """Return the daemon's status as it was sent, and decoded. Raises DaemonUnreachable."""
    return _document(socket_path, "status", "items", within_s)


def events(socket_path: str) -> dict[str, Any]:
    """Return the events of the daemon's node, decoded. Raises DaemonUnreachable."""
    return _document(socket_path, "events", "events", FETCH_S)[1]


def _document(socket_path: str, what: str, list_: str, within_s: float) -> tuple[bytes, dict[str, Any]]:
    """Return the document at ``/v1/<what>``, which has this list, as it was sent and decoded."""
    code, body = exchange(socket_path, "GET", f"/v1/{what}", within_s=within_s)
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if code != 200 or not isinstance(document, dict) or list_ not in document:
        raise DaemonUnreachable(f"cannot ask the daemon: {code} {error_of(body) or NO_ANSWER}")
    if (version := document.get("version")) != VERSION:
        is_of = "they are of" if what == "events" else "it is of"
        raise DaemonUnreachable(f"cannot read the daemon's {what}: {is_of} version {version}, not {VERSION}")
    return body, document


def holds(socket_path: str, name: str, *, within_s: float = FETCH_S) -> bool | None:
    """Return whether this node holds the item at this instant. None: the daemon has no such item.

    Raises DaemonUnreachable, also when the answer is not a daemon's.
    """
    code, body = exchange(socket_path, "GET", f"/holder/{name}", within_s=within_s)
    if code == 404:
        return None
    if code not in (200, 503) or not body.startswith(f"{name}: ".encode()):
        raise DaemonUnreachable(f"cannot ask the daemon: {code}, {NO_ANSWER}")
    return code == 200


def ask(socket_path: str, command: OperatorCommand, *, within_s: float | None = None) -> Reply:
    """Send the command, and return the daemon's reply once the command is done or has failed.

    within_s: how long to wait. None: FETCH_S, or DONE_S for a command that takes long.
    Raises DaemonUnreachable.
    """
    if within_s is None:
        within_s = DONE_S if command.verb in (Verb.STEP_DOWN, Verb.RELOAD) else FETCH_S
    path, sent = request_path(command), request_body(command)
    code, body = exchange(socket_path, "POST", path, sent, within_s=within_s)
    if (reply := reply_of(code, body)) is None:
        why = error_of(body) or "not a reply of a consul-supervisor"
        raise DaemonUnreachable(f"cannot ask the daemon: {code} {why}")
    return reply


def exchange(
    socket_path: str, method: str, target: str, body: bytes = b"", *, within_s: float
) -> tuple[int, bytes]:
    """Send one request, and return the status and the body of its answer. Raises DaemonUnreachable."""
    deadline = time.monotonic() + within_s
    head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            _until(connection, deadline).connect(os.fsencode(socket_path))
            _until(connection, deadline).sendall(head.encode() + body)
            return _answer(connection, deadline)
        except TimeoutError:
            why = f"no answer from {socket_path} within {within_s:g} s"
        except OSError as error:
            known = error.strerror  # only an error of the kernel has it
            why = f"cannot reach {socket_path}: {known.lower()}" if known else f"{socket_path}: {error}"
    raise DaemonUnreachable(f"cannot ask the daemon: {why}")


def _answer(connection: socket.socket, deadline: float) -> tuple[int, bytes]:
    received = bytearray()
    while (begin := received.find(b"\r\n\r\n") + 4) < 4:
        if len(received) > HEAD_BYTES_MAX:
            raise OSError(NOT_HTTP)
        received += _received(connection, deadline)
    status, length = STATUS_LINE.match(received), LENGTH.search(received, 0, begin - 2)
    if status is None or length is None:
        raise OSError(NOT_HTTP)
    end = begin + int(length[1])
    if end - begin > BODY_BYTES_MAX:
        raise OSError(f"its answer has more than {BODY_BYTES_MAX} bytes")
    while len(received) < end:
        received += _received(connection, deadline)
    return int(status[1]), bytes(received[begin:end])


def _received(connection: socket.socket, deadline: float) -> bytes:
    part = _until(connection, deadline).recv(RECEIVE_BYTES)
    if not part:
        raise OSError(NOT_HTTP)
    return part


def _until(connection: socket.socket, deadline: float) -> socket.socket:
    """Return the socket, whose next operation ends by the deadline. Raises TimeoutError."""
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    connection.settimeout(left_s)
    return connection
