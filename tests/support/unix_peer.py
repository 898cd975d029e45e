"""A peer on a unix socket that answers every connection with given bytes, to any request.

It stands for a daemon that is slow or broken, or for another program; a real daemon is ``Supervisor``.
"""

import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

POLL_S = 0.05


class UnixPeer:
    """A server that answers with the pieces of ``answer`` and then disconnects.

    pause_s: the time between two pieces.
    stay: keep the connection after the last piece.
    """

    def __init__(
        self, path: Path, answer: Callable[[], Sequence[bytes]], *, pause_s: float = 0.0, stay: bool = False
    ) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._listener.settimeout(POLL_S)
        self._path = path
        self._answer = answer
        self._pause_s = pause_s
        self._stay = stay
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._accept)]
        self.asked: list[bytes] = []

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()
        self._path.unlink()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            thread = threading.Thread(target=self._serve, args=(client,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            self.asked.append(client.recv(1 << 16))
            try:
                for piece in self._answer():
                    client.sendall(piece)
                    time.sleep(self._pause_s)
                    if self._ended.is_set():
                        return
            except OSError:
                return  # the client has disconnected
            while self._stay and not self._ended.wait(POLL_S):
                continue


def answer_of(body: bytes, status: int = 200) -> list[bytes]:
    """Return an HTTP answer in one piece."""
    head = f"HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\nContent-Type: x/x\r\n\r\n"
    return [head.encode() + body]
