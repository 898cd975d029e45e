"""One connection: requests as bytes, bytes as answers, one exchange at a time.

A connection is an asyncio protocol and no stream, so that an answer costs one callback and one future. A
connection must never hold the loop for long, even when the peer sends without a pause, so an iteration of the
loop receives at most RECEIVE_BYTES_MAX. After an incomplete answer a connection is aborted, because it must
never be used again.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import cast

import h11
import requests

from supervisor.adapters.transport import messages
from supervisor.adapters.transport.exchange import Exchange
from supervisor.adapters.transport.failure import ExchangeFailed, FailureKind, lost_failure, protocol_reason
from supervisor.core.settings import Tls

RECEIVE_BYTES_MAX = 8192  # in one iteration of the loop; parsed in 8 ms at worst (1400 chunks of one byte)
PIECE_BYTES_MIN = 64  # the average of a body, because each piece costs as much as some hundred bytes
PIECES_FREE = 1000  # without that minimum, because an honest answer may come in some small chunks
INFORMATIONAL_MAX = 8  # 100 and 103 come once or twice; a peer may not keep us busy with more
ITERATIONS_TO_READ = 2  # of the loop: one to see that a socket is readable, one to read it
NOTHING = memoryview(b"")
HTTP_TOO_LARGE = 431  # h11's status hint for a head of more than HEAD_BYTES_MAX

Release = Callable[["Connection", Exchange], None]
"""Called with a connection when the answer is complete, before ``on_response``, so that the connection can
carry the requests that follow from the answer."""


class Connection(asyncio.BufferedProtocol):
    """One connection to a peer."""

    def __init__(
        self, peer: str, sock: socket.socket, body_bytes_max: int, alive: set["Connection"], tls: Tls
    ) -> None:
        self.has_received = False  # whether a byte has arrived since the connection was opened or set idle
        self.idle_since = 0.0  # when the connection was last set idle, in loop time
        self._peer = peer  # the name of the peer in errors
        self._sock = sock
        self._body_bytes_max = body_bytes_max  # the limit for the body of an answer
        self._alive = alive  # contains this connection from when it is established until it is lost
        self._tls = tls  # the settings that errors name
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._received = NOTHING
        self._unread = b""  # bytes that have arrived and that h11 has not got
        self._ended = False  # the peer sends no more
        self._http: h11.Connection | None = None  # reads an answer that is not an ordinary one
        self._idle = False
        self._expiry: asyncio.TimerHandle | None = None  # of the idle time
        self._aborted = False
        self._closed = False
        self._lost: Exception | None = None
        self._exchange: Exchange | None = None
        self._release: Release | None = None

    def begin(self, exchange: Exchange, release: Release) -> None:
        """Send the request in one write before returning. A call of ``answer`` must follow, which raises all
        failures.

        If the peer has sent something or closed before the request, as an agent with too many connections
        does, the request is left to ``answer``, which reads first.
        """
        assert self._exchange is None and not self._idle
        exchange.begin()
        self._exchange, self._release = exchange, release
        try:
            exchange.unsent = messages.encode(exchange.request, self._peer)
        except ExchangeFailed as failure:
            exchange.fail(failure)
            return
        if self._is_quiet():
            self._send(exchange)

    async def answer(self, exchange: Exchange) -> requests.Response:
        """Return the complete answer to this exchange, which was begun here, after ``on_response``.

        The answer may have been read before this begins, and another exchange may be under way by then.
        Raises ExchangeFailed. The connection is aborted unless this returns an answer, also when cancelled.
        """
        try:
            if exchange.unsent:
                # Bytes that the peer sent before it reset the connection, such as a TLS alert, are read
                # first, because writing would only meet the reset.
                for _ in range(ITERATIONS_TO_READ):
                    await asyncio.sleep(0)
                self._send(exchange)
            response = await exchange.answer
            self._deliver(exchange)
            return response
        except BaseException:
            if self._exchange is exchange:  # else it is answered, and another exchange may be under way
                self.abort()
            raise
        finally:
            if self._exchange is exchange:
                self._exchange = None

    def _send(self, exchange: Exchange) -> None:
        self._parse()  # because the peer may have answered or closed before the request
        unsent, exchange.unsent = exchange.unsent, b""
        if not exchange.answer.done():
            self._established.write(unsent)

    @property
    def reusable(self) -> bool:
        """Whether another request may follow, because the answer is complete and nothing came after it."""
        http = self._http
        return (
            not self._established.is_closing()
            and (http is None or (http.our_state is h11.DONE and not http.trailing_data[0]))
            and not self._established.get_write_buffer_size()
        )

    def set_idle(self, age_max_s: float) -> None:
        """Wait for the next exchange. Abort after ``age_max_s``, or if the peer sends anything or closes."""
        self._http = None
        self.has_received = False
        self.idle_since = self._loop.time()
        self._idle = True
        self._expiry = self._loop.call_at(self.idle_since + age_max_s, self.abort)

    def reuse(self) -> bool:
        """End the idle time. Return False, and abort, if the peer has sent anything or has closed."""
        assert self._idle and self._expiry is not None
        self._idle = False
        self._expiry.cancel()
        if self._established.is_closing() or not self._is_quiet():
            self.abort()
            return False
        return True

    def abort(self) -> None:
        """Close at once and without a TLS shutdown, or as soon as the connection is established."""
        self._aborted = True
        if self._transport is not None and not self._closed:  # because asyncio would close it twice
            self._transport.abort()

    # --- called by asyncio -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._alive.add(self)
        if self._aborted:
            self._transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return a new buffer for the next bytes, so that a waiting connection keeps no memory for it."""
        # A view, because asyncio's TLS fills slices, and a slice of a bytearray would be a copy.
        self._received = memoryview(bytearray(RECEIVE_BYTES_MAX))
        return self._received

    def buffer_updated(self, nbytes: int) -> None:
        """Parse the bytes that have arrived. An idle connection is aborted."""
        if self._idle:
            self.abort()
            return
        self.has_received = True
        received, self._received = bytes(self._received[:nbytes]), NOTHING
        if self._http is None:
            self._unread += received
        else:
            self._http.receive_data(received)
        if self._exchange is not None and (delay_s := self._exchange.take_delay_s()) > 0:
            self._established.pause_reading()
            self._loop.call_later(delay_s, self._resume)
            return
        if nbytes == RECEIVE_BYTES_MAX:
            # More bytes may wait, so other work of the loop comes first. asyncio's TLS would begin several
            # reads in one iteration of the loop.
            self._established.pause_reading()
            self._loop.call_soon(self._resume)
        self._receive()

    def eof_received(self) -> None:
        """Note that the peer sends no more. asyncio then closes the connection."""
        self._ended = True
        if self._http is not None:
            self._http.receive_data(b"")
        self._parse()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that either side has closed the connection. asyncio then closes the socket."""
        self._closed = True
        self._lost = exc
        if self._expiry is not None:
            self._expiry.cancel()
        self._alive.discard(self)
        self._parse()

    @property
    def _established(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def _resume(self) -> None:
        if not self._closed:
            self._established.resume_reading()
            self._receive()

    # --- the answer ------------------------------------------------------------------------------

    def _receive(self) -> None:
        self._parse()
        if self._exchange is not None:
            self._deliver(self._exchange)

    def _parse(self) -> None:
        exchange = self._exchange
        if exchange is None or exchange.answer.done():
            return
        try:
            if self._unread:
                self._read(exchange, self._unread)
            while self._http is not None and not exchange.answer.done():
                if (event := self._http.next_event()) is h11.NEED_DATA:
                    break
                self._handle(exchange, event)
            if exchange.answer.done():
                return
            if self._aborted:
                text = f"the connection to {self._peer} was closed on this side"
                raise ExchangeFailed(FailureKind.LOCAL, text)
            if self._closed:
                raise lost_failure(self._peer, self._lost, self.has_received, self._tls)
        except h11.RemoteProtocolError as exc:
            exchange.fail(self._unreadable(exc))
        except ExchangeFailed as failure:
            exchange.fail(failure)

    def _read(self, exchange: Exchange, received: bytes) -> None:
        """Read an ordinary answer, or leave these bytes and all that follow to h11."""
        self._unread = b""
        answer = messages.ordinary_answer(exchange.request, received)
        if answer is not None:
            self._refuse_body(len(answer.content))
            exchange.answer.set_result(answer)
            return
        self._http = messages.reader(exchange.request)
        self._http.receive_data(received)
        if self._ended:
            self._http.receive_data(b"")

    def _deliver(self, exchange: Exchange) -> None:
        """Release the connection, then call ``on_response``, both before the awaiting task is scheduled."""
        if self._exchange is not exchange or not exchange.answered:
            return
        self._exchange, release = None, self._release
        assert release is not None
        try:
            release(self, exchange)
            exchange.delivered = True
            exchange.on_response(exchange.answer.result())
        except Exception as bug:  # noqa: BLE001 - because asyncio would take an OSError for one of the socket
            context = {"message": "a callback of an answer failed", "exception": bug}
            self._loop.call_exception_handler(context)

    def _handle(self, exchange: Exchange, event: object) -> None:
        match event:
            case h11.Data():
                self._refuse_body(len(exchange.body) + len(event.data))
                exchange.body += event.data
                exchange.pieces += 1
                if exchange.pieces > PIECES_FREE + len(exchange.body) / PIECE_BYTES_MIN:
                    why = f"its body comes in pieces of less than {PIECE_BYTES_MIN} bytes"
                    raise self._too_large(f"{why}, more than {PIECES_FREE} of them")
            case h11.EndOfMessage():
                assert exchange.head is not None
                answer = messages.decode(exchange.request, exchange.head, bytes(exchange.body))
                exchange.answer.set_result(answer)
            case h11.Response():
                exchange.head = event
                self._refuse_body(messages.content_length(event))
            case h11.InformationalResponse():
                exchange.informational += 1
                if exchange.informational > INFORMATIONAL_MAX:
                    raise self._too_large(f"more than {INFORMATIONAL_MAX} interim answers before it")
            case _:
                raise AssertionError(f"h11 read {type(event).__name__} in an answer")

    def _refuse_body(self, size: int) -> None:
        if size > self._body_bytes_max:
            raise self._too_large(f"its body has more than {self._body_bytes_max} bytes")

    def _unreadable(self, exc: h11.RemoteProtocolError) -> ExchangeFailed:
        if exc.error_status_hint == HTTP_TOO_LARGE:
            return self._too_large(f"its head has more than {messages.HEAD_BYTES_MAX} bytes")
        if self._ended:
            return lost_failure(self._peer, None, self.has_received, self._tls)
        why = protocol_reason(str(exc))
        return ExchangeFailed(FailureKind.PROTOCOL, f"the answer of {self._peer} is not HTTP: {why}")

    def _too_large(self, why: str) -> ExchangeFailed:
        return ExchangeFailed(FailureKind.TOO_LARGE, f"the answer of {self._peer} is too large: {why}")

    def _is_quiet(self) -> bool:
        try:
            self._sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False
