"""One client of the server: bytes to h11 and back, one request at a time.

A protocol and not a stream: so a client that goes while its request waits is noticed at once, and its
handler cancelled. It must never hold the loop for long whatever the client sends (one turn of it
receives at most RECEIVE_BYTES_MAX), and never wait for a client without a limit.
"""

import asyncio
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import cast

import h11

from supervisor.http_server.crowd import ClientPool
from supervisor.http_server.messages import Handler, HttpAnswer, HttpRequest, Limits
from supervisor.http_server.peer import Peer, peer_of

RECEIVE_BYTES_MAX = 8192  # one turn's; parsed in 8 ms at worst (1400 chunks of one byte)
AHEAD_BYTES_MAX = 65536  # what a client may send ahead while its request is being answered
NOTHING = bytearray()
TEXT = (("Content-Type", "text/plain; charset=utf-8"),)


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


class Client(asyncio.BufferedProtocol):
    """One connection: one request at a time, each within its time."""

    def __init__(self, handler: Handler, limits: Limits, crowd: "ClientPool[Client]") -> None:
        """It keeps itself in ``crowd`` while it is connected."""
        self._handler = handler
        self._limits = limits
        self._crowd = crowd
        self._loop = asyncio.get_running_loop()
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=self._limits.head_bytes_max)
        self._transport: asyncio.Transport | None = None
        self._lost = False
        self._peer: Peer | None = None
        self._incoming: _Incoming | None = None
        self._begun = False  # whether a byte of the next request has come
        self._task: asyncio.Task[None] | None = None
        self._sending = False
        self._ahead_bytes = 0
        self._received = NOTHING
        self._timer: asyncio.TimerHandle | None = None

    def abort(self) -> "asyncio.Task[None] | None":
        """Hang up; the task, if any, that answers and is being cancelled."""
        self._settle()
        if self._transport is not None and not self._lost:  # asyncio would close it a second time
            self._transport.abort()
        if self._task is not None:
            self._task.cancel()
        return self._task

    # --- what asyncio calls ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client; hung up on if there are too many, and all of them are being answered."""
        self._transport = cast(asyncio.Transport, transport)
        if not self._crowd.admit(self):
            self._transport.abort()
            return
        self._peer = peer_of(self._transport.get_extra_info("socket"))
        self._allow(self._limits.idle_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone, or we have hung up."""
        self._lost = True
        self._crowd.remove(self)
        self.abort()

    def get_buffer(self, sizehint: int) -> bytearray:
        """Where the next bytes go; made for each turn, so that an idle client holds none."""
        self._received = bytearray(RECEIVE_BYTES_MAX)
        return self._received

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes of a request, or of one that is sent ahead of its turn."""
        data, self._received = bytes(self._received[:nbytes]), NOTHING
        if self._task is not None:
            self._ahead_bytes += nbytes
        elif not self._begun:
            self._begun = True
            self._allow(self._limits.receive_s)
        self._http.receive_data(data)
        if not self._crowd.read_in_turn(self._read_in_turn):
            self._sent.pause_reading()
        elif nbytes == RECEIVE_BYTES_MAX or self._ahead_bytes > AHEAD_BYTES_MAX:
            self._sent.pause_reading()  # there is more: the others' turn first
            self._loop.call_soon(self._resume)

    def eof_received(self) -> None:
        """The client says no more; asyncio then closes, for it cannot wait for an answer either."""

    def pause_writing(self) -> None:
        """asyncio's buffer is full: the answer is all in it, so only its time counts."""

    def resume_writing(self) -> None:
        """The client has taken the answer. What is next may be our hanging up, which asyncio does not
        expect of us within this call."""
        self._loop.call_soon(self._taken)

    def _taken(self) -> None:
        if self._sending and self._task is None and not self._sent.is_closing():
            self._next()

    def _resume(self) -> None:
        if self._ahead_bytes <= AHEAD_BYTES_MAX:
            self._sent.resume_reading()

    # --- a request -------------------------------------------------------------------------------

    @property
    def _sent(self) -> asyncio.Transport:
        assert self._transport is not None, "connected"
        return self._transport

    def _read_in_turn(self) -> None:
        self._read_on()
        self._resume()

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
                if _head_bytes(event) > self._limits.head_bytes_max:
                    raise _Refuse(431, HTTPStatus(431).phrase)
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
                request, self._incoming = _request(self._incoming, self._peer), None
                self._settle()
                self._crowd.mark_busy(self)
                self._task = self._loop.create_task(self._answer(request))
                self._task.add_done_callback(self._answered)
            case _:
                raise AssertionError(f"h11 read {type(event).__name__} in a request")

    async def _answer(self, request: HttpRequest) -> None:
        answer = await self._handler(request)
        if self._sent.is_closing():
            return
        self._write(answer, head_only=request.method == "HEAD")
        self._task = None
        if not self._sent.get_write_buffer_size():
            self._next()
        else:
            self._crowd.mark_sending(self)

    def _answered(self, task: "asyncio.Task[None]") -> None:
        """A handler that raises is a bug of ours: it is told, and the client is hung up on."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.abort()
            self._loop.call_exception_handler({"message": "a request's handler failed", "exception": error})

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
        self._sending = True
        self._sent.set_write_buffer_limits(high=0)  # resume_writing then means: all is sent
        self._sent.write(b"".join(filter(None, parts)))

    def _next(self) -> None:
        """The answer is sent: the connection ends, or the next request may come."""
        self._sending = False
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            self._sent.close()
            return
        self._http.start_next_cycle()
        self._begun = bool(self._http.trailing_data[0])
        self._allow(self._limits.receive_s if self._begun else self._limits.idle_s)
        self._ahead_bytes = 0
        self._crowd.mark_idle(self)
        self._crowd.read_in_turn(self._read_in_turn)

    def _refuse(self, status: int, words: str) -> None:
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


def _head_bytes(head: h11.Request) -> int:
    return len(head.target) + sum(len(name) + len(value) for name, value in head.headers)


def _request(incoming: _Incoming, peer: Peer | None) -> HttpRequest:
    head = incoming.head
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers)
    chunked = any(name == "transfer-encoding" for name, _ in headers)
    return HttpRequest(
        method=head.method.decode("latin-1"),
        target=head.target.decode("latin-1"),
        headers=headers,
        body=b"".join(incoming.body),
        sized=not chunked,
        peer=peer,
    )
