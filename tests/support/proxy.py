"""A proxy between one supervisor and Consul that loses, delays and breaks what a test names.

It stands on a port of its own and passes everything through until a rule says otherwise. A rule
catches exchanges by method, part of the target and part of the body, either on their way to Consul
(``request``) or on the way back (``answer``: Consul has done its work, and the client does not
hear of it), and holds them, resets their connection or answers in Consul's place. A request that
is held reaches Consul when it is let go even if its client has gone meanwhile: that is how a late
write looks.

The test stays synchronous: one thread of the test's process runs an event loop for the proxy.
A rule is in force when the call that made it has returned.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

from tests.support.consul import free_ports
from tests.support.patience import PATIENCE_S

HEAD_BYTES_MAX = 2**16
PART_BYTES = 2**16

Stage = Literal["request", "answer", "body"]  # body: a request whose body is changed on its way


@dataclass(eq=False)
class Exchange:
    """A request that came by. ``answered`` is set once Consul has begun to answer it."""

    method: str
    target: str
    body: bytes
    answered: asyncio.Event = field(default_factory=asyncio.Event, repr=False)


@dataclass(eq=False)
class Rule:
    """What is done with the exchanges that match, until ``release``. Made by the proxy's methods."""

    proxy: "Proxy"
    stage: Stage
    method: str
    path: str
    body: bytes
    times: int | None
    reset: bool = False
    reply: bytes = b""
    edit: Callable[[bytes], bytes] | None = None
    for_s: float | None = None
    released: asyncio.Event = field(default_factory=asyncio.Event)
    _caught: list[Exchange] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def caught(self) -> list[Exchange]:
        """The exchanges that this rule has taken so far, oldest first."""
        return list(self._caught)

    def wait_caught(self, count: int = 1) -> None:
        """Return when so many exchanges have been caught; TimeoutError when they do not come."""
        self.proxy.run(self._until_caught(count))

    def release(self) -> None:
        """Let go what is held, and catch no more.

        Returns when Consul has answered the writes among it (a read may be a blocking query).
        """
        self.proxy.run(self._let_go())

    def catches(self, stage: Stage, exchange: Exchange) -> bool:
        """Whether this exchange is this rule's, and if so take it."""
        matches = (
            stage == self.stage
            and (self.times is None or len(self._caught) < self.times)
            and self.method in ("", exchange.method)
            and self.path in exchange.target
            and self.body in exchange.body
        )
        if matches:
            self._caught.append(exchange)
            self._changed.set()
        return matches

    async def _until_caught(self, count: int) -> None:
        while len(self._caught) < count:
            self._changed.clear()
            await self._changed.wait()

    async def _let_go(self) -> None:
        self.proxy.rules.remove(self)
        self.released.set()
        for exchange in self._caught:
            if exchange.method != "GET" and not self.reset:
                await exchange.answered.wait()


class Proxy:
    """``with Proxy(agent.host, agent.port) as proxy:`` and give the supervisor ``proxy.url``."""

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._host = "127.0.0.1"
        self.port = free_ports(1)[0]
        self.rules: list[Rule] = []
        self.exchanges: list[Exchange] = []
        """Everything that was asked, oldest first, whatever became of it."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._listener: socket.socket | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._failures: list[BaseException] = []

    def __enter__(self) -> Self:
        self._thread.start()
        self.accept()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.run(self._refuse())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE_S)
            self._loop.close()
        for failure in self._failures:
            raise failure

    @property
    def url(self) -> str:
        """The address to give to the supervisor instead of Consul's; it stays over ``refuse``."""
        return f"http://{self._host}:{self.port}"

    def hold(
        self,
        stage: Stage,
        method: str = "",
        path: str = "",
        body: bytes = b"",
        times: int | None = None,
        for_s: float | None = None,
    ) -> Rule:
        """Keep matching requests from Consul, or its answers from the client, until ``release``.

        ``path`` and ``body`` are parts of the target (query included) and of the body; with
        ``times`` only the first so many are caught, with ``for_s`` each is held that long at most.
        """
        return self._add(Rule(self, stage, method, path, body, times, for_s=for_s))

    def reset(
        self, stage: Stage, method: str = "", path: str = "", body: bytes = b"", times: int | None = None
    ) -> Rule:
        """Reset the connection (TCP RST) of matching exchanges, before or after Consul has seen them."""
        return self._add(Rule(self, stage, method, path, body, times, reset=True))

    def answer(
        self, status: str, text: str = "", method: str = "", path: str = "", times: int | None = None
    ) -> Rule:
        """Answer matching requests with this status and body; Consul does not hear of them."""
        body = text.encode()
        reply = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        return self._add(Rule(self, "request", method, path, b"", times, reply=reply))

    def change(
        self, edit: Callable[[bytes], bytes], method: str = "", path: str = "", times: int | None = None
    ) -> Rule:
        """Send matching requests on with the body that ``edit`` makes of theirs."""
        return self._add(Rule(self, "body", method, path, b"", times, edit=edit))

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Nothing comes through either way, and nothing is refused: a black hole; later all goes on."""
        rules = (self.hold("answer"), self.hold("request"))
        try:
            yield
        finally:
            for rule in rules:
                rule.release()

    def refuse(self) -> None:
        """Refuse new connections, and reset those that there are."""
        self.run(self._refuse())

    def accept(self) -> None:
        """Accept connections (again), on the same port."""
        self.run(self._listen())

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this on the proxy's loop; TimeoutError after PATIENCE_S."""
        asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, PATIENCE_S), self._loop).result()

    def _add(self, rule: Rule) -> Rule:
        async def add() -> None:
            self.rules.append(rule)

        self.run(add())
        return rule

    async def _listen(self) -> None:
        self._listener = socket.create_server((self._host, self.port))
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener, self._accepted, self._listener)

    async def _refuse(self) -> None:
        if self._listener is not None:
            self._loop.remove_reader(self._listener)
            self._listener.close()
            self._listener = None
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(tuple(self._connections))
        await asyncio.sleep(0)  # the transports' own last callbacks

    def _accepted(self, listener: socket.socket) -> None:
        """Own the connection from its first moment, so that ``refuse`` misses none."""
        connection, _ = listener.accept()
        task = self._loop.create_task(self._connected(connection))
        self._connections.add(task)
        task.add_done_callback(lambda _: self._ended(task, connection))

    def _ended(self, task: asyncio.Task[None], connection: socket.socket) -> None:
        self._connections.discard(task)
        _reset(connection)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failures.append(error)

    async def _connected(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=connection, limit=HEAD_BYTES_MAX)
        try:
            await self._serve(reader, writer)
            writer.close()
            await writer.wait_closed()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # a rule says so, Consul has gone, or the test is over
        finally:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one exchange after the other; the answers' framing is Consul's and the client's affair."""
        up_reader, up_writer = await asyncio.open_connection(*self._upstream)
        exchanges: list[Exchange] = []
        answers = asyncio.create_task(self._pass_answers(up_reader, writer, exchanges))
        requests = asyncio.create_task(self._pass_requests(reader, writer, up_writer, exchanges))
        try:
            done, _ = await asyncio.wait((answers, requests), return_when=asyncio.FIRST_COMPLETED)
            if answers not in done and requests.exception() is None and exchanges:
                # The client has gone. What has reached Consul is finished there all the same.
                await _first(answers, exchanges[-1].answered)
        finally:
            up_writer.close()
            for exchange in exchanges:
                exchange.answered.set()  # or it never will be: nobody shall wait for it
            for task in (answers, requests):
                task.cancel()
            await asyncio.wait((answers, requests))  # the last step, for it may itself be cancelled
        for task in done:
            task.result()

    async def _pass_requests(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        up_writer: asyncio.StreamWriter,
        exchanges: list[Exchange],
    ) -> None:
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            exchange = await _exchange(head, reader)
            self.exchanges.append(exchange)
            exchanges.append(exchange)
            if reply := await self._gate("request", exchange):
                exchange.answered.set()
                writer.write(reply)
                await writer.drain()
                continue
            up_writer.write(self._sent_on(head, exchange))
            await up_writer.drain()

    def _sent_on(self, head: bytes, exchange: Exchange) -> bytes:
        """The request as Consul gets it: as it came, unless a rule changes its body."""
        body = exchange.body
        for rule in tuple(self.rules):
            if rule.edit is not None and rule.catches("body", exchange):
                body = rule.edit(body)
        lines = head.split(b"\r\n")
        named = [i for i, line in enumerate(lines) if line.lower().startswith(b"content-length:")]
        for i in named:
            lines[i] = f"Content-Length: {len(body)}".encode()
        return b"\r\n".join(lines) + body

    async def _pass_answers(
        self, up_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, exchanges: list[Exchange]
    ) -> None:
        while part := await up_reader.read(PART_BYTES):
            exchange = exchanges[-1]
            first = not exchange.answered.is_set()
            exchange.answered.set()
            if first:
                await self._gate("answer", exchange)
            writer.write(part)
            await writer.drain()

    async def _gate(self, stage: Stage, exchange: Exchange) -> bytes:
        """Return when no rule stands in the way of this exchange; ConnectionResetError to break it.

        What is returned, if anything, is to be the answer instead of Consul's.
        """
        for rule in tuple(self.rules):
            if rule.catches(stage, exchange):
                if rule.reset:
                    raise ConnectionResetError(f"the test breaks {exchange.method} {exchange.target}")
                if rule.reply:
                    return rule.reply
                with suppress(TimeoutError):
                    await asyncio.wait_for(rule.released.wait(), rule.for_s)
        return b""


async def _exchange(head: bytes, reader: asyncio.StreamReader) -> Exchange:
    """The request that this head begins, with its body (Content-Length only: nobody here sends chunks)."""
    request_line, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = request_line.split(" ")
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    assert "transfer-encoding" not in headers, "Consul ignores chunked bodies: the product must not send them"
    return Exchange(method, target, await reader.readexactly(int(headers.get("content-length", "0"))))


async def _first(task: asyncio.Task[None], event: asyncio.Event) -> None:
    """Return when the task has ended or the event is set."""
    waits = asyncio.create_task(event.wait())
    await asyncio.wait((task, waits), return_when=asyncio.FIRST_COMPLETED)
    waits.cancel()


def _reset(connection: socket.socket) -> None:
    """Close with RST, as a crashed peer or a firewall does, what has not been closed in order."""
    if connection.fileno() >= 0:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
