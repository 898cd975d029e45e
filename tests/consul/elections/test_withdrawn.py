"""Nobody is named who does not hold, also beside agents of Consul 1.15 and later, which a proxy plays."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.consul.elections.scene import Scene
from tests.consul.elections.test_presence import PresentScene
from tests.consul.elections.test_service import NODES, GuardedFleet, Named
from tests.consul.test_check_connection import FILE, Check
from tests.support.guarded import MASTER, Guarded, Made
from tests.support.proxy import Exchange, Proxy
from tests.support.supervisor import Supervisor, until

NAMED_S = 2.0  # how long a former holder may be named
REMEDY = 'acl.tokens.agent) with node_prefix "" { policy = "write" }'
QUICK: dict[str, Any] = {"on_lose": [], "on_acquire": []}  # nothing of a loss takes time


class KeepingProxy(Proxy):
    """An agent whose own token may not write its node, and which deregisters with that token.

    It registers each instance with a token of the proxy, which is deleted before the deregistration: then the
    servers refuse it, while the agent answers 200 and forgets the instance.
    """

    def __init__(self, agent: Guarded, server: Guarded) -> None:
        super().__init__(agent.host, agent.port)
        self.consul = {"address": self.url, "token": MASTER}
        self._server, self._made = server, list[Made]()

    def _sent_on(self, head: bytes, exchange: Exchange) -> bytes:
        if "/service/deregister/" in exchange.target:
            while self._made:
                self._server.forget(self._made.pop())
        if "/service/register" in exchange.target:
            self._made.append(self._server.token_of('service_prefix "" { policy = "write" }'))
            head = head.replace(MASTER.encode(), self._made[-1].secret.encode())
        return super()._sent_on(head, exchange)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedFleet]:
    with ExitStack() as stack:
        yield GuardedFleet(tmp_path_factory.mktemp("fleet"), stack)


@pytest.fixture
def proxy(fleet: GuardedFleet) -> Iterator[KeepingProxy]:
    agent, server = fleet.agent("a"), fleet.server
    assert isinstance(agent, Guarded) and isinstance(server, Guarded)
    with KeepingProxy(agent, server) as proxy:
        yield proxy


@pytest.fixture
def named(fleet: GuardedFleet, proxy: KeepingProxy, make_scene: Any) -> Iterator[Named]:
    with make_scene(fleet.server) as scene:
        scene.lasting()
        yield Named(scene, fleet)


def without(what: str) -> Callable[[Scene, Supervisor], None]:
    """Return a reload of the file without the item's ``service``, or else with another item alone."""

    def reload(scene: Scene, a: Supervisor) -> None:
        config = yaml.safe_load(a.config_path.read_text())
        (item,) = config["elections"].values()
        if what in item:
            del item[what]
        else:
            config["elections"] = {"other": {"key": f"{scene.name}/other", "session": item["session"]}}
            config.pop(what, None)
        a.rewrite(config)
        assert a.operate("reload")[0] == 0

    return reload


ENDS: dict[str, Callable[[Scene, Supervisor], object]] = {
    "stop": lambda scene, a: a.stop(),
    "step-down": lambda scene, a: a.operate("step-down", scene.name, "--for", "1h"),
    "lost": lambda scene, a: scene.agent.session_destroy(scene.session_of("a")),
    "no service": without("service"),
    "no item": without("item"),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_former_holder_is_not_named_and_what_the_servers_keep_is_told(
    named: Named, proxy: KeepingProxy, end: str
) -> None:
    a = named.scene.leader("a", **{**named.how("a"), "consul": proxy.consul, **QUICK, "rejoin_delay": "1m"})
    until(lambda: named.fleet.by_http(named.name) == [NODES["a"]], "it is named")
    ENDS[end](named.scene, a)
    until(lambda: named.fleet.by_http(named.name) == [], "nobody passes", NAMED_S)
    (check,) = named.fleet.server.call("GET", f"/health/checks/{named.name}").json()
    assert check["Status"] == "critical" and "expired" not in check["Output"]
    why = until(lambda: a.lines("notice"), "it is told")[-1]["why"]
    assert REMEDY in why and (end in ("stop", "no item") or why in a.item()["warnings"])


@pytest.mark.parametrize("end", ["stop", "no fleet"])
@pytest.mark.parametrize("scene_class", [PresentScene])
def test_a_daemon_that_leaves_its_fleet_does_not_pass_and_says_what_the_servers_keep(
    named: Named, proxy: KeepingProxy, end: str
) -> None:
    a = named.scene.leader("a", consul=proxy.consul, **QUICK)
    until(lambda: named.fleet.status(named.name) == ["passing"], "it is there")
    (a.stop if end == "stop" else lambda: without("fleet")(named.scene, a))()
    until(lambda: named.fleet.status(named.name) == ["critical"], "it does not pass", NAMED_S)
    assert REMEDY in until(lambda: a.lines("presence"), "it is told")[-1]["why"]
    assert end == "stop" or REMEDY in str(a.status()["warnings"])


@pytest.mark.parametrize("right", ["read", "write"])
def test_check_sees_whether_the_agent_may_write_its_node(
    fleet: GuardedFleet, tmp_path: Path, right: str
) -> None:
    server = fleet.server
    assert isinstance(server, Guarded)
    own = server.token_of(f'node_prefix "" {{ policy = "{right}" }}').secret
    with Guarded(tmp_path / "agent", servers=server, agent_token=own) as agent:
        node = f"/catalog/node/{agent.node_name}"
        until(lambda: right == "read" or server.call("GET", node).json()["Node"]["Meta"], "it is written")
        with Proxy(agent.host, agent.port) as proxy:
            proxy.lie(lambda part: part.replace(b"1.8.7", b"1.16+"), "GET", "/agent/self")
            found = Check(tmp_path, f"address: '{proxy.url}', token: {MASTER}", f"fleet: {{}}\n{FILE}").found
    assert [REMEDY in one["remedy"] for one in found if one["what"] == "deregistration"] == (
        [True] if right == "read" else []
    )
