"""An exchange with Consul behind a unix socket."""

import asyncio
import socket
from pathlib import Path

import pytest

from supervisor.adapters.transport import ExchangeFailed, FailureKind
from tests.unit.transport import harness
from tests.unit.transport.harness import PATIENT_S, failure_of, get, put, transport
from tests.unit.transport.peer import AGAIN, READ, Peer, answer

URL = "http://localhost/v1/kv/a"


async def failure_at(path: Path) -> ExchangeFailed:
    async with transport(f"unix://{path}") as it:
        return await failure_of(it.exchange(get(URL), timeout_s=PATIENT_S, fresh=False))


async def test_exchanges_go_over_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "http.sock"
    with Peer([READ, answer(b"one"), AGAIN], path=path) as peer:
        async with transport(f"unix://{path}") as it:
            it.prepare()
            for _ in range(2):
                response = await it.exchange(get(URL), timeout_s=PATIENT_S, fresh=False)
                assert response.content == b"one"
            await it.exchange(put(URL), timeout_s=PATIENT_S, fresh=True)
        assert [request for _, request in peer.seen()] == ["GET /v1/kv/a", "GET /v1/kv/a", "PUT /v1/kv/a"]


@pytest.mark.parametrize(
    ("left_behind", "why"), [(False, "no such file or directory"), (True, "connection refused")]
)
def test_a_unix_socket_without_a_listener_is_named(tmp_path: Path, left_behind: bool, why: str) -> None:
    path = tmp_path / "http.sock"
    if left_behind:
        with socket.socket(socket.AF_UNIX) as closed:
            closed.bind(str(path))
    failure = asyncio.run(failure_at(path))
    assert failure.kind is FailureKind.REFUSED
    assert str(failure) == f"cannot reach {path}: {why}"


def test_a_full_queue_of_a_unix_socket_is_reported_at_once(tmp_path: Path) -> None:
    """A unix connect neither waits nor goes on later, so the socket would only look connected."""
    path = tmp_path / "http.sock"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(str(path))
        listener.listen(0)
        first.connect(str(path))
        failure = harness.ends_without_stall(lambda: failure_at(path), PATIENT_S)
    assert failure.kind is FailureKind.REFUSED
    assert str(failure) == f"cannot reach {path}: its queue of connections is full"


@pytest.mark.parametrize("path", ["run/consul.sock", "", "/" + "x" * 107, "/a\0b"])
def test_a_path_that_no_unix_socket_can_have_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="unix"):
        asyncio.run(failure_at(Path(path)) if path.startswith("/") else relative(path))


async def relative(path: str) -> None:
    async with transport(f"unix://{path}"):
        raise AssertionError("it was accepted")
