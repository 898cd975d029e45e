"""An exchange with a peer that behaves well: the request, the answer, and the connection."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
import requests

from supervisor.adapters.transport import Endpoint, ExchangeFailed, FailureKind, Transport
from supervisor.adapters.transport.dial import Dialer
from supervisor.adapters.transport.exchange import Exchange, Progress
from supervisor.core.settings import Tls
from tests.support.loop_time import skip
from tests.support.patience import patient
from tests.unit.transport import harness
from tests.unit.transport.harness import PATIENT_S, failure_of, get, put, served, transport
from tests.unit.transport.peer import AGAIN, CLOSE, HOLD, READ, RESET, Peer, Step, answer, send

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LAG_S = 0.2
SERVES = [READ, answer(b"one"), AGAIN]
Use = Callable[[Transport], Coroutine[Any, Any, requests.Response]]


def only_answer(script: list[Step], method: str = "GET", lag_s: float = 0.0) -> requests.Response:
    """Return the answer to one request without a body, from a peer that follows ``script``."""

    async def scenario(url: str) -> requests.Response:
        async with transport(url) as it:
            request = requests.Request(method, url + "/path").prepare()
            return await it.exchange(request, timeout_s=PATIENT_S, fresh=False, delay=lambda: lag_s)

    with Peer(script) as peer:
        return asyncio.run(scenario(peer.url))


def over(url: str, *uses: Use, **options: Any) -> list[requests.Response]:
    """Return the answers of these exchanges, one after the other, with one transport."""

    async def scenario() -> list[requests.Response]:
        async with transport(url, **options) as it:
            return [await use(it) for use in uses]

    return asyncio.run(scenario())


def reads(url: str) -> Use:
    return lambda it: it.exchange(get(url + "/read"), timeout_s=PATIENT_S, fresh=False)


def writes(url: str) -> Use:
    return lambda it: it.exchange(put(url + "/write"), timeout_s=PATIENT_S, fresh=True)


# --- the message ----------------------------------------------------------------------------------


def test_an_answer_is_a_complete_response_of_requests() -> None:
    response = only_answer(
        [READ, answer(b'{"a": 1}', headers=b"X-Consul-Index: 7\r\nVary: a\r\nvary: b\r\n"), HOLD]
    )
    assert (response.status_code, response.reason, response.ok) == (200, "OK", True)
    assert (response.content, response.json()) == (b'{"a": 1}', {"a": 1})
    assert response.headers["x-consul-INDEX"] == "7"
    assert response.headers["Vary"] == "a, b"
    assert response.encoding is None
    assert response.url == response.request.url
    assert response.history == []
    response.close()


@pytest.mark.parametrize(
    "status",
    ["301 Moved Permanently", "403 Forbidden", "404 Not Found", "409 Conflict", "413 Too Large"]
    + ["429 Too Many Requests", "500 Internal Server Error", "503 Service Unavailable"],
)
def test_every_status_is_an_answer(status: str) -> None:
    """Only the caller knows what a status means, and no redirect is followed."""
    response = only_answer([READ, answer(b"No cluster leader", status, b"Location: /elsewhere\r\n"), HOLD])
    assert f"{response.status_code} {response.reason}" == status
    assert response.content == b"No cluster leader"


@pytest.mark.parametrize(
    ("method", "status", "length"),
    [("GET", "204 No Content", 0), ("GET", "304 Not Modified", 100), ("HEAD", "200 OK", 100)],
)
def test_an_answer_without_a_body_ends_with_its_head(method: str, status: str, length: int) -> None:
    """Its Content-Length may announce a body, and the exchange must not wait for it."""
    head = f"HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n".encode()
    response = only_answer([READ, send(head), HOLD], method)
    assert (response.status_code, response.content) == (int(status[:3]), b"")


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([READ, answer(b"whole")], id="length"),
        pytest.param([READ, send(b"HTTP/1.1 200 OK\r\n\r\nwhole"), CLOSE], id="until close"),
        pytest.param([READ, send(b"HTTP/1.0 200 OK\r\n\r\nwhole"), CLOSE], id="HTTP/1.0"),
        pytest.param([READ, send(CHUNKED + b"2;x=y\r\nwh\r\n3\r\nole\r\n0\r\nT: t\r\n\r\n")], id="chunked"),
        pytest.param(
            [
                READ,
                send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"),
                answer(b"whole"),
            ],
            id="after interim answers",
        ),
        pytest.param([answer(b"whole"), READ], id="before it was asked"),
        pytest.param([answer(b"whole"), CLOSE], id="before it was asked, then closed"),
    ],
)
@pytest.mark.parametrize("lag_s", [0.0, LAG_S], ids=["at once", "with a lag"])
def test_a_body_is_read_whole_with_every_framing(script: list[Step], lag_s: float) -> None:
    """A peer that refuses connections may answer (429) and close before it has read the request."""
    assert only_answer(script, lag_s=lag_s).content == b"whole"


async def test_a_delay_beyond_the_deadline_is_a_timeout() -> None:
    async with served(SERVES) as (peer, it):
        late = it.exchange(get(peer.url), timeout_s=LAG_S, fresh=False, delay=lambda: PATIENT_S)
        assert (await failure_of(late)).kind is FailureKind.TIMEOUT


async def test_the_callback_of_an_answer_runs_before_the_waiting_task() -> None:
    """The callback runs once, and never within the call that sends the request."""
    told: list[str] = []
    async with served(SERVES) as (peer, it):
        url = peer.url
        for _ in range(2):
            under_way = it.exchange(
                get(url),
                timeout_s=PATIENT_S,
                fresh=False,
                on_response=lambda response: told.append("heard"),
            )
            told.append("sent")
            await under_way
            told.append("awaited")
    assert told == ["sent", "heard", "awaited"] * 2


async def test_an_answer_may_be_read_before_its_task_begins() -> None:
    """Another loop than asyncio's may read a socket before it begins a task."""
    async with served(SERVES) as (peer, it):
        url = peer.url
        await reads(url)(it)  # so that a connection is kept
        answered = asyncio.Event()
        early = it.exchange(
            get(url), timeout_s=PATIENT_S, fresh=False, on_response=lambda response: answered.set()
        )
        await asyncio.wait_for(answered.wait(), PATIENT_S)
        later = it.exchange(get(url), timeout_s=PATIENT_S, fresh=False)
        got = (await early).content, (await later).content
        assert got == (b"one", b"one")


async def test_a_request_sent_by_the_callback_of_an_answer_uses_the_same_connection() -> None:
    """A watch is repeated at once, and must not open a connection each time."""
    asked: list[asyncio.Task[requests.Response]] = []
    async with served(SERVES) as (peer, it):

        def ask(_: object = None) -> None:
            if len(asked) < 5:
                exchange = it.exchange(get(peer.url), timeout_s=PATIENT_S, fresh=False, on_response=ask)
                asked.append(asyncio.create_task(exchange))

        ask()
        while not all(each.done() for each in asked):
            await asyncio.gather(*asked)
        assert peer.seen() == [(0, "GET /")] * 5


async def test_an_exchange_without_an_answer_calls_no_callback() -> None:
    heard: list[requests.Response] = []
    async with served([READ, send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal"), CLOSE]) as (peer, it):
        url = peer.url
        cut_off = it.exchange(get(url), timeout_s=PATIENT_S, fresh=False, on_response=heard.append)
        await failure_of(cut_off)
    assert heard == []


async def test_an_answer_that_comes_as_its_task_is_cancelled_calls_no_callback() -> None:
    """Both happen in one turn of the loop: first the cancellation, then the bytes."""
    heard: list[requests.Response] = []
    bugs: list[object] = []
    with Peer(SERVES) as peer:
        url = peer.url
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, what: bugs.append(what))
        async with transport(url) as it:
            await it.exchange(
                get(url), timeout_s=PATIENT_S, fresh=False
            )  # the connection is kept from now on
            under_way = it.exchange(get(url), timeout_s=PATIENT_S, fresh=False, on_response=heard.append)
            task = asyncio.create_task(under_way)
            time.sleep(LAG_S)  # stall the loop until the answer is there and not yet read
            loop.call_soon(task.cancel)
            with suppress(asyncio.CancelledError):
                await task
    assert (heard, bugs) == ([], [])


async def test_an_answer_that_comes_at_the_deadline_is_returned_once_its_callback_has_it() -> None:
    answers: list[requests.Response] = []
    async with served(SERVES) as (peer, it):
        await reads(peer.url)(it)
        reading = it.exchange(get(peer.url), timeout_s=0.1, fresh=False, on_response=answers.append)
        exchange = asyncio.create_task(reading)
        await asyncio.sleep(0)
        time.sleep(patient(0.3))  # both come while the loop stands still
        assert [await exchange] == answers


async def test_a_bug_of_a_callback_is_reported_to_the_loop() -> None:
    """asyncio would take an OSError of the callback for one of the socket, and drop it."""
    bugs: list[object] = []

    def fails(response: requests.Response) -> None:
        raise OSError("a bug")

    with Peer(SERVES) as peer:
        url = peer.url
        asyncio.get_running_loop().set_exception_handler(lambda _, what: bugs.append(what["exception"]))
        async with transport(url) as it:
            await it.exchange(get(url), timeout_s=PATIENT_S, fresh=False, on_response=fails)
    assert [str(bug) for bug in bugs] == ["a bug"]


def test_a_body_up_to_the_limit_is_returned_and_a_longer_one_refused() -> None:
    with Peer([READ, answer(b"x" * 300_000), AGAIN]) as peer:
        [response] = over(peer.url, reads(peer.url), body_bytes_max=300_000)
        assert len(response.content) == 300_000
        with pytest.raises(ExchangeFailed) as caught:
            over(peer.url, reads(peer.url), body_bytes_max=299_999)
    assert caught.value.kind is FailureKind.TOO_LARGE


@pytest.mark.parametrize("body", [b"", b"\x00\xff", b"x" * 3_000_000])
async def test_the_request_arrives_as_requests_prepared_it(body: bytes) -> None:
    """Method, target, query, headers and Content-Length arrive unchanged, and the body is not chunked."""
    arrived: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        arrived.set_result(head + await reader.readexactly(length))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    request = requests.Request(
        "PUT", url + "/v1/kv/a%2Fb", {"X-Consul-Token": "t"}, data=body, params={"cas": "1"}
    )
    async with server, transport(url) as it:
        prepared = request.prepare()
        await it.exchange(prepared, timeout_s=PATIENT_S, fresh=True)
    head, _, received = (await arrived).partition(b"\r\n\r\n")
    assert received == body
    line, *headers = head.decode().split("\r\n")
    assert line == "PUT /v1/kv/a%2Fb?cas=1 HTTP/1.1"
    assert {name.lower(): value for name, value in (each.split(": ") for each in headers)} == {
        "host": str(prepared.url).split("/")[2],
        "x-consul-token": "t",
        "content-length": str(len(body)),
        "accept-encoding": "identity",
    }


async def test_a_header_that_http_forbids_is_reported_without_its_value() -> None:
    request = get("http://127.0.0.1:1/")
    request.headers["X-Consul-Token"] = "s3cret\r\nX-Injected: 1"
    async with served([HOLD]) as (peer, it):
        failure = await failure_of(it.exchange(request, timeout_s=PATIENT_S, fresh=True))
    assert failure.kind is FailureKind.LOCAL
    assert "s3cret" not in f"{failure!r} {failure.__cause__!r}"


# --- which connection -----------------------------------------------------------------------------


def test_reads_share_a_kept_connection_and_each_write_has_its_own() -> None:
    with Peer(SERVES) as peer:
        read, write = reads(peer.url), writes(peer.url)
        over(peer.url, read, read, write, read, write)
        assert peer.seen() == [
            (0, "GET /read"),
            (0, "GET /read"),
            (1, "PUT /write"),
            (0, "GET /read"),
            (2, "PUT /write"),
        ]


async def test_concurrent_reads_have_a_connection_each_and_keep_them() -> None:
    """Many watches wait at the same time, and the next round opens no new connection."""
    async with served(SERVES) as (peer, it):
        for _ in range(2):
            requests_ = (it.exchange(get(peer.url), timeout_s=PATIENT_S, fresh=False) for _ in range(5))
            await asyncio.gather(*requests_)
        assert {number for number, _ in peer.seen()} == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("end", [CLOSE, RESET])
def test_a_kept_connection_that_closes_under_a_get_is_replaced_once(end: Step) -> None:
    """Nothing of an answer had come, so a read may be repeated."""
    with Peer([READ, answer(b"one"), READ, end], SERVES) as peer:
        read = reads(peer.url)
        assert [each.content for each in over(peer.url, read, read)] == [b"one", b"one"]
        assert peer.seen() == [(0, "GET /read"), (0, "GET /read"), (1, "GET /read")]


@pytest.mark.parametrize(
    ("method", "ends", "then", "seen"),
    [
        pytest.param("GET", [CLOSE], [READ, CLOSE], [(0, "GET /"), (1, "GET /")], id="a GET, twice"),
        pytest.param("GET", [send(b"H"), CLOSE], SERVES, [(0, "GET /")], id="a GET, once an answer began"),
        pytest.param("PUT", [CLOSE], SERVES, [(0, "PUT /")], id="a PUT, on which the peer may have acted"),
    ],
)
def test_a_request_on_a_kept_connection_is_not_repeated(
    method: str, ends: list[Step], then: list[Step], seen: list[tuple[int, str]]
) -> None:
    with Peer([READ, answer(b"one"), READ, *ends], then) as peer:
        request = requests.Request(method, peer.url).prepare()
        with pytest.raises(ExchangeFailed) as caught:
            over(
                peer.url,
                reads(peer.url),
                lambda it: it.exchange(request, timeout_s=PATIENT_S, fresh=False),
            )
        assert caught.value.kind is FailureKind.RESET
        assert peer.seen() == [(0, "GET /read"), *seen]


@pytest.mark.parametrize("script", [[READ, CLOSE], [READ, RESET], [READ, send(b"HTTP/1.1"), CLOSE]])
@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("method", ["PUT", "GET"])
async def test_a_fresh_exchange_is_never_repeated(script: list[Step], prepared: bool, method: str) -> None:
    """The rule holds for a new connection, for one that was opened ahead, and for any method."""
    async with served(script, SERVES) as (peer, it):
        if prepared:
            it.prepare()
            await ready(it)
        request = requests.Request(method, peer.url).prepare()
        failure = await failure_of(it.exchange(request, timeout_s=PATIENT_S, fresh=True))
        assert failure.kind is FailureKind.RESET
        assert peer.seen() == [(0, f"{method} /")]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([READ, answer(b"one", headers=b"Connection: close\r\n"), HOLD], id="says so"),
        pytest.param([READ, send(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\none"), HOLD], id="HTTP/1.0"),
        pytest.param(
            [READ, send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\noneHTTP/1.1 200 OK\r\n"), READ, HOLD],
            id="said more than asked",
        ),
        pytest.param([READ, answer(b"one"), CLOSE], id="closed"),
    ],
)
async def test_a_connection_that_cannot_be_kept_is_not_used_again(script: list[Step]) -> None:
    """Bytes beyond an answer must never be taken for the next answer."""
    async with served(script, SERVES) as (peer, it):
        for _ in range(2):
            await it.exchange(get(peer.url), timeout_s=PATIENT_S, fresh=False)
            await asyncio.sleep(0.05)
        assert peer.seen() == [(0, "GET /"), (1, "GET /")]


async def test_after_a_failure_the_next_exchange_has_a_new_connection() -> None:
    """A late answer must never be taken for that of the next request, and all kept ones lead to one peer."""
    first, second = [READ, answer(b"one"), HOLD], [READ, answer(b"one"), READ, HOLD]
    async with served(first, second, SERVES) as (peer, it):
        await asyncio.gather(
            *(it.exchange(get(peer.url), timeout_s=PATIENT_S, fresh=False) for _ in range(2))
        )
        timeout_s = patient(0.5)  # enough to send the request
        late = await failure_of(it.exchange(get(peer.url + "/late"), timeout_s=timeout_s, fresh=False))
        assert late.kind is FailureKind.TIMEOUT
        got = await it.exchange(get(peer.url + "/next"), timeout_s=PATIENT_S, fresh=False)
        assert got.content == b"one"
        assert peer.seen()[-1] == (2, "GET /next")


# --- prepared ahead -------------------------------------------------------------------------------


async def ready(it: Transport) -> None:
    """Wait until the connection that ``prepare`` opens is there."""
    await until(lambda: harness.is_prepared(it))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENT_S):
        while not holds():
            await asyncio.sleep(0.005)


async def test_a_prepared_connection_serves_one_write_and_no_read() -> None:
    """Connections are numbered as they are opened, so the spare is the first although it is used second."""
    async with served(SERVES) as (peer, it):
        it.prepare()
        it.prepare()
        await ready(it)
        it.prepare()
        await reads(peer.url)(it)
        await writes(peer.url)(it)
        assert not harness.is_prepared(it)
        await writes(peer.url)(it)
        assert peer.seen() == [(1, "GET /read"), (0, "PUT /write"), (2, "PUT /write")]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([CLOSE], id="closed"),
        pytest.param([RESET], id="reset"),
        pytest.param([answer(b"too many", "429 Too Many Requests"), HOLD], id="spoke"),
        pytest.param([answer(b"too many", "429 Too Many Requests"), CLOSE], id="spoke and closed"),
    ],
)
async def test_a_spare_connection_whose_peer_closed_or_sent_something_is_not_used(script: list[Step]) -> None:
    async with served(script, SERVES) as (peer, it):
        it.prepare()
        await asyncio.sleep(patient(0.2))
        assert (await writes(peer.url)(it)).content == b"one"
        assert peer.seen() == [(1, "PUT /write")]


async def test_a_spare_connection_that_closed_a_moment_ago_is_not_used() -> None:
    """The loop has had no turn to notice the end, so the socket itself is checked."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        loop = asyncio.get_running_loop()
        async with transport(url) as it:
            it.prepare()
            spare, _ = await loop.sock_accept(listener)
            await ready(it)
            accepting = loop.create_task(loop.sock_accept(listener))
            await asyncio.sleep(0)
            spare.close()
            writing = asyncio.create_task(writes(url)(it))
            sock, _ = await accepting
            with sock:
                await loop.sock_recv(sock, 1000)
                await loop.sock_sendall(sock, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                got = await writing
        assert got.status_code == 200


async def test_a_peer_that_answered_before_the_request_gets_no_request() -> None:
    """The peer has refused, and it might act on a request that it still reads."""
    with Peer([answer(b"too many", "429 Too Many Requests"), READ, HOLD]) as peer:
        dialer = Dialer(Endpoint.of(peer.url, Tls()), 1000, set(), warn=print)
        connection = await dialer.dial(Progress(), asyncio.get_running_loop().time() + PATIENT_S)
        await asyncio.sleep(patient(0.1))
        exchange = Exchange(put(peer.url))
        connection.begin(exchange, lambda *released: None)
        response = await connection.answer(exchange)
        connection.abort()
        await asyncio.sleep(0.01)
        assert response.status_code == 429
        assert peer.seen() == []


async def test_an_old_spare_connection_is_closed() -> None:
    """A firewall may have forgotten the connection, and Consul counts it against its limit."""
    async with served(SERVES) as (peer, it):
        before = harness.descriptors()
        it.prepare()
        await ready(it)
        await reads(peer.url)(it)
        assert harness.descriptors() == before + 2
        skip(60)
        await until(lambda: harness.descriptors() == before)
        assert not harness.is_prepared(it)
        await writes(peer.url)(it)
        assert peer.seen() == [(1, "GET /read"), (2, "PUT /write")]


async def test_a_spare_connection_at_half_its_age_is_replaced() -> None:
    """A contender that prepares each half minute always has a spare connection."""
    async with served(SERVES) as (peer, it):
        before = harness.descriptors()
        it.prepare()
        await ready(it)
        skip(33)
        it.prepare()
        await asyncio.sleep(patient(0.2))
        assert harness.is_prepared(it) and harness.descriptors() == before + 1
        await writes(peer.url)(it)
        assert peer.seen() == [(1, "PUT /write")]


async def test_a_failure_of_prepare_is_reported_by_the_exchange() -> None:
    with Peer([HOLD]) as gone:
        pass
    async with transport(gone.url) as it:
        it.prepare()
        await asyncio.sleep(0.05)
        assert (await failure_of(writes(gone.url)(it))).kind is FailureKind.REFUSED


# --- the end --------------------------------------------------------------------------------------


async def test_close_ends_exchanges_connections_and_connects() -> None:
    with Peer([READ, HOLD], SERVES) as peer:
        before = harness.descriptors()
        async with transport(peer.url) as it:
            waiting = asyncio.create_task(it.exchange(get(peer.url), timeout_s=PATIENT_S, fresh=False))
            await until(lambda: harness.descriptors() == before + 1)
            await reads(peer.url)(it)
            it.prepare()
            await ready(it)
            assert harness.descriptors() == before + 3
            it.prepare()
        assert harness.descriptors() == before
        failure = await failure_of(waiting)
        assert str(failure) == f"the connection to 127.0.0.1:{peer.port} was closed on this side"


async def test_a_connection_whose_peer_half_closes_and_reads_on_is_closed_once() -> None:
    """A loop that was held up sees both in one turn, and asyncio then closes the connection itself."""
    held_up = threading.Event()

    def hang_up_and_read(listener: socket.socket) -> None:
        peer, _ = listener.accept()
        with peer:
            held_up.wait(PATIENT_S)
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(1 << 20):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        peer = threading.Thread(target=hang_up_and_read, args=(listener,))
        peer.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        loop = asyncio.get_running_loop()
        async with transport(url) as it:
            loop.call_later(0.1, held_up.set)
            loop.call_later(0.1, time.sleep, 0.5)
            large = requests.Request("PUT", url + "/write", data=b"x" * 4_000_000).prepare()
            failure = await failure_of(it.exchange(large, timeout_s=PATIENT_S, fresh=True))
        peer.join()
    assert failure.kind is FailureKind.RESET
