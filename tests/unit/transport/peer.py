"""A peer that follows a script: a process of its own, so that its work never stalls our loop.

A script is a list of steps, which each connection runs from the first one on. ``Peer`` starts the program
scripted.py, which follows it.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

Step = tuple[str, str]

READ: Step = ("read", "")  # read one whole request and note it
CLOSE: Step = ("close", "")
RESET: Step = ("reset", "")  # close with RST
HOLD: Step = ("hold", "")  # send nothing more, and keep the connection
AGAIN: Step = ("again", "")  # begin again with the first step

PROGRAM = Path(__file__).with_name("scripted.py")


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
        command = [sys.executable, "-I", "-S", str(PROGRAM)]
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
