"""Error responses of Consul are reported by their kind: a fault of the file, a rate limit, an error."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.consul.conftest import MakeScene
from tests.consul.elections.scene import Scene
from tests.consul.elections.test_reload import reload
from tests.support.consul import WAYS, Agent
from tests.support.guarded import EACH_WAY
from tests.support.supervisor import Supervisor

LIMIT = {"rpc_rate": 0.2, "rpc_max_burst": 20}  # of the requests of a client agent to its servers


@pytest.mark.parametrize("asked", EACH_WAY)
def test_a_ttl_that_consul_does_not_allow_is_a_fault_of_the_file(
    tmp_path: Path, make_scene: MakeScene[Scene], asked: str
) -> None:
    """Such a refusal must not look like silence, because another TTL in the file mends it."""
    with ExitStack() as stack:
        agent = stack.enter_context(Agent(tmp_path / "server", config={"session_ttl_min": "10s"}))
        if asked != WAYS[0]:
            agent = stack.enter_context(Agent(tmp_path / "client", servers=agent))
        with make_scene(agent) as scene:
            scene.restarts = True
            a = scene.node("a")
            line = a.wait_line("consul-refused", kinds=["create session"])
            assert "Invalid Session TTL" in line["why"] and line["level"] == "error"
            a.rewrite(scene.config({scene.name: scene.item("a", session={"ttl": "10s"})}))
            assert reload(a)[0] == 0
            a.wait_line("role", role="holding")
            assert not a.lines("consul-silent") and not a.lines("consul-fails")


def test_an_error_that_consul_repeats_is_reported_in_its_own_words(tmp_path: Path) -> None:
    """A client agent without its servers answers, so the log must not call Consul silent."""
    with Agent(tmp_path / "server") as server, Agent(tmp_path / "client", servers=server) as client:
        items = {"app": {"session": {"ttl": "2s", "lock_delay": "20s"}}}
        a = Supervisor(tmp_path / "a", {"consul": {"address": client.url}, "elections": items})
        with a:
            a.wait_line("role", role="holding")
            server.kill()
            line = a.wait_line("consul-fails")
            assert line["why"].startswith("500 ") and line["level"] == "warning"
            assert a.item()["last_error"]["text"].startswith("Consul answers 500 ")
