"""A new connection: name, addresses, TLS.

No request has been sent when something fails here. This module must never block, so each socket is
non-blocking from its creation on and gets addresses only, never names.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from supervisor.adapters.transport.connection import Connection
from supervisor.adapters.transport.endpoint import Endpoint
from supervisor.adapters.transport.failure import NO_TLS, ExchangeFailed, FailureKind, connect_failure
from supervisor.adapters.transport.resolve import Address, Resolver
from supervisor.adapters.transport.tls import TlsContext


@dataclass(slots=True)
class Progress:
    """The stage of an exchange, for the error when its deadline comes first."""

    doing: str = "not begun"


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
            return await self._established(_unix_socket(self._endpoint), self._endpoint.peer, None)
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
                sock = await _tcp_socket(family, sockaddr, peer)
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
                server_hostname=self._endpoint.server_name if context else None,
            )
        except OSError as exc:
            raise connect_failure(peer, exc, self._endpoint.tls) from exc
        except asyncio.CancelledError:
            connection.abort()  # because asyncio may still establish it
            raise
        return connection


def _unix_socket(endpoint: Endpoint) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.connect(endpoint.path)  # succeeds at once or fails at once
    except BlockingIOError as exc:
        sock.close()
        text = f"cannot reach {endpoint.peer}: its queue of connections is full"
        raise ExchangeFailed(FailureKind.REFUSED, text) from exc
    except OSError as exc:
        sock.close()
        raise connect_failure(endpoint.peer, exc, endpoint.tls) from exc
    return sock


async def _tcp_socket(family: int, sockaddr: tuple[object, ...], peer: str) -> socket.socket:
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError as exc:
        raise connect_failure(peer, exc, NO_TLS) from exc
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(sock, sockaddr)
    except OSError as exc:
        sock.close()
        raise connect_failure(peer, exc, NO_TLS) from exc
    except BaseException:
        sock.close()
        raise
    return sock
