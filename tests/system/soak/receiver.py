"""A receiver of webhooks, which answers at once, or now and then only after the hook has given up."""

import threading

from tests.support.background import Handler, Server

LATE_EVERY = 5  # one of this many is answered too late
LATE_S = 2.0  # longer than the timeout of the hooks


class Receiver(Server):
    """The receiver: ``with Receiver() as receiver:`` and webhooks to ``receiver.url``."""

    request_queue_size = 128  # a hundred elections may change hands at once

    def __init__(self) -> None:
        super().__init__(_Handler, poll_s=0.1)
        self.told = 0
        self.over = threading.Event()

    def __exit__(self, *error: object) -> None:
        self.over.set()
        super().__exit__(*error)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a supervisor or hook that was killed and has hung up."""


class _Handler(Handler):
    server: Receiver

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.told += 1
        if self.server.told % LATE_EVERY == 0:
            self.server.over.wait(LATE_S)
        self.send_response(204)
        self.end_headers()
