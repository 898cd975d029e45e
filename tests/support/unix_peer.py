"""A peer on a unix socket that answers every connection with given bytes, to any request.

It stands for a daemon that is slow or broken, or for another program; a real daemon is ``Supervisor``.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingUnixStreamServer
from typing import Self

POLL_S = 0.05


class UnixPeer(ThreadingUnixStreamServer):
    """A server that answers with the pieces of ``answer`` and then disconnects.

    pause_s: the time between two pieces.
    stay: keep the connection after the last piece.
    """

    def __init__(
        self, path: Path, answer: Callable[[], Sequence[bytes]], *, pause_s: float = 0.0, stay: bool = False
    ) -> None:
        super().__init__(str(path), _Handler)
        self.answer = answer
        self.pause_s = pause_s
        self.stay = stay
        self.ended = threading.Event()
        self.asked: list[bytes] = []
        self._path = path
        self._thread = threading.Thread(target=self.serve_forever, args=(POLL_S,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.ended.set()
        self.shutdown()
        self._thread.join()
        self.server_close()
        self._path.unlink()


class _Handler(BaseRequestHandler):
    server: UnixPeer

    def handle(self) -> None:
        peer = self.server
        peer.asked.append(self.request.recv(1 << 16))
        with suppress(OSError):  # the client has disconnected
            for piece in peer.answer():
                self.request.sendall(piece)
                if peer.ended.wait(peer.pause_s):
                    return
            if peer.stay:
                peer.ended.wait()


def answer_of(body: bytes, status: int = 200) -> list[bytes]:
    """Return an HTTP answer in one piece."""
    head = f"HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\nContent-Type: x/x\r\n\r\n"
    return [head.encode() + body]
