"""A query for all keys below a prefix, and the requests that wait for its answer.

Each request is answered as if its key had been queried alone, or with None: then it must be. A listing proves
only the keys that it shows, because Consul leaves out keys that the token may not read. So a key that is not
listed is queried alone. A listing answers only requests that were waiting before its query was sent, because
a lease counts from the time of the request.
"""

import asyncio
from collections.abc import Awaitable, Callable

from supervisor.adapters.consul.shared.listing import Listing
from supervisor.core.frozen import dataclass
from supervisor.core.outcomes import Denied, Outcome, Unknown
from supervisor.core.requests import ReadKey, WatchKey

SINGLY_S = 60.0  # how long each key is queried alone after a list was forbidden, or not worth its size


@dataclass(frozen=True, slots=True)
class ListQuery:
    """One query for all keys below the prefix."""

    prefix: str
    index: int | None  # what a blocking query waits from. None: a read, which Consul answers at once
    wait_s: float  # how long Consul may hold a blocking query
    consistent: bool  # whether Consul must answer consistently
    timeout_s: float  # how long the client waits for the answer
    holds: bool = False  # whether it is for a holder, whose lock depends on the answer


FetchList = Callable[[ListQuery], Awaitable[Listing | Unknown | Denied | None]]
"""Sends a query and returns the answer. None: Consul refuses the list, or it is too large."""


class SharedQuery:
    """The queries for all keys below one prefix. ``clock`` is the core's, in seconds."""

    def __init__(self, prefix: str, fetch: FetchList, clock: Callable[[], float]) -> None:
        self._prefix = prefix
        self._fetch = fetch
        self._clock = clock
        self._waiting: dict[WatchKey | ReadKey, asyncio.Future[Outcome | None]] = {}
        self._querying: asyncio.Task[None] | None = None
        self._singly_until = float("-inf")

    @property
    def is_shared(self) -> bool:
        return self._clock() >= self._singly_until

    @property
    def is_idle(self) -> bool:
        return not self._waiting

    async def answer(self, request: WatchKey | ReadKey) -> Outcome | None:
        """Return the outcome of this request. None: the caller must query the key alone, now.

        The outcome is Unknown when there is no answer within the request's time.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome | None] = loop.create_future()
        self._waiting[request] = future
        if self._querying is None or self._querying.done():
            self._querying = loop.create_task(self._query())
            self._querying.add_done_callback(_surface)
        text = f"no answer about the keys {self._prefix}… within {request.timeout_s:.3g} s"
        left_s = max(0.0, request.at + request.timeout_s - self._clock())
        expiry = loop.call_later(left_s, give, future, Unknown(text))
        try:
            return await future
        finally:
            expiry.cancel()
            del self._waiting[request]

    async def close(self) -> None:
        if self._querying is not None:
            self._querying.cancel()
            await asyncio.wait([self._querying])

    async def _query(self) -> None:
        """Send queries as long as a request waits."""
        raise NotImplementedError

    def _ask_singly(self) -> None:
        """Let each key be queried alone for SINGLY_S."""
        self._singly_until = self._clock() + SINGLY_S


def give(future: "asyncio.Future[Outcome | None]", outcome: Outcome | None) -> None:
    if not future.done():
        future.set_result(outcome)


def _surface(task: asyncio.Task[None]) -> None:
    """Report a bug at once and not when the task is collected, because its requests would wait in vain."""
    if not task.cancelled() and (error := task.exception()) is not None:
        context = {"message": "a shared query's task failed", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)
