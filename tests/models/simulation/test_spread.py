"""busy_delay in the simulation: four nodes with forty elections each, which stop, crash and return."""

import random
from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest

from supervisor.adapters.consul.codec import Codec
from supervisor.adapters.consul.token import Token
from supervisor.adapters.runtime.driver import Driver
from supervisor.core.actions import Action, WriteRecord
from supervisor.core.contender.creation import contender_of
from supervisor.core.contenders import Contenders
from supervisor.core.events import Answered, Event, StopAsked, Tick
from supervisor.core.outcomes import Outcome
from supervisor.core.requests import Request
from supervisor.core.settings import ElectionSettings, SessionSettings, Wanted
from tests.models.simulation.cluster import Cluster
from tests.models.simulation.disk import CONSUL
from tests.models.simulation.network import Network
from tests.models.simulation.schedule import Schedule
from tests.models.simulation.trace import Trace

ITEMS, NODES, ROUNDS = 40, "abcd", 12
BUSY_S, TTL_S, LOCK_DELAY_S = 0.5, 10.0, 15.0
CRASHED_S = 2 * TTL_S + LOCK_DELAY_S + (ITEMS + 2) * BUSY_S  # until the last lock of a dead node is taken
STOPPED_S = (ITEMS + 2) * BUSY_S


class Node:
    """One process of a node, which the driver acts upon."""

    def __init__(self, name: str, cluster: Cluster, schedule: Schedule, dice: random.Random) -> None:
        self.name, self.is_up = name, True
        self._schedule = schedule
        self._consul = Codec(CONSUL, CONSUL.address, Token(CONSUL))
        self._network = Network(self, cluster, dice, schedule)
        self._wakes = 0
        session = SessionSettings(name, ttl_s=TTL_S, lock_delay_s=LOCK_DELAY_S)
        items = (
            ElectionSettings(f"e{n}", session=session, key=f"e{n}", value=name.encode(), busy_delay_s=BUSY_S)
            for n in range(ITEMS)
        )
        begun = [
            contender_of(Wanted(item, spread=dice.random()), instance=str(dice.random()), now=schedule.now)
            for item in items
        ]
        self._driver = Driver(Contenders(begun), self, {})
        self.deliver(Tick())

    def deliver(self, event: Event) -> None:
        """Take a step, unless the process is gone."""
        if self.is_up:
            self._driver.dispatch(event)

    def now(self) -> float:
        return self._schedule.now

    def request(self, request: Request) -> None:
        self._network.send(self._consul, request, request.timeout_s, partial(self._answered, request))

    def has(self, condition: str) -> bool:
        """Return that nothing ails its network."""
        return False

    def _answered(self, request: Request, outcome: Outcome) -> None:
        self.deliver(Answered(request, outcome))

    def write_record(self, write: WriteRecord) -> str:
        return ""

    def wake(self, at: float) -> None:
        self._wakes += 1
        self._schedule.at(at, self._woken, self._wakes)

    def _woken(self, wake: int) -> None:
        if wake == self._wakes:
            self.deliver(Tick())

    def observe(self, event: Event, actions: list[Action]) -> None:
        pass


class Fleet:
    """Four nodes and their Consul, in virtual time."""

    def __init__(self, seed: int) -> None:
        self.dice, self.schedule = random.Random(seed), Schedule()
        self._cluster = Cluster(seed, tuple(NODES), self.schedule, Trace(), "election")
        self.nodes: dict[str, Node] = {}

    def start(self, name: str) -> None:
        self.nodes[name] = Node(name, self._cluster, self.schedule, self.dice)
        self.pass_time(5.0)

    def end(self, name: str, *, in_order: bool) -> None:
        """Stop this node or crash it, and wait until all that it led is led by others."""
        node = self.nodes.pop(name)
        if in_order:
            node.deliver(StopAsked())
            self.pass_time(1.0)
        node.is_up = False
        self.pass_time(STOPPED_S if in_order else CRASHED_S)

    def pass_time(self, for_s: float) -> None:
        self.schedule.run(self.schedule.now + for_s)

    def led(self) -> Counter[str]:
        """Count the elections that Consul shows as led, by node. Each node counts, also without one."""
        return Counter({**dict.fromkeys(self.nodes, 0), **Counter(self._leaders())})

    def _leaders(self) -> Iterator[str]:
        for key in self._cluster.model.store.kv.tree("e"):
            if key.session:
                yield key.value.decode()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_leaders_spread_over_the_nodes_however_these_end_and_return(seed: int) -> None:
    fleet = Fleet(seed)
    for name in NODES:
        fleet.start(name)
    assert fleet.led().total() == ITEMS
    for number in range(ROUNDS):
        name, before = fleet.dice.choice(NODES), fleet.led()
        fleet.end(name, in_order=number < len(NODES) or fleet.dice.random() < 0.5)
        after = fleet.led()
        gained = [after[each] for each in after if after[each] > before[each]]
        assert after.total() == ITEMS, (number, before, after)
        assert max(gained, default=0) <= min(after.values()) + 1, (number, name, before, after)
        fleet.start(name)
