"""A small STOMP client: persistent messages with receipts, and a reader that acknowledges each message.

Both fail over as clients of a broker on two machines must: when a connection ends or an answer does not come,
they go to the next address and repeat what was not confirmed. So a message may come twice.
"""

import contextlib
import itertools
import socket
import time
from collections.abc import Sequence
from typing import NamedTuple, Self

from tests.support.background import Worker

Address = tuple[str, int]
ANSWER_S = 5.0  # a connection without data for this long is given up, because its broker may be frozen
PAUSE_S = 0.05
READ_BYTES = 1 << 16


class Frame(NamedTuple):
    """One frame, without its end."""

    command: str
    headers: dict[str, str]
    body: str


class Connection:
    """A connection to one broker; it raises OSError when the broker is absent, hangs up or is too slow."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection(address, timeout=ANSWER_S)
        self._buffer = b""
        try:
            self._say("CONNECT", {"accept-version": "1.2", "host": "main"})
            self._hear("CONNECTED")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection without a DISCONNECT."""
        self._socket.close()

    def send(self, queue: str, body: str) -> None:
        """Send a message; return when the broker's receipt confirms that the message is on its disk."""
        wanted = {"destination": f"/queue/{queue}", "persistent": "true", "receipt": body}
        self._say("SEND", wanted, body)
        assert self._hear("RECEIPT").headers["receipt-id"] == body

    def subscribe(self, queue: str) -> None:
        self._say("SUBSCRIBE", {"id": "0", "destination": f"/queue/{queue}", "ack": "client-individual"})

    def receive(self) -> str:
        """Return the next message, which the broker then deletes; raise TimeoutError when none comes."""
        message = self._hear("MESSAGE")
        self._say("ACK", {"id": message.headers["ack"]})
        return message.body

    def _say(self, command: str, headers: dict[str, str], body: str = "") -> None:
        lines = [command, *(f"{name}:{value}" for name, value in headers.items())]
        self._socket.sendall(("\n".join(lines) + f"\n\n{body}\0").encode())

    def _hear(self, command: str) -> Frame:
        while b"\0" not in self._buffer:
            read = self._socket.recv(READ_BYTES)
            if not read:
                raise ConnectionError("the broker has hung up")
            self._buffer += read
        raw, _, self._buffer = self._buffer.partition(b"\0")
        head, _, body = raw.decode().lstrip("\n").partition("\n\n")
        first, *rest = head.split("\n")
        frame = Frame(first, dict(line.split(":", 1) for line in rest), body)
        if frame.command != command:
            raise ConnectionError(f"{frame.command} instead of {command}: {frame.headers}")
        return frame


class Client(Worker):
    """A client that works in a thread, on one address after the other, while the ``with`` block runs."""

    def __init__(self, addresses: Sequence[Address], queue: str) -> None:
        self._addresses = addresses
        self._queue = queue
        super().__init__()

    def _work(self) -> None:
        for address in itertools.cycle(self._addresses):
            if self._ended.wait(PAUSE_S):
                return
            with contextlib.suppress(OSError), Connection(address) as connection:
                self._serve(address, connection)

    def _serve(self, address: Address, connection: Connection) -> None:
        raise NotImplementedError


class Sender(Client):
    """A client that sends the numbers from 0 on, each until a broker has confirmed it with a receipt."""

    def __init__(self, addresses: Sequence[Address], queue: str) -> None:
        super().__init__(addresses, queue)
        self.confirmed: list[tuple[int, Address, float]] = []  # the number, its broker, the time

    def _serve(self, address: Address, connection: Connection) -> None:
        while not self._ended.wait(PAUSE_S):
            number = len(self.confirmed)
            connection.send(self._queue, str(number))
            self.confirmed.append((number, address, time.monotonic()))

    def by(self, address: Address) -> list[int]:
        return [number for number, confirmed_by, _ in self.confirmed if confirmed_by == address]

    @property
    def longest_gap_s(self) -> float:
        times = [at for _, _, at in self.confirmed]
        return max(later - at for at, later in itertools.pairwise(times))


class Receiver(Client):
    """A client that reads the queue; a broker that ends repeats the messages not acknowledged yet."""

    def __init__(self, addresses: Sequence[Address], queue: str) -> None:
        super().__init__(addresses, queue)
        self.received: list[tuple[int, Address]] = []

    def _serve(self, address: Address, connection: Connection) -> None:
        connection.subscribe(self._queue)
        while not self._ended.is_set():
            self.received.append((int(connection.receive()), address))

    @property
    def numbers(self) -> set[int]:
        """All numbers that came, once or more often."""
        return {number for number, _ in self.received}


def reached(addresses: Sequence[Address]) -> list[Address]:
    """Return the brokers that accept a client now."""
    return [address for address in addresses if _answers(address)]


def _answers(address: Address) -> bool:
    with contextlib.suppress(OSError), Connection(address):
        return True
    return False


def sent(address: Address, queue: str, numbers: Sequence[int]) -> None:
    """Return when all of these numbers are on the broker's disk."""
    with Connection(address) as connection:
        for number in numbers:
            connection.send(queue, str(number))
