"""Exchanges with Consul: a request of the core in, what was answered out.

It knows how a request becomes bytes and which may share a connection; what an answer means is never
its concern. A write has a connection of its own: one kept open may close just as it is written, and
then nobody knows whether it was applied.
"""

from collections.abc import Callable, Coroutine
from typing import Any

import requests

from supervisor.config import Config
from supervisor.consul import Consul
from supervisor.core.actions import Prepare, Request, Watch, Write
from supervisor.core.events import Answered, Unknown
from supervisor.log import Log
from supervisor.token import Token
from supervisor.transport import Endpoint, ExchangeFailed, Transport


class Exchanges:
    """Those of one daemon, with one Consul agent."""

    def __init__(self, config: Config, log: Log, clock: Callable[[], float]) -> None:
        """``clock``: the core's, in seconds. Raises TokenError when the token file cannot be used."""
        self._clock = clock
        self.token = Token(
            config.consul,
            warn=lambda text: log.line("error", "token-file", why=text),
            renewed=lambda text: log.line("info", "token-renewed", why=text),
        )
        endpoint = Endpoint.of(config.consul.address, config.consul.tls)
        self._consul = Consul(config.consul, endpoint.base_url, self.token)
        self._transport = Transport(endpoint, warn=lambda text: log.line("error", "tls-files", why=text))

    def prepare(self, prepare: Prepare) -> None:
        """A connection is opened ahead, and the bytes are laid ready."""
        self._transport.prepare(self._consul.prepare(prepare.request))

    def begin(self, request: Request) -> Coroutine[Any, Any, Answered]:
        """Send it, before this returns if a connection is ready. What is returned is to be awaited, and
        gives the answer, or that there is none, within the request's time."""
        timeout_s = max(0.0, request.at + request.timeout_s - self._clock())
        fresh = isinstance(request, Write)
        lag_s = request.lag_s if isinstance(request, Watch) else 0.0
        prepared = self._consul.encode(request)
        under_way = self._transport.exchange(prepared, timeout_s=timeout_s, fresh=fresh, lag_s=lag_s)
        return self._answered(request, under_way)

    async def _answered(
        self, request: Request, under_way: Coroutine[Any, Any, requests.Response]
    ) -> Answered:
        try:
            response = await under_way
        except ExchangeFailed as failure:
            return Answered(request, Unknown(str(failure)))
        return Answered(request, self._consul.decode(request, response))

    async def close(self) -> None:
        """Hang up."""
        await self._transport.close()
