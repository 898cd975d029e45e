"""The parts that all tests of databases share.

A client writes on the leading node, a probe of each node records whether the node accepts writes, and
``Database`` holds the nodes. Each kind of database supplies its nodes, its connections and a callable that
writes. Connections and writes raise ``Refused`` when the database refuses, and OSError when it does not
answer.
"""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from tests.support.consul import Agent
from tests.support.supervisor import Supervisor, until
from tests.system.applications.writes import Background, Write, tenures


class Refused(Exception):
    """The database has refused a command."""


class Connection(Protocol):
    """A connection to one node."""

    def close(self) -> None:
        """Close the connection."""


class DatabaseNode(Protocol):
    """One machine of the database. ``address`` is its value in the election."""

    name: str
    address: str
    supervisor: Supervisor

    def account(self) -> str:
        """Return a description of the node, for the text of a failure."""


C = TypeVar("C", bound=Connection)
N = TypeVar("N", bound=DatabaseNode)
T = TypeVar("T")


class _Line(Generic[C]):
    """A connection that is made when it is needed, and kept while it works."""

    def __init__(self) -> None:
        self._connection: C | None = None

    def to(self, connect: Callable[[], C]) -> C:
        if self._connection is None:
            self._connection = connect()
        return self._connection

    def hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class Probe(Generic[C]):
    """A loop that tries to write to one node all the time, whether or not the node leads."""

    def __init__(
        self, node: DatabaseNode, connect: Callable[[], C], write: Callable[[C], object], pace_s: float
    ) -> None:
        self.taken: list[Write] = []
        self._node = node
        self._connect = connect
        self._write = write
        self._pace_s = pace_s
        self._line: _Line[C] = _Line()
        self.background = Background(self._try, self._line.hang_up)

    def _try(self) -> None:
        sent = time.monotonic()
        try:
            self._write(self._line.to(self._connect))
            self.taken.append(Write(self._node.name, sent, time.monotonic()))
        except Refused:
            pass
        except OSError:
            self._line.hang_up()
        time.sleep(self._pace_s)


class Client(Generic[N, C]):
    """A client that writes one number after the other to the leading node, and records the confirmed ones.

    ``write`` gets a connection and the number, and returns whether the number was written. After a refusal or
    an error the client waits ten times ``pace_s`` before it looks for the leader again.
    """

    def __init__(
        self,
        leader: Callable[[], N | None],
        connect: Callable[[N], C],
        write: Callable[[C, int], bool],
        pace_s: float,
    ) -> None:
        self.confirmed: list[tuple[int, str, float]] = []  # the number, the node, the time
        self._leader = leader
        self._connect = connect
        self._write = write
        self._pace_s = pace_s
        self._number = 0
        self._node: N | None = None
        self._line: _Line[C] = _Line()
        self.background = Background(self._step, self._hang_up)

    def _step(self) -> None:
        time.sleep(self._pace_s)
        try:
            self._node = node = self._node or self._leader()
            if node is not None:
                connection = self._line.to(lambda: self._connect(node))
                self._number += 1
                if self._write(connection, self._number):
                    self.confirmed.append((self._number, node.name, time.monotonic()))
                return
        except (OSError, Refused):
            pass
        self._hang_up()
        time.sleep(10 * self._pace_s)

    def _hang_up(self) -> None:
        self._node = None
        self._line.hang_up()

    def by(self, node: DatabaseNode) -> int:
        """Return how many numbers this node has confirmed."""
        return sum(name == node.name for _, name, _ in list(self.confirmed))

    def numbers(self) -> list[int]:
        """Return the numbers that any node has confirmed."""
        return [number for number, _, _ in list(self.confirmed)]


class Database(Generic[N, C]):
    """The nodes, the client and the probes, which write while the ``with`` block lasts."""

    client: Client[N, C]
    probes: Sequence[Probe[C]]

    def __init__(self, agent: Agent, key: str, nodes: Sequence[N]) -> None:
        self._agent = agent
        self._key = key
        self.nodes = nodes

    def lost(self, node: N) -> list[int]:
        """Return the confirmed numbers that this node does not have."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        for background in self._backgrounds():
            background.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for background in self._backgrounds():
            background.end()

    def _backgrounds(self) -> list[Background]:
        return [self.client.background, *(probe.background for probe in self.probes)]

    def wait(self, condition: Callable[[], T], what: str) -> T:
        """Wait until the condition is true; fail with the account of all nodes when that does not happen."""
        try:
            return until(condition, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.account()}") from None

    def account(self) -> str:
        """Return a description of all nodes, for the text of a failure."""
        return "\n".join(node.account() for node in self.nodes)

    def leader(self) -> N | None:
        """Return the node that has the key."""
        entry = self._agent.kv_get(self._key)
        if entry is None or not entry["Session"]:
            return None
        return next(node for node in self.nodes if node.address == entry["Value"].decode())

    def wait_leader(self, but: N | None = None) -> N:
        """Wait for a node that leads and has finished on_acquire, and return it."""

        def leading() -> N | None:
            entry = self._agent.kv_get(self._key)
            node = self.leader()
            if entry is None or node is None or node is but:
                return None
            held = node.supervisor.lines("role", role="holding", session=entry["Session"])
            return node if held else None

        found = self.wait(leading, "a leader")
        assert found is not None
        return found

    def wait_confirmed(self, node: N, count: int = 20) -> None:
        """Wait until this node has confirmed ``count`` more writes."""
        before = self.client.by(node)
        self.wait(lambda: self.client.by(node) > before + count, f"{node.name} confirms")

    def judge(self, former: N, new: N) -> None:
        """Assert that one node after the other accepted writes, and that the new leader has lost none."""
        expected = [former.name] if new is former else [former.name, new.name]
        assert tenures([probe.taken for probe in self.probes]) == expected, self.account()
        assert self.client.by(former) and self.client.by(new)
        assert not self.lost(new)

    def tell(self, how: str, former: N, new: N, since: float) -> None:
        """Print the figures of this failover."""
        first = next(at for _, name, at in self.client.confirmed if name == new.name)
        times = [at for _, _, at in self.client.confirmed]
        gap_s = max(late - early for early, late in zip(times, times[1:], strict=False))
        print(
            f"{self._key} ({how}): {new.name} confirms {first - since:.2f} s after {former.name}'s end, "
            f"nothing was confirmed for {gap_s:.2f} s, {len(times)} writes were"
        )
