"""Peers that misbehave: an exchange ends by its deadline, and the loop goes on meanwhile."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
import requests

from supervisor.adapters.transport import ExchangeFailed, FailureKind
from supervisor.core.settings import Tls
from tests.support.patience import patient
from tests.unit.transport import harness
from tests.unit.transport.conftest import Pki
from tests.unit.transport.harness import failure_of, get, served, transport
from tests.unit.transport.peer import CLOSE, HOLD, READ, RESET, Peer, Step, answer, flood, send, trickle

DEADLINE_S = 0.4
BODY_BYTES_MAX = 200_000
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LONG = OK + b"Content-Length: 100000\r\n\r\n"
TOO_LONG = OK + b"Content-Length: 1000000000\r\n\r\n"
UNTIL_CLOSE = OK + b"\r\n"

UNFINISHED = {
    "says nothing": [READ, HOLD],
    "trickles a head": [READ, send(OK), trickle(b"X-A: b\r\n")],
    "stops in the head": [READ, send(OK), HOLD],
    "says half a line": [READ, send(b"HTTP/1.1 2"), HOLD],
    "trickles a body": [READ, send(LONG), trickle(b"x")],
    "trickles chunks": [READ, send(CHUNKED), trickle(b"1\r\nx\r\n")],
    "stops in the body": [READ, send(LONG + b"x" * 1000), HOLD],
}
TOO_LARGE_FOR_ITS_TIME = {"stops in a large body": [READ, send(LONG + b"x" * 90_000), HOLD]}
TOO_LARGE = {
    "endless head": [READ, send(OK), flood(b"X-A: b\r\n")],
    "endless head of the shortest lines": [READ, send(OK), flood(b"a:\n")],
    "endless head of one line": [READ, send(OK + b"X-A: "), flood(b"x")],
    "endless status line": [READ, send(b"HTTP/1.1 200 "), flood(b"x")],
    "a body that says how long it is": [READ, send(TOO_LONG), HOLD],
    "endless body until close": [READ, send(UNTIL_CLOSE), flood(b"x")],
    "endless chunks": [READ, send(CHUNKED), flood(b"1000\r\n" + b"x" * 4096 + b"\r\n")],
    "endless chunks of one byte": [READ, send(CHUNKED), flood(b"1\r\nx\r\n")],
    "thousands of chunks of one byte": [READ, send(CHUNKED + 2000 * b"1\r\nx\r\n" + b"0\r\n\r\n")],
    "endless trailers": [READ, send(CHUNKED + b"0\r\n"), flood(b"a:b\r\n")],
    "endless 100 Continue": [READ, flood(b"HTTP/1.1 100 Continue\r\n\r\n")],
    "endless 103 Early Hints": [READ, flood(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")],
}
NOT_HTTP = {
    "garbage": [READ, send(b"\x00\xff\xfegarbage\r\n\r\n"), HOLD],
    "garbage without end of line": [READ, send(b"\x15\x03\x01\x00\x02"), HOLD],
    "another protocol": [READ, send(b"220 mail.example ESMTP\r\n\r\n"), HOLD],
    "endless garbage lines": [READ, flood(b"garbage\r\n\r\n")],
    "two lengths": [READ, send(OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n"), HOLD],
    "a negative length": [READ, send(OK + b"Content-Length: -1\r\n\r\n"), HOLD],
    "a chunk of no number": [READ, send(CHUNKED + b"zz\r\n"), HOLD],
    "an unknown transfer coding": [READ, send(OK + b"Transfer-Encoding: gzip\r\n\r\n"), HOLD],
    "an upgrade nobody asked for": [READ, send(b"HTTP/1.1 101 Switching Protocols\r\n\r\n"), HOLD],
}
HUNG_UP = {
    "closes at once": [CLOSE],
    "resets at once": [RESET],
    "closes instead of an answer": [READ, CLOSE],
    "resets instead of an answer": [READ, RESET],
    "closes in the head": [READ, send(OK), CLOSE],
    "resets in the head": [READ, send(OK), RESET],
    "closes in the body": [READ, send(LONG + b"x" * 1000), CLOSE],
    "resets in the body": [READ, send(LONG + b"x" * 1000), RESET],
    "resets a body until close": [READ, send(OK + b"\r\n" + b"x" * 1000), RESET],
    "closes in a chunk": [READ, send(CHUNKED + b"5\r\nxx"), CLOSE],
    "closes between chunks": [READ, send(CHUNKED + b"1\r\nx\r\n"), CLOSE],
}
PATIENT_S = harness.PATIENT_S


def cases(kind: FailureKind, timeout_s: float, scripts: dict[str, list[Step]]) -> Iterator[object]:
    for name, script in scripts.items():
        yield pytest.param(kind, timeout_s, script, id=name)


CASES = [
    *cases(FailureKind.TIMEOUT, DEADLINE_S, UNFINISHED),
    *cases(FailureKind.TOO_LARGE, DEADLINE_S, TOO_LARGE_FOR_ITS_TIME),
    *cases(FailureKind.TOO_LARGE, PATIENT_S, TOO_LARGE),
    *cases(FailureKind.PROTOCOL, PATIENT_S, NOT_HTTP),
    *cases(FailureKind.RESET, PATIENT_S, HUNG_UP),
]


def fails(url: str, timeout_s: float, tls: Tls | None = None) -> ExchangeFailed:
    """Return the failure of a read, which must neither outlast its deadline nor stall the loop."""

    async def read() -> ExchangeFailed:
        async with transport(url, tls, body_bytes_max=BODY_BYTES_MAX) as it:
            return await failure_of(it.exchange(get(url), timeout_s=timeout_s, fresh=False))

    failure = harness.ends_without_stall(read, timeout_s)
    assert isinstance(failure, ExchangeFailed)
    assert "\n" not in str(failure) and len(str(failure)) < 300
    return failure


async def failing_exchange(url: str, request: requests.PreparedRequest) -> ExchangeFailed:
    async with transport(url) as it:
        return await failure_of(it.exchange(request, timeout_s=PATIENT_S, fresh=True))


@pytest.mark.parametrize(("kind", "timeout_s", "script"), CASES)
def test_a_malformed_answer_fails_the_exchange_with_its_kind(
    kind: FailureKind, timeout_s: float, script: list[Step]
) -> None:
    with Peer(script) as peer:
        failure = fails(peer.url, timeout_s)
        assert failure.kind is kind, str(failure)
        assert f"127.0.0.1:{peer.port}" in str(failure)


def test_a_connect_without_an_answer_ends_at_the_deadline() -> None:
    """A peer whose queue is full leaves the SYN without an answer."""
    with full_queue() as port:
        failure = fails(f"http://127.0.0.1:{port}", DEADLINE_S)
    assert failure.kind is FailureKind.TIMEOUT
    assert str(failure) == (
        f"no answer from 127.0.0.1:{port} within 0.4 s: still connecting to 127.0.0.1:{port}"
    )


def test_a_refused_connect_is_reported_in_words() -> None:
    """An operator searches the log for this text."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    failure = fails(f"http://127.0.0.1:{port}", PATIENT_S)
    assert failure.kind is FailureKind.REFUSED
    assert str(failure) == f"cannot reach 127.0.0.1:{port}: connection refused"


@pytest.mark.parametrize(
    ("kind", "timeout_s", "script"),
    [
        pytest.param(FailureKind.TIMEOUT, DEADLINE_S, [HOLD], id="says nothing"),
        pytest.param(
            FailureKind.TIMEOUT, DEADLINE_S, [trickle(b"\x16\x03\x03\x40\x00" + b"x" * 400)], id="trickles"
        ),
        pytest.param(
            FailureKind.TLS, PATIENT_S, [answer(b"not TLS", "400 Bad Request"), HOLD], id="speaks HTTP"
        ),
        pytest.param(FailureKind.RESET, PATIENT_S, [CLOSE], id="closes"),
        pytest.param(FailureKind.RESET, PATIENT_S, [RESET], id="resets"),
    ],
)
def test_a_failed_tls_handshake_fails_the_exchange(
    pki: Pki, kind: FailureKind, timeout_s: float, script: list[Step]
) -> None:
    """The handshake is part of the exchange, and of its deadline."""
    with Peer(script) as peer:
        failure = fails(peer.url.replace("http:", "https:"), timeout_s, Tls(ca_file=pki.ca))
        assert failure.kind is kind, str(failure)


@pytest.mark.parametrize(
    "script", [[READ, send(UNTIL_CLOSE), flood(b"x")], [READ, send(CHUNKED), flood(b"1\r\nx\r\n")]]
)
def test_an_endless_body_over_tls_is_refused(pki: Pki, script: list[Step]) -> None:
    """The limits behind TLS are those of plain HTTP."""
    with Peer(script, tls=pki.server) as peer:
        failure = fails(peer.url, PATIENT_S, Tls(ca_file=pki.ca))
        assert failure.kind is FailureKind.TOO_LARGE


async def test_a_request_that_the_peer_never_reads_ends_at_the_deadline() -> None:
    """The deadline covers the sending of the body."""
    async with served([HOLD]) as (peer, it):
        request = harness.put(peer.url, b"x" * 20_000_000)
        failure = await failure_of(it.exchange(request, timeout_s=DEADLINE_S, fresh=True))
        assert failure.kind is FailureKind.TIMEOUT


def test_no_failure_shows_bytes_of_the_request_or_the_answer() -> None:
    """The request has our token, and the peer may echo it."""
    echo = b"HTTP/1.1 200 OK\r\nX-Echo s3cret: 1\r\n\r\n"
    for script in (
        [READ, send(echo)],
        [READ, send(b"s3cret\r\n\r\n")],
        [READ, send(OK + b"s3cret\x00\r\n\r\n")],
    ):
        with Peer(script) as peer:
            request = get(peer.url + "/s3cret?token=s3cret")
            request.headers["X-Consul-Token"] = "s3cret"

            failure = asyncio.run(failing_exchange(peer.url, request))
            assert failure.kind is FailureKind.PROTOCOL
            assert "s3cret" not in f"{failure} {failure!r} {failure.__cause__!r}"


async def test_a_cancelled_exchange_closes_its_connection() -> None:
    """Consul would go on counting a connection that is left open."""
    async with served([READ, HOLD]) as (peer, it):
        before = harness.descriptors()
        task = asyncio.create_task(it.exchange(get(peer.url), timeout_s=PATIENT_S, fresh=False))
        async with asyncio.timeout(PATIENT_S):
            while harness.descriptors() == before:
                await asyncio.sleep(0.01)
        assert harness.descriptors() == before + 1
        task.cancel()
        await asyncio.wait([task])
        await asyncio.sleep(0)
        assert task.cancelled()
        assert harness.descriptors() == before


@contextmanager
def full_queue(host: str = "127.0.0.1") -> Iterator[int]:
    """Return the port of a listener that accepts nothing and whose queue is full."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind((host, 0))
        listener.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        time.sleep(patient(0.05))
        yield listener.getsockname()[1]
