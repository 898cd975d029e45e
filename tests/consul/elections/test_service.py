"""``service``: the name of the holder in Consul, over DNS and HTTP, through a client agent on each node."""

import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.consul.elections.scene import LASTING, Scene
from tests.consul.elections.test_handover import step_down
from tests.consul.semaphores.scene import SlotScene
from tests.support.consul import Agent, free_ports
from tests.support.dns import addresses
from tests.support.guarded import Guarded, Made, write
from tests.support.proxy import Proxy, Rule
from tests.support.supervisor import Supervisor, until
from tests.support.turns import first_now

NODES = {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3", "d": "10.0.0.4"}
LASTING_TTL_S = 5.0  # three intervals with LASTING
ROUNDS = 4


class Fleet:
    """A server whose DNS is asked, and client agents, one for each node."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self.dns = free_ports(1)[0]
        self.server = stack.enter_context(self.make_server())
        self.clients: dict[str, Agent] = {}

    def make_server(self) -> Agent:
        config = {"ports": {"dns": self.dns}}
        return Agent(self._folder / "server", persistent=True, config=config)

    def make_client(self, node: str) -> Agent:
        return Agent(self._folder / node, servers=self.server)

    def agent(self, node: str) -> Agent:
        if node not in self.clients:
            self.clients[node] = self._stack.enter_context(self.make_client(node))
        return self.clients[node]

    def by_dns(self, name: str, kind: int = 1) -> list[str]:
        return addresses(self.dns, f"{name}.service.consul", kind)

    def by_http(self, name: str) -> list[str]:
        """Return the addresses of the instances that pass."""
        listed = self.server.call("GET", f"/health/service/{name}?passing").json()
        return sorted(each["Service"]["Address"] for each in listed)

    def status(self, name: str) -> list[str]:
        """Return the state of the check of each instance in the catalog."""
        return [each["Status"] for each in self.server.call("GET", f"/health/checks/{name}").json()]


@pytest.fixture(scope="module")
def shared_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Return agents that no test stops."""
    with ExitStack() as stack:
        yield Fleet(tmp_path_factory.mktemp("fleet"), stack)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Return agents of this test alone."""
    with ExitStack() as stack:
        yield Fleet(tmp_path / "fleet", stack)


class Named:
    """A scene whose nodes are named in Consul while they hold."""

    def __init__(self, scene: Scene, fleet: Fleet) -> None:
        self.scene, self.fleet = scene, fleet
        self.name = scene.name.replace("_", "-")[:50]

    def settings(self, node: str, **changes: object) -> dict[str, object]:
        """Return the service of this node. A change to None leaves its key out."""
        given = {"name": self.name, "port": 5432, "address": NODES[node], **changes}
        return {key: value for key, value in given.items() if value is not None}

    def how(self, node: str, **changes: Any) -> dict[str, Any]:
        """Return how this node is started: with its service, through its own agent."""
        address = self.scene.proxy.url if changes.pop("proxy", False) else self.fleet.agent(node).url
        return {"service": self.settings(node), "consul": {"address": address}, **changes}

    def leader(self, node: str, **changes: Any) -> Supervisor:
        """Start a node alone, and return when it is named."""
        made = self.scene.leader(node, **self.how(node, **changes))
        self.wait([NODES[node]])
        return made

    def wait(self, names: list[str]) -> None:
        """Return when Consul names these addresses and no others."""
        until(lambda: self.fleet.by_dns(self.name) == names, f"{names} by DNS")
        until(lambda: self.fleet.by_http(self.name) == names, f"{names} by HTTP")

    def ids(self, node: str) -> list[str]:
        """Return the ids of the instances at the agent of this node."""
        found = self.fleet.agent(node).call("GET", "/agent/services").json()
        return [name for name, each in found.items() if each["Service"] == self.name]


@pytest.fixture
def named(shared_fleet: Fleet, make_scene: Any) -> Iterator[Named]:
    """Return a scene on agents that no test stops."""
    with make_scene(shared_fleet.server) as scene:
        yield Named(scene, shared_fleet)


@pytest.fixture
def own(fleet: Fleet, make_scene: Any) -> Iterator[Named]:
    """Return a scene on agents that this test may stop."""
    with make_scene(fleet.server) as scene:
        yield Named(scene, fleet)


def test_consul_names_the_holder_and_nobody_before_and_after(named: Named) -> None:
    """The hook of on_lose sees that nobody is named any more, and a look never sees two names."""

    def names() -> list[str]:
        return named.fleet.by_dns(named.name)

    slow = {"on_acquire": [named.scene.hook("a", "acquire", "sleep 0.3")]}
    slow["on_lose"] = [named.scene.hook("a", "lose", "sleep 0.5")]
    a = named.scene.node("a", **named.how("a", **slow))
    named.scene.wait(node="a", stage="begin", event="acquire")
    assert names() == []
    a.wait_line("role", role="holding")
    named.wait([NODES["a"]])
    (entry,) = named.fleet.server.call("GET", f"/health/service/{named.name}").json()
    assert entry["Service"]["Port"] == 5432 and entry["Service"]["Meta"] == {
        "managed-by": "consul-supervisor"
    }
    b = named.scene.waiter("b", **named.how("b"))
    a.signal(signal.SIGTERM)
    named.scene.wait(node="a", stage="begin", event="lose")
    until(lambda: names() == [], "nobody is named")
    assert named.scene.records(node="a", stage="end", event="lose") == [], (
        "the name went before on_lose ended"
    )
    while NODES["b"] not in (found := names()):
        assert found == []
    assert a.wait() == 0 and b.lines("role", role="holding")
    assert named.ids("a") == [] and len(named.ids("b")) == 1


@pytest.mark.long
def test_the_next_process_takes_the_instance_over(named: Named) -> None:
    named.scene.lasting()
    named.scene.restarts = True
    a = named.leader("a")
    ids = named.ids("a")
    named.scene.kill("a")
    assert named.fleet.by_http(named.name) == [NODES["a"]]
    a.start()
    a.wait_line("role", role="holding", reason="adopted")
    for _ in range(20):
        assert named.fleet.by_http(named.name) == [NODES["a"]] and named.ids("a") == ids
    until(lambda: a.lines("request", kind="pass service"), "the check passes again")


def critical_within_its_ttl(named: Named) -> None:
    """Wait until nobody is named; the check is critical, and Consul keeps the instance for a minute."""
    named.wait([])
    assert named.fleet.status(named.name) == ["critical"]
    definition = named.fleet.agent("a").call("GET", "/agent/checks").text
    assert "TTL expired" in definition


@pytest.mark.long
def test_the_name_of_a_supervisor_that_does_not_come_back_goes_with_its_ttl(named: Named) -> None:
    named.leader("a")
    named.scene.kill("a")
    critical_within_its_ttl(named)


@pytest.mark.long
def test_a_frozen_supervisor_is_not_named(named: Named) -> None:
    named.scene.overlap = True
    a = named.leader("a")
    a.signal(signal.SIGSTOP)
    critical_within_its_ttl(named)
    a.signal(signal.SIGCONT)
    until(lambda: named.fleet.status(named.name) in ([], ["passing"]), "it is removed, or holds again")


@pytest.mark.long
def test_an_instance_of_another_program_is_left_alone(named: Named) -> None:
    named.scene.restarts = True
    a = named.leader("a")
    (theirs,) = named.ids("a")
    assert a.stop() == 0
    agent = named.fleet.agent("a")
    agent.call("PUT", "/agent/service/register", {"ID": theirs, "Name": "theirs", "Port": 1})
    a.start()
    a.wait_line("role", role="holding")
    why = until(lambda: a.lines("notice"), "it is reported")[-1]["why"]
    assert f"consul services deregister -id={theirs}" in why and why in a.item()["warnings"]
    assert agent.call("GET", f"/agent/service/{theirs}").json()["Service"] == "theirs"
    agent.call("PUT", f"/agent/service/deregister/{theirs}")
    named.wait([NODES["a"]])
    until(lambda: why not in a.item()["warnings"], "the notice is over")


def test_an_id_that_another_program_takes_over_is_left_alone_at_the_stop(named: Named) -> None:
    """The check that the other program has not replaced goes on passing, so no answer to a pass tells."""
    a = named.leader("a")
    (theirs,) = named.ids("a")
    agent = named.fleet.agent("a")
    agent.call("PUT", "/agent/service/register", {"ID": theirs, "Name": "theirs", "Port": 1})
    assert a.stop() == 0
    assert agent.call("GET", f"/agent/service/{theirs}").json()["Service"] == "theirs"
    agent.call("PUT", f"/agent/service/deregister/{theirs}")


def test_two_elections_may_have_one_name(named: Named) -> None:
    other = f"{named.scene.name}x"
    items = {
        named.scene.name: named.scene.item("a", service=named.settings("a")),
        other: named.scene.item("a", key=f"{other}/leader", service=named.settings("a", address="10.0.0.8")),
    }
    named.scene.node("a", items=items, consul={"address": named.fleet.agent("a").url})
    named.wait(sorted([NODES["a"], "10.0.0.8"]))
    assert len(named.ids("a")) == 2


@pytest.mark.long
@pytest.mark.parametrize("scene_class", [SlotScene], ids=["semaphore"])
def test_each_holder_of_a_semaphore_is_named_and_a_waiter_is_not(named: Named) -> None:
    """Three hold and have an instance each, and the fourth has one only when a slot is free."""
    assert isinstance(named.scene, SlotScene)
    named.scene.lasting()
    for node in "abc":
        named.scene.holder(node, **named.how(node))
    named.wait([NODES[node] for node in "abc"])
    named.scene.waiter("d", **named.how("d"))
    assert named.fleet.by_http(named.name) == [NODES[node] for node in "abc"] and named.ids("d") == []
    a = named.scene.nodes["a"]
    a.signal(signal.SIGTERM)
    while NODES["d"] not in (found := named.fleet.by_http(named.name)):
        assert len(found) == len(set(found)) and set(found) <= {NODES[node] for node in "abc"}
    assert a.wait() == 0
    named.wait([NODES[node] for node in "bcd"])
    assert named.ids("a") == [] and [len(named.ids(node)) for node in "bcd"] == [1, 1, 1]


@pytest.mark.long
def test_an_address_may_be_of_ipv6_and_a_variable(named: Named) -> None:
    settings = named.settings("a", address="${NODE_ADDRESS}", tags=["primary"])
    named.scene.leader("a", **named.how("a", service=settings, environ={"NODE_ADDRESS": "fd00::7"}))
    until(lambda: named.fleet.by_dns(named.name, 28) == ["fd00::7"], "its address in DNS")
    assert named.fleet.by_dns(f"primary.{named.name}", 28) == ["fd00::7"]


@pytest.mark.long
@pytest.mark.parametrize("wiped", [False, True], ids=["restarted", "wiped"])
def test_the_instance_comes_back_with_the_agent(own: Named, wiped: bool) -> None:
    """A restarted agent has its registrations, and an agent without its data has none."""
    own.scene.terms = LASTING
    own.leader("a")
    agent = own.fleet.agent("a")
    agent.kill()
    if wiped:
        for path in (agent.folder / "data" / "services", agent.folder / "data" / "checks"):
            for file in path.rglob("*"):
                file.unlink()
    agent.start()
    own.wait([NODES["a"]])
    time.sleep(0.1)
    until(lambda: own.ids("a") != [], "the agent has it")
    assert own.scene.calls("a") == ["acquire acquired"]


@pytest.mark.long
def test_the_instance_goes_with_an_agent_that_leaves(own: Named) -> None:
    own.scene.terms = LASTING
    own.leader("a")
    agent = own.fleet.agent("a")
    assert agent.call("PUT", "/agent/leave").status == 200
    own.wait([])
    agent.kill()
    agent.start()
    own.wait([NODES["a"]])


FAULTS = ("reset", "silence", "lost answer", "403", "500")


def break_service(proxy: Proxy, fault: str) -> list[Rule]:
    """Let every request about a service fail in this way, and no other request."""
    paths = ("/v1/agent/service", "/v1/agent/check/")
    match fault:
        case "silence":
            return [proxy.hold("request", path=path) for path in paths]
        case "lost answer":
            return [proxy.hold("answer", path=path) for path in paths]
        case "reset":
            return [proxy.reset("request", path=path) for path in paths]
    return [proxy.answer(f"{fault} No", "Permission denied", path=path) for path in paths]


@pytest.mark.parametrize("fault", first_now(FAULTS))
def test_no_fault_of_the_service_reaches_the_lock(shared_fleet: Fleet, make_scene: Any, fault: str) -> None:
    """While every request about the service fails, the lock is held, handed over and taken as always.

    As soon as none fails, the holder is named.
    """
    with make_scene(shared_fleet.agent("a")) as scene:
        named = Named(scene, shared_fleet)
        rules = break_service(scene.proxy, fault)
        a = scene.leader("a", **named.how("a", proxy=True))
        b = scene.waiter("b", **named.how("b"))
        a.wait_line({"403": "consul-denied", "500": "consul-fails"}.get(fault, "consul-silent"))
        for rule in rules:
            rule.release()
        named.wait([NODES["a"]])
        break_service(scene.proxy, fault)
        assert a.stop() == 0
        b.wait_line("role", role="holding")
        assert scene.calls("a") == ["acquire acquired", "lose shutdown"]


class GuardedFleet(Fleet):
    """Agents that deny by default, and tokens that are replaced."""

    def make_server(self) -> Agent:
        return Guarded(self._folder / "server")

    def make_client(self, node: str) -> Agent:
        assert isinstance(self.server, Guarded)
        token = self.server.token_of('node_prefix "" { policy = "write" }').secret
        return Guarded(self._folder / node, servers=self.server, agent_token=token)


class Rotation:
    """Nodes with a token of their own each, which is replaced in its file."""

    def __init__(self, named: Named, folder: Path) -> None:
        self.named, self._folder = named, folder
        assert isinstance(named.fleet.server, Guarded)
        self._server = named.fleet.server
        self._tokens: dict[str, Made] = {}

    def rotate(self, node: str) -> str:
        """Give the node a new token, delete the former one at once, and return the path of the file."""
        sessions = 'session_prefix "" { policy = "write" }'
        service = f'service "{self.named.name}" {{ policy = "write" }}'
        former = self._tokens.get(node)
        made = self._tokens[node] = self._server.token_of(write(self.named.scene.key) + sessions + service)
        file = self._folder / f"token-{node}"
        file.with_suffix(".new").write_text(made.secret)
        file.with_suffix(".new").rename(file)
        if former is not None:
            self._server.forget(former)
        return str(file)

    def start(self, node: str) -> Supervisor:
        how = self.named.how(node)
        how["consul"] = {**how["consul"], "token_file": self.rotate(node)}
        return self.named.scene.node(node, **how)

    def wait_alone(self, node: str) -> None:
        """Return when this node alone is named. Two names pass no longer than the TTL of a check."""
        two_since = None
        while (names := self.named.fleet.by_http(self.named.name)) != [NODES[node]]:
            now = time.monotonic()
            two_since = (two_since or now) if len(names) > 1 else None
            assert two_since is None or now - two_since < LASTING_TTL_S, f"{names} pass"
            time.sleep(0.01)


@pytest.mark.long
def test_a_rotation_of_tokens_leaves_one_name(tmp_path: Path, make_scene: Any) -> None:
    """An old token is deleted at once, and then its node steps down, or is killed and comes back."""
    with ExitStack() as stack:
        fleet = GuardedFleet(tmp_path / "fleet", stack)
        with make_scene(fleet.server) as scene:
            rotate_and_lose(Rotation(Named(scene, fleet), tmp_path))


def rotate_and_lose(rotation: Rotation) -> None:
    """Replace all tokens, then let the leader step down or kill it, again and again."""
    scene = rotation.named.scene
    scene.lasting()
    scene.restarts = True
    nodes = {node: rotation.start(node) for node in "abc"}
    for number in range(ROUNDS):
        leader = leader_of(nodes)
        rotation.wait_alone(leader)
        for node in nodes:
            rotation.rotate(node)
        if number % 2:
            scene.kill(leader)
            rotation.rotate(leader)
            before = tenures(nodes)
            nodes[leader].start()
            until(lambda: tenures(nodes) > before, "it goes on, or another node leads")  # noqa: B023
        else:
            assert step_down(scene, nodes[leader], "--for", "2s")[0] == 0
    rotation.wait_alone(leader_of(nodes))


def tenures(nodes: Mapping[str, Supervisor]) -> int:
    """Return how many times a node has begun to hold, or gone on with it."""
    return sum(len(each.lines("role", role="holding")) for each in nodes.values())


def leader_of(nodes: Mapping[str, Supervisor]) -> str:
    """Return the node that holds, as soon as one does."""

    def holders() -> list[str]:
        roles = {node: [line["role"] for line in each.lines("role")] for node, each in nodes.items()}
        return [node for node, told in roles.items() if told[-1:] == ["holding"]]

    return until(holders, "one leads")[0]
