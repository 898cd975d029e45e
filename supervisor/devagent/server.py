"""An HTTP/1.1 server on asyncio: requests in, one handler, answers out.

It bounds whatever clients may ask of this process (how many, how large, how slow) and knows nothing
of what a request means: whoever needs a server gives it a handler.
"""

import asyncio

from supervisor.devagent.connection import Client, Handler, HttpAnswer, HttpRequest, Limits

__all__ = ["Handler", "HttpAnswer", "HttpRequest", "HttpServer", "Limits"]


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

    async def listen_unix(self, path: str) -> None:
        """Serve on a unix socket; its mode and a stale file are the caller's to care for."""
        loop = asyncio.get_running_loop()
        self._servers.append(await loop.create_unix_server(self._client, path))

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
