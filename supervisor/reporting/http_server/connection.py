"""One client of the server: bytes to h11 and back, one request at a time.

A client is an asyncio protocol and no stream, so that its end is noticed at once while its request waits, and
the handler is cancelled. It must never hold the loop for long, whatever the client sends, so an iteration of
the loop receives at most RECEIVE_BYTES_MAX. It must never wait for the client without a limit.
"""

import asyncio
from http import HTTPStatus
from typing import cast

import h11

from supervisor.reporting.http_server.client_pool import ClientPool
from supervisor.reporting.http_server.messages import (
    TEXT,
    Handler,
    HttpAnswer,
    HttpRequest,
    Limits,
    Peer,
    peer_of,
)

RECEIVE_BYTES_MAX = 8192  # in one iteration of the loop; parsed in 8 ms at worst (1400 chunks of one byte)
AHEAD_BYTES_MAX = 65536  # that a client may send ahead while its request is being answered
NOTHING = bytearray()


class Client(asyncio.BufferedProtocol):
    """One connection of a client: one request at a time, with a limit for each step.

    asyncio closes it when the client sends no more. Its buffer has a complete answer, so nothing pauses.
    """

    def __init__(self, handler: Handler, limits: Limits, pool: ClientPool) -> None:
        """Prepare a client that asyncio then connects. ``pool`` contains it while it is connected."""
        self._handler = handler
        self._limits = limits
        self._pool = pool
        self._loop = asyncio.get_running_loop()
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=self._limits.head_bytes_max)
        self._transport: asyncio.Transport | None = None
        self._lost = False
        self._peer: Peer | None = None
        self._head: h11.Request | None = None  # of a request whose end has not arrived
        self._body = bytearray()
        self._begun = False  # whether a byte of the next request has arrived
        self._task: asyncio.Task[None] | None = None
        self._sending = False
        self._ahead_bytes = 0
        self._received = NOTHING
        self._timer: asyncio.TimerHandle | None = None

    def abort(self) -> "asyncio.Task[None] | None":
        """Close the connection at once. Return the task that answers, if any, which is being cancelled."""
        self._cancel_timer()
        if self._transport is not None and not self._lost:  # because asyncio would close it a second time
            self._transport.abort()
        if self._task is not None:
            self._task.cancel()
        return self._task

    # --- what asyncio calls ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the client, or close its connection if the server is full and no client is idle."""
        self._transport = cast(asyncio.Transport, transport)
        if not self._pool.admit(self):
            self._transport.abort()
            return
        self._peer = peer_of(self._transport.get_extra_info("socket"))
        self._limit_time(self._limits.idle_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._pool.remove(self)
        self.abort()

    def get_buffer(self, sizehint: int) -> bytearray:
        """Return a new buffer for the next bytes, so that an idle client keeps no memory for it."""
        self._received = bytearray(RECEIVE_BYTES_MAX)
        return self._received

    def buffer_updated(self, nbytes: int) -> None:
        """Take in bytes of the current request, or of a request that the client sends ahead."""
        data, self._received = bytes(self._received[:nbytes]), NOTHING
        if self._task is not None:
            self._ahead_bytes += nbytes
        elif not self._begun:
            self._begun = True
            self._limit_time(self._limits.receive_s)
        self._http.receive_data(data)
        if not self._pool.read_in_turn(self._read_and_resume):
            self._established.pause_reading()
        elif nbytes == RECEIVE_BYTES_MAX or self._ahead_bytes > AHEAD_BYTES_MAX:
            self._established.pause_reading()  # because more bytes may wait, and other clients come first
            self._loop.call_soon(self._resume)

    def resume_writing(self) -> None:
        """Go on with the next request soon, because the client has received the answer.

        The next step may close the connection, which asyncio does not expect within this call.
        """
        self._loop.call_soon(self._after_sending)

    def _after_sending(self) -> None:
        if self._sending and self._task is None and not self._established.is_closing():
            self._next()

    def _resume(self) -> None:
        if self._ahead_bytes <= AHEAD_BYTES_MAX:
            self._established.resume_reading()

    # --- a request -------------------------------------------------------------------------------

    @property
    def _established(self) -> asyncio.Transport:
        assert self._transport is not None, "connected"
        return self._transport

    def _read_and_resume(self) -> None:
        self._read()
        self._resume()

    def _read(self) -> None:
        if self._established.is_closing() or self._task is not None:
            return
        try:
            while self._task is None:
                event = self._http.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    return
                self._handle(event)
        except h11.RemoteProtocolError as error:
            if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                status = error.error_status_hint  # h11's own text would quote the request; it has no 413
                text = str(error) if status == 413 else HTTPStatus(status).phrase
                self._write(HttpAnswer(status, text.encode(), (TEXT,), close=True))
            self._established.close()

    def _handle(self, event: object) -> None:
        match event:
            case h11.Request():
                self._head, self._body = event, bytearray()
                of_headers = sum(len(name) + len(value) for name, value in event.headers)
                if len(event.target) + of_headers > self._limits.head_bytes_max:
                    raise h11.RemoteProtocolError(HTTPStatus(431).phrase, 431)
                if event.http_version not in (b"1.0", b"1.1"):
                    raise h11.RemoteProtocolError(HTTPStatus(505).phrase, 505)
                named = {name for name, _ in event.headers}
                clear = event.http_version == b"1.1" and b"content-length" not in named
                if b"transfer-encoding" in named and not clear:
                    raise h11.RemoteProtocolError("a proxy may see another end of this request")
                if self._http.they_are_waiting_for_100_continue:
                    proceed = h11.InformationalResponse(status_code=100, headers=[])
                    self._established.write(self._http.send(proceed) or b"")
            case h11.Data():
                self._body += event.data
                if len(self._body) > (most := self._limits.body_bytes_max):
                    raise h11.RemoteProtocolError(f"the request's body has more than {most} bytes", 413)
            case h11.EndOfMessage():
                assert self._head is not None
                request = _request(self._head, bytes(self._body), self._peer)
                self._head, self._body = None, bytearray()
                self._cancel_timer()
                self._pool.mark_busy(self)
                self._task = self._loop.create_task(self._answer(request))
                self._task.add_done_callback(self._answered)
            case _:
                raise AssertionError(f"h11 read {type(event).__name__} in a request")

    async def _answer(self, request: HttpRequest) -> None:
        answer = await self._handler(request)
        if self._established.is_closing():
            return
        self._write(answer, head_only=request.method == "HEAD")
        self._task = None
        if not self._established.get_write_buffer_size():
            self._next()
        else:
            self._pool.mark_sending(self)

    def _answered(self, task: "asyncio.Task[None]") -> None:
        """Report the exception of a handler, which is a bug of ours, and close the connection."""
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
        self._limit_time(self._limits.send_s)
        self._sending = True
        self._established.set_write_buffer_limits(high=0)  # so that resume_writing means that all is sent
        self._established.write(b"".join(filter(None, parts)))

    def _next(self) -> None:
        """End the connection or await the next request, because the answer is sent."""
        self._sending = False
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            self._established.close()
            return
        self._http.start_next_cycle()
        self._begun = bool(self._http.trailing_data[0])
        self._limit_time(self._limits.receive_s if self._begun else self._limits.idle_s)
        self._ahead_bytes = 0
        self._pool.mark_idle(self)
        self._pool.read_in_turn(self._read_and_resume)

    # --- the limit of time -----------------------------------------------------------------------

    def _limit_time(self, seconds: float) -> None:
        self._cancel_timer()
        self._timer = self._loop.call_later(seconds, self.abort)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _request(head: h11.Request, body: bytes, peer: Peer | None) -> HttpRequest:
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers)
    return HttpRequest(
        method=head.method.decode("latin-1"),
        target=head.target.decode("latin-1"),
        headers=headers,
        body=body,
        peer=peer,
    )
