"""Three nodes of the Redis example on one machine, a client that writes, and probes of who takes writes."""

import socket
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from types import TracebackType
from typing import Self, TypeVar

from tests.applications.stage import EXAMPLES, Program, Stage
from tests.applications.writes import Background, Write, tenures
from tests.support.consul import HOST, Agent, free_ports
from tests.support.supervisor import Supervisor, until

EXAMPLE = EXAMPLES / "redis"
KEY = "service/redis/primary"
SESSION = {"ttl": "2s", "lock_delay": "15s"}
ANSWER_S = 2.0  # a Redis that is there answers at once, also on a busy machine
PROBE_S = 0.005
PACE_S = 0.002  # of the client: three nodes and Consul share this machine
LOOK_S = 0.02  # of a client that was sent away
REPLICATED_MS = 2000


T = TypeVar("T")


class Connection:
    """The protocol of Redis: one command, one reply, as text; errors begin with a minus."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), ANSWER_S)
        self._stream = self._socket.makefile("rb")

    def ask(self, *words: str) -> str:
        """OSError when nobody answers."""
        parts = [f"${len(word.encode())}\r\n{word}\r\n" for word in words]
        self._socket.sendall(f"*{len(words)}\r\n{''.join(parts)}".encode())
        line = self._line()
        if not line.startswith("$"):
            return line
        length = int(line[1:])
        return "" if length < 0 else self._stream.read(length + 2)[:-2].decode()

    def _line(self) -> str:
        line = self._stream.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("closed")
        return line[:-2].decode()

    def close(self) -> None:
        """The end of it."""
        self._stream.close()
        self._socket.close()


class Node:
    """One machine: its Redis, its supervisor."""

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
        """A reply of its Redis, empty when there is none."""
        with suppress(OSError), closing(Connection(self.port)) as connection:
            return connection.ask(*words)
        return ""

    def info(self, section: str = "replication") -> dict[str, str]:
        """What its Redis says of this; nothing when it does not answer."""
        lines = self.ask("INFO", section).splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def follows(self, other: "Node") -> bool:
        """Whether it is a replica of that node, and connected."""
        info = self.info()
        return info.get("master_port") == str(other.port) and info.get("master_link_status") == "up"

    def die(self) -> None:
        """What a machine does whose power is cut."""
        self.redis.kill()
        self.supervisor.kill()

    def rise(self) -> None:
        """Power is back: systemd starts both."""
        self.redis.start()
        self.supervisor.start()


class Probe:
    """Tries to write to one node, all the time, leader or not."""

    def __init__(self, node: Node) -> None:
        self.taken: list[Write] = []
        self._node = node
        self._connection: Connection | None = None
        self.background = Background(self._try, self._hang_up)

    def _try(self) -> None:
        sent = time.monotonic()
        try:
            if self._connection is None:
                self._connection = Connection(self._node.port)
            if self._connection.ask("SET", "probe", self._node.name) == "+OK":
                self.taken.append(Write(self._node.name, sent, time.monotonic()))
        except OSError:
            self._hang_up()
        time.sleep(PROBE_S)

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class Client:
    """Writes one number after the other to whoever leads by the key; remembers what was replicated."""

    def __init__(self, agent: Agent, nodes: Sequence[Node]) -> None:
        self.confirmed: list[tuple[int, str, float]] = []  # the number, the node, when
        self._agent = agent
        self._nodes = {node.address: node for node in nodes}
        self._number = 0
        self._node: Node | None = None
        self._connection: Connection | None = None
        self.background = Background(self._write, self._hang_up)

    def _write(self) -> None:
        time.sleep(PACE_S)
        try:
            if self._connection is None:
                self._connect()
            if self._connection is not None and self._confirmed(self._connection):
                return
        except OSError:
            pass
        self._hang_up()
        time.sleep(LOOK_S)

    def _connect(self) -> None:
        entry = self._agent.kv_get(KEY)
        if entry is not None and entry["Session"]:
            self._node = self._nodes[entry["Value"].decode()]
            self._connection = Connection(self._node.port)

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _confirmed(self, connection: Connection) -> bool:
        self._number += 1
        if connection.ask("SET", f"number:{self._number}", str(self._number)) != "+OK":
            return False
        if connection.ask("WAIT", "1", str(REPLICATED_MS)) in (":1", ":2"):
            assert self._node is not None
            self.confirmed.append((self._number, self._node.name, time.monotonic()))
        return True

    def by(self, node: Node) -> int:
        """How many this node has confirmed."""
        return sum(name == node.name for _, name, _ in list(self.confirmed))

    def lost(self, node: Node) -> list[int]:
        """Confirmed numbers that this node does not have."""
        with closing(Connection(node.port)) as connection:
            numbers = [number for number, _, _ in list(self.confirmed)]
            return [n for n in numbers if connection.ask("GET", f"number:{n}") != str(n)]


class Scene:
    """Three nodes, the client and the probes; ``end`` judges."""

    def __init__(self, stage: Stage) -> None:
        self.agent = stage.agent
        ports = free_ports(3)
        self.nodes = [Node(stage, name, port, ports) for name, port in zip("abc", ports, strict=True)]
        self.client = Client(stage.agent, self.nodes)
        self.probes = [Probe(node) for node in self.nodes]
        self._backgrounds = [self.client.background, *(probe.background for probe in self.probes)]

    def __enter__(self) -> Self:
        for background in self._backgrounds:
            background.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for background in self._backgrounds:
            background.end()

    def led_by_first(self) -> tuple[Node, Node, Node]:
        """The nodes when the first is the primary, the others follow, and writes are confirmed."""
        a, b, c = self.nodes
        a.supervisor.start()
        b.supervisor.start()  # a primary takes writes only once somebody follows
        leader = self.wait_leader()
        c.supervisor.start()
        a, b = (a, b) if leader is a else (b, a)
        self.wait_following(a, b, c)
        self.wait(lambda: self.client.by(a) > 20, "writes are confirmed")
        return a, b, c

    def wait(self, condition: Callable[[], T], what: str) -> T:
        """``until``, with all that is known when it does not happen."""
        try:
            return until(condition, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.account()}") from None

    def wait_leader(self, but: Node | None = None) -> Node:
        """The node that leads and has finished on_acquire."""

        def leading() -> Node | None:
            entry = self.agent.kv_get(KEY)
            if entry is None or not entry["Session"]:
                return None
            node = next(node for node in self.nodes if node.address == entry["Value"].decode())
            held = node.supervisor.lines("role", role="holding", session=entry["Session"])
            return node if held and node is not but else None

        found = self.wait(leading, "a leader")
        assert found is not None
        return found

    def wait_following(self, leader: Node, *others: Node) -> None:
        """Return when these are connected replicas of the leader."""
        for node in others:
            self.wait(lambda node=node: node.follows(leader), f"{node.name} follows")  # type: ignore[misc]

    def tenures(self) -> list[str]:
        """Who took writes, in that order, and one after the other."""
        return tenures([probe.taken for probe in self.probes])

    def account(self) -> str:
        """All that is known, for the text of a failure."""
        infos = "\n".join(f"{node.name} {node.address}: {node.info()}" for node in self.nodes)
        return infos + "\n" + "\n".join(node.supervisor.log_tail() for node in self.nodes)
