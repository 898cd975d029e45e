"""The model on a real clock, behind a socket. One timer stands for the model's earliest deadline."""

import asyncio
import signal
import time
from collections.abc import Callable

from supervisor.rehearsal.devagent import BANNER
from supervisor.rehearsal.devagent.api.call import Settings
from supervisor.rehearsal.devagent.model import Model, Waiting
from supervisor.rehearsal.devagent.store import NEVER
from supervisor.reporting.http_server import HttpAnswer, HttpRequest, HttpServer

SLEEP_MAX_S = 3600.0  # asyncio's timers take no more than a day; looking early does no harm
ADDRESS = "127.0.0.1"  # only this machine, because clients need no token


class DevAgent:
    """One embedded agent. The caller must close it."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.model = Model(settings)
        self.server = HttpServer(self.handle)
        self._promised: dict[int, asyncio.Future[HttpAnswer]] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self.server.close()

    async def handle(self, request: HttpRequest, node: str = "") -> HttpAnswer:
        """Answer a request as the agent of this node does. Blank: the cluster's first node."""
        answer = self.model.handle(request, time.monotonic(), node)
        if isinstance(answer, Waiting):
            return await self._promise(answer)
        self._settle()
        return answer

    async def _promise(self, waiting: Waiting) -> HttpAnswer:
        promised: asyncio.Future[HttpAnswer] = asyncio.get_running_loop().create_future()
        self._promised[waiting.number] = promised
        self._settle()
        try:
            return await promised
        finally:
            self.model.abandon(waiting)
            del self._promised[waiting.number]

    def _settle(self) -> None:
        for waiting, answer in self.model.advance(time.monotonic()):
            promised = self._promised.get(waiting.number)
            if promised is not None and not promised.done():
                promised.set_result(answer)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = self.model.deadline()
        if deadline != NEVER:
            delay_s = min(max(0.0, deadline - time.monotonic()), SLEEP_MAX_S)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._settle)


async def run(port: int, settings: Settings, say: Callable[[str], None]) -> None:
    """Print what this is, and serve until SIGTERM or SIGINT. Raises OSError when nothing can listen there."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    say(BANNER.format(ttl_min=f"{settings.session_ttl_min_s:g}s"))
    agent = DevAgent(settings)
    try:
        chosen = await agent.server.listen(ADDRESS, port)
        say(f"It listens on http://{ADDRESS}:{chosen}")
        await stop.wait()
    finally:
        await agent.close()
