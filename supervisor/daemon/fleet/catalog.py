"""The fleet as Consul's catalog shows it, asked for only when somebody asks this daemon.

Consul is asked at most once in KEPT_S, by one request, and whoever asks meanwhile gets the same answer. The
request goes on when its asker has gone, so that no client can have it repeated sooner.
"""

import asyncio
import json

from supervisor.adapters.consul.presence import Present, cut
from supervisor.adapters.runtime.background import Background
from supervisor.config import Config
from supervisor.daemon.fleet.shared import Shared

KEPT_S = 5.0
ASK_S = 2.5  # because the page waits for 3 s
SAYS_BYTES_MAX = 512  # of the output of any check of a node
VERSION = 1  # of the document; fields may be added
NO_FLEET = "the configuration has no section fleet"


class Catalog:
    """The answers about the fleet of one daemon."""

    def __init__(self, config: Config, shared: Shared) -> None:
        self._shared = shared
        self._background = Background(shared.report)
        self.follow(config)

    def follow(self, config: Config) -> None:
        self._service = self._shared.history.fleet.service = config.fleet.service if config.fleet else ""
        self._answer: asyncio.Future[bytes] | None = None
        self._asked_at = 0.0

    async def body(self) -> bytes:
        if not self._service:
            return _document(NO_FLEET)
        now, answer = self._shared.clock(), self._answer
        if answer is None or (answer.done() and now >= self._asked_at + KEPT_S):
            answer = self._answer = asyncio.get_running_loop().create_future()
            self._asked_at = now
            self._background.start(self._ask(self._service, answer))
        return await asyncio.shield(answer)

    def close(self) -> None:
        self._background.cancel()

    async def _ask(self, service: str, answer: asyncio.Future[bytes]) -> None:
        try:
            answer.set_result(_document(await self._shared.client.present(service, ASK_S)))
        finally:
            answer.cancel()  # without a result the daemon is ending


def _document(found: list[Present] | str) -> bytes:
    """Return the document of these daemons. A text: why Consul does not show them."""
    why, nodes = (found, []) if isinstance(found, str) else (None, [_node(each) for each in found])
    return json.dumps({"version": VERSION, "why": why, "nodes": nodes}).encode() + b"\n"


def _node(of: Present) -> dict[str, object]:
    return {
        "node": of.name,
        "consul_node": of.consul_node,
        "page": of.meta.get("page"),
        "status": of.status,
        "says": cut(of.says, SAYS_BYTES_MAX),
        "items": {name: {"role": role, "detail": detail} for name, (role, detail) in of.parts.items()},
        "left_out": of.left_out,
    }
