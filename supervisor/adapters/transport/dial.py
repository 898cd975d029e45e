"""A new connection: name, addresses, TLS.

No request has been sent when something fails here. This module must never block, so each socket is
non-blocking from its creation on and gets addresses only, never names.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any

from supervisor.adapters.transport.connection import Connection
from supervisor.adapters.transport.endpoint import Endpoint
from supervisor.adapters.transport.exchange import Progress
from supervisor.adapters.transport.failure import NO_TLS, ExchangeFailed, FailureKind, connect_failure
from supervisor.adapters.transport.resolve import Address, Resolver
from supervisor.adapters.transport.tls import TlsContext


class Dialer:
    """The source of new connections to one endpoint."""

    def __init__(
        self, endpoint: Endpoint, body_bytes_max: int, alive: set[Connection], warn: Callable[[str], None]
    ) -> None:
        """Connect nothing yet. ``warn`` gets each new fault of TLS files; the last good ones stay."""
        self._endpoint = endpoint
        self._body_bytes_max = body_bytes_max  # the limit for the body of an answer
        self._alive = alive  # the set of established connections
        self._resolver = Resolver(endpoint.host, endpoint.port) if endpoint.scheme != "unix" else None
        self._tls = TlsContext(endpoint.tls, warn) if endpoint.scheme == "https" else None

    async def dial(self, progress: Progress, deadline: float) -> Connection:
        """Return a new connection. The caller must cancel this at ``deadline`` (loop time).

        Raises ExchangeFailed. Each address gets an equal share of the time that is left.
        """
        context = self._tls.current() if self._tls is not None else None
        if self._resolver is None:
            peer = self._endpoint.peer
            sock = await _connected(socket.AF_UNIX, self._endpoint.path, peer)
            return await self._established(sock, peer, None)
        progress.doing = f"looking up {self._endpoint.host}"
        addresses = await self._resolver.addresses()
        for position, address in enumerate(addresses, start=1):
            left_s = deadline - asyncio.get_running_loop().time()
            last = position == len(addresses)
            share_s = None if last else left_s / (len(addresses) - position + 1)
            try:
                connection = await self._to_address(address, context, progress, share_s)
            except ExchangeFailed:
                if last:
                    self._resolver.doubt()
                    raise
            else:
                self._resolver.prefer(address)
                return connection
        raise AssertionError("a resolver names one address or more")

    async def close(self) -> None:
        if self._tls is not None:
            self._tls.close()
        if self._resolver is not None:
            await self._resolver.close()

    async def _to_address(
        self, address: Address, context: ssl.SSLContext | None, progress: Progress, share_s: float | None
    ) -> Connection:
        family, sockaddr = address
        peer = self._endpoint.peer
        if sockaddr[0] != self._endpoint.host:
            peer = f"{peer} ({sockaddr[0]})"
        try:
            async with asyncio.timeout(share_s):
                progress.doing = f"connecting to {peer}"
                sock = await _connected(family, sockaddr, peer)
                if context is not None:
                    progress.doing = f"in the TLS handshake with {peer}"
                return await self._established(sock, peer, context)
        except TimeoutError:
            text = f"cannot reach {peer}: no connection within {share_s:.1f} s"
            raise ExchangeFailed(FailureKind.TIMEOUT, text) from None

    async def _established(
        self, sock: socket.socket, peer: str, context: ssl.SSLContext | None
    ) -> Connection:
        connection = Connection(peer, sock, self._body_bytes_max, self._alive, self._endpoint.tls)
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: connection,
                sock=sock,
                ssl=context,
                server_hostname=(self._endpoint.tls.server_name or self._endpoint.host) if context else None,
            )
        except OSError as exc:
            raise connect_failure(peer, exc, self._endpoint.tls) from exc
        except asyncio.CancelledError:
            connection.abort()  # because asyncio may still establish it
            raise
        return connection


async def _connected(family: int, sockaddr: Any, peer: str) -> socket.socket:
    """Return a socket that is connected to this address. Raises ExchangeFailed."""
    sock: socket.socket | None = None
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        if family == socket.AF_UNIX:
            sock.connect(sockaddr)  # succeeds at once or fails at once
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().sock_connect(sock, sockaddr)
    except BaseException as exc:
        if sock is not None:
            sock.close()
        if isinstance(exc, BlockingIOError):
            text = f"cannot reach {peer}: its queue of connections is full"
            raise ExchangeFailed(FailureKind.REFUSED, text) from exc
        if isinstance(exc, OSError):
            raise connect_failure(peer, exc, NO_TLS) from exc
        raise
    return sock
