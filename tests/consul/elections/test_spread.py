"""busy_delay: many elections spread over the nodes, on a real Consul."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.consul import Agent
from tests.support.supervisor import Supervisor, until

ITEMS, NODES = 40, ("a", "b", "c", "d")
SESSION = {"ttl": "10s", "lock_delay": "15s"}


class Fleet:
    """Four supervisors with the same forty elections."""

    def __init__(self, folder: Path, agent: Agent, unique: str) -> None:
        self._agent, self._unique = agent, unique
        self.nodes = {name: Supervisor(folder / name, self._config(name)) for name in NODES}

    def _config(self, name: str) -> dict[str, Any]:
        election = {
            "for_each": [f"e{number:02}" for number in range(ITEMS)],
            "key": f"{self._unique}/${{EACH}}/leader",
            "value": name,
            "session": {**SESSION, "name": f"{self._unique}-{name}"},
            "busy_delay": "1s",  # longer than what a loaded machine needs for one try
        }
        return {"consul": {"address": self._agent.url}, "elections": {"e-${EACH}": election}}

    def held(self) -> Counter[str]:
        """Count the elections that Consul shows as led, by node."""
        entries = self._agent.kv_list(f"{self._unique}/")
        return Counter(entry["Value"].decode() for entry in entries if entry["Session"])

    def wait_all_led(self) -> Counter[str]:
        until(lambda: self.held().total() == ITEMS, "each election is led", 120.0)
        return self.held()

    def start(self, name: str) -> None:
        """Start a node, and wait until it is in line for what it does not lead."""
        self.nodes[name].start()
        session = f"{self._unique}-{name}"
        until(lambda: sum(each["Name"] == session for each in self._agent.sessions()) == ITEMS, name)

    def roll(self) -> Counter[str]:
        """Restart one node after the other, and return what each leads after that."""
        for node in self.nodes.values():
            assert node.stop() == 0
            node.start()
            self.wait_all_led()
        return self.held()

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()


@pytest.fixture
def fleet(tmp_path: Path, unique: str) -> Iterator[Fleet]:
    limits = {"limits": {"http_max_conns_per_client": 1000}}
    with (
        Agent(tmp_path / "consul", config=limits) as agent,
        closing(Fleet(tmp_path, agent, unique)) as made,
    ):
        yield made


@pytest.mark.long
def test_forty_elections_spread_over_four_nodes(fleet: Fleet) -> None:
    """One node has all at first, because it was alone. Nothing moves until a leader stops or crashes."""
    fleet.start("a")
    assert fleet.wait_all_led() == {"a": ITEMS}
    for name in NODES[1:]:
        fleet.start(name)
    assert max(fleet.roll().values()) <= 13
    held = fleet.roll()
    assert max(held.values()) <= 12, held
    fleet.nodes["d"].kill()
    until(lambda: set(fleet.held()) == set("abc") and fleet.held().total() == ITEMS, "the rest leads", 120.0)
    assert max(fleet.held().values()) <= ITEMS // 3 + 1, (held, fleet.held())
    fleet.start("d")
    held = fleet.roll()
    assert max(held.values()) <= 12, held
    for node in fleet.nodes.values():
        node.assert_no_fault()
