"""A client of a running supervisor, as load balancers and people are: over TCP, or on its control socket."""

import http.client
import json
from dataclasses import dataclass
from typing import Any

from tests.support.supervisor import PATIENCE_S, Supervisor
from tests.support.unix_connection import UnixConnection


@dataclass(frozen=True)
class Told:
    """One response."""

    status: int
    headers: dict[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Reader:
    """Sends requests to one supervisor, each on a new connection."""

    def __init__(self, node: Supervisor) -> None:
        self._node = node

    @property
    def port(self) -> int:
        """Return the port on which the supervisor listens since its newest start."""
        self._node.wait_line("http", level="info")
        why: str = self._node.lines("http", level="info")[-1]["why"]
        return int(why.rpartition(":")[2])

    def ask(self, target: str, method: str = "GET", host: str | None = None) -> Told:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        return told(connection, target, method, host)

    def ask_socket(self, target: str, method: str = "GET", host: str | None = None) -> Told:
        return told(UnixConnection(self._node.folder / "control.sock", PATIENCE_S), target, method, host)

    def status(self) -> dict[str, Any]:
        answer = self.ask("/v1/status")
        assert answer.status == 200
        found: dict[str, Any] = answer.json
        return found

    def item(self, name: str) -> dict[str, Any]:
        (found,) = [item for item in self.status()["items"] if item["name"] == name]
        return dict(found)


def told(connection: http.client.HTTPConnection, target: str, method: str, host: str | None = None) -> Told:
    """Send one request on this connection, which is then closed. ``host``: another Host than the address."""
    try:
        connection.request(method, target, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Told(answer.status, headers, answer.read().decode())
    finally:
        connection.close()
