"""More elections than may have a watch of their own: the promises of one election hold for each of them."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from supervisor.adapters.consul.shared.grouping import WATCHES_MAX
from tests.support.consul import Agent
from tests.support.supervisor import Supervisor, until

MANY = WATCHES_MAX + 16
SESSION = {"ttl": "10s", "lock_delay": "20s"}


class Cast:
    """Supervisors that take part in the same elections."""

    def __init__(self, folder: Path, agent: Agent, unique: str) -> None:
        self._folder = folder
        self._agent = agent
        self._unique = unique
        self._made: list[Supervisor] = []

    def join(self, name: str) -> Supervisor:
        one = Supervisor(self._folder / name, self._config(name))
        self._made.append(one)
        one.start()
        return one

    def _config(self, name: str) -> dict[str, Any]:
        told = f"echo $CONSUL_SUPERVISOR_NAME $CONSUL_SUPERVISOR_REASON >>{self._folder}/{name}.$0"
        hooks = {on: [{"exec": ["sh", "-c", told, on]}] for on in ("on_acquire", "on_lose")}
        elections: dict[str, Any] = {
            f"e{number:03}": {
                "key": f"{self._unique}/e{number:03}/leader",
                "value": name,
                "session": {**SESSION, "name": f"{self._unique}-{name}"},
                **hooks,
            }
            for number in range(MANY)
        }
        return {"consul": {"address": self._agent.url}, "elections": elections}

    def led_by(self, name: str) -> int:
        """Count the elections that Consul shows as led by this node."""
        entries = self._agent.kv_list(f"{self._unique}/")
        return sum(entry["Value"] == name.encode() and bool(entry["Session"]) for entry in entries)

    def sessions_of(self, name: str) -> int:
        return sum(each["Name"] == f"{self._unique}-{name}" for each in self._agent.sessions())

    def told(self, name: str, on: str) -> list[str]:
        """Return the lines of these hooks, sorted."""
        path = self._folder / f"{name}.{on}"
        return sorted(path.read_text().splitlines()) if path.exists() else []

    def close(self) -> None:
        for one in self._made:
            one.close()


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """An agent for two such nodes and the test, which all have one address and so share Consul's limit."""
    limits = {"limits": {"http_max_conns_per_client": 1000}}
    with Agent(tmp_path_factory.mktemp("many") / "consul", config=limits) as made:
        yield made


@pytest.fixture
def cast(tmp_path: Path, agent: Agent, unique: str) -> Iterator[Cast]:
    with closing(Cast(tmp_path, agent, unique)) as made:
        yield made


def each(reason: str) -> list[str]:
    return [f"e{number:03} {reason}" for number in range(MANY)]


@pytest.mark.long
def test_all_elections_go_over_to_the_other_node_and_run_each_hook_once(cast: Cast) -> None:
    a = cast.join("a")
    until(lambda: cast.told("a", "on_acquire") == each("acquired"), "a leads all")
    b = cast.join("b")
    until(lambda: cast.sessions_of("b") == MANY, "b is in line for all")
    assert a.stop() == 0
    until(lambda: cast.told("b", "on_acquire") == each("acquired"), "b leads all")
    assert cast.told("a", "on_lose") == each("shutdown")
    assert cast.led_by("b") == MANY
    assert b.stop() == 0
    assert cast.told("b", "on_lose") == each("shutdown")
