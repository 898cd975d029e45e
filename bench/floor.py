"""The floor: the least program that takes a lock, runs a child and hands the lock over.

    python floor.py http://HOST:PORT FOLDER CHILD ARGUMENT...

It uses raw blocking sockets, requests encoded ahead, connections opened ahead, and posix_spawn. Any
unexpected answer ends it. The time that a contender takes beyond the floor is the contender's own. When its
work is done it prints its markers, each a line "MARKER NANOSECONDS" by CLOCK_MONOTONIC, for ``segments``.
"""

import json
import os
import signal
import socket
import sys
import time

DESTROY_PAUSE_S = 0.05  # as in consul-supervisor, because a destroy would slow the next holder's acquire
SESSION = {"TTL": "15s", "LockDelay": "15s", "NodeChecks": ["serfHealth"]}
PART_BYTES = 65536
MARKERS: list[tuple[str, int]] = []


def mark(marker: str) -> None:
    """Note a marker with its time."""
    MARKERS.append((marker, time.monotonic_ns()))


def tell() -> None:
    """Print the markers so far, and forget them."""
    print(*(f"{marker} {at_ns}" for marker, at_ns in MARKERS), sep="\n", flush=True)
    MARKERS.clear()


class Wire:
    """One kept connection to Consul."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes) -> bytes:
        """Send a request and return the complete answer, head and body."""
        self._socket.sendall(request)
        answer = b""
        while True:
            part = self._socket.recv(PART_BYTES)
            if not part:
                raise ConnectionError(f"Consul hung up after {answer!r}")
            answer += part
            head, end, body = answer.partition(b"\r\n\r\n")
            if end and len(body) == _length(head):
                return answer


def encoded(method: str, path: str, body: bytes = b"") -> bytes:
    """Return a request as bytes."""
    return (
        f"{method} /v1/{path} HTTP/1.1\r\nHost: consul\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    )


def main(url: str, folder: str, child: list[str]) -> None:
    """Contend once: wait, acquire the lock, run the child until SIGTERM, release."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    host, port = url.removeprefix("http://").split(":")
    reads, writes = Wire(host, int(port)), Wire(host, int(port))
    made = writes.ask(encoded("PUT", "session/create", json.dumps({"Name": folder, **SESSION}).encode()))
    session = json.loads(made.partition(b"\r\n\r\n")[2])["ID"]
    acquire = encoded("PUT", f"kv/{folder}/.lock?acquire={session}")
    release = encoded("PUT", f"kv/{folder}/.lock?release={session}")
    destroy = encoded("PUT", f"session/destroy/{session}")
    renew = encoded("PUT", f"session/renew/{session}")
    index = b"0"
    while True:
        view = reads.ask(encoded("GET", f"kv/{folder}/.lock?wait=4s&index={index.decode()}"))
        mark("woken")
        if b'"Session"' not in view and writes.ask(acquire).rstrip().endswith(b"true"):
            break
        index = view.partition(b"X-Consul-Index: ")[2].partition(b"\r\n")[0]
        writes.ask(renew)
    mark("won")
    pid = os.posix_spawn(child[0], child, os.environ, setsigmask=[])
    tell()
    while signal.sigtimedwait({signal.SIGTERM}, 4.0) is None:
        writes.ask(renew)
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    mark("reaped")
    writes.ask(release)
    tell()
    time.sleep(DESTROY_PAUSE_S)
    writes.ask(destroy)


def _length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
