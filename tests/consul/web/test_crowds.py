"""Clients that are slow, greedy, malformed and many: a health check is answered, and the election goes on."""

import random
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from supervisor.reporting.web.listener import LIMITS
from tests.consul.elections.scene import Scene
from tests.consul.web.reader import Reader
from tests.support.supervisor import PATIENCE_S, until

IDLE = 500


@contextmanager
def crowd(port: int, count: int, sent: bytes = b"") -> Iterator[list[socket.socket]]:
    """Open this number of connections, each of which sends this and reads nothing."""
    with ExitStack() as all_of_them:
        socks = []
        for _ in range(count):
            sock = all_of_them.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
            with suppress(ConnectionError):
                sock.sendall(sent)
            socks.append(sock)
        yield socks


@pytest.fixture(autouse=True)
def _descriptors() -> Iterator[None]:
    """Allow this process as many descriptors as the hard limit does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def goes_on(scene: Scene, number: int) -> None:
    """Check that a change in Consul reaches a hook, and that this node has held without a break."""
    scene.agent.kv_put(scene.key, b"%d" % number)
    scene.wait_told("a", f"value-changed {number}")
    assert scene.calls("a") == ["acquire acquired"]


def is_open(sock: socket.socket) -> bool:
    """Return whether the server has not closed the connection."""
    sock.setblocking(False)
    try:
        return bool(sock.recv(1))
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


@pytest.mark.long
def test_beside_five_hundred_idle_connections_and_far_more_a_check_gets_through(scene: Scene) -> None:
    """The five hundred stay open, and beyond the limit those that were idle longest are closed."""
    reader = Reader(scene.leader("a"))
    with crowd(reader.port, IDLE) as idle:
        for _ in range(20):
            assert reader.ask(f"/leader/{scene.name}").status == 200
        assert all(is_open(sock) for sock in idle)
        with crowd(reader.port, LIMITS.clients_max) as more:
            assert reader.ask(f"/leader/{scene.name}").status == 200
            until(lambda: not any(is_open(sock) for sock in idle), "the first have gone")
            assert sum(is_open(sock) for sock in more) >= LIMITS.clients_max - 2
            goes_on(scene, 1)


@pytest.mark.long
def test_heads_without_end_garbage_floods_and_slow_readers_cost_nothing(scene: Scene) -> None:
    """Each kind fills the server alone, beside an election that goes on."""
    reader = Reader(scene.leader("a"))
    status = b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n"
    noise = random.Random(1)
    kinds = [
        (LIMITS.clients_max, b"GET /v1/status HTTP/1.1\r\nHost: "),
        (200, noise.randbytes(5000)),
        (200, status * 50),
        (200, b"POST /v1/pause HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n" + b"x" * 9000),
        (200, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000),
    ]
    for number, (count, sent) in enumerate(kinds):
        with crowd(reader.port, count, sent):
            assert reader.ask(f"/leader/{scene.name}").status == 200, sent[:40]
            goes_on(scene, number)
    assert reader.item(scene.name)["paused"] is False


def test_an_operator_gets_through_on_a_crowded_control_socket(scene: Scene) -> None:
    node = scene.leader("a")
    path = str(node.folder / "control.sock")
    with ExitStack() as all_of_them:
        for number in range(300):
            sock = all_of_them.enter_context(socket.socket(socket.AF_UNIX))
            sock.connect(path)
            with suppress(ConnectionError):
                sock.sendall(
                    [b"", b"GET /v1/status HTT", b"\x00" * 99, b"GET /healthz HTTP/1.0\r\n\r\n"][number % 4]
                )
        assert Reader(node).ask_socket("/v1/status").status == 200
        assert Reader(node).ask_socket(f"/v1/resume/{scene.name}", "POST").status == 200
        goes_on(scene, 1)


@pytest.mark.long
def test_without_descriptors_no_client_is_accepted_and_the_election_goes_on(
    scene: Scene, tmp_path: Path
) -> None:
    """The shortage is logged once, and later clients are served when descriptors are free again."""
    node = scene.leader("a", on_change=None)
    reader = Reader(node)
    used = len(list(Path(f"/proc/{node.pid}/fd").iterdir()))
    soft, hard = resource.prlimit(node.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(node.pid, resource.RLIMIT_NOFILE, (used + 10, hard))
    with crowd(reader.port, 50):
        node.wait_line("http", level="warning")
        assert "cannot let a client in: " in node.lines("http", level="warning")[0]["why"]
    resource.prlimit(node.pid, resource.RLIMIT_NOFILE, (soft, hard))
    assert reader.ask(f"/leader/{scene.name}").status == 200
    assert len(node.lines("http", level="warning")) == 1
    assert scene.calls("a") == ["acquire acquired"]
