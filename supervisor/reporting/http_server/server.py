"""The server: requests in, one handler, answers out, on any number of sockets.

It must never touch the file of a unix socket, because the caller that created the file removes it.
"""

import asyncio
import socket

from supervisor.reporting.http_server.client_pool import ClientPool, Closable
from supervisor.reporting.http_server.connection import Client
from supervisor.reporting.http_server.messages import Handler, Limits

QUEUE = 1024  # connections that the kernel keeps for us; further clients try again after a second
ACCEPTS_MAX = 16  # connections accepted in one iteration of the loop, which takes 2 ms
SEND_BUFFER_BYTES = 65536  # of the kernel, for a client over TCP; else megabytes for a slow client


class HttpServer:
    """A server on any number of sockets, until it is closed."""

    def __init__(self, handler: Handler, limits: Limits | None = None) -> None:
        self.handler = handler
        self.limits = limits or Limits()
        self._pool = ClientPool(self.limits.clients_max, self.limits.slow_readers_max)
        self._servers: list[asyncio.Server] = []

    async def listen(self, host: str, port: int) -> int:
        """Serve on a literal address, and return the port. ``port`` 0: the kernel chooses. Raises OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            bound.bind((host, port))
        except OSError:
            bound.close()
            raise
        loop = asyncio.get_running_loop()
        self._serve(bound, await loop.create_server(self._client, sock=bound, backlog=ACCEPTS_MAX))
        return int(bound.getsockname()[1])

    async def listen_unix(self, bound: socket.socket) -> None:
        """Serve on a unix socket that is bound, and close the socket with the server. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._serve(bound, await loop.create_unix_server(self._client, sock=bound, backlog=ACCEPTS_MAX))

    def _serve(self, bound: socket.socket, server: asyncio.Server) -> None:
        """Keep the server, with a longer queue in the kernel than asyncio's ``backlog``."""
        bound.listen(QUEUE)
        self._servers.append(server)

    @property
    def clients(self) -> frozenset[Closable]:
        return frozenset(self._pool.members)

    def _client(self) -> Client:
        return Client(self.handler, self.limits, self._pool)

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        tasks = [client.abort() for client in tuple(self.clients)]
        await asyncio.gather(*filter(None, tasks), return_exceptions=True)
        for server in self._servers:
            await server.wait_closed()
