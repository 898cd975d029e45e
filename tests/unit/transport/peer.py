"""A peer that follows a script: a process of its own, so that its work never stalls our loop.

A script is a list of steps, which each connection runs from the first one on. This file has both sides:
``Peer`` starts this file as a program, which uses nothing but the standard library.
"""

import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

Step = tuple[str, str]

READ: Step = ("read", "")  # read one whole request and note it
CLOSE: Step = ("close", "")
RESET: Step = ("reset", "")  # close with RST
HOLD: Step = ("hold", "")  # send nothing more, and keep the connection
AGAIN: Step = ("again", "")  # begin again with the first step

TRICKLE_S = 0.01


def send(data: bytes) -> Step:
    """Send these bytes."""
    return ("send", data.decode("latin-1"))


def trickle(data: bytes) -> Step:
    """Send these bytes over and over, one each 10 ms."""
    return ("trickle", data.decode("latin-1"))


def flood(data: bytes) -> Step:
    """Send these bytes over and over, as fast as they are taken."""
    return ("flood", data.decode("latin-1"))


def answer(body: bytes, status: str = "200 OK", headers: bytes = b"") -> Step:
    """Send a plain answer with Content-Length."""
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n".encode()
    return send(head + headers + b"\r\n" + body)


class Peer:
    """A scripted peer at ``host`` or at ``path``.

    scripts: those of the first, second and further connections; the last one serves all that follow.
    tls: its certificate. None: it speaks plain HTTP.
    """

    def __init__(
        self,
        *scripts: list[Step],
        host: str = "127.0.0.1",
        port: int = 0,
        path: Path | None = None,
        tls: "TlsFiles | None" = None,
    ) -> None:
        self._task = {
            "scripts": scripts,
            "address": str(path) if path else (host, port),
            "tls": [tls.cert, tls.key, tls.client_ca] if tls else None,
        }
        self._tls = tls is not None
        self.port = port

    def __enter__(self) -> Self:
        command = [sys.executable, "-I", "-S", __file__]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(self._task).encode() + b"\n")
        self._process.stdin.flush()
        self.port = int(self._process.stdout.readline())
        return self

    def __exit__(self, *error: object) -> None:
        with self._process:  # closes its pipes and reaps the process
            self._process.kill()

    @property
    def url(self) -> str:
        """The beginning of a URL of this peer, unless it listens on a path."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def seen(self) -> list[tuple[int, str]]:
        """End the peer, and return every request as (number of its connection from 0, "METHOD TARGET")."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        lines = self._process.stdout.read().decode().splitlines()
        return [(int(number), line) for number, _, line in (each.partition(" ") for each in lines)]


@dataclass(frozen=True)
class TlsFiles:
    """A server's certificate.

    client_ca: the authority that certificates of clients must have. None: it demands no certificate.
    """

    cert: str
    key: str
    client_ca: str | None = None


# --- the program ----------------------------------------------------------------------------------


def main() -> None:
    task = json.loads(sys.stdin.readline())
    listener = listening(task["address"])
    print(listener.getsockname()[1] if listener.family == socket.AF_INET else 0, flush=True)
    threading.Thread(target=serve, args=(listener, task), daemon=True).start()
    sys.stdin.read()  # ends with the test, even if the test crashes
    os._exit(0)


def listening(address: str | list[Any]) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    listener.bind(address if isinstance(address, str) else tuple(address))
    listener.listen(64)
    return listener


def serve(listener: socket.socket, task: dict[str, Any]) -> None:
    scripts = task["scripts"]
    number = 0
    while True:
        sock, _ = listener.accept()
        script = scripts[min(number, len(scripts) - 1)]
        threading.Thread(target=follow, args=(sock, script, number, task["tls"]), daemon=True).start()
        number += 1


def follow(sock: socket.socket, script: list[Step], number: int, tls: list[str | None] | None) -> None:
    try:
        if tls:
            sock = server_context(tls).wrap_socket(sock, server_side=True)
        while any(take(sock, kind, text.encode("latin-1"), number) for kind, text in script):
            pass
    except OSError:
        pass  # the client left
    finally:
        sock.close()


def take(sock: socket.socket, kind: str, data: bytes, number: int) -> bool:
    """Take one step, and return whether to begin the script again."""
    match kind:
        case "read":
            print(f"{number} {read_request(sock)}", flush=True)
        case "send":
            sock.sendall(data)
        case "trickle":
            while True:
                for byte in data:
                    sock.sendall(bytes([byte]))
                    time.sleep(TRICKLE_S)
        case "flood":
            while True:
                sock.sendall(data * max(1, 65536 // len(data)))
        case "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
        case "close":
            sock.close()
        case "hold":
            threading.Event().wait()
    return kind == "again"


def read_request(sock: socket.socket) -> str:
    """Return the request line without its version; OSError when the client left."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += some(sock)
    head, _, body = received.partition(b"\r\n\r\n")
    line, *headers = head.decode("latin-1").split("\r\n")
    fields = {name.lower(): value for name, value in (each.split(": ", 1) for each in headers)}
    left = int(fields.get("content-length", "0")) - len(body)
    while left > 0:
        left -= len(some(sock))
    return line.rpartition(" ")[0]


def some(sock: socket.socket) -> bytes:
    data = sock.recv(65536)
    if not data:
        raise ConnectionError("the client left")
    return data


def server_context(tls: list[str | None]) -> ssl.SSLContext:
    cert, key, client_ca = tls
    assert cert
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context


if __name__ == "__main__":
    main()
