"""HAProxy by examples/haproxy/haproxy.cfg: clients reach the node that acts, or none."""

import http.client
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.captured import captured
from tests.support.consul import HOST, Agent, free_ports
from tests.support.staging import staged
from tests.support.supervisor import PATIENCE_S, command, until
from tests.system.programs.balanced import BalancedScene, Clients, ask
from tests.system.programs.haproxy import EXAMPLE, PROGRAM, HAProxy

DRAIN_S = 4.0  # far more than the 0.9 s after which HAProxy leaves a node, because the machine may be busy


@pytest.fixture
def scene(
    shared_agent: Agent, tmp_path: Path, unique: str, request: pytest.FixtureRequest
) -> Iterator[BalancedScene]:
    with staged(BalancedScene(shared_agent, tmp_path / "nodes", unique), request) as made:
        yield made


@pytest.fixture
def haproxy(scene: BalancedScene, tmp_path: Path) -> Iterator[HAProxy]:
    """Start HAProxy before both nodes, while no node leads."""
    with HAProxy(tmp_path / "haproxy", free_ports(1)[0], scene.places, scene.name) as running:
        running.wait_up()
        yield running


def test_the_example_is_a_file_that_haproxy_takes() -> None:
    ran = captured([PROGRAM, "-c", "-f", str(EXAMPLE)])
    assert ran.returncode == 0 and "WARNING" not in ran.stderr, ran.stderr


def pause(scene: BalancedScene, node: str) -> None:
    """Pause the node, so that it does not contend again; a tenure goes on."""
    socket = scene.nodes[node].folder / "control.sock"
    assert command("pause", scene.name, "--socket", str(socket)).returncode == 0


@pytest.mark.parametrize("how", ["stop", "destroy", "kill"])
def test_clients_reach_the_node_that_acts_or_none(scene: BalancedScene, haproxy: HAProxy, how: str) -> None:
    """The application is a run child, so a node whose on_lose has begun does not answer."""
    scene.leader("a", run=scene.application("a"))
    scene.waiter("b", run=scene.application("b"))
    with Clients(haproxy.port) as clients:
        until(lambda: clients.answered("a"), "clients reach a")
        assert haproxy.up() == {"a"}
        if how == "stop":
            assert scene.nodes["a"].stop() == 0
        elif how == "destroy":
            pause(scene, "a")
            scene.agent.session_destroy(scene.session_of("a"))
        else:
            scene.kill("a")
        until(lambda: clients.answered("b"), "clients reach b")
        haproxy.wait_up("b")
    (acquired_by_b,) = scene.records(node="b", event="acquire", stage="end")
    lost = {"stage": "killed"} if how == "kill" else {"stage": "begin", "event": "lose"}
    lost_by_a = scene.records(node="a", **lost)
    late = [at for at in clients.answered("a") if at > lost_by_a[0].at + CUT_S]
    early = [at for at in clients.answered("b") if at < acquired_by_b.at - CUT_S]
    assert not late and not early, (lost_by_a, late, acquired_by_b, early)
    follows_s = clients.answered("b")[0] - acquired_by_b.at
    print(f"HAProxy ({how}): clients reach the new leader {follows_s:.2f} s after its on_acquire")


CUT_S = 0.02  # the records' times are cut to hundredths, and a run child is stopped just before on_lose


def test_an_application_that_lives_on_is_drained_and_its_sessions_cut(
    scene: BalancedScene, haproxy: HAProxy
) -> None:
    """The application runs everywhere: on_lose first gives the balancer time, then open sessions end."""
    with ExitStack() as stack:
        scene.serve_always(stack)
        for node in ("a", "b"):
            drain = scene.hook(node, "lose-drain", f"sleep {DRAIN_S}", timeout=f"{DRAIN_S + 1}s")
            hooks = [drain, scene.hook(node, "lose-demote")]
            start = scene.leader if node == "a" else scene.waiter
            start(node, on_lose=hooks, session={"ttl": "3s", "lock_delay": "15s"})
        clients = stack.enter_context(Clients(haproxy.port))
        until(lambda: clients.answered("a"), "clients reach a")
        long = http.client.HTTPConnection(HOST, haproxy.port, timeout=PATIENCE_S)
        stack.callback(long.close)
        long.request("GET", "/long")
        answer = long.getresponse()
        assert answer.readline() == b"a\n"
        scene.nodes["a"].signal(signal.SIGTERM)
        assert answer.read() == b""  # the session ends although its application lives
        left_at = clients.answered("a")[-1]
        until(lambda: clients.answered("b"), "clients reach b", within_s=60)
        began = scene.records(node="a", hook="lose-drain", stage="begin")[0]
        (demoted,) = scene.records(node="a", hook="lose-demote", stage="begin")
        assert clients.answered("a")[-1] < demoted.at
        assert ask(scene.nodes_of["a"].application_port) == "a"
    print(f"HAProxy: the old node is left {left_at - began.at:.2f} s after its on_lose began")


def test_a_supervisor_that_is_frozen_is_left(scene: BalancedScene, haproxy: HAProxy) -> None:
    """The frozen node's application may still act, so HAProxy leaves it before another node can lead."""
    a = scene.leader("a", run=scene.application("a"))
    scene.waiter("b", run=scene.application("b"))
    haproxy.wait_up("a")
    a.signal(signal.SIGSTOP)
    haproxy.wait_up()
    assert ask(scene.nodes_of["a"].application_port) == "a" and ask(haproxy.port) == ""
    a.signal(signal.SIGCONT)
    haproxy.wait_up(scene.wait_leader())


def test_a_node_that_comes_back_within_its_lease_is_used_again(
    scene: BalancedScene, haproxy: HAProxy
) -> None:
    a = scene.leader("a", run=scene.application("a"))
    haproxy.wait_up("a")
    scene.restarts = True
    a.kill()
    haproxy.wait_up()
    a.start()
    haproxy.wait_up("a")
    assert until(lambda: ask(haproxy.port), "clients reach it again") == "a"
