"""Who is told by webhooks: answers at once, or now and then only when nobody waits any more."""

import threading
from http.server import BaseHTTPRequestHandler
from types import TracebackType

from tests.support.background import Server

LATE_EVERY = 5  # one of so many is answered too late
LATE_S = 2.0  # beyond the timeout of the hooks


class Receiver(Server):
    """``with Receiver() as receiver:`` and webhooks to ``receiver.url``."""

    request_queue_size = 128  # a hundred elections may change hands at once

    def __init__(self) -> None:
        super().__init__(_Handler, poll_s=0.1)
        self.told = 0
        self.over = threading.Event()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        super().__exit__(kind, error, trace)

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
