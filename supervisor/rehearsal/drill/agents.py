"""The embedded agent, with an address for each node.

An address stands for the client agent on that node. It can stop answering, while the cluster goes on.
"""

import asyncio
import json
from collections.abc import Callable

from supervisor.rehearsal.devagent.agent import ADDRESS, DevAgent
from supervisor.reporting.http_server import HttpAnswer, HttpRequest, HttpServer


class NodeAgent:
    """The agent of one node. The caller must close it."""

    def __init__(self, cluster: DevAgent, node: str, answered: Callable[[str, str, str], None]) -> None:
        self._cluster, self._node, self._answered = cluster, node, answered
        self._server = HttpServer(self._handle)
        self._answering = asyncio.Event()
        self._answering.set()
        self.url = ""

    async def open(self) -> None:
        self.url = f"http://{ADDRESS}:{await self._server.listen(ADDRESS, 0)}"

    async def close(self) -> None:
        await self._server.close()

    def freeze(self) -> None:
        """Stop answering requests, including those that wait."""
        self._answering.clear()

    def thaw(self) -> None:
        """Answer requests again. Requests whose client has given up are dropped."""
        self._answering.set()

    async def _handle(self, http: HttpRequest) -> HttpAnswer:
        await self._answering.wait()
        answer = await self._cluster.handle(http, self._node)
        self._answered(self._node, http.method, http.target)
        await self._answering.wait()
        return answer


async def ask(cluster: DevAgent, method: str, target: str, content: object = None) -> object:
    """Send one request to the cluster as an operator does, and return the decoded answer."""
    body = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
    answer = await cluster.handle(HttpRequest(method, target, (), body))
    assert answer.status == 200, (target, answer)
    return json.loads(answer.body)
