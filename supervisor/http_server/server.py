"""The server: requests in, one handler, answers out, on any number of sockets.

It must never touch the file of a unix socket: who made it, with which mode, removes it.
"""

import asyncio
import socket

from supervisor.http_server.connection import Client
from supervisor.http_server.messages import Handler, Limits


class HttpServer:
    """Serves on any number of sockets until it is closed."""

    def __init__(self, handler: Handler, limits: Limits | None = None) -> None:
        self.handler = handler
        self.limits = limits or Limits()
        self.clients: set[Client] = set()
        self._servers: list[asyncio.Server] = []

    async def listen(self, host: str, port: int) -> int:
        """Serve on a literal address; the port, chosen by the system for 0. Raises OSError."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._client, host, port)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def listen_unix(self, bound: socket.socket) -> None:
        """Serve on a unix socket that is bound; it is closed with the server. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._servers.append(await loop.create_unix_server(self._client, sock=bound))

    def _client(self) -> Client:
        return Client(self.handler, self.limits, self.clients)

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
