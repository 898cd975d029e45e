"""A small STOMP client: persistent messages with receipts, and a reader that acknowledges each one.

Both fail over as clients of a broker on two machines must: when a connection ends or an answer does not
come, they go to the next address and repeat what nobody has confirmed. So messages may come twice.
"""

import contextlib
import itertools
import socket
import time
from collections.abc import Sequence
from types import TracebackType
from typing import NamedTuple, Self

from tests.support.background import Worker

Address = tuple[str, int]
ANSWER_S = 5.0  # a connection on which nothing comes for so long is given up: its broker may be frozen
PAUSE_S = 0.05
READ_BYTES = 1 << 16


class Frame(NamedTuple):
    """One frame, without its end."""

    command: str
    headers: dict[str, str]
    body: str


class Connection:
    """To one broker. OSError when it is not there, ends, or does not answer in time."""

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up, without a word."""
        self._socket.close()

    def send(self, queue: str, body: str) -> None:
        """Returns when the broker has it on its disk, for that is what its receipt says."""
        wanted = {"destination": f"/queue/{queue}", "persistent": "true", "receipt": body}
        self._say("SEND", wanted, body)
        assert self._hear("RECEIPT").headers["receipt-id"] == body

    def subscribe(self, queue: str) -> None:
        """From now on ``receive`` gives its messages."""
        self._say("SUBSCRIBE", {"id": "0", "destination": f"/queue/{queue}", "ack": "client-individual"})

    def receive(self) -> str:
        """The next message, which the broker then forgets; TimeoutError when none comes."""
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
    """Does its work on one of the addresses after the other, in a thread, while the ``with`` block runs."""

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
    """Sends the numbers from 0 on, each until somebody has given a receipt for it."""

    def __init__(self, addresses: Sequence[Address], queue: str) -> None:
        super().__init__(addresses, queue)
        self.confirmed: list[tuple[int, Address, float]] = []  # the number, who has it, since when

    def _serve(self, address: Address, connection: Connection) -> None:
        while not self._ended.wait(PAUSE_S):
            number = len(self.confirmed)
            connection.send(self._queue, str(number))
            self.confirmed.append((number, address, time.monotonic()))

    def by(self, address: Address) -> list[int]:
        """The numbers that this broker has confirmed."""
        return [number for number, confirmed_by, _ in self.confirmed if confirmed_by == address]

    @property
    def longest_gap_s(self) -> float:
        """The longest time in which nothing was confirmed."""
        times = [at for _, _, at in self.confirmed]
        return max(later - at for at, later in itertools.pairwise(times))


class Receiver(Client):
    """Reads the queue; what it has read and not yet acknowledged when a broker ends comes again."""

    def __init__(self, addresses: Sequence[Address], queue: str) -> None:
        super().__init__(addresses, queue)
        self.received: list[tuple[int, Address]] = []

    def _serve(self, address: Address, connection: Connection) -> None:
        connection.subscribe(self._queue)
        while not self._ended.is_set():
            self.received.append((int(connection.receive()), address))

    @property
    def numbers(self) -> set[int]:
        """All that came, once or more often."""
        return {number for number, _ in self.received}


def reached(addresses: Sequence[Address]) -> list[Address]:
    """The brokers that take a client now."""
    return [address for address in addresses if _answers(address)]


def _answers(address: Address) -> bool:
    with contextlib.suppress(OSError), Connection(address):
        return True
    return False


def sent(address: Address, queue: str, numbers: Sequence[int]) -> None:
    """All of these are on the broker's disk."""
    with Connection(address) as connection:
        for number in numbers:
            connection.send(queue, str(number))
