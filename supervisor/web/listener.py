"""``http.listen``: what may be read, over TCP, for whoever can connect.

It must never cost leadership: an address that cannot be had (its port is taken, the address is not
this machine's yet) is said in the log and tried again, and the elections go on. Nobody is asked who
he is, so nothing that changes anything may ever be served here.
"""

import asyncio
import os
from collections.abc import Callable

from supervisor.config import HttpSettings
from supervisor.http_server import HttpAnswer, HttpRequest, HttpServer, Limits
from supervisor.telemetry.log import Level
from supervisor.web.routes import Routes

LIMITS = Limits(
    clients_max=1024,  # load balancers, scrapers and pages, each with an idle connection or a few
    slow_readers_max=64,  # each may keep a whole status in memory
    head_bytes_max=8192,
    body_bytes_max=4096,  # a GET has none, but may
    receive_s=5.0,
    send_s=10.0,
    idle_s=75.0,  # as web servers do; a scrape each minute keeps its connection
)
RETRY_S = 5.0

Tell = Callable[[Level, str], None]


class Listener:
    """The TCP listener of one daemon. ``tell`` is given a level and a line, for the log."""

    def __init__(self, settings: HttpSettings, routes: Routes, tell: Tell, limits: Limits = LIMITS) -> None:
        self._settings = settings
        self._routes = routes
        self._tell = tell
        self._server = HttpServer(self._handle, limits)
        self._retry: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Listen, now or as soon as the address can be had."""
        if not await self._listens():
            self._retry = asyncio.get_running_loop().create_task(self._keep_trying())

    async def close(self) -> None:
        """Hang up on everybody."""
        if self._retry is not None:
            self._retry.cancel()
            await asyncio.gather(self._retry, return_exceptions=True)
        await self._server.close()

    async def _keep_trying(self) -> None:
        while True:
            await asyncio.sleep(RETRY_S)
            if await self._listens(again=True):
                return

    async def _listens(self, *, again: bool = False) -> bool:
        host, port = self._settings.host, self._settings.port
        try:
            port = await self._server.listen(host, port)
        except OSError as error:
            if not again:
                why = os.strerror(error.errno) if error.errno else str(error)
                self._tell("error", f"cannot listen on {self._settings}: {why}; trying again")
            return False
        self._tell("info", f"listening on {HttpSettings(host, port)}")
        return True

    async def _handle(self, request: HttpRequest) -> HttpAnswer:
        return await self._routes.answer(request)
