"""Workers and servers that run beside a test while a ``with`` block runs."""

import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from tests.support.consul import HOST


class Worker:
    """A thread that runs ``_work``, which ends soon after ``_ended`` is set."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _work(self) -> None:
        raise NotImplementedError


class Handler(BaseHTTPRequestHandler):
    """Answers the requests of a server; a subclass has ``do_GET`` or another method."""

    def answer(self, status: int, body: bytes = b"", headers: Iterable[tuple[str, str]] = ()) -> None:
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *about: object) -> None:
        """Print nothing, because the output belongs to the test."""


class Server(ThreadingHTTPServer):
    """An HTTP server at ``url``; every ``poll_s`` it checks whether it should end."""

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler], poll_s: float = 0.01, *, port: int = 0) -> None:
        super().__init__((HOST, port), handler)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": poll_s})

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()
