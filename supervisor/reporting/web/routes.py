"""The paths that can be read, and the answer to each.

    /                                 a page for people, whose script reads /v1/status: docs/http.md
    /v1/status                        the whole status as JSON: docs/http.md
    /v1/events, /v1/events?newest=N   this node's tenures and commands as JSON, also of earlier processes
    /v1/fleet                         all nodes, as Consul's catalog shows them, as JSON: docs/http.md
    /leader/NAME, /holder/NAME        200 while this node holds NAME at this instant, else 503
    /healthz                          200, or 503 with the reasons
    /metrics                          for Prometheus: docs/metrics.md

HEAD and OPTIONS, which load balancers send, have the answer of GET without its body.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable

from supervisor.core.actions import Role
from supervisor.core.contender.state import Contender
from supervisor.reporting.http_server import HttpAnswer, HttpRequest
from supervisor.reporting.http_server.messages import JSON, TEXT, refusal
from supervisor.reporting.telemetry.event_log import EVENTS_MAX
from supervisor.reporting.telemetry.metrics import Metrics
from supervisor.reporting.telemetry.status import Status
from supervisor.reporting.web.page import load_page

METHODS = ("GET", "HEAD", "OPTIONS")
ALLOW = ("Allow", ", ".join(METHODS))
NO_STORE = ("Cache-Control", "no-store")
NEWEST = re.compile(r"newest=([0-9]{1,9})")  # any other query is ignored, as for all paths
HOLDER_PATHS = ("/leader/", "/holder/")


class Routes:
    """The answers of one daemon."""

    def __init__(self, status: Status, metrics: Metrics, fleet: Callable[[], Awaitable[bytes]]) -> None:
        """Keep the parts. ``fleet``: returns the body of ``/v1/fleet``, which may take seconds."""
        self._status = status
        self._page = load_page()
        self._metrics = metrics
        self._fleet = fleet
        self._scraping = asyncio.Lock()
        self._pages: dict[str, Callable[[str], HttpAnswer]] = {  # by path, from the query
            "/": lambda query: self._page,
            "/v1/status": lambda query: HttpAnswer(200, status.body(), (JSON, NO_STORE)),
            "/v1/events": self._events,
            "/healthz": lambda query: self._health(),
        }

    async def answer(self, request: HttpRequest) -> HttpAnswer:
        """Return the answer to a request of any method, at once except for metrics and the fleet."""
        if request.method not in METHODS:
            return refusal(
                405,
                f"method {request.method} not allowed: read-only, commands go to the control socket",
                NO_STORE,
                ALLOW,
            )
        path, _, query = request.target.partition("?")
        if path == "/v1/fleet":
            found = HttpAnswer(200, await self._fleet(), (JSON, NO_STORE))
        else:
            found = await self._scraped(request) if path == "/metrics" else self._find(path, query)
        if request.method == "OPTIONS":
            return HttpAnswer(found.status, headers=(*found.headers, ALLOW))
        return found

    def _find(self, path: str, query: str) -> HttpAnswer:
        if path in self._pages:
            return self._pages[path](query)
        for prefix in HOLDER_PATHS:
            if path.startswith(prefix):
                return self._holder(path.removeprefix(prefix))
        return refusal(404, "cannot find this: there is no such page", NO_STORE)

    async def _scraped(self, request: HttpRequest) -> HttpAnswer:
        accept = ",".join(value for name, value in request.headers if name == "accept")
        body = bytearray()
        async with self._scraping:  # one scrape at a time, so that a turn of the loop makes one piece
            content_type, pieces = self._metrics.text(accept)
            for piece in pieces:
                body += piece
                await asyncio.sleep(0)  # urgent work goes before the next piece
        return HttpAnswer(200, bytes(body), (("Content-Type", content_type), NO_STORE))

    def _events(self, query: str) -> HttpAnswer:
        asked = NEWEST.fullmatch(query)
        newest = EVENTS_MAX if asked is None else int(asked[1])
        return HttpAnswer(200, self._status.events(newest), (JSON, NO_STORE))

    def _holder(self, name: str) -> HttpAnswer:
        contender = self._status.item(name)
        if contender is None:
            return refusal(404, "cannot tell: there is no such election or semaphore here", NO_STORE)
        held = self._status.holds(name)
        text = f"{name}: {'holding' if held else _why_not(contender)}\n"
        return HttpAnswer(200 if held else 503, text.encode(), (TEXT, NO_STORE))

    def _health(self) -> HttpAnswer:
        health = self._status.health()
        body = json.dumps(health).encode() + b"\n"
        return HttpAnswer(200 if health["healthy"] else 503, body, (JSON, NO_STORE))


def _why_not(contender: Contender) -> str:
    if contender.role is Role.HOLDING:
        return "its lease has run out"
    if contender.role is Role.ACQUIRING:
        return "acquiring, on_acquire has not finished"
    return str(contender.role)
