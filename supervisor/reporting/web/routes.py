"""The paths that can be read, and the answer to each.

    /                                 a page for people, whose script reads /v1/status: docs/http.md
    /v1/status                        the whole status as JSON: docs/http.md
    /v1/events, /v1/events?newest=N   this node's tenures and commands as JSON, also of earlier processes
    /v1/fleet                         all nodes, as Consul's catalog shows them, as JSON: docs/http.md
    /leader/NAME, /holder/NAME        200 while this node holds NAME at this instant, else 503
    /healthz                          200, or 503 with the reasons
    /metrics                          for Prometheus: docs/metrics.md

HEAD and OPTIONS, which load balancers send, have the answer of GET without its body. Except for the last
three lines a request over TCP must name this node: a page of another site can let its own name lead here.
"""

import asyncio
import base64
import hashlib
import json
import re
import socket
from collections.abc import Awaitable, Callable
from importlib import resources
from urllib.parse import urlsplit

from supervisor.core.actions import Role
from supervisor.core.contender.state import Contender
from supervisor.core.machines.tenure import Phase
from supervisor.reporting.http_server import HttpAnswer, HttpRequest
from supervisor.reporting.http_server.messages import JSON, TEXT, refusal
from supervisor.reporting.telemetry.event_log import EVENTS_MAX
from supervisor.reporting.telemetry.metrics import Metrics
from supervisor.reporting.telemetry.status import Status

METHODS = ("GET", "HEAD", "OPTIONS")
ALLOW = ("Allow", ", ".join(METHODS))
NO_STORE = ("Cache-Control", "no-store")
NEWEST = re.compile(r"newest=([0-9]{1,9})")  # any other query is ignored, as for all paths
INLINE = re.compile(rb"<(script|style)>(.*?)</\1>", re.DOTALL)
HOLDER_PATHS = ("/leader/", "/holder/")
OF_ANY_HOST = (*HOLDER_PATHS, "/healthz", "/metrics")  # for load balancers and Prometheus, which use any name
AN_ADDRESS = re.compile(r"\[[0-9a-f:.]+(%.*)?\]|[0-9.]+")  # to no browser is that a name
NOT_OURS = b"cannot answer: this node is not known by that name: use its address, or set http.public_url\n"


class Routes:
    """The answers of one daemon."""

    def __init__(self, status: Status, metrics: Metrics, fleet: Callable[[], Awaitable[bytes]]) -> None:
        """Keep the parts. ``fleet``: returns the body of ``/v1/fleet``, which may take seconds."""
        self.url, self.full_name = "", ""  # http.public_url, and this host's name with its domain
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
            why = f"method {request.method} not allowed: read-only, commands go to the control socket"
            return refusal(405, why, NO_STORE, ALLOW)
        path, _, query = request.target.partition("?")
        if request.peer is None and not path.startswith(OF_ANY_HOST) and not self._is_ours(request):
            return HttpAnswer(421, NOT_OURS, (TEXT, NO_STORE))
        if path == "/v1/fleet":
            found = HttpAnswer(200, await self._fleet(), (JSON, NO_STORE))
        else:
            found = await self._scraped(request) if path == "/metrics" else self._find(path, query)
        if request.method == "OPTIONS":
            return HttpAnswer(found.status, headers=(*found.headers, ALLOW))
        return found

    def _is_ours(self, request: HttpRequest) -> bool:
        """Return whether the client asks for this node: by an address, by a name of it, or without a name."""
        given = next((value for name, value in request.headers if name == "host"), "")
        host, node = re.sub(r"\.?(:[0-9]*)?$", "", given.lower()), socket.gethostname().lower()
        ours = ("", "localhost", node, node.partition(".")[0], self.full_name, urlsplit(self.url).hostname)
        return host in ours or AN_ADDRESS.fullmatch(host) is not None

    def _find(self, path: str, query: str) -> HttpAnswer:
        if path in self._pages:
            return self._pages[path](query)
        if path.startswith(HOLDER_PATHS):
            return self._holder(path.split("/", 2)[2])
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
        held, contender = self._status.holds(name), self._status.item(name)
        if contender is None:
            return refusal(404, "cannot tell: there is no such election or semaphore here", NO_STORE)
        text = f"{name}: {'holding' if held else _why_not(contender)}\n"
        return HttpAnswer(200 if held else 503, text.encode(), (TEXT, NO_STORE))

    def _health(self) -> HttpAnswer:
        health = self._status.health()
        body = json.dumps(health).encode() + b"\n"
        return HttpAnswer(200 if health["healthy"] else 503, body, (JSON, NO_STORE))


def _why_not(contender: Contender) -> str:
    if contender.role is Role.HOLDING:
        return "its lease has run out"
    if contender.tenure is not None and contender.tenure.phase is Phase.ADOPTING:
        return "Consul has not confirmed the tenure of the process before"
    if contender.role is Role.ACQUIRING:
        return "acquiring, on_acquire has not finished"
    return str(contender.role)


def load_page() -> HttpAnswer:
    """Return the whole answer to ``GET /``. Raises OSError when the package lacks its file.

    The file is read once, so that page and answers of this process fit each other after an upgrade on disk.
    """
    html = resources.files("supervisor.reporting.web").joinpath("page.html").read_bytes()
    headers = (
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Security-Policy", content_security_policy(html)),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cache-Control", "no-store"),
    )
    return HttpAnswer(200, html, headers)


def content_security_policy(html: bytes) -> str:
    """Return the policy: the file's own script and style, by their hashes, and requests to this daemon.

    ``require-trusted-types-for`` makes the browser refuse to turn any text into markup.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hashes(html, b'script')}",
            f"style-src {_hashes(html, b'style')}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hashes(html: bytes, tag: bytes) -> str:
    found = [text for name, text in INLINE.findall(html) if name == tag]
    assert found, f"the page has no inline {tag.decode()}"
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'" for text in found)
