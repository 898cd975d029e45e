"""Who is told by webhooks: answers at once, or now and then only when nobody waits any more."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from tests.support.consul import HOST

LATE_EVERY = 5  # one of so many is answered too late
LATE_S = 2.0  # beyond the timeout of the hooks


class Receiver(ThreadingHTTPServer):
    """``with Receiver() as receiver:`` and webhooks to ``receiver.url``."""

    daemon_threads = True
    request_queue_size = 128  # a hundred elections may change hands at once

    def __init__(self) -> None:
        super().__init__((HOST, 0), _Handler)
        self.told = 0
        self.over = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.1})

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """A supervisor that was killed, or a hook that was, hangs up."""


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.told += 1
        if self.server.told % LATE_EVERY == 0:
            self.server.over.wait(LATE_S)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *about: object) -> None:
        """What a soak prints is its own."""
