"""The queries for all keys below one prefix, and the requests that wait for their answers.

One blocking query serves all watches, and one list all holders that read at this time.
Each request is answered as if its key had been queried alone, or with None: then it must be. A listing proves
only the keys that it shows, because Consul leaves out keys that the token may not read. So a key that is not
listed is queried alone. A listing answers only requests that were waiting before its query was sent, because
a lease counts from the time of the request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import ClassVar

from supervisor.adapters.consul.rate import RateLimit
from supervisor.adapters.consul.shared.listing import Listing
from supervisor.core.frozen import dataclass
from supervisor.core.lock.base import ANSWER_S_MAX, WAIT_S, WATCH_S
from supervisor.core.outcomes import Denied, Hinted, KeyView, Outcome, Throttled, Unknown
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
    is_stale: bool = False  # whether any server may answer by itself


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
        expiry = loop.call_later(left_s, _give, future, Unknown(text))
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


READ_S = 3.0  # a read takes milliseconds, so after this time another attempt is better
SHOWN_MAX = 16  # keys for each read: a longer list takes more time than the reads that it saves
FAILURES_MAX = 2  # lists in a row without an answer: a single read may succeed where a list fails


class PrefixReader(SharedQuery):
    """The reads of all keys below one prefix, and the watches that wait from no index."""

    def __init__(self, prefix: str, fetch: FetchList, clock: Callable[[], float]) -> None:
        super().__init__(prefix, fetch, clock)
        self._failures = 0  # lists in a row without an answer

    async def _query(self) -> None:
        await asyncio.sleep(0)  # requests of this iteration of the loop share the query
        while subscribers := {each: future for each, future in self._waiting.items() if not future.done()}:
            if len(subscribers) == 1 or not self.is_shared:
                for future in subscribers.values():
                    _give(future, None)
                continue
            # Each request ends by its own time, so the longest time counts for the list.
            left_s = min(READ_S, max(each.at + each.timeout_s for each in subscribers) - self._clock())
            holds = any(isinstance(each, ReadKey) and each.holds for each in subscribers)
            answer = await self._fetch(ListQuery(self._prefix, None, 0.0, True, max(0.0, left_s), holds))
            if not self._is_worthwhile(answer, subscribers):
                self._ask_singly()
            for request, future in subscribers.items():
                if isinstance(answer, Listing):
                    _give(future, answer.outcome(request.key) if request.key in answer.entries else None)
                else:
                    _give(future, answer)

    def _is_worthwhile(
        self, answer: Listing | Unknown | Denied | None, subscribers: Collection[ReadKey | WatchKey]
    ) -> bool:
        """Return whether lists save time: they have answers, which show the keys and few other ones."""
        if isinstance(answer, Listing):
            self._failures = 0
            missing = sum(each.key not in answer.entries for each in subscribers)
            return missing <= len(subscribers) / 2 and len(answer.entries) <= SHOWN_MAX * len(subscribers)
        if isinstance(answer, Unknown) and not isinstance(answer, Throttled):
            self._failures += 1
        return answer is not None and self._failures < FAILURES_MAX


REARM_S = 0.002  # contenders repeat their requests meanwhile, so that the next query serves them
IDLE_WAKES_MAX = 5  # answers in a row without news for any request
IDLE_PAUSE_S = 0.05  # after that, because other programs' keys change below this prefix
FAILED_PAUSE_S = 0.5
LATEST_S = ANSWER_S_MAX + 2.0  # until the next answer, at the latest


class PrefixWatcher(SharedQuery):
    """The watches of all keys below one prefix. Each request names the index from which it waits."""

    is_stale: ClassVar[bool] = False

    def __init__(self, prefix: str, fetch: FetchList, clock: Callable[[], float]) -> None:
        super().__init__(prefix, fetch, clock)
        self._index = 0
        self._shown: Mapping[str, int] = {}  # by key: its ModifyIndex in the newest listing
        self._absent: dict[str, int] = {}  # by key: the index of the answer that showed its absence
        self._idle_wakes = 0
        self._rate = RateLimit()

    def observe(self, key: str, outcome: Outcome) -> None:
        """Note the outcome of a query for that key alone, which may show its absence."""
        if isinstance(outcome, KeyView | Hinted) and not outcome.present:
            self._absent[key] = outcome.index

    async def answer(self, request: WatchKey | ReadKey) -> Outcome | None:
        """Return the outcome of this watch: see ``SharedQuery.answer``."""
        assert isinstance(request, WatchKey)
        if self._shown.get(request.key, 0) > request.index:
            return None  # because the change is past, and the query under way will not show it
        return await super().answer(request)

    async def _query(self) -> None:
        while self._waiting:
            pause_s = IDLE_PAUSE_S if self._idle_wakes > IDLE_WAKES_MAX else REARM_S
            await asyncio.sleep(max(pause_s, self._rate.wait_s(self._clock())))
            subscribers = frozenset(self._waiting)
            if not subscribers:
                return
            consistent = any(isinstance(each, WatchKey) and each.consistent for each in subscribers)
            query = ListQuery(self._prefix, self._index, WAIT_S, consistent, WATCH_S, is_stale=self.is_stale)
            answer = await self._fetch(query)
            if isinstance(answer, Listing):
                self._distribute(answer, subscribers)
                continue
            self._index = 0
            if answer is None:
                self._ask_singly()
            for future in self._waiting.values():
                _give(future, answer)
            await asyncio.sleep(FAILED_PAUSE_S)

    def _distribute(self, listing: Listing, subscribers: frozenset[WatchKey | ReadKey]) -> None:
        self._index = 0 if listing.index < self._index else listing.index
        self._shown = listing.indexes
        news = 0
        for request, future in self._waiting.items():
            assert isinstance(request, WatchKey)
            modified = self._shown.get(request.key)
            known = self._absent.get(request.key, 0) if modified is None else modified
            ends = self._clock() + LATEST_S > request.at + request.timeout_s
            if not ends and (
                known == request.index or (request not in subscribers and known < request.index)
            ):
                continue
            seen = request in subscribers and modified is not None
            _give(future, listing.outcome(request.key) if seen else None)
            news += 1
        self._idle_wakes = 0 if news else self._idle_wakes + 1


class PrefixHinter(PrefixWatcher):
    """The hints of all keys below one prefix, in a query that any server may answer by itself."""

    is_stale = True


def _give(future: "asyncio.Future[Outcome | None]", outcome: Outcome | None) -> None:
    if not future.done():
        future.set_result(outcome)


def _surface(task: asyncio.Task[None]) -> None:
    """Report a bug at once and not when the task is collected, because its requests would wait in vain."""
    if not task.cancelled() and (error := task.exception()) is not None:
        context = {"message": "a shared query's task failed", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)
