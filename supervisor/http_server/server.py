"""The server: requests in, one handler, answers out, on any number of sockets.

It must never touch the file of a unix socket: who made it, with which mode, removes it.
"""

import asyncio
import socket

from supervisor.http_server.connection import Client
from supervisor.http_server.crowd import ClientPool
from supervisor.http_server.messages import Handler, Limits

QUEUE = 1024  # clients that the kernel keeps for us; more of them are not lost, they ask again in a second
ACCEPTS_MAX = 16  # taken from it in one turn of the loop: 2 ms
SEND_BUFFER_BYTES = 65536  # of the kernel's, a client over TCP: it would grow to megabytes for a slow one


class HttpServer:
    """Serves on any number of sockets until it is closed."""

    def __init__(self, handler: Handler, limits: Limits | None = None) -> None:
        self.handler = handler
        self.limits = limits or Limits()
        self._crowd: ClientPool[Client] = ClientPool(self.limits.clients_max, self.limits.slow_readers_max)
        self._servers: list[asyncio.Server] = []

    async def listen(self, host: str, port: int) -> int:
        """Serve on a literal address; the port, chosen by the system for 0. Raises OSError."""
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
        """Serve on a unix socket that is bound; it is closed with the server. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._serve(bound, await loop.create_unix_server(self._client, sock=bound, backlog=ACCEPTS_MAX))

    def _serve(self, bound: socket.socket, server: asyncio.Server) -> None:
        """asyncio has one number for the kernel's queue and for what it takes from it in a turn."""
        bound.listen(QUEUE)
        self._servers.append(server)

    @property
    def clients(self) -> frozenset[Client]:
        """Whoever is connected."""
        return frozenset(self._crowd.members)

    def _client(self) -> Client:
        return Client(self.handler, self.limits, self._crowd)

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
