"""What the tests of databases share: a client that writes where the leader is, a probe of each node
that tells who takes writes, and the nodes around them.

A database gives its nodes, its connections, and what a write is to it: the two callables below raise
``Refused`` when it says no, and OSError when it does not answer.
"""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from tests.support.consul import Agent
from tests.support.supervisor import Supervisor, until
from tests.system.applications.writes import Background, Write, tenures


class Refused(Exception):
    """The database says no."""


class Connection(Protocol):
    """To one node."""

    def close(self) -> None:
        """The end of it."""


class DatabaseNode(Protocol):
    """One machine of the database. ``address`` is its value in the election."""

    name: str
    address: str
    supervisor: Supervisor

    def account(self) -> str:
        """What is known of it, for the text of a failure."""


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
    """Tries to write to one node, all the time, leader or not."""

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
    """Writes one number after the other to whoever leads by the key; remembers what was confirmed.

    ``write`` is given a connection and the number, and says whether it was. Who was sent away looks
    again after ten times the pace."""

    def __init__(
        self,
        leader: Callable[[], N | None],
        connect: Callable[[N], C],
        write: Callable[[C, int], bool],
        pace_s: float,
    ) -> None:
        self.confirmed: list[tuple[int, str, float]] = []  # the number, the node, when
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
        """How many this node has confirmed."""
        return sum(name == node.name for _, name, _ in list(self.confirmed))

    def numbers(self) -> list[int]:
        """What was confirmed, wherever."""
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
        """Confirmed numbers that this node does not have."""
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
        """``until``, with all that is known when it does not happen."""
        try:
            return until(condition, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.account()}") from None

    def account(self) -> str:
        """All that is known, for the text of a failure."""
        return "\n".join(node.account() for node in self.nodes)

    def leader(self) -> N | None:
        """The node that has the key."""
        entry = self._agent.kv_get(self._key)
        if entry is None or not entry["Session"]:
            return None
        return next(node for node in self.nodes if node.address == entry["Value"].decode())

    def wait_leader(self, but: N | None = None) -> N:
        """The node that leads and has finished on_acquire."""

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
        """Return when so many more writes there are confirmed."""
        before = self.client.by(node)
        self.wait(lambda: self.client.by(node) > before + count, f"{node.name} confirms")

    def judge(self, former: N, new: N) -> None:
        """One after the other took writes, and all that was confirmed is there."""
        expected = [former.name] if new is former else [former.name, new.name]
        assert tenures([probe.taken for probe in self.probes]) == expected, self.account()
        assert self.client.by(former) and self.client.by(new)
        assert not self.lost(new)

    def tell(self, how: str, former: N, new: N, since: float) -> None:
        """Print what was measured."""
        first = next(at for _, name, at in self.client.confirmed if name == new.name)
        times = [at for _, _, at in self.client.confirmed]
        gap_s = max(late - early for early, late in zip(times, times[1:], strict=False))
        print(
            f"{self._key} ({how}): {new.name} confirms {first - since:.2f} s after {former.name}'s end, "
            f"nothing was confirmed for {gap_s:.2f} s, {len(times)} writes were"
        )
