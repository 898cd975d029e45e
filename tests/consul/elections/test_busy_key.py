"""A key that changes without pause costs each supervisor a bounded number of requests a second."""

import time

from supervisor.consul.rate import BURST, EVERY_S
from tests.consul.elections.scene import Scene
from tests.support.supervisor import until

PUTS = 400


def test_a_key_that_changes_without_pause_costs_some_requests_a_second(scene: Scene) -> None:
    a = scene.leader("a")
    b = scene.waiter("b")
    asked = {node: len(node.lines("request", kind="watch key")) for node in (a, b)}
    began_at = time.monotonic()
    for number in range(PUTS):
        scene.agent.kv_put(scene.key, str(number).encode())
    for node, before in asked.items():
        watches = len(node.lines("request", kind="watch key")) - before
        took_s = time.monotonic() - began_at
        assert watches < BURST + took_s / EVERY_S + 5, f"{watches} in {took_s:.1f} s"
    until(lambda: a.stop() == 0, "it stops")
    assert scene.wait_leader(but="a") == "b"
