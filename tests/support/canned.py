"""A server of the page beside a status that the test makes up, which no real Consul would show at will.

The page and its headers are the product's own; only the documents below ``/v1/`` are made up.
"""

import json
from http.server import BaseHTTPRequestHandler
from typing import Any

from supervisor.reporting.web.page import load_page
from tests.support.background import Server


class CannedDaemon(Server):
    """A server that answers ``/`` as a daemon does, and ``/v1/status`` with ``status``.

    status: the status. None: the server does not answer.
    fleet: what ``/v1/fleet`` answers. None: it does not answer.
    events: the events of ``/v1/events``, the oldest first.
    """

    def __init__(self, status: dict[str, Any] | None) -> None:
        super().__init__(_Handler, poll_s=0.01)
        self.status = status
        self.events: list[dict[str, Any]] = []
        self.fleet: dict[str, Any] | None = None
        self.page = load_page()


class _Handler(BaseHTTPRequestHandler):
    server: CannedDaemon

    def do_GET(self) -> None:
        if self.path == "/":
            self._answer(self.server.page.body, self.server.page.headers)
        elif self.path == "/v1/status" and self.server.status is not None:
            self._answer(json.dumps(self.server.status).encode(), (("Content-Type", "application/json"),))
        elif self.path.startswith("/v1/events") and self.server.status is not None:
            document = {"version": 1, "events": self.server.events}
            self._answer(json.dumps(document).encode(), (("Content-Type", "application/json"),))
        elif self.path == "/v1/fleet" and self.server.fleet is not None:
            self._answer(json.dumps(self.server.fleet).encode(), (("Content-Type", "application/json"),))
        self.close_connection = True

    def _answer(self, body: bytes, headers: tuple[tuple[str, str], ...]) -> None:
        self.send_response(200)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *about: object) -> None:
        """Print nothing, because the output belongs to the test."""
