"""The client's end of the control socket: one request and its answer, and the requests that only read.

A cron job runs it each minute and ``status --watch`` each second, so it must start fast. It uses one blocking
socket with one deadline, framed by h11, and imports no module that takes long.
"""

import json
import os
import socket
import time
from typing import Any

import h11

from supervisor.control.protocol import error_of
from supervisor.errors import PeerError

FETCH_S = 10.0  # the daemon answers in milliseconds, unless its machine hangs
BODY_BYTES_MAX = 64 << 20  # a thousand items, each with twenty transitions and their hooks
RECEIVE_BYTES = 1 << 16
VERSION = 1  # of the status and of the events
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


def exchange(
    socket_path: str, method: str, target: str, body: bytes = b"", *, within_s: float
) -> tuple[int, bytes]:
    """Send one request, and return the status and the body of its answer. Raises DaemonUnreachable."""
    deadline = time.monotonic() + within_s
    client = h11.Connection(h11.CLIENT)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            _until(connection, deadline).connect(os.fsencode(socket_path))
            _until(connection, deadline).sendall(_request(client, method, target, body))
            return _answer(connection, client, deadline)
        except TimeoutError:
            why = f"no answer from {socket_path} within {within_s:g} s"
        except OSError as error:
            why = f"cannot reach {socket_path}: {(error.strerror or str(error)).lower()}"
        except h11.RemoteProtocolError:
            why = f"{socket_path} does not speak HTTP, or closed the connection before the end of its answer"
    raise DaemonUnreachable(f"cannot ask the daemon: {why}")


def _request(client: h11.Connection, method: str, target: str, body: bytes) -> bytes:
    headers = [("Host", "localhost"), ("Content-Length", str(len(body)))]
    events: list[h11.Event] = [h11.Request(method=method, target=target, headers=headers)]
    events += [h11.Data(data=body)] if body else []
    return b"".join(client.send(event) or b"" for event in (*events, h11.EndOfMessage()))


def _answer(connection: socket.socket, client: h11.Connection, deadline: float) -> tuple[int, bytes]:
    code, body = 0, bytearray()
    while True:
        event = client.next_event()
        if event is h11.NEED_DATA:
            client.receive_data(_until(connection, deadline).recv(RECEIVE_BYTES))
        elif isinstance(event, h11.Response):
            code = event.status_code
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > BODY_BYTES_MAX:
                raise OSError(f"its answer has more than {BODY_BYTES_MAX} bytes")
        elif isinstance(event, h11.EndOfMessage):
            return code, bytes(body)


def _until(connection: socket.socket, deadline: float) -> socket.socket:
    """Set the socket's time limit, so that its next operation ends by the deadline, and return the socket.

    Raises TimeoutError.
    """
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    connection.settimeout(left_s)
    return connection
