"""A server of the page beside a status that the test makes up, which no real Consul would show at will.

The page and its headers are the product's own; only the documents below ``/v1/`` are made up.
"""

import json
from typing import Any

from supervisor.reporting.web.routes import load_page
from tests.support.background import Handler, Server

JSON = (("Content-Type", "application/json"),)


class CannedDaemon(Server):
    """A server that answers ``/`` as a daemon does, and ``/v1/status`` with ``status``.

    status: the status. None: the server does not answer.
    fleet: what ``/v1/fleet`` answers. None: it does not answer.
    events: the events of ``/v1/events``, the oldest first.
    """

    def __init__(self, status: dict[str, Any] | None) -> None:
        super().__init__(_Handler)
        self.status = status
        self.events: list[dict[str, Any]] = []
        self.fleet: dict[str, Any] | None = None
        self.page = load_page()


class _Handler(Handler):
    server: CannedDaemon

    def do_GET(self) -> None:
        if self.path == "/":
            self.answer(200, self.server.page.body, self.server.page.headers)
        elif self.path == "/v1/status" and self.server.status is not None:
            self.answer(200, json.dumps(self.server.status).encode(), JSON)
        elif self.path.startswith("/v1/events") and self.server.status is not None:
            document = {"version": 1, "events": self.server.events}
            self.answer(200, json.dumps(document).encode(), JSON)
        elif self.path == "/v1/fleet" and self.server.fleet is not None:
            self.answer(200, json.dumps(self.server.fleet).encode(), JSON)
        self.close_connection = True
