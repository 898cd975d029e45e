"""Transport: which connection carries which exchange.

Reads use kept connections. Each write uses a connection that was never used, because a kept connection may
close just as a request is written, and then the peer may or may not have acted on the request. So this module
must never send a request twice, except a GET whose kept connection closed before a byte of the answer came.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import requests

from supervisor.adapters.transport.connection import Connection
from supervisor.adapters.transport.dial import Dialer
from supervisor.adapters.transport.endpoint import Endpoint
from supervisor.adapters.transport.exchange import Delay, Exchange, OnResponse, Progress, ignore, no_delay
from supervisor.adapters.transport.failure import ExchangeFailed, FailureKind
from supervisor.adapters.transport.messages import KeptRequest, encode

BODY_BYTES_MAX = 8 << 20  # a thousand contenders with the largest values; one value has 512 KiB at most
SLOW_BYTES = 64 << 10  # of a body that is not whole at its deadline: if more has come, it is too large
IDLE_MAX = 24  # because Consul closes connections of one address beyond 200 (http_max_conns_per_client)
IDLE_AGE_MAX_S = 60.0  # without an exchange: a firewall may forget a connection that is silent for longer
SPARE_DIAL_S = 5.0  # because a peer that takes longer would not be ready in time for a hand-over
CLOSE_S = 1.0  # for a cancelled task to end
# Iterations of the loop: asyncio calls connection_lost in the next one, then closes the socket. A connection
# that is just being established needs a few more, and on a busy machine many others come before it.
CLOSE_ITERATIONS = 50


class Transport:
    """Exchanges with one endpoint, on one asyncio loop. The caller limits their number at a time."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        body_bytes_max: int = BODY_BYTES_MAX,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Connect nothing yet. ``warn`` gets each new fault of TLS files; the last good ones stay."""
        self._endpoint = endpoint
        self._alive: set[Connection] = set()
        self._dialer = Dialer(endpoint, body_bytes_max, self._alive, warn)
        self._idle: list[Connection] = []
        self._spare: Connection | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._closed = False

    def exchange(
        self,
        request: requests.PreparedRequest,
        *,
        timeout_s: float,
        fresh: bool,
        delay: Delay = no_delay,
        on_response: OnResponse = ignore,
    ) -> Coroutine[Any, Any, requests.Response]:
        """Send ``request``, and return a coroutine that returns the answer, of any status.

        If a connection is ready, the request is sent before this method returns.

        timeout_s: the limit for the whole exchange, from now.
        fresh: whether to use a connection that was never used, and close it afterwards. Otherwise a kept
            connection is used and kept on if there is one. If it closes before a byte of the answer comes, a
            GET is sent once more on a new connection.
        delay: called when the answer begins to arrive. The answer is not read for as many seconds as this
            returns.
        on_response: called once with the answer, as soon as the answer is there. Then the coroutine does not
            raise ExchangeFailed, also when the answer comes just at the deadline.

        The coroutine raises ExchangeFailed when there is no complete answer, and the peer may have acted on
        the request. Then, and when the task is cancelled, the exchange's connection is closed. A failure also
        closes all kept connections, because they lead to the same peer.
        """
        assert not self._closed, "the transport is closed"
        connection = self._take_spare() if fresh else self._take_idle()
        exchange = Exchange(request, fresh, delay, on_response)
        if connection is not None:
            connection.begin(exchange, self._release)
        deadline = asyncio.get_running_loop().time() + timeout_s
        return self._within(timeout_s, deadline, exchange, connection)

    async def _within(
        self, timeout_s: float, deadline: float, exchange: Exchange, connection: Connection | None
    ) -> requests.Response:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._exchange(exchange, connection, deadline)
        except ExchangeFailed:
            self._drop_idle()
            raise
        except TimeoutError:
            if exchange.delivered:
                return exchange.answer.result()
            self._drop_idle()
            within = f"within {timeout_s:.3g} s" if timeout_s >= 0.001 else "in the time that was left"
            text = f"no answer from {self._endpoint.peer} {within}: still {exchange.progress.doing}"
            kind = FailureKind.TOO_LARGE if len(exchange.body) > SLOW_BYTES else FailureKind.TIMEOUT
            raise ExchangeFailed(kind, text) from None

    def prepare(self, request: KeptRequest | None = None) -> None:
        """Open a connection ahead for the next fresh exchange, unless a young one is ready. Return at once.

        request: the request to encode ahead, which saves time when an exchange has this very object.
        The exchange raises what goes wrong here.
        """
        if request is not None:
            with suppress(ExchangeFailed):  # because the exchange itself raises the failure
                encode(request, self._endpoint.peer)
        young = IDLE_AGE_MAX_S / 2  # so that one is ready for a caller that prepares now and then
        now = asyncio.get_running_loop().time()
        if self._spare in self._alive and now - self._spare.idle_since < young:
            return
        if self._preparing is None and not self._closed:
            self._preparing = asyncio.create_task(self._prepare())

    async def close(self) -> None:
        """Close every connection, so that exchanges under way fail. Return when the sockets are closed."""
        self._closed = True
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.wait([self._preparing], timeout=CLOSE_S)
        await self._dialer.close()
        for _ in range(CLOSE_ITERATIONS):
            for connection in tuple(self._alive):
                connection.abort()
            await asyncio.sleep(0)
        assert not self._alive

    async def _exchange(
        self, exchange: Exchange, connection: Connection | None, deadline: float
    ) -> requests.Response:
        """Return the answer over this connection, or over a new one. ``connection``: it has the request."""
        if connection is not None:
            try:
                return await connection.answer(exchange)
            except ExchangeFailed as failure:
                gone = failure.kind is FailureKind.RESET and not connection.has_received
                if exchange.fresh or not gone or exchange.request.method != "GET":
                    raise
        connection = await self._dialer.dial(exchange.progress, deadline)
        connection.begin(exchange, self._release)
        return await connection.answer(exchange)

    def _release(self, connection: Connection, exchange: Exchange) -> None:
        """Keep the connection if it is reusable, because the next request may follow at once."""
        if not exchange.fresh and connection.reusable and self._has_room():
            connection.set_idle(IDLE_AGE_MAX_S)
            self._idle.append(connection)
        else:  # later, because the consequences of the answer are urgent
            asyncio.get_running_loop().call_soon(connection.abort)

    def _has_room(self) -> bool:
        if len(self._idle) >= IDLE_MAX:
            self._idle = [connection for connection in self._idle if connection in self._alive]
        return len(self._idle) < IDLE_MAX

    async def _prepare(self) -> None:
        try:
            async with asyncio.timeout(SPARE_DIAL_S) as limit:
                connection = await self._dialer.dial(Progress(), limit.when() or 0.0)
        except (ExchangeFailed, TimeoutError):
            return  # because the exchange that needs a connection raises the failure
        finally:
            self._preparing = None
        former, self._spare = self._spare, connection
        connection.set_idle(IDLE_AGE_MAX_S)
        if former is not None:
            former.abort()

    def _drop_idle(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.abort()

    def _take_spare(self) -> Connection | None:
        connection, self._spare = self._spare, None
        return connection if connection is not None and connection.reuse() else None

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()  # the youngest, so that unneeded connections grow old and close
            if connection.reuse():
                return connection
        return None
