"""The two sides of the comparison: the model, and a real agent over HTTP.

Both return an answer or a wait, and show whether a wait is over.
"""

import http.client
import select
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from supervisor.rehearsal.devagent.api.call import Settings
from supervisor.rehearsal.devagent.model import Model, Waiting
from supervisor.reporting.http_server import HttpAnswer, HttpRequest
from tests.support.patience import PATIENCE_S

ANSWER_S = PATIENCE_S  # a longer wait shows that an answer never comes
OF_CONSUL = ("X-Consul-Index", "X-Consul-Knownleader", "X-Consul-Lastcontact")
HEADERS = ("Content-Type", *OF_CONSUL, "Allow", "Location")


class ModelSide:
    """The model, at the times of the requests to the real agent."""

    def __init__(self, node: str, *, client_agent: bool = False) -> None:
        self.model = Model(Settings(node=node, client_agent=client_agent))
        self._over: dict[int, HttpAnswer] = {}

    def ask(self, request: HttpRequest, now: float) -> HttpAnswer | Waiting:
        """Send one request."""
        return _shown(request, self.model.handle(request, now))

    def over(self, waiting: Waiting, now: float) -> HttpAnswer | None:
        """Return its answer, if it has come."""
        self._over |= {kept.number: answer for kept, answer in self.model.advance(now)}
        answer = self._over.get(waiting.number)
        return None if answer is None else _filtered(answer)


@dataclass(slots=True)
class RealSide:
    """A real agent: one kept connection for requests that are answered at once, and one for each wait."""

    host: str
    port: int
    connection: http.client.HTTPConnection | None = None
    opened: list[http.client.HTTPConnection] = field(default_factory=list)

    def ask(self, request: HttpRequest) -> HttpAnswer:
        """Send one request, and return its answer."""
        if self.connection is None:
            self.connection = self._connect()
        try:
            _send(self.connection, request)
            return _received(self.connection)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # The agent closes after a 413, sometimes before it has read the body.
            self.connection.close()
            self.connection = self._connect()
            _send(self.connection, request)
            return _received(self.connection)

    def begin(self, request: HttpRequest) -> http.client.HTTPConnection:
        """Send a request without awaiting its answer."""
        connection = self._connect()
        _send(connection, request)
        return connection

    def over(self, connection: http.client.HTTPConnection, wait_s: float = 0.0) -> HttpAnswer | None:
        """Return the answer, if it has come or comes within ``wait_s``."""
        sock = connection.sock
        assert isinstance(sock, socket.socket)
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        if not poll.poll(wait_s * 1000):
            return None
        answer = _received(connection)
        connection.close()
        return answer

    def close(self) -> None:
        for connection in self.opened:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=ANSWER_S)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.opened.append(connection)
        return connection


def now() -> float:
    return time.monotonic()


def _send(connection: http.client.HTTPConnection, request: HttpRequest) -> None:
    connection.putrequest(request.method, request.target, skip_accept_encoding=True)
    connection.putheader("Content-Length", str(len(request.body)))
    connection.endheaders(request.body or None)


def _received(connection: http.client.HTTPConnection) -> HttpAnswer:
    response = connection.getresponse()
    body = response.read()
    return _filtered(HttpAnswer(response.status, body, tuple(response.getheaders())))


def _shown(request: HttpRequest, answer: HttpAnswer | Waiting) -> HttpAnswer | Waiting:
    """Return an answer of the model as it would come over HTTP."""
    if isinstance(answer, Waiting):
        return answer
    body = b"" if request.method == "HEAD" else answer.body
    return _filtered(HttpAnswer(answer.status, body, answer.headers))


def _filtered(answer: HttpAnswer) -> HttpAnswer:
    """Return the answer with only the headers that count, in one order."""
    given: Mapping[str, str] = dict(answer.headers)
    return HttpAnswer(
        answer.status, answer.body, tuple((name, given[name]) for name in HEADERS if name in given)
    )
