"""One exchange: a request, how its answer is wanted, and what has arrived of that answer.

Pure state. It knows no connection, and must never read or write a socket.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import h11
import requests

Delay = Callable[[], float]
"""Returns for how many seconds an answer is not read; called when its first bytes are there."""


OnResponse = Callable[[requests.Response], None]
"""Called with an answer as soon as its last byte has been read, but never within the sending call."""


def no_delay() -> float:
    """Return 0: the answer is read at once."""
    return 0.0


def ignore(response: requests.Response) -> None:
    """Do nothing, because only the task that awaits the answer needs it."""


@dataclass(slots=True, eq=False)
class Exchange:
    """One request, how its answer is wanted, and what is known of that answer so far.

    ``fresh``: on a connection never used before. ``delay``, ``on_response``: see their types.
    """

    request: requests.PreparedRequest
    fresh: bool = False
    delay: Delay = no_delay
    on_response: OnResponse = ignore
    answer: "asyncio.Future[requests.Response]" = field(init=False)
    unsent: bytes = field(init=False)
    head: h11.Response | None = field(init=False)
    body: bytearray = field(init=False)  # a list's entry for each byte would be 40 bytes
    pieces: int = field(init=False)
    informational: int = field(init=False)

    def begin(self) -> None:
        """Forget all of an earlier try on another connection."""
        self.answer = asyncio.get_running_loop().create_future()
        self.answer.add_done_callback(_mark_retrieved)
        self.unsent, self.head, self.body, self.pieces, self.informational = b"", None, bytearray(), 0, 0

    @property
    def answered(self) -> bool:
        """Whether the answer is there; not so when the task that awaits it was cancelled at this moment."""
        answer = self.answer
        return answer.done() and not answer.cancelled() and answer.exception() is None

    def take_delay_s(self) -> float:
        """Return for how many seconds the answer is not read; 0 from the second call on."""
        delay, self.delay = self.delay, no_delay
        return delay()


def _mark_retrieved(answer: "asyncio.Future[requests.Response]") -> None:
    """Mark a failure as retrieved, because a task that was cancelled before it began never asks for it."""
    if not answer.cancelled():
        answer.exception()
