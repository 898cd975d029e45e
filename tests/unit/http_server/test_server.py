"""The limits of the HTTP server: they hold against any client, and other clients are served meanwhile."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor.reporting.http_server import HttpAnswer, HttpRequest, HttpServer, Limits, Peer
from supervisor.reporting.http_server.server import ACCEPTS_MAX
from tests.support.patience import PATIENCE_S, patient

SMALL = Limits(
    clients_max=4, head_bytes_max=2048, body_bytes_max=10_000, receive_s=0.5, send_s=0.5, idle_s=0.5
)
PATIENT = Limits(clients_max=4, head_bytes_max=2048, body_bytes_max=10_000)
HANG_S = PATIENCE_S
CROWD = 400
LARGE = b"x" * 20_000_000  # more than the buffers of a connection take
AHEAD = 1000  # small requests, whose answers do not all fit into a unix socket
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Trial:
    """A server with a behaviour for each path, and a list of its requests."""

    def __init__(self, limits: Limits) -> None:
        self.server = HttpServer(self.handle, limits)
        self.port = 0
        self.cancelled = asyncio.Event()
        self.handled: list[str] = []

    async def handle(self, request: HttpRequest) -> HttpAnswer:
        self.handled.append(request.target)
        match request.target:
            case "/wait":
                try:
                    await asyncio.sleep(HANG_S)
                except asyncio.CancelledError:
                    self.cancelled.set()
                    raise
            case "/large":
                return HttpAnswer(200, LARGE)
            case "/close":
                return HttpAnswer(200, b"bye", close=True)
            case "/bug":
                raise AssertionError("a bug")
        return HttpAnswer(200, request.body or request.target.encode())

    async def connect(self) -> Streams:
        return await asyncio.open_connection("127.0.0.1", self.port)


@asynccontextmanager
async def served(limits: Limits = PATIENT) -> AsyncIterator[Trial]:
    """Yield a server that is closed in the end, and check that no client is left."""
    trial = Trial(limits)
    trial.port = await trial.server.listen("127.0.0.1", 0)
    try:
        async with asyncio.timeout(HANG_S):
            yield trial
    finally:
        await trial.server.close()
    await asyncio.sleep(0)
    assert not trial.server.clients
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def request(target: str, *headers: str, method: str = "GET", body: bytes = b"") -> bytes:
    """Return the bytes of one request."""
    lines = [f"{method} {target} HTTP/1.1", "Host: x", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


AMBIGUOUS = (  # two readers may find two different ends
    request("/", "Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
    request("/", "Transfer-Encoding: chunked", "Content-Length: 5") + b"0\r\n\r\n",
    request("/", "Content-Length: 5", "Content-Length: 6") + b"12345",
    request("/", "Transfer-Encoding: chunked").replace(b"/1.1", b"/1.0") + b"0\r\n\r\n",
)


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Return the status and body of one answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = int(head.lower().partition("content-length: ")[2].partition("\r")[0])
    return int(head.split()[1]), await reader.readexactly(length)


async def closed(streams: Streams) -> bytes:
    """Return all bytes that come until the server closes the connection."""
    reader, writer = streams
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def test_requests_on_one_connection_are_answered_in_order_even_if_sent_ahead() -> None:
    async with served() as trial:
        reader, writer = await trial.connect()
        writer.write(request("/a") + request("/b", method="PUT", body=b"body") + request("/c"))
        assert [await answer(reader) for _ in range(3)] == [(200, b"/a"), (200, b"body"), (200, b"/c")]
        writer.write(request("/d")[:10])
        await asyncio.sleep(0.05)
        writer.write(request("/d")[10:])
        assert await answer(reader) == (200, b"/d")
        writer.close()


async def test_a_chunked_body_and_expect_100_continue_are_supported() -> None:
    async with served() as trial:
        reader, writer = await trial.connect()
        writer.write(request("/a", "Transfer-Encoding: chunked", "Expect: 100-continue", method="PUT"))
        assert b" 100 " in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        assert await answer(reader) == (200, b"abcde")
        writer.close()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /" + b"x" * 4000, 431),
        (request("/", "A: " + "x" * 4000), 431),
        (request("/", method="PUT", body=b"x" * 10_001), 413),
        (b"nonsense\r\n\r\n", 400),
        (request("/", "Authorization : nonsense"), 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        *((each + request("/next"), 400) for each in AMBIGUOUS),
        *((request("/").replace(b"/1.1", version), 505) for version in (b"/1.9", b"/1.2", b"/0.9", b"/2.0")),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    ],
    ids=[
        *("target", "head", "body", "nonsense", "header", "no host", "chunked and a length", "reversed"),
        *("two lengths", "chunked by 1.0", "1.9", "1.2", "0.9", "2.0", "tls"),
    ],
)
async def test_a_request_that_is_too_large_or_malformed_is_refused_and_disconnected(
    sent: bytes, status: int
) -> None:
    async with served() as trial:
        streams = await trial.connect()
        streams[1].write(sent)
        answered = await closed(streams)
        assert answered.startswith(f"HTTP/1.1 {status} ".encode()) and answered.count(b"HTTP/1.1 ") == 1
        assert b"nonsense" not in answered, "a proxy would log it, and it may be a secret"
        assert trial.handled == []


async def test_a_client_that_takes_too_long_for_a_request_is_disconnected() -> None:
    """The time limit covers a head or a body that comes byte by byte, and a silent client."""

    async def trickle(trial: Trial, sent: bytes) -> None:
        reader, writer = await trial.connect()
        for byte in sent:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.1)
            if reader.at_eof() or reader.exception() is not None:  # a reset: a byte met the closed socket
                break
        else:
            raise AssertionError("the server did not disconnect")
        writer.close()

    async with served(SMALL) as trial:
        slow = [request("/", "A: b", "C: d"), request("/", method="PUT", body=b"x" * 100)]
        await asyncio.gather(*(trickle(trial, sent) for sent in slow), closed(await trial.connect()))


async def test_a_client_that_does_not_read_the_answer_is_disconnected() -> None:
    async with served(SMALL) as trial:
        _, writer = await trial.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(request("/large"))
        await until(lambda: bool(trial.server.clients))
        await until(lambda: not trial.server.clients)
        writer.transport.abort()


async def exchanged(streams: Streams, target: str = "/a") -> None:
    """Send one request, and check its answer."""
    reader, writer = streams
    writer.write(request(target))
    assert await answer(reader) == (200, target.encode())


async def test_one_client_too_many_disconnects_the_client_that_was_idle_longest() -> None:
    """A newcomer is served although all places are taken, and a client that was active meanwhile stays."""
    async with served() as trial:
        first, second, *others = [await trial.connect() for _ in range(4)]
        for each in (first, second, *others):
            await exchanged(each)
        await exchanged(first)
        newcomer = await trial.connect()
        await exchanged(newcomer)
        assert await closed(second) == b""
        for each in (first, *others, newcomer):
            await exchanged(each)
            each[1].close()


async def test_one_client_too_many_is_disconnected_while_all_others_await_answers() -> None:
    async with served() as trial:
        streams = [await trial.connect() for _ in range(4)]
        for _, writer in streams:
            writer.write(request("/wait"))
        await until(lambda: len(trial.handled) == 4)
        assert await closed(await trial.connect()) == b""
        streams[0][1].close()
        await until(lambda: len(trial.server.clients) < 4)
        newcomer = await trial.connect()
        await exchanged(newcomer)
        for _, writer in (*streams, newcomer):
            writer.close()


@pytest.mark.long
async def test_unread_answers_are_kept_for_a_bounded_number_of_clients() -> None:
    """The client that has been slow for longest is disconnected, and the others get the whole answer."""
    async with served(replace(PATIENT, slow_readers_max=2)) as trial:
        streams = [await trial.connect() for _ in range(3)]
        for _, writer in streams:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(request("/large"))
        await until(lambda: len(trial.server.clients) <= 2)
        for _, writer in streams:
            writer.transport.resume_reading()  # type: ignore[attr-defined]
        got = [len(await closed(each)) if each is streams[0] else await answer(each[0]) for each in streams]
        assert isinstance(got[0], int) and got[0] < len(LARGE)
        assert [len(each[1]) for each in got[1:] if not isinstance(each, int)] == [len(LARGE)] * 2
        for _, writer in streams:
            writer.close()


async def test_the_loop_goes_on_between_the_requests_of_a_crowd() -> None:
    """Of 400 clients that send requests without end, the server reads few in one turn of the loop."""
    async with served(replace(PATIENT, clients_max=CROWD)) as trial:
        streams = [await trial.connect() for _ in range(CROWD)]
        for _, writer in streams:
            writer.write(request("/a") * 5)
        turns, seen = [0], 0
        while len(trial.handled) < 5 * CROWD:
            await asyncio.sleep(0)
            turns.append(len(trial.handled) - seen)
            seen = len(trial.handled)
            for reader, _ in streams:
                reader._buffer.clear()  # type: ignore[attr-defined]
        assert max(turns) <= CROWD // 2
        for _, writer in streams:
            writer.transport.abort()


async def test_a_crowd_that_connects_at_once_is_accepted_a_few_at_a_time() -> None:
    async with served(replace(PATIENT, clients_max=CROWD)) as trial:
        socks = [socket.socket() for _ in range(CROWD)]
        for sock in socks:
            sock.setblocking(False)
            with suppress(BlockingIOError):
                sock.connect(("127.0.0.1", trial.port))
        turns, seen = [0], 0
        while len(trial.server.clients) < CROWD:
            await asyncio.sleep(0)
            turns.append(len(trial.server.clients) - seen)
            seen = len(trial.server.clients)
        assert max(turns) <= 2 * ACCEPTS_MAX
        for sock in socks:
            sock.close()


async def test_the_handler_of_a_client_that_has_gone_is_cancelled() -> None:
    async with served() as trial:
        _, writer = await trial.connect()
        writer.write(request("/wait"))
        await until(lambda: bool(trial.handled))
        writer.close()
        await trial.cancelled.wait()


async def test_requests_sent_ahead_of_an_answer_are_bounded() -> None:
    async with served() as trial:
        _, writer = await trial.connect()
        writer.write(request("/wait"))
        await until(lambda: bool(trial.handled))
        writer.write(request("/a") * 1_000_000)
        await asyncio.sleep(0.3)
        assert writer.transport.get_write_buffer_size() > 10_000_000
        writer.transport.abort()


async def test_an_answer_that_closes_ends_the_connection() -> None:
    async with served() as trial:
        streams = await trial.connect()
        streams[1].write(request("/close") + request("/a"))
        assert (await closed(streams)).endswith(b"bye") and trial.handled == ["/close"]
        streams = await trial.connect()
        streams[1].write(request("/a", "Connection: close"))
        assert (await closed(streams)).endswith(b"/a")


async def test_a_large_answer_that_ends_the_connection_arrives_whole() -> None:
    """asyncio sends the last bytes itself and then closes, so the server must not close a second time."""
    complaints: list[dict[str, object]] = []
    async with served() as trial:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
        for received in (
            request("/large", "Connection: close"),
            request("/large").replace(b"1.1", b"1.0", 1),
        ):
            reader, writer = await trial.connect()
            writer.write(received)
            assert await answer(reader) == (200, LARGE)
            assert not await closed((reader, writer))
    assert not complaints


async def all_handled(trial: Trial) -> int:
    """Return how many requests have been handled, once no more are."""
    handled = -1
    while handled != len(trial.handled):
        handled = len(trial.handled)
        await asyncio.sleep(patient(0.2))
    return handled


async def test_a_refusal_that_is_read_late_ends_the_connection_once(tmp_path: Path) -> None:
    """asyncio first sends all that is left, and then closes the connection itself."""
    complaints: list[dict[str, object]] = []
    async with served() as trial:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(str(tmp_path / "s"))
        await trial.server.listen_unix(bound)
        with socket.socket(socket.AF_UNIX) as greedy, socket.socket(socket.AF_UNIX) as wrong:
            for client in (greedy, wrong):
                client.setblocking(False)
                await loop.sock_connect(client, str(tmp_path / "s"))
            await loop.sock_sendall(greedy, request("/a") * AHEAD)
            fit = await all_handled(trial) - 1  # the last one's answer waits for room
            assert 0 < fit < AHEAD - 1
            await loop.sock_sendall(wrong, request("/a") * fit + b"no request\r\n\r\n")
            assert await all_handled(trial) == 2 * fit + 1
            received = b""
            while part := await loop.sock_recv(wrong, 1 << 20):
                received += part
            assert received.count(b" 200 ") == fit and received.count(b" 400 ") == 1
    assert not complaints


async def test_an_answer_to_head_has_no_body_and_the_connection_goes_on() -> None:
    async with served() as trial:
        reader, writer = await trial.connect()
        writer.write(request("/a", method="HEAD") + request("/b"))
        assert b"content-length: 2" in (await reader.readuntil(b"\r\n\r\n")).lower()
        assert await answer(reader) == (200, b"/b")
        writer.close()


async def test_a_bug_of_the_handler_is_reported_and_ends_the_connection() -> None:
    async with served() as trial:
        reported: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(str(context["message"])))
        streams = await trial.connect()
        streams[1].write(request("/bug"))
        assert await closed(streams) == b"" and reported == ["a request's handler failed"]


async def test_the_peer_of_a_unix_socket_is_known(tmp_path: Path) -> None:
    """The peer is this process, so its ids are ours; over TCP the peer is unknown."""
    seen: list[Peer | None] = []

    async def note(request: HttpRequest) -> HttpAnswer:
        seen.append(request.peer)
        return HttpAnswer(200)

    async with served() as trial:
        trial.server.handler = note
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(str(tmp_path / "s"))
        await trial.server.listen_unix(bound)
        for reader, writer in [
            await asyncio.open_unix_connection(str(tmp_path / "s")),
            await trial.connect(),
        ]:
            writer.write(request("/a"))
            await answer(reader)
            writer.close()
        assert seen == [Peer(os.getpid(), os.geteuid(), os.getegid(), tuple(os.getgroups())), None]
