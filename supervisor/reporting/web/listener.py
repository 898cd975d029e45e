"""``http.listen``: serves the routes over TCP, to every client that can connect.

The listener must never cost leadership. An address that cannot be used yet, because its port is taken or the
address is not this machine's, is logged and tried again while the elections go on. Clients are not
authenticated, so the listener must never serve a request that changes anything.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from supervisor.adapters.transport.failure import ExchangeFailed
from supervisor.adapters.transport.resolve import Resolver
from supervisor.config import HttpSettings
from supervisor.reporting.http_server import HttpServer, Limits
from supervisor.reporting.telemetry.log import Level
from supervisor.reporting.web.routes import Routes

LIMITS = Limits(
    clients_max=1024,  # load balancers, scrapers and pages, each with an idle connection or a few
    slow_readers_max=64,  # each may keep a whole status in memory
    head_bytes_max=8192,
    body_bytes_max=4096,  # a GET has no body, but is allowed to have one
    receive_s=5.0,
    send_s=10.0,
    idle_s=75.0,  # so that a scrape each minute keeps its connection
)
RETRY_S = 5.0

LogLine = Callable[[Level, str], None]


class Listener:
    """The TCP listener of one daemon. ``log``: logs a line at a level."""

    def __init__(self, routes: Routes, log: LogLine) -> None:
        self._routes, self._log = routes, log
        self._server = HttpServer(routes.answer)
        self._retry: asyncio.Task[None] | None = None
        self._moving = asyncio.Lock()

    async def move(self, settings: HttpSettings | None, clients_max: int) -> None:
        """Close, and listen at this address, now or as soon as it can be used. None: nowhere."""
        async with self._moving:
            await self.close()
            self._server = HttpServer(self._routes.answer, replace(LIMITS, clients_max=clients_max))
            if settings is not None:
                listens = await self._listen(settings)
                self._retry = asyncio.get_running_loop().create_task(self._keep_trying(settings, listens))

    async def close(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            await asyncio.gather(self._retry, return_exceptions=True)
        await self._server.close()

    async def _keep_trying(self, settings: HttpSettings, listens: bool) -> None:
        while not listens:
            await asyncio.sleep(RETRY_S)
            listens = await self._listen(settings, again=True)
        with suppress(ExchangeFailed, IndexError):
            words = (await Resolver(socket.gethostname(), 0).getent()).decode("latin-1").lower().split()
            self._routes.full_name = words[2]

    async def _listen(self, settings: HttpSettings, *, again: bool = False) -> bool:
        """Return whether the daemon listens now. ``again``: a failure was logged before."""
        host, port = settings.host, settings.port
        try:
            port = await self._server.listen(host, port)
        except OSError as error:
            if not again:
                why = os.strerror(error.errno) if error.errno else str(error)
                self._log("error", f"cannot listen on {settings}: {why}; trying again")
            return False
        self._log("info", f"listening on {HttpSettings(host, port)}")
        return True
