"""The fleet as Consul's catalog shows it, asked for only when somebody asks this daemon.

Consul is asked at most once in KEPT_S, by one request, and whoever asks meanwhile gets the same answer. The
request goes on when its asker has gone, so that no client can have it repeated sooner.
"""

import asyncio
import json

from supervisor.adapters.consul.presence import Present, cut
from supervisor.config import Config
from supervisor.daemon.shared import Shared

KEPT_S = 5.0
ASK_S = 2.5  # because the page waits for 3 s
SAYS_BYTES_MAX = 512  # of the output of any check of a node
VERSION = 1  # of the document; fields may be added
NO_FLEET = "the configuration has no section fleet"


class Catalog:
    """The answers about the fleet of one daemon."""

    def __init__(self, config: Config, shared: Shared) -> None:
        self._shared = shared
        self.follow(config)

    def follow(self, config: Config) -> None:
        self._service = self._shared.history.fleet.service = config.fleet.service if config.fleet else ""
        self._asking: asyncio.Task[bytes] | None = None
        self._asked_at = 0.0

    async def body(self) -> bytes:
        if not self._service:
            return _document(NO_FLEET)
        now, asking = self._shared.clock(), self._asking
        if asking is None or (asking.done() and now >= self._asked_at + KEPT_S):
            asking = self._asking = asyncio.create_task(self._ask(self._service))
            self._asked_at = now
        return await asyncio.shield(asking)

    def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()

    async def _ask(self, service: str) -> bytes:
        return _document(await self._shared.client.present(service, ASK_S))


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
