"""Redis and PostgreSQL as Debian packages them, set up on two machines by the READMEs of the examples.

Their services, users and folders are Debian's, and our unit's sandbox applies. What the scripts decide with
more nodes is shown by tests/system/applications and tests/processes/test_redis_failover.py.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.pages import fenced
from tests.support.supervisor import ROOT, until
from tests.system.machine.machine import Machine
from tests.system.machine.node import DROP_INS, UNIT, install_product
from tests.system.machine.pair import ADDRESSES, Pair
from tests.system.machine.wheels import make_wheels

PASSWORD = "not-a-good-one"
CHECKOUT = "/srv/checkout"
SLOW_S = 60.0
ASKS = "su postgres -c \"psql -c '\\password"
MINE = {
    " 192.0.2.13:5432": "",  # only two nodes exist
    **{f"192.0.2.1{number}": address for number, address in enumerate(ADDRESSES.values(), 1)},
    "192.0.2.0/24": "10.20.30.0/24",
    "PASSWORD": PASSWORD,
    # The package is installed already; installing it would also start it.
    "apt install redis-server": "systemctl enable -q --now redis-server",
    "apt install postgresql-15 procps": "systemctl enable -q --now postgresql",
    ASKS: rf"printf '{PASSWORD}\n{PASSWORD}\n' | {ASKS}",
    "systemctl edit consul-supervisor": "true",
}


class Example:
    """One of the examples, and the section Install of its README."""

    def __init__(self, pair: Pair, name: str) -> None:
        self._pair = pair
        self._name = name
        self._blocks = fenced(ROOT / "examples" / name / "README.md")

    def _texts(self, language: str) -> list[str]:
        return [
            block.text for block in self._blocks if (block.section, block.language) == ("Install", language)
        ]

    def does(self, node: str, step: int) -> None:
        """Run the commands of that block of the README in a checkout."""
        text = mine(self._texts("sh")[step], node)
        folder = CHECKOUT if "cd examples/" in text else f"{CHECKOUT}/examples/{self._name}"
        self._pair.machines[node].did(f"cd {folder}\n{text}")

    def text(self, node: str, language: str) -> str:
        """Return the only block of this language in the README, with the values of this node."""
        (text,) = self._texts(language)
        return mine(text, node)


def mine(text: str, node: str) -> str:
    """Replace the README's addresses by those of these machines, and its own address by this node's."""
    for theirs, ours in MINE.items():
        text = text.replace(theirs, ours)
    own = re.compile(r"((?:bind 127.0.0.1|_ADDRESS=)[ ]?)[\d.]+")
    return own.sub(rf"\g<1>{ADDRESSES[node]}", text)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Yield two machines with the product by our README and a checkout of it; no supervisor runs yet."""
    assert os.geteuid() == 0, "cannot boot a machine: this needs root"
    folder = tmp_path_factory.mktemp("databases")
    make_wheels(folder / "wheels")
    with Pair(folder) as made:
        for machine in made.machines.values():
            install_product(machine, folder / "wheels")
            machine.did("mkdir -p /etc/consul-supervisor /srv/checkout")
            copy(ROOT / "examples", machine)
        yield made


@pytest.fixture(autouse=True)
def clean(pair: Pair) -> Iterator[None]:
    """Remove everything that an example has left, so that the next one starts clean."""
    yield
    for machine in pair.machines.values():
        machine.did(f"systemctl stop {UNIT} redis-server postgresql")
        machine.did(f"rm -rf /etc/consul-supervisor/* {DROP_INS} /var/lib/{UNIT}; systemctl daemon-reload")


def copy(folder: Path, machine: Machine) -> None:
    """Copy the files that an operator takes from a checkout."""
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix in ("", ".yaml", ".conf", ".sql"):
            target = f"{CHECKOUT}/examples/{path.relative_to(folder)}"
            machine.write(target, path.read_text(), path.stat().st_mode & 0o777)


def prepare(example: Example, pair: Pair) -> None:
    """Write on both machines the drop-in that the operator would write in ``systemctl edit``."""
    for name, machine in pair.machines.items():
        machine.write(f"{DROP_INS}/override.conf", example.text(name, "ini"))
        machine.did("systemctl daemon-reload")


def wait_leader(pair: Pair, election: str, node: str) -> None:
    """Wait for the leader by the command of an operator, in a shell without the unit's variables."""

    def leads() -> bool:
        ran = [machine.sh(f"consul-supervisor leader {election}") for machine in pair.machines.values()]
        return {each.stdout.split(":")[0] for each in ran} == {ADDRESSES[node]}

    wait(pair, leads, f"{node} leads {election}")
    wait_role(pair, election, node, "holding")


def wait_role(pair: Pair, election: str, node: str, role: str) -> None:
    machine = pair.machines[node]
    wait(pair, lambda: role in machine.sh(f"consul-supervisor status {election}").stdout, f"{node} is {role}")


def wait(pair: Pair, condition: Callable[[], object], what: str) -> None:
    """Wait for the condition; fail with the logs of all supervisors."""
    until(condition, what, SLOW_S, lambda: f"{pair.log('one')}\n{pair.log('two')}")


# --- Redis -------------------------------------------------------------------------------------------


def test_redis_fails_over_when_set_up_by_its_readme(pair: Pair) -> None:
    example = Example(pair, "redis")
    one, two = pair.machines["one"], pair.machines["two"]
    for name, machine in pair.machines.items():
        example.does(name, 0)
        machine.write(
            "/etc/redis/redis.conf", machine.read("/etc/redis/redis.conf") + example.text(name, "text")
        )
        machine.did("chown redis: /etc/redis/redis.conf; systemctl restart redis-server")
        example.does(name, 1)
    prepare(example, pair)
    assert redis(one, "SET greeting hello").startswith("READONLY")
    one.did(f"systemctl restart {UNIT}")
    wait_role(pair, "redis", "one", "acquiring")
    two.did(f"systemctl restart {UNIT}")
    wait_leader(pair, "redis", "one")
    wait(pair, lambda: redis(one, "SET greeting hello") == "OK", "it takes writes")
    wait(pair, lambda: redis(two, "GET greeting") == "hello", "the other follows")
    wait_role(pair, "redis", "two", "waiting")
    one.did("consul-supervisor step-down redis --for 5s")
    wait_leader(pair, "redis", "two")
    wait(pair, lambda: redis(two, "SET greeting hi") == "OK", "the other takes writes")
    wait(pair, lambda: redis(one, "GET greeting") == "hi", "the first follows")
    assert redis(one, "SET greeting no").startswith("READONLY")
    # The last resort of systemd: a Redis that stands still is killed, and refuses writes after its restart.
    two.did("systemctl kill -s STOP redis-server")
    wait_leader(pair, "redis", "one")
    wait(pair, lambda: redis(two, "SET greeting no").startswith("READONLY"), "the former follows")
    assert redis(one, "GET greeting") == "hi"


def redis(machine: Machine, words: str) -> str:
    return machine.run("redis-cli", *words.split(), environ={"REDISCLI_AUTH": PASSWORD}).stdout.strip()


# --- PostgreSQL --------------------------------------------------------------------------------------


def test_postgresql_fails_over_when_set_up_by_its_readme(pair: Pair) -> None:
    example = Example(pair, "postgresql")
    one, two = pair.machines["one"], pair.machines["two"]
    everywhere, first, others, configure, start = range(5)
    for name in pair.machines:
        example.does(name, everywhere)
    example.does("one", first)
    example.does("two", others)
    for name, machine in pair.machines.items():
        conf = f"{CHECKOUT}/examples/postgresql/postgresql-failover.conf"
        machine.write(conf, mine(machine.read(conf), name))
        example.does(name, configure)
    prepare(example, pair)
    example.does("one", start)
    wait_leader(pair, "postgresql", "one")
    two.did(f"systemctl restart {UNIT}")
    wait(pair, lambda: sql(one, "SELECT sync_state FROM pg_stat_replication") == "quorum", "it streams")
    assert sql(one, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)") is not None
    for machine in (one, two):
        machine.did("timeout 30 sh -c 'until systemctl -q is-active postgresql@15-main; do sleep 1; done'")
    wait_role(pair, "postgresql", "two", "waiting")
    one.did("consul-supervisor step-down postgresql --for 5s")
    wait_leader(pair, "postgresql", "two")
    wait(pair, lambda: sql(two, "SELECT sync_state FROM pg_stat_replication") == "quorum", "it streams")
    assert sql(two, "INSERT INTO t VALUES (2)") is not None
    wait(pair, lambda: sql(one, "SELECT string_agg(n::text, ' ' ORDER BY n) FROM t") == "1 2", "it has both")
    assert sql(one, "SELECT pg_is_in_recovery()") == "t"


def sql(machine: Machine, query: str) -> str | None:
    """Return the answer of the node's PostgreSQL; None when it does not answer."""
    ran = machine.run("su", "postgres", "-c", 'timeout 20 psql -XAtq -c "$1"', "sh", query)
    return ran.stdout.strip() if ran.returncode == 0 else None
