"""The model on a real clock, behind a socket.

Time goes in, answers come out: each request is handed to the model when it has been read, and one
timer stands for the model's earliest deadline. Nothing is decided here.
"""

import asyncio
import signal
import time
from collections.abc import Callable

from supervisor.devagent import BANNER
from supervisor.devagent.api import Settings
from supervisor.devagent.gotext import SECOND_NS, format_duration
from supervisor.devagent.messages import Answer, Request, Waiting
from supervisor.devagent.model import Model
from supervisor.devagent.store import NEVER
from supervisor.http_server import HttpAnswer, HttpRequest, HttpServer, Limits

SLEEP_MAX_S = 3600.0  # asyncio's timers take no more than a day; looking early does no harm
LIMITS = Limits()
ADDRESSES = ("127.0.0.1", "::1")


class DevAgent:
    """One embedded agent. It must be closed."""

    def __init__(self, settings: Settings | None = None, limits: Limits = LIMITS) -> None:
        self.model = Model(settings)
        self.server = HttpServer(self._handle, limits)
        self._promised: dict[int, asyncio.Future[Answer]] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def close(self) -> None:
        """Hang up and forget everything."""
        if self._timer is not None:
            self._timer.cancel()
        await self.server.close()

    def restart(self) -> None:
        """As a server that keeps its data: whoever is connected is hung up on."""
        self.model.restart(_now())
        self.server.drop()
        self._settle()

    async def _handle(self, http: HttpRequest) -> HttpAnswer:
        request = Request(http.method, http.target, http.body, http.sized)
        answer = self.model.handle(request, _now())
        if isinstance(answer, Waiting):
            answer = await self._promise(answer)
        else:
            self._settle()
        return HttpAnswer(answer.status, answer.body, answer.headers, answer.close)

    async def _promise(self, waiting: Waiting) -> Answer:
        promised = asyncio.get_running_loop().create_future()
        self._promised[waiting.number] = promised
        self._settle()
        try:
            answer: Answer = await promised
            return answer
        finally:
            self.model.abandon(waiting)
            del self._promised[waiting.number]

    def _settle(self) -> None:
        """Keep the promises that are due, and see to it that the next are."""
        for waiting, answer in self.model.advance(_now()):
            promised = self._promised.get(waiting.number)
            if promised is not None and not promised.done():
                promised.set_result(answer)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = self.model.deadline()
        if deadline != NEVER:
            delay_s = min(max(0.0, deadline - _now()), SLEEP_MAX_S)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._settle)


async def run(host: str, port: int, settings: Settings, say: Callable[[str], None]) -> None:
    """Say what this is, serve until SIGTERM or SIGINT. Raises what ``serve`` raises."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    ttl_min = format_duration(round(settings.session_ttl_min_s * SECOND_NS))
    say(BANNER.format(ttl_min=ttl_min))
    await serve(host, port, settings, lambda address: say(f"It listens on {address}"), stop)


async def serve(
    host: str, port: int, settings: Settings, ready: Callable[[str], None], stop: asyncio.Event
) -> None:
    """Serve until ``stop`` is set. ``ready`` is told the address, such as ``http://127.0.0.1:8500``.

    Raises OSError when it cannot listen there, ValueError when ``host`` is not of this machine alone.
    """
    if host not in ADDRESSES:
        raise ValueError(f"it listens only on {' or '.join(ADDRESSES)}: it asks nobody who they are")
    agent = DevAgent(settings)
    try:
        chosen = await agent.server.listen(host, port)
        ready(f"http://[{host}]:{chosen}" if ":" in host else f"http://{host}:{chosen}")
        await stop.wait()
    finally:
        await agent.close()


def _now() -> float:
    return time.monotonic()
