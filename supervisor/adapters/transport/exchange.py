"""One exchange: a request, how its answer is wanted, and the part of the answer that has arrived.

Pure state. This module knows no connection, and must never read or write a socket.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import h11
import requests

Delay = Callable[[], float]
"""Returns for how many seconds an answer is not read; called when the first bytes arrive."""


OnResponse = Callable[[requests.Response], None]
"""Called with an answer as soon as its last byte has been read, but never within the sending call."""


def no_delay() -> float:
    """Return 0, so that the answer is read at once."""
    return 0.0


def ignore(response: requests.Response) -> None:
    """Do nothing, because only the task that awaits the answer needs it."""


@dataclass(slots=True)
class Progress:
    """The stage of an exchange, for the error when its deadline comes first."""

    doing: str = "not begun"


@dataclass(slots=True, eq=False)
class Exchange:
    """One request and its answer."""

    request: requests.PreparedRequest
    fresh: bool = False  # whether it needs a connection that was never used
    delay: Delay = no_delay  # see ``Delay``
    on_response: OnResponse = ignore  # see ``OnResponse``
    progress: Progress = field(init=False, default_factory=Progress)
    delivered: bool = field(init=False, default=False)  # whether ``on_response`` has got the answer
    answer: "asyncio.Future[requests.Response]" = field(init=False)  # or an ExchangeFailed
    unsent: bytes = field(init=False)  # the encoded request while a connection has not sent it
    head: h11.Response | None = field(init=False)  # the head of the answer. None: it has not arrived
    # The body of the answer as far as it has arrived.
    # A list would need 40 bytes for a piece of one byte.
    body: bytearray = field(init=False, default_factory=bytearray)
    pieces: int = field(init=False)  # the number of pieces in which the body has arrived
    informational: int = field(init=False)  # the number of interim answers

    def begin(self) -> None:
        """Start an attempt, and forget an earlier attempt on another connection."""
        self.progress.doing = "waiting for the answer"
        self.answer = asyncio.get_running_loop().create_future()
        self.unsent, self.head, self.body, self.pieces, self.informational = b"", None, bytearray(), 0, 0

    def fail(self, failure: Exception) -> None:
        """End this attempt without an answer.

        A task that was cancelled before it began never retrieves the failure, so it is marked as retrieved.
        """
        self.answer.set_exception(failure)
        self.answer.exception()

    @property
    def answered(self) -> bool:
        """Whether the answer is there, which it is not if the awaiting task was cancelled at this moment."""
        answer = self.answer
        return answer.done() and not answer.cancelled() and answer.exception() is None

    def take_delay_s(self) -> float:
        """Return for how many seconds the answer is not read. From the second call on this is 0."""
        delay, self.delay = self.delay, no_delay
        return delay()
