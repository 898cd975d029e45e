"""The customers of the example on a real Consul: elections of for_each, with the hooks of ``defaults``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.consul import Agent
from tests.support.examples import CONFIGS
from tests.support.supervisor import Supervisor, command, until

HOOK = 'echo "$CONSUL_SUPERVISOR_EVENT $CONSUL_SUPERVISOR_NAME $CONSUL_SUPERVISOR_REASON" >> %s'


class Customers:
    """One node with the example, whose hooks write what they do into a file."""

    def __init__(self, agent: Agent, unique: str, folder: Path) -> None:
        self._hooks = folder / "hooks"
        self._config: dict[str, Any] = yaml.safe_load((CONFIGS / "customers.yaml").read_text())
        defaults = self._config["defaults"]
        for hook in (*defaults["on_acquire"], *defaults["on_lose"]):
            hook["shell"] = HOOK % self._hooks
        (election,) = self._config["elections"].values()
        election["key"] = f"{unique}/${{EACH}}"
        self._config |= {"consul": {"address": agent.url}, "log": {"format": "json"}}
        self._election = election
        self.node = Supervisor(folder / "node", self._config)

    def rewrite(self, *customers: str) -> None:
        """Write a file with these customers."""
        self._election["for_each"] = customers
        self.node.rewrite(self._config)

    def reload(self) -> list[str]:
        """Reload, and return the reported effects."""
        done = command("reload", "--socket", str(self.node.folder / "control.sock"))
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def wait_hooks(self, *lines: str) -> None:
        """Return when the hooks have done this, in any order; they may do nothing else."""

        def done() -> set[str]:
            return set(self._hooks.read_text().splitlines() if self._hooks.exists() else ())

        until(lambda: len(done()) >= len(lines), f"the hooks have done {lines}")
        assert done() == set(lines)


@pytest.fixture
def customers(shared_agent: Agent, unique: str, tmp_path: Path) -> Iterator[Customers]:
    customers = Customers(shared_agent, unique, tmp_path)
    yield customers
    customers.node.close()


def test_a_further_customer_begins_and_the_others_go_on(
    customers: Customers, shared_agent: Agent, unique: str
) -> None:
    customers.rewrite("acme", "globex")
    customers.node.start()
    acquired = ["acquire db-acme acquired", "acquire db-globex acquired"]
    customers.wait_hooks(*acquired)
    customers.rewrite("initech", "acme")
    assert sorted(customers.reload()) == ["db-globex: removed", "db-initech: added"]
    changed = ["lose db-globex config-changed", "acquire db-initech acquired"]
    customers.wait_hooks(*acquired, *changed)
    found = shared_agent.kv_get(f"{unique}/initech")
    assert found is not None and b'"Customer":"initech"' in found["Value"]
    customers.node.wait_line("role", item="db-initech", role="holding")
    assert customers.node.stop() == 0
    customers.wait_hooks(*acquired, *changed, "lose db-acme shutdown", "lose db-initech shutdown")
    customers.node.assert_no_fault()
