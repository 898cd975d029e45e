"""A fleet whose files change from one limit to another, node by node."""

import time

import pytest

from tests.consul.elections.crash import refile
from tests.consul.semaphores.scene import SlotScene
from tests.support.supervisor import Supervisor, until
from tests.support.tenures import most_at_once, tenures

NODES = "abcdef"
QUIET_S = 1.0


def restart(scene: SlotScene, node: str, limit: int, how: str) -> Supervisor:
    """Restart a node with another file: in order, or by a kill as an upgrade does, which loses no slot."""
    supervisor = scene.nodes[node]
    if how == "stop":
        assert supervisor.stop() == 0
    else:
        supervisor.kill()
    scene.limit, before = limit, scene.limit
    refile(supervisor, scene.config({scene.name: scene.item(node)}))
    scene.limit = before
    supervisor.start()
    return supervisor


@pytest.mark.long
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_rolling_restart_from_3_to_5_never_exceeds_the_limit_on_record(scene: SlotScene, how: str) -> None:
    scene.restarts = True
    for node in NODES:
        scene.node(node)
    until(lambda: len(scene.holders()) == 3 and len(scene.line()) == 3, "three hold, three wait")
    for node in NODES:
        said = restart(scene, node, 5, how).wait_line("notice", level="warning")["why"]
        limits, _, remedy = said.partition("; ")
        assert limits == "limit is 5 here and 3 in Consul: the smaller counts"
        assert remedy == "`limit`, or Limit in .lock, changes that in Consul"
        until(lambda: len(scene.holders()) == 3 and len(scene.line()) == 3, f"all are back after {node}")
        assert scene.lock()["Limit"] == 3
    time.sleep(QUIET_S)
    assert most_at_once(tenures(scene.records(), scene.name)) <= 3
    scene.limit = 5
    scene.edit(Limit=5)
    until(lambda: len(scene.holders()) == 5, "five hold", within_s=10)
    time.sleep(QUIET_S)
    assert len(scene.holders()) == 5 and len(scene.line()) == 1
