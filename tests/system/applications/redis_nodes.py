"""Three nodes of the Redis example on one machine, and a write to them."""

import socket
from collections.abc import Sequence
from contextlib import closing, suppress

from tests.support.consul import HOST, free_ports
from tests.support.supervisor import Supervisor
from tests.system.applications import database
from tests.system.applications.database import Client, Probe, Refused
from tests.system.applications.stage import EXAMPLES, Program, Stage

EXAMPLE = EXAMPLES / "redis"
KEY = "service/redis/primary"
SESSION = {"ttl": "2s", "lock_delay": "15s"}
ANSWER_S = 2.0  # a Redis that runs answers at once, even on a busy machine
PROBE_S = 0.005
PACE_S = 0.002  # between two writes of the client: three nodes and Consul share this machine
REPLICATED_MS = 2000


class Connection:
    """A connection by the protocol of Redis: one command, one reply, as text; errors begin with a minus."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), ANSWER_S)
        self._stream = self._socket.makefile("rb")

    def ask(self, *words: str) -> str:
        """Send a command and return its reply; raise OSError when no reply comes."""
        parts = [f"${len(word.encode())}\r\n{word}\r\n" for word in words]
        self._socket.sendall(f"*{len(words)}\r\n{''.join(parts)}".encode())
        line = self._line()
        if not line.startswith("$"):
            return line
        length = int(line[1:])
        return "" if length < 0 else self._stream.read(length + 2)[:-2].decode()

    def set(self, key: str, value: str) -> None:
        """Set a key; raise Refused when Redis refuses."""
        if (reply := self.ask("SET", key, value)) != "+OK":
            raise Refused(reply)

    def _line(self) -> str:
        line = self._stream.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("closed")
        return line[:-2].decode()

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()
        self._socket.close()


class RedisNode:
    """One machine: its Redis and its supervisor."""

    def __init__(self, stage: Stage, name: str, port: int, ports: Sequence[int]) -> None:
        self.name = name
        self.port = port
        self.address = f"{HOST}:{port}"
        config = stage.folder / name / "redis.conf"
        config.parent.mkdir(parents=True)
        lines = [f"port {port}", f"bind {HOST}", f"dir {config.parent}", f"pidfile {config.parent}/pid"]
        config.write_text("\n".join([*lines, f"include {EXAMPLE / 'redis-failover.conf'}", ""]))
        self.redis: Program = stage.program(name, ["redis-server", str(config)])
        environ = {
            "REDIS_ADDRESS": self.address,
            "REDIS_NODES": " ".join(f"{HOST}:{each}" for each in ports),
            "REDIS_KILL": f"pkill -KILL -F {config.parent}/pid",
        }
        self.supervisor: Supervisor = stage.supervisor(name, EXAMPLE / "redis.yaml", environ, session=SESSION)

    def ask(self, *words: str) -> str:
        """Return a reply of this Redis; blank when there is none."""
        with suppress(OSError), closing(Connection(self.port)) as connection:
            return connection.ask(*words)
        return ""

    def info(self, section: str = "replication") -> dict[str, str]:
        """Return this section of Redis' INFO; empty when there is no reply."""
        lines = self.ask("INFO", section).splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def follows(self, other: "RedisNode") -> bool:
        """Return whether this Redis is a connected replica of that node."""
        info = self.info()
        return info.get("master_port") == str(other.port) and info.get("master_link_status") == "up"

    def account(self) -> str:
        """Return a description of the node, for the text of a failure."""
        return f"{self.name} {self.address}: {self.info()}\n{self.supervisor.log_tail()}"

    def die(self) -> None:
        """Kill everything on the machine, as a power cut does."""
        self.redis.kill()
        self.supervisor.kill()

    def rise(self) -> None:
        """Start Redis and the supervisor, as systemd does when the power is back."""
        self.redis.start()
        self.supervisor.start()


class RedisDatabase(database.Database[RedisNode, Connection]):
    """Three nodes."""

    def __init__(self, stage: Stage) -> None:
        ports = free_ports(3)
        nodes = [RedisNode(stage, name, port, ports) for name, port in zip("abc", ports, strict=True)]
        super().__init__(stage.agent, KEY, nodes)
        self.client = Client(self.leader, lambda node: Connection(node.port), write, PACE_S)
        self.probes = [_probe(node) for node in nodes]

    def led_by_first(self) -> tuple[RedisNode, RedisNode, RedisNode]:
        """Start all nodes; return them when the first leads, the others follow, and writes are confirmed."""
        a, b, c = self.nodes
        a.supervisor.start()
        b.supervisor.start()  # a primary accepts writes only when a replica follows it
        leader = self.wait_leader()
        c.supervisor.start()
        a, b = (a, b) if leader is a else (b, a)
        self.wait_following(a, b, c)
        self.wait_confirmed(a)
        return a, b, c

    def wait_following(self, leader: RedisNode, *others: RedisNode) -> None:
        """Wait until the other nodes are connected replicas of the leader."""
        for node in others:
            self.wait(lambda node=node: node.follows(leader), f"{node.name} follows")  # type: ignore[misc]

    def lost(self, node: RedisNode) -> list[int]:
        """Return the confirmed numbers that this node does not have."""
        with closing(Connection(node.port)) as connection:
            return [n for n in self.client.numbers() if connection.ask("GET", f"number:{n}") != str(n)]


def _probe(node: RedisNode) -> Probe[Connection]:
    return Probe(
        node,
        lambda: Connection(node.port),
        lambda connection: connection.set("probe", node.name),
        PROBE_S,
    )


def write(connection: Connection, number: int) -> bool:
    """Write the number; return whether a replica has it as well."""
    connection.set(f"number:{number}", str(number))
    return connection.ask("WAIT", "1", str(REPLICATED_MS)) in (":1", ":2")
