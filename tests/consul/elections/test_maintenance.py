"""``candidate_check: {maintenance: true}`` beside ``consul maint``."""

import subprocess

from supervisor.adapters.consul.codec import Codec
from supervisor.adapters.consul.token import Token
from supervisor.config import ConsulSettings
from supervisor.core.outcomes import InMaintenance, Outcome
from supervisor.core.requests import ReadMaintenance
from tests.consul.elections.scene import Scene
from tests.consul.test_api import sent
from tests.support.consul import BINARY, Agent
from tests.support.supervisor import until

MAINTENANCE = {"maintenance": True, "interval": "1s"}
WHY = "this node is in Consul's maintenance mode: kernel 6.1; `consul maint -disable` ends that"


def maint(agent: Agent, *options: str, token: str = "") -> None:
    given = (f"-token={token}",) if token else ()
    argv = [str(BINARY), "maint", f"-http-addr={agent.host}:{agent.port}", *given, *options]
    subprocess.run(argv, check=True, capture_output=True)


def outcome(agent: Agent, token: str | None = None) -> Outcome:
    settings = ConsulSettings(agent.url, token=token)
    consul = Codec(settings, agent.url, Token(settings))
    request = ReadMaintenance("e", 0.0, 3.0)
    return consul.decode(request, sent(consul.encode(request)))


def test_a_holder_in_maintenance_hands_over_and_contends_again_afterwards(dev_scene: Scene) -> None:
    """Both nodes share the agent, and only the first has the setting. Its session survives the mode."""
    a = dev_scene.leader("a", candidate_check=MAINTENANCE, session={"node_checks": ["serfHealth"]})
    b = dev_scene.waiter("b")
    maint(dev_scene.agent, "-enable", "-reason", "kernel 6.1")
    assert dev_scene.wait_leader(but="a") == "b"
    assert dev_scene.calls("a") == ["acquire acquired", "lose maintenance"]
    assert a.wait_line("role", role="losing", reason="maintenance")["note"] == "kernel 6.1"
    assert outcome(dev_scene.agent) == InMaintenance(WHY, "kernel 6.1")
    until(lambda: a.item()["role"] == "ineligible", "it is unfit")
    assert WHY in a.item()["warnings"] and a.wait_line("notice", item=dev_scene.name)["why"] == WHY
    assert b.stop() == 0
    maint(dev_scene.agent, "-disable")
    assert dev_scene.wait_leader(but="b") == "a"
    agent = dev_scene.agent
    assert agent.call("PUT", "/agent/service/register", {"ID": "web1", "Name": "web"}).status == 200
    maint(agent, "-enable", "-service", "web1", "-reason", "deploy")
    assert outcome(agent) == InMaintenance(), "the mode of a service is not that of the node"
