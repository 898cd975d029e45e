"""The page beside a status that a test makes up: what no real Consul shows at will.

The page itself and its headers are the product's own; only ``/v1/status`` is not.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from supervisor.web.page import load_page
from tests.support.consul import HOST


class CannedDaemon(ThreadingHTTPServer):
    """Answers ``/`` as a daemon does and ``/v1/status`` with ``status``; None: it does not answer."""

    daemon_threads = True

    def __init__(self, status: dict[str, Any] | None) -> None:
        super().__init__((HOST, 0), _Handler)
        self.status = status
        self.page = load_page()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_address[1]}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: CannedDaemon

    def do_GET(self) -> None:
        if self.path == "/":
            self._answer(self.server.page.body, self.server.page.headers)
        elif self.path == "/v1/status" and self.server.status is not None:
            self._answer(json.dumps(self.server.status).encode(), (("Content-Type", "application/json"),))
        self.close_connection = True

    def _answer(self, body: bytes, headers: tuple[tuple[str, str], ...]) -> None:
        self.send_response(200)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *about: object) -> None:
        """A test's output is its own."""
