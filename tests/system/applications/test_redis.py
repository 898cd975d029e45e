"""Redis by examples/redis: one primary at a time, and no write is lost that a replica had confirmed."""

import time
from collections.abc import Iterator

import pytest

from tests.support.examples import warnings_in
from tests.support.supervisor import command, until
from tests.system.applications.redis_nodes import RedisDatabase
from tests.system.applications.stage import Stage


@pytest.fixture
def scene(stage: Stage) -> Iterator[RedisDatabase]:
    """Yield three nodes whose supervisors do not run yet, while the client and the probes try to write."""
    with RedisDatabase(stage) as made:
        yield made


def test_the_example_has_neither_fault_nor_warning() -> None:
    checked = command("check", "examples/redis/redis.yaml", environ={"REDIS_ADDRESS": "192.0.2.11:6379"})
    assert checked.returncode == 0 and not warnings_in(checked.stdout + checked.stderr), checked


def test_no_redis_takes_writes_before_a_node_leads(scene: RedisDatabase) -> None:
    for node in scene.nodes:
        until(lambda node=node: node.info(), f"{node.name} answers")  # type: ignore[misc]
        assert node.ask("SET", "a", "b").startswith("-READONLY")
        assert node.ask("REPLICAOF", "NO", "ONE") == "+OK"  # an operator's mistake
        assert node.ask("SET", "a", "b").startswith("-NOREPLICAS")


def test_a_machine_that_dies_is_replaced_and_follows_when_it_is_back(scene: RedisDatabase) -> None:
    a, b, c = scene.led_by_first()
    a.die()
    died_at = time.monotonic()
    new = scene.wait_leader(but=a)
    other = c if new is b else b
    scene.wait_following(new, other)
    scene.wait_confirmed(new)
    a.rise()
    scene.wait_following(new, a, other)
    scene.tell("crash", a, new, died_at)
    scene.judge(a, new)
    assert all(node.supervisor.stop() == 0 for node in (a, b, c))


def test_a_node_that_lacks_writes_leaves_the_lead_to_one_that_has_them(scene: RedisDatabase) -> None:
    a, b, c = scene.led_by_first()
    assert c.supervisor.stop() == 0
    assert c.ask("REPLICAOF", "127.0.0.1", "1") == "+OK"  # c receives no further writes
    scene.wait_confirmed(a)  # only b confirms them
    assert b.supervisor.stop() == 0
    a.die()
    c.supervisor.start()
    c.supervisor.wait_line("hook-failed", hook="promote")
    assert any("has newer data" in line.get("text", "") for line in c.supervisor.lines("hook-output"))
    b.supervisor.start()
    assert scene.wait_leader() is b
    scene.wait_following(b, c)
    scene.wait_confirmed(b)
    scene.judge(a, b)


def test_a_redis_that_restarts_under_its_leader_is_no_primary_any_more(scene: RedisDatabase) -> None:
    """The restarted Redis may have lost writes that were not on its disk.

    The replicas have them, and one takes over.
    """
    a, b, c = scene.led_by_first()
    a.redis.kill()
    a.redis.start()
    killed_at = time.monotonic()
    new = scene.wait_leader(but=a)
    scene.wait_following(new, a, c if new is b else b)
    scene.wait_confirmed(new)
    scene.tell("Redis alone started anew", a, new, killed_at)
    scene.judge(a, new)


def test_the_next_leader_makes_a_primary_without_a_supervisor_refuse_writes(
    scene: RedisDatabase,
) -> None:
    a, b, c = scene.led_by_first()
    a.supervisor.kill()
    new = scene.wait_leader(but=a)
    scene.wait_confirmed(new)
    assert a.ask("SET", "a", "b").startswith("-NOREPLICAS")
    scene.judge(a, new)
    a.supervisor.start()
    scene.wait_following(new, a)
    assert not scene.lost(a)
