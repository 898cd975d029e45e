"""The requests of nodes to Consul, calculated from the product's own constants.

The functions are pure. A rate is a mean over all nodes, because each contender has a ``spread`` of its own.
The core decides when a contender renews and reads, and ``consul.shared`` decides which keys share a query, so
no formula here can differ from the product. ``docs/sizing.md`` explains the formulas.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from math import log
from statistics import fmean

from supervisor.consul.shared.grouping import READ_TOGETHER_MAX, queries_for, read_prefixes, watch_prefixes
from supervisor.core.contender.creation import new_contender
from supervisor.core.contender.state import Contender
from supervisor.core.frozen import replace
from supervisor.core.jitter import TICK_S
from supervisor.core.lease import EXCHANGE_MAX_S, RETRY_MIN_S, RETRY_SPREAD_S
from supervisor.core.lock.base import WAIT_S
from supervisor.core.machines.tenure import Tenure
from supervisor.core.settings import ItemSettings, SemaphoreSettings
from supervisor.transport.pool import IDLE_MAX

KEY = "service/app-{:04}/leader"  # the default key of an election with such a name
SPREADS = [(number + 0.5) / 100 for number in range(100)]
WATCH_S = WAIT_S * (1 + 1 / 32)  # Consul adds up to a sixteenth of the wait, at random
HOLD_S = 7.0  # how long Consul holds a request without a leader: rpc_hold_timeout
SPARES = 1  # connections that are open for the next write
# Bytes of HTTP for names of some 25 characters and values of some 20, without a token and TLS.
RENEWAL_BYTES = 545
QUERY_BYTES = 320  # of a read or a watch: the request, and the head of the answer
KEY_BYTES = 190  # of an election in an answer
CONTENDER_KEY_BYTES = 245  # of a semaphore in an answer
RECORD_BYTES, HOLDER_BYTES = 150, 59  # of a semaphore's .lock in an answer, and of each holder in it


@dataclass(frozen=True, slots=True)
class Load:
    """Consul's load at rest.

    renewals, reads, watches: requests a second.
    consistent: those reads and watches a second for which the leading server asks its followers.
    bytes: HTTP, both ways, a second.
    sessions, queries, connections: how many there are at a time. A query waits for a change.
    """

    renewals: float = 0.0
    reads: float = 0.0
    watches: float = 0.0
    consistent: float = 0.0
    bytes: float = 0.0
    sessions: float = 0.0
    queries: float = 0.0
    connections: float = 0.0

    @property
    def requests(self) -> float:
        """All requests a second."""
        return self.renewals + self.reads + self.watches


@dataclass(frozen=True, slots=True)
class Event:
    """The additions of one event to the load at rest.

    writes: entries of Consul's log if no race is lost.
    lost: further entries at the most, each of an attempt that came second.
    requests: requests at the most, writes included.
    bytes: the answers to the watches.
    """

    writes: float
    lost: float
    requests: float
    bytes: float


@dataclass(frozen=True, slots=True)
class Node:
    """One node with a file of ``items`` elections, or semaphores, that differ in their names alone.

    candidates: how many nodes contend for the same item.
    held: the share of the items that this node holds.
    """

    settings: ItemSettings
    items: int
    candidates: int
    held: float


@dataclass(frozen=True, slots=True)
class Fleet:
    """Nodes with the same number of items each, whose locks are spread evenly over them."""

    settings: ItemSettings
    nodes: int
    items: int
    candidates: int

    @property
    def contenders(self) -> int:
        """How many contenders there are, each with a session."""
        return self.nodes * self.items

    @property
    def locks(self) -> float:
        """How many elections, or semaphores, there are."""
        return self.contenders / self.candidates

    @property
    def node(self) -> Node:
        """A node of the fleet."""
        held = min(1.0, _holders(self.settings) / self.candidates)
        return Node(self.settings, self.items, self.candidates, held)


def at_rest(fleet: Fleet) -> Load:
    """Return the load of a fleet in which nothing changes."""
    return total([(fleet.nodes, of_node(fleet.node))])


def total(parts: Iterable[tuple[float, Load]]) -> Load:
    """Return the load of that many nodes of each kind."""
    scaled = [[count * value for value in astuple(load)] for count, load in parts]
    return Load(*map(sum, zip(*scaled, strict=True)))


def of_node(node: Node) -> Load:
    """Return the load of one node at rest: by items with queries of their own, and by shared queries."""
    watched, read = groups_of(node)
    watched_alone, read_alone = node.items - sum(watched), node.items - sum(read)
    renewals = read_alone * renewals_of(node, shared=False) + sum(read) * renewals_of(node, shared=True)
    interval_s = _contender(node.settings, 0.0).lease.interval_s
    alone_reads = read_alone * node.held * reads_of(node)
    group_reads = [_some_held(node, size) / interval_s for size in read]
    reads = alone_reads + sum(group_reads)
    watches = (watched_alone + len(watched)) / WATCH_S
    held_watches = watched_alone * node.held + sum(_some_held(node, size) for size in watched)
    own = list_bytes(node.settings, node.candidates)
    answered = (alone_reads + watched_alone / WATCH_S) * own + KEY_BYTES * (
        sum(rate * size for rate, size in zip(group_reads, read, strict=True)) + sum(watched) / WATCH_S
    )
    together = max((renewals + reads) * TICK_S, node.held * min(sum(read), READ_TOGETHER_MAX))
    return Load(
        renewals=renewals,
        reads=reads,
        watches=watches,
        consistent=reads + held_watches / WATCH_S,
        bytes=renewals * RENEWAL_BYTES + (reads + watches) * QUERY_BYTES + answered,
        sessions=node.items,
        queries=watched_alone + len(watched),
        connections=watched_alone + len(watched) + SPARES + min(IDLE_MAX, 1 + together),
    )


def _some_held(node: Node, size: int) -> float:
    """Return the chance that this node holds some of that many elections."""
    return 1 - (1 - node.held) ** size


def groups_of(node: Node) -> tuple[list[int], list[int]]:
    """Return how many elections share each watch that is shared, and each read that is shared."""
    if isinstance(node.settings, SemaphoreSettings):
        return [], []
    keys, watches = [KEY.format(number) for number in range(node.items)], queries_for(node.items, 0)
    watched, read = watch_prefixes(keys, watches), read_prefixes(keys, watches)
    return list(Counter(watched.values()).values()), list(Counter(read.values()).values())


def listed_by(node: Node) -> float:
    """Return how many elections stand in the answer to the watch of an election, on average."""
    watched, _ = groups_of(node)
    return (node.items - sum(watched) + sum(size * size for size in watched)) / node.items


def renewals_of(node: Node, *, shared: bool) -> float:
    """Return the renewals a second of one contender; those that are read together are aligned."""
    offset = 0.0 if shared else None

    def rate(holds: float) -> float:
        contenders = (_contender(node.settings, spread, bool(holds), offset) for spread in SPREADS)
        return fmean(1 / contender.renew_after(0.0) for contender in contenders)

    return node.held * rate(1.0) + (1 - node.held) * rate(0.0)


def reads_of(node: Node) -> float:
    """Return the reads a second of one holder that reads alone."""
    return fmean(1 / _contender(node.settings, spread, holds=True).read_after(0.0) for spread in SPREADS)


def list_bytes(settings: ItemSettings, candidates: int) -> int:
    """Return the length of what Consul shows of one item: the key, or all keys of a semaphore."""
    if not isinstance(settings, SemaphoreSettings):
        return KEY_BYTES
    return RECORD_BYTES + HOLDER_BYTES * settings.limit + CONTENDER_KEY_BYTES * candidates


# --- events ------------------------------------------------------------------------------------------


def hand_over(settings: ItemSettings, candidates: int, listed: float = 1.0) -> Event:
    """Return what it takes until the next holder acts and the former one waits again.

    Election: release, destroy, create, acquire. Each watch is answered twice, and each waiter reads the
    session of the new holder once. Semaphore: leave, destroy, create, take, join. Each watch is answered
    three times. A lost race costs the attempt and a read.

    listed: how many elections share a query, so that an answer shows them all.
    """
    others = candidates - 1
    if isinstance(settings, SemaphoreSettings):
        answers, lost, writes = 3 * candidates, 0, 5
    else:
        answers, lost, writes = 2 * candidates, max(0, others - 1), 4
    requests = answers + writes + others + 2 * lost
    answered = answers * (QUERY_BYTES + listed * list_bytes(settings, candidates))
    return Event(writes, lost, requests, answered)


def crash(settings: ItemSettings, candidates: int) -> Event:
    """Return what the crash of a holder costs until it waits again: the session expires, and is not released.

    Each waiter of an election also tries once in vain, because Consul alone knows that the lock-delay lasts.
    Consul refuses that without a write.
    """
    others = candidates - 1
    event = hand_over(settings, candidates)
    if isinstance(settings, SemaphoreSettings):
        return replace(event, writes=4)
    return replace(event, writes=3, requests=event.requests + others)


def start(fleet: Fleet) -> Event:
    """Return what the start of all nodes at once costs.

    Each contender creates its session, renews it, reads the lock and, for an election, the holder's session.
    All candidates try for a free key. In a semaphore each new key answers the watches of all contenders
    before it, with a list that has two thirds of its final length on average.
    """
    contenders, locks, k = fleet.contenders, fleet.locks, fleet.candidates
    if isinstance(fleet.settings, SemaphoreSettings):
        answers = contenders * (k + 1) / 2
        shown = answers * (QUERY_BYTES + list_bytes(fleet.settings, 2 * k // 3))
        return Event(2 * contenders, contenders - locks, 5 * contenders + answers, shown)
    return Event(contenders + locks, contenders - locks, 6 * contenders, 2 * contenders * KEY_BYTES)


def retries(lanes: float, held_s: float) -> float:
    """Return the requests a second while Consul answers none.

    lanes: how many requests wait for an answer, each repeated after its failure.
    held_s: after which time each fails. 0: it is refused at once.
    """
    return lanes * log((RETRY_MIN_S + RETRY_SPREAD_S + held_s) / (RETRY_MIN_S + held_s)) / RETRY_SPREAD_S


def outage(fleet: Fleet) -> tuple[float, float]:
    """Return the requests a second of the fleet while Consul has no leader: renewals and reads, then watches.

    A renewal and a holder's read end by their own timeout, a watch when Consul gives up on it. A holder reads
    no more rarely than at rest.
    """
    load = at_rest(fleet)
    exchange_s = min(EXCHANGE_MAX_S, _contender(fleet.settings, 0.0).lease.exchange_s)
    reads = max(retries(1.0, exchange_s), min(1 / exchange_s, reads_of(fleet.node)))
    short = retries(fleet.contenders, exchange_s) + fleet.contenders * fleet.node.held * reads
    return short, retries(load.queries, HOLD_S)


def _holders(settings: ItemSettings) -> int:
    return settings.limit if isinstance(settings, SemaphoreSettings) else 1


def _contender(
    settings: ItemSettings, spread: float, holds: bool = False, offset: float | None = None
) -> Contender:
    contender = new_contender(settings, spread=spread, instance="")
    tenure = Tenure("", 0, 0, 0, contact=0.0, leader=b"", previous_leader=None) if holds else None
    return replace(contender, tenure=tenure, read_offset=offset)
