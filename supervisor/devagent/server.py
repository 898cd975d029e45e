"""An HTTP/1.1 server on asyncio: requests in, one handler, answers out.

It frames with h11, bounds whatever a client may ask of this process (how many, how large, how slow)
and knows nothing of what a request means. It must never hold the loop for long, and never keep a
client that has gone: its handler is cancelled, so that whoever waits for it knows.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import cast

import h11

READ_BYTES_MAX = 65536  # what a client may send ahead while its request is being answered
TEXT = (("Content-Type", "text/plain; charset=utf-8"),)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may ask for. ``clients_max``: one more is hung up on without a word."""

    clients_max: int = 200  # Consul's http_max_conns_per_client
    head_bytes_max: int = 65536
    body_bytes_max: int = 1 << 20
    receive_s: float = 30.0  # a whole request, from its first byte
    send_s: float = 30.0  # a whole answer
    idle_s: float = 300.0  # between two requests


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request; ``sized``: its body came with a Content-Length (or there is none)."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    sized: bool


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One answer; ``close``: the connection ends with it."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    close: bool = False


Handler = Callable[[HttpRequest], Awaitable[HttpAnswer]]


class HttpServer:
    """Serves on any number of sockets until it is closed."""

    def __init__(self, handler: Handler, limits: Limits | None = None) -> None:
        self.handler = handler
        self.limits = limits or Limits()
        self.clients: set[_Client] = set()
        self._servers: list[asyncio.Server] = []

    async def listen(self, host: str, port: int) -> int:
        """Serve on a literal address; the port, chosen by the system for 0. Raises OSError."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Client(self), host, port)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def listen_unix(self, path: str) -> None:
        """Serve on a unix socket; its mode and a stale file are the caller's to care for."""
        loop = asyncio.get_running_loop()
        self._servers.append(await loop.create_unix_server(lambda: _Client(self), path))

    async def close(self) -> None:
        """Hang up on everybody and cancel what is being answered."""
        for server in self._servers:
            server.close()
        tasks = [client.abort() for client in tuple(self.clients)]
        await asyncio.gather(*filter(None, tasks), return_exceptions=True)
        for server in self._servers:
            await server.wait_closed()

    def drop(self, count: int | None = None) -> None:
        """Hang up on clients, as a server does that is killed."""
        for client in tuple(self.clients)[:count]:
            client.abort()


@dataclass(slots=True)
class _Incoming:
    """What is known of a request whose end has not come."""

    head: h11.Request
    body: list[bytes] = field(default_factory=list)
    body_bytes: int = 0


class _Refuse(Exception):
    """The request will not be read to its end."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


class _Client(asyncio.Protocol):
    """One connection: one request at a time, each within its time."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._limits = server.limits
        self._loop = asyncio.get_running_loop()
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=self._limits.head_bytes_max)
        self._transport: asyncio.Transport | None = None
        self._incoming: _Incoming | None = None
        self._task: asyncio.Task[None] | None = None
        self._ahead_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def abort(self) -> "asyncio.Task[None] | None":
        """Hang up; the task, if any, that answers and is being cancelled."""
        self._settle()
        if self._transport is not None:
            self._transport.abort()
        if self._task is not None:
            self._task.cancel()
        return self._task

    # --- what asyncio calls ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client; hung up on if there are too many."""
        self._transport = cast(asyncio.Transport, transport)
        if len(self._server.clients) >= self._limits.clients_max:
            self._transport.abort()
            return
        self._server.clients.add(self)
        self._allow(self._limits.idle_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone, or we have hung up."""
        self._server.clients.discard(self)
        self.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes of a request, or of one that is sent ahead of its turn."""
        if self._task is not None:
            self._ahead_bytes += len(data)
            if self._ahead_bytes > READ_BYTES_MAX:
                self._sent.pause_reading()
        elif self._http.states[h11.CLIENT] is h11.IDLE and self._incoming is None:
            self._allow(self._limits.receive_s)
        self._http.receive_data(data)
        self._read_on()

    def eof_received(self) -> None:
        """The client says no more; asyncio then closes, for it cannot wait for an answer either."""

    def pause_writing(self) -> None:
        """asyncio's buffer is full: the answer is all in it, so only its time counts."""

    def resume_writing(self) -> None:
        """The client has taken (most of) the answer."""
        if self._task is None:
            self._next()

    # --- a request -------------------------------------------------------------------------------

    @property
    def _sent(self) -> asyncio.Transport:
        assert self._transport is not None, "connected"
        return self._transport

    def _read_on(self) -> None:
        if self._sent.is_closing() or self._task is not None:
            return
        try:
            while self._task is None:
                event = self._http.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    return
                self._take(event)
        except h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint, HTTPStatus(error.error_status_hint).phrase)
        except _Refuse as refuse:
            self._refuse(refuse.status, refuse.words)

    def _take(self, event: object) -> None:
        match event:
            case h11.Request():
                self._incoming = _Incoming(event)
                if self._http.they_are_waiting_for_100_continue:
                    go_on = h11.InformationalResponse(status_code=100, headers=[])
                    self._sent.write(self._http.send(go_on) or b"")
            case h11.Data():
                assert self._incoming is not None
                self._incoming.body_bytes += len(event.data)
                if self._incoming.body_bytes > self._limits.body_bytes_max:
                    most = self._limits.body_bytes_max
                    raise _Refuse(413, f"the request's body has more than {most} bytes")
                self._incoming.body.append(bytes(event.data))
            case h11.EndOfMessage():
                assert self._incoming is not None
                request, self._incoming = _request(self._incoming), None
                self._settle()
                self._ahead_bytes = 0
                self._task = self._loop.create_task(self._answer(request))
            case h11.ConnectionClosed():
                self._sent.close()
                raise _Refuse(0, "")
            case _:
                raise AssertionError(f"h11 read {type(event).__name__} in a request")

    async def _answer(self, request: HttpRequest) -> None:
        answer = await self._server.handler(request)
        if self._sent.is_closing():
            return
        self._write(answer, head_only=request.method == "HEAD")
        self._task = None
        if not self._sent.get_write_buffer_size():
            self._next()

    def _write(self, answer: HttpAnswer, *, head_only: bool = False) -> None:
        headers = [*answer.headers, ("Content-Length", str(len(answer.body)))]
        if answer.close:
            headers.append(("Connection", "close"))
        reason = HTTPStatus(answer.status).phrase
        head = h11.Response(status_code=answer.status, headers=headers, reason=reason)
        parts = [self._http.send(head)]
        if answer.body and not head_only:
            parts.append(self._http.send(h11.Data(data=answer.body)))
        parts.append(self._http.send(h11.EndOfMessage()))
        self._allow(self._limits.send_s)
        self._sent.set_write_buffer_limits(high=0)  # resume_writing then means: all is sent
        self._sent.write(b"".join(filter(None, parts)))

    def _next(self) -> None:
        """The answer is sent: the connection ends, or the next request may come."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            self._sent.close()
            return
        self._http.start_next_cycle()
        self._allow(self._limits.receive_s if self._http.trailing_data[0] else self._limits.idle_s)
        self._sent.resume_reading()
        self._read_on()

    def _refuse(self, status: int, words: str) -> None:
        if not status:
            return
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._write(HttpAnswer(status, words.encode(), TEXT, close=True))
        self._sent.close()

    # --- its time --------------------------------------------------------------------------------

    def _allow(self, seconds: float) -> None:
        self._settle()
        self._timer = self._loop.call_later(seconds, self.abort)

    def _settle(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _request(incoming: _Incoming) -> HttpRequest:
    head = incoming.head
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers)
    chunked = any(name == "transfer-encoding" for name, _ in headers)
    return HttpRequest(
        method=head.method.decode("latin-1"),
        target=head.target.decode("latin-1"),
        headers=headers,
        body=b"".join(incoming.body),
        sized=not chunked,
    )
