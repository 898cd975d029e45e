"""A proxy between one supervisor and Consul that loses, delays and breaks the requests that a test names.

It has a port of its own and forwards everything until a rule applies. A rule catches exchanges by method,
part of the target and part of the body, either on their way to Consul (``request``) or on the way back
(``answer``: Consul has done its work, and the client does not learn of it). It holds them, resets their
connection, or answers in Consul's place. A request that is held reaches Consul when it is released, even if
its client has gone meanwhile: this is a late write.

The test stays synchronous: one thread of the test's process runs an event loop for the proxy. A rule is in
force when the call that made it has returned.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from tests.support.consul import free_ports
from tests.support.patience import PATIENCE_S

HEAD_BYTES_MAX = 2**16
PART_BYTES = 2**16

Stage = Literal["request", "answer", "body", "content"]  # body, content: a request or answer is changed


@dataclass(eq=False)
class Exchange:
    """A request that passed the proxy.

    answered: set once Consul has begun to answer it.
    """

    method: str
    target: str
    body: bytes
    answered: asyncio.Event = field(default_factory=asyncio.Event, repr=False)


@dataclass(eq=False)
class Rule:
    """The treatment of the exchanges that match, until ``release``; the proxy's methods make rules."""

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
        """Return when ``count`` exchanges have been caught; TimeoutError when they do not come."""
        self.proxy.run(self._until_caught(count))

    def release(self) -> None:
        """Release all that is held, and catch no more.

        Returns when Consul has answered the writes among it. Reads, which may be blocking queries, are not
        awaited.
        """
        self.proxy.run(self._let_go())

    def catches(self, stage: Stage, exchange: Exchange) -> bool:
        """Return whether this rule applies to the exchange, and take the exchange if it does."""
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
    """A proxy: ``with Proxy(agent.host, agent.port) as proxy:``, and give the supervisor ``proxy.url``."""

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._host = "127.0.0.1"
        self.port = free_ports(1)[0]
        self.rules: list[Rule] = []
        self.exchanges: list[Exchange] = []
        """All requests, oldest first, with any fate."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._listener: socket.socket | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._failures: list[BaseException] = []

    def __enter__(self) -> Self:
        self._thread.start()
        self.accept()
        return self

    def __exit__(self, *error: object) -> None:
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
        """The address to give to the supervisor instead of Consul's; it stays the same over ``refuse``."""
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

        path: a part of the target, query included.
        body: a part of the body.
        times: how many exchanges are caught. None: all.
        for_s: how long each is held at most. None: until ``release``.
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
        """Answer matching requests with this status and body, in Consul's place."""
        body = text.encode()
        reply = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        return self._add(Rule(self, "request", method, path, b"", times, reply=reply))

    def change(
        self, edit: Callable[[bytes], bytes], method: str = "", path: str = "", times: int | None = None
    ) -> Rule:
        """Forward matching requests with the body that ``edit`` makes of theirs."""
        return self._add(Rule(self, "body", method, path, b"", times, edit=edit))

    def lie(self, edit: Callable[[bytes], bytes], method: str = "", path: str = "") -> Rule:
        """Pass on matching answers as ``edit`` makes them. It must keep their length."""
        return self._add(Rule(self, "content", method, path, b"", None, edit=edit))

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Let no byte through either way and refuse nothing, within the block; then release all."""
        rules = (self.hold("answer"), self.hold("request"))
        try:
            yield
        finally:
            for rule in rules:
                rule.release()

    def refuse(self) -> None:
        """Refuse new connections, and reset the open ones."""
        self.run(self._refuse())

    def accept(self) -> None:
        """Accept connections (again), on the same port."""
        self.run(self._listen())

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run this on the proxy's loop; TimeoutError after PATIENCE_S."""
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
        await asyncio.sleep(0)  # lets the transports run their last callbacks

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
            pass  # a rule breaks the connection, Consul has gone, or the test is over
        finally:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one exchange after the other; the framing of answers is left to Consul and the client."""
        up_reader, up_writer = await asyncio.open_connection(*self._upstream)
        exchanges: list[Exchange] = []
        answers = asyncio.create_task(self._pass_answers(up_reader, writer, exchanges))
        requests = asyncio.create_task(self._pass_requests(reader, writer, up_writer, exchanges))
        try:
            done, _ = await asyncio.wait((answers, requests), return_when=asyncio.FIRST_COMPLETED)
            if answers not in done and requests.exception() is None and exchanges:
                # The client has gone, and a request that has reached Consul must still be finished there.
                await _first(answers, exchanges[-1].answered)
        finally:
            up_writer.close()
            for exchange in exchanges:
                exchange.answered.set()  # it may never be answered, and a rule may wait for it
            for task in (answers, requests):
                task.cancel()
            await asyncio.wait(
                (answers, requests)
            )  # the last step, because this wait may itself be cancelled
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
            sent = self._sent_on(head, exchange)
            up_writer.write(sent)
            await up_writer.drain()

    def _sent_on(self, head: bytes, exchange: Exchange) -> bytes:
        """Return the request for Consul: unchanged, unless a rule changes its body."""
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
            for rule in tuple(self.rules):
                if rule.edit is not None and rule.catches("content", exchange):
                    part = rule.edit(part)
            writer.write(part)
            await writer.drain()

    async def _gate(self, stage: Stage, exchange: Exchange) -> bytes:
        """Return when no rule holds this exchange; ConnectionResetError to break it.

        Returns the answer in Consul's place. Blank: Consul answers.
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
    """Return the request that begins with this head, with its body by Content-Length."""
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
    """Close a connection with RST, as a crashed peer or a firewall does, unless it is closed already."""
    if connection.fileno() >= 0:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
