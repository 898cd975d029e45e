"""A Consul agent on a node of the network: a server or a client, with its data kept over restarts.

The test reaches it over a unix socket, which no fault of the network affects. Supervisors and `consul lock`
use its TCP port on the loopback of their node.
"""

import http.client
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.consul import BINARY
from tests.support.program import Program
from tests.support.unix_connection import UnixConnection
from tests.system.cluster.network import Network

HTTP_PORT = 8500
RAFT = "/operator/raft/configuration"
CALL_S = 2.0  # callers repeat a request that gets no answer


class ConsulNode(Program):
    """A server or a client.

    voters: the addresses of all servers, for a client as well as for a server.
    gossip: its ``gossip_lan``.
    """

    def __init__(
        self,
        network: Network,
        folder: Path,
        name: str,
        server: bool,
        voters: Sequence[str],
        gossip: Mapping[str, object],
    ) -> None:
        folder.mkdir()
        self.name = name
        self.address = network.join(name)
        self._socket = folder / "http.sock"
        config = {
            "node_name": name,
            "bind_addr": self.address,
            "data_dir": str(folder / "data"),
            "addresses": {"http": f"127.0.0.1 unix://{self._socket}"},
            "ports": {"http": HTTP_PORT, "dns": -1, "grpc": -1, "serf_wan": -1},
            "retry_join": list(voters),
            "retry_interval": "1s",
            "server": server,
            "performance": {"raft_multiplier": 1},
            "gossip_lan": dict(gossip),
            "session_ttl_min": "1s",
            "disable_update_check": True,
            "log_level": "info",
            **({"bootstrap_expect": len(voters)} if server else {}),
        }
        (folder / "consul.json").write_text(json.dumps(config))
        argv = network.machines[name].inside(
            str(BINARY), "agent", "-config-file", str(folder / "consul.json")
        )
        environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        super().__init__(argv, folder / f"{name}.log", environ)

    def start(self) -> None:
        """Start the agent, also once more; remove the socket that a killed one has left."""
        self._socket.unlink(missing_ok=True)
        super().start()

    def ask(self, path: str) -> Any:
        """Return the decoded answer of a GET; None for 404. Raise OSError for silence and every failure."""
        connection = UnixConnection(self._socket, CALL_S)
        try:
            connection.request("GET", f"/v1{path}", headers={"Host": "consul"})
            response = connection.getresponse()
            text = response.read().decode()
        except http.client.HTTPException as error:
            raise ConnectionError(f"{self.name}: {error!r}") from error
        finally:
            connection.close()
        if response.status not in (200, 404):
            raise ConnectionError(f"{self.name}: {response.status} {text}")
        return json.loads(text) if response.status == 200 else None

    @property
    def answers(self) -> bool:
        """Whether it answers a consistent read, so that there is a leader that it can reach."""
        return self.told("/kv/anything?consistent", False) is not False

    def told(self, path: str, otherwise: Any) -> Any:
        """Return the answer, or ``otherwise`` when Consul does not answer."""
        try:
            return self.ask(path)
        except OSError:
            return otherwise

    def session_on(self, key: str) -> str:
        """Return the session on a key; blank when there is none, or when Consul does not answer."""
        entries = self.told(f"/kv/{key}?consistent", None)
        return str(entries[0].get("Session", "")) if entries else ""

    def session_names(self) -> list[str]:
        """Return the names of all sessions; empty when Consul does not answer."""
        return [str(session["Name"]) for session in self.told("/session/list?consistent", [])]

    @property
    def voters(self) -> int:
        """How many servers have a vote; 0 when Consul does not answer."""
        return sum(each["Voter"] for each in self.told(RAFT, {"Servers": []})["Servers"])

    @property
    def leader_address(self) -> str:
        """The address of the leading server as this agent knows it; blank when there is none."""
        return str(self.told("/status/leader", "")).partition(":")[0]
