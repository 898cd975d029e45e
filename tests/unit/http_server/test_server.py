"""The HTTP server keeps its limits, whatever clients do; other clients are served meanwhile."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor.http_server import HttpAnswer, HttpRequest, HttpServer, Limits, Peer
from supervisor.http_server.server import ACCEPTS_MAX
from tests.support.patience import PATIENCE_S, patient

SMALL = Limits(
    clients_max=4, head_bytes_max=2048, body_bytes_max=10_000, receive_s=0.5, send_s=0.5, idle_s=0.5
)
PATIENT = Limits(clients_max=4, head_bytes_max=2048, body_bytes_max=10_000)
HANG_S = PATIENCE_S
CROWD = 400
AHEAD = 1000  # small requests, more than whose answers a unix socket holds
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Trial:
    """A server whose paths do what they say, and what became of its requests."""

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
                return HttpAnswer(200, b"x" * 50_000_000)
            case "/close":
                return HttpAnswer(200, b"bye", close=True)
            case "/bug":
                raise AssertionError("a bug")
        return HttpAnswer(200, request.body or request.target.encode())

    async def connect(self) -> Streams:
        return await asyncio.open_connection("127.0.0.1", self.port)


def served(test: Callable[[Trial], Awaitable[None]], limits: Limits = PATIENT) -> None:
    """Run the test against a server that is closed after it, with nobody left in it."""

    async def run() -> None:
        trial = Trial(limits)
        trial.port = await trial.server.listen("127.0.0.1", 0)
        try:
            async with asyncio.timeout(HANG_S):
                await test(trial)
        finally:
            await trial.server.close()
        await asyncio.sleep(0)
        assert not trial.server.clients
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


def request(target: str, *headers: str, method: str = "GET", body: bytes = b"") -> bytes:
    """The bytes of one request."""
    lines = [f"{method} {target} HTTP/1.1", "Host: x", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The status and body of one answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = int(head.lower().partition("content-length: ")[2].partition("\r")[0])
    return int(head.split()[1]), await reader.readexactly(length)


async def closed(streams: Streams) -> bytes:
    """What still comes until the server hangs up."""
    reader, writer = streams
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def test_requests_on_one_connection_are_answered_in_order_also_those_sent_ahead() -> None:
    async def test(trial: Trial) -> None:
        reader, writer = await trial.connect()
        writer.write(request("/a") + request("/b", method="PUT", body=b"body") + request("/c"))
        assert [await answer(reader) for _ in range(3)] == [(200, b"/a"), (200, b"body"), (200, b"/c")]
        writer.write(request("/d")[:10])
        await asyncio.sleep(0.05)
        writer.write(request("/d")[10:])
        assert await answer(reader) == (200, b"/d")
        writer.close()

    served(test)


def test_a_body_in_chunks_and_expect_100_continue() -> None:
    async def test(trial: Trial) -> None:
        reader, writer = await trial.connect()
        writer.write(request("/a", "Transfer-Encoding: chunked", "Expect: 100-continue", method="PUT"))
        assert b" 100 " in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        assert await answer(reader) == (200, b"abcde")
        writer.close()

    served(test)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /" + b"x" * 4000, 431),
        (request("/", "A: " + "x" * 4000), 431),
        (request("/", method="PUT", body=b"x" * 10_001), 413),
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    ],
    ids=["target", "head", "body", "nonsense", "no host", "tls"],
)
def test_what_is_too_large_or_no_request_is_refused_and_hung_up_on(sent: bytes, status: int) -> None:
    async def test(trial: Trial) -> None:
        streams = await trial.connect()
        streams[1].write(sent)
        assert (await closed(streams)).startswith(f"HTTP/1.1 {status} ".encode())
        assert trial.handled == []

    served(test)


def test_who_takes_too_long_to_ask_or_asks_nothing_is_hung_up_on() -> None:
    """A head byte by byte has no more time than one at once; a body neither; nor has silence."""

    async def trickle(trial: Trial, sent: bytes) -> None:
        reader, writer = await trial.connect()
        for byte in sent:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.1)
            if reader.at_eof():
                break
        else:
            raise AssertionError("it was let")
        writer.close()

    async def test(trial: Trial) -> None:
        slow = [request("/", "A: b", "C: d"), request("/", method="PUT", body=b"x" * 100)]
        await asyncio.gather(*(trickle(trial, sent) for sent in slow), closed(await trial.connect()))

    served(test, SMALL)


def test_who_does_not_take_the_answer_is_hung_up_on() -> None:
    async def test(trial: Trial) -> None:
        _, writer = await trial.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(request("/large"))
        while not trial.server.clients:
            await asyncio.sleep(0.01)
        while trial.server.clients:
            await asyncio.sleep(0.01)
        writer.transport.abort()

    served(test, SMALL)


async def asked(streams: Streams, target: str = "/a") -> None:
    """One request, and its answer."""
    reader, writer = streams
    writer.write(request(target))
    assert await answer(reader) == (200, target.encode())


def test_for_one_client_too_many_the_longest_idle_is_hung_up_on() -> None:
    """Who connects is served, whoever sits there; who has asked again meanwhile is kept."""

    async def test(trial: Trial) -> None:
        first, second, *others = [await trial.connect() for _ in range(4)]
        for each in (first, second, *others):
            await asked(each)
        await asked(first)
        newcomer = await trial.connect()
        await asked(newcomer)
        assert await closed(second) == b""
        for each in (first, *others, newcomer):
            await asked(each)
            each[1].close()

    served(test)


def test_who_never_ends_a_request_keeps_nobody_out() -> None:
    async def test(trial: Trial) -> None:
        halves = [await trial.connect() for _ in range(4)]
        for _, writer in halves:
            writer.write(b"GET / HTTP/1.1\r\n")
        await asyncio.sleep(0.05)
        newcomers = [await trial.connect() for _ in range(4)]
        for each in newcomers:
            await asked(each)
            each[1].close()
        assert [await closed(each) for each in halves] == [b""] * 4

    served(test)


def test_while_all_are_being_answered_one_client_too_many_is_hung_up_on() -> None:
    async def test(trial: Trial) -> None:
        streams = [await trial.connect() for _ in range(4)]
        for _, writer in streams:
            writer.write(request("/wait"))
        while len(trial.handled) < 4:
            await asyncio.sleep(0.01)
        assert await closed(await trial.connect()) == b""
        streams[0][1].close()
        while len(trial.server.clients) == 4:
            await asyncio.sleep(0.01)
        newcomer = await trial.connect()
        await asked(newcomer)
        for _, writer in (*streams, newcomer):
            writer.close()

    served(test)


def test_answers_that_nobody_takes_are_kept_for_so_many_clients_only() -> None:
    """The one that has taken its time longest is hung up on; who takes the answer gets all of it."""

    async def test(trial: Trial) -> None:
        streams = [await trial.connect() for _ in range(3)]
        for _, writer in streams:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(request("/large"))
        while len(trial.server.clients) > 2:
            await asyncio.sleep(0.01)
        for _, writer in streams:
            writer.transport.resume_reading()  # type: ignore[attr-defined]
        got = [len(await closed(each)) if each is streams[0] else await answer(each[0]) for each in streams]
        assert isinstance(got[0], int) and got[0] < 50_000_000
        assert [len(each[1]) for each in got[1:] if not isinstance(each, int)] == [50_000_000] * 2
        for _, writer in streams:
            writer.close()

    served(test, replace(PATIENT, slow_readers_max=2))


def test_however_many_ask_at_once_the_loop_goes_on_between_them() -> None:
    """Of 400 clients that all send requests without end, few are read in one turn of the loop."""

    async def test(trial: Trial) -> None:
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

    served(test, replace(PATIENT, clients_max=CROWD))


def test_a_crowd_that_connects_at_once_is_let_in_a_few_at_a_time() -> None:
    async def test(trial: Trial) -> None:
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

    served(test, replace(PATIENT, clients_max=CROWD))


def test_the_handler_of_a_client_that_has_gone_is_cancelled() -> None:
    async def test(trial: Trial) -> None:
        _, writer = await trial.connect()
        writer.write(request("/wait"))
        while not trial.handled:
            await asyncio.sleep(0.01)
        writer.close()
        await trial.cancelled.wait()

    served(test)


def test_what_is_sent_ahead_while_one_waits_is_bounded() -> None:
    async def test(trial: Trial) -> None:
        _, writer = await trial.connect()
        writer.write(request("/wait"))
        while not trial.handled:
            await asyncio.sleep(0.01)
        writer.write(request("/a") * 1_000_000)
        await asyncio.sleep(0.3)
        assert writer.transport.get_write_buffer_size() > 10_000_000
        writer.transport.abort()

    served(test)


def test_an_answer_that_closes_ends_the_connection() -> None:
    async def test(trial: Trial) -> None:
        streams = await trial.connect()
        streams[1].write(request("/close") + request("/a"))
        assert (await closed(streams)).endswith(b"bye") and trial.handled == ["/close"]
        streams = await trial.connect()
        streams[1].write(request("/a", "Connection: close"))
        assert (await closed(streams)).endswith(b"/a")

    served(test)


def test_a_large_answer_that_ends_the_connection_arrives_whole() -> None:
    """Its end is sent from within asyncio's own writing, which then sees to the connection's end, too."""
    complaints: list[dict[str, object]] = []

    async def test(trial: Trial) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
        for said in (request("/large", "Connection: close"), request("/large").replace(b"1.1", b"1.0", 1)):
            reader, writer = await trial.connect()
            writer.write(said)
            assert await answer(reader) == (200, b"x" * 50_000_000)
            assert not await closed((reader, writer))

    served(test)
    assert not complaints


def test_a_refusal_that_is_taken_late_ends_the_connection_once(tmp_path: Path) -> None:
    """What asyncio has still to send when we hang up it sends first, and then hangs up by itself."""
    complaints: list[dict[str, object]] = []

    async def test(trial: Trial) -> None:
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
            await asyncio.sleep(patient(0.2))
            fit = len(trial.handled) - 1  # the last one's answer waits for room
            assert 0 < fit < AHEAD - 1
            await loop.sock_sendall(wrong, request("/a") * fit + b"no request\r\n\r\n")
            await asyncio.sleep(patient(0.2))
            assert len(trial.handled) == 2 * fit + 1
            said = b""
            while part := await loop.sock_recv(wrong, 1 << 20):
                said += part
            assert said.count(b" 200 ") == fit and said.count(b" 400 ") == 1

    served(test)
    assert not complaints


def test_head_has_no_body_and_the_connection_goes_on() -> None:
    async def test(trial: Trial) -> None:
        reader, writer = await trial.connect()
        writer.write(request("/a", method="HEAD") + request("/b"))
        assert b"content-length: 2" in (await reader.readuntil(b"\r\n\r\n")).lower()
        assert await answer(reader) == (200, b"/b")
        writer.close()

    served(test)


def test_a_bug_of_the_handler_is_told_and_hangs_up() -> None:
    async def test(trial: Trial) -> None:
        told: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(str(context["message"])))
        streams = await trial.connect()
        streams[1].write(request("/bug"))
        assert await closed(streams) == b"" and told == ["a request's handler failed"]

    served(test)


def test_a_unix_socket_serves_as_well(tmp_path: Path) -> None:
    async def test(trial: Trial) -> None:
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(str(tmp_path / "s"))
        await trial.server.listen_unix(bound)
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
        writer.write(request("/a"))
        assert await answer(reader) == (200, b"/a")
        writer.close()

    served(test)


def test_who_is_at_the_other_end_of_a_unix_socket_is_known(tmp_path: Path) -> None:
    """Our ids and groups, for it is this process; over TCP nobody knows."""
    seen: list[Peer | None] = []

    async def note(request: HttpRequest) -> HttpAnswer:
        seen.append(request.peer)
        return HttpAnswer(200)

    async def test(trial: Trial) -> None:
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

    served(test)
