"""The watches of the keys below one prefix: one blocking query serves all that wait for a change."""

import asyncio
from collections.abc import Callable, Mapping

from supervisor.adapters.consul.rate import RateLimit
from supervisor.adapters.consul.shared.listing import Listing
from supervisor.adapters.consul.shared.query import FetchList, ListQuery, SharedQuery, give
from supervisor.core.lock.base import ANSWER_S_MAX, WAIT_S, WATCH_S
from supervisor.core.outcomes import KeyView, Outcome
from supervisor.core.requests import ReadKey, WatchKey

REARM_S = 0.002  # contenders repeat their requests meanwhile, so that the next query serves them
IDLE_WAKES_MAX = 5  # answers in a row without news for any request
IDLE_PAUSE_S = 0.05  # after that, because other programs' keys change below this prefix
FAILED_PAUSE_S = 0.5
LATEST_S = ANSWER_S_MAX + 2.0  # until the next answer, at the latest


class PrefixWatcher(SharedQuery):
    """The watches of all keys below one prefix. Each request names the index from which it waits."""

    def __init__(self, prefix: str, fetch: FetchList, clock: Callable[[], float]) -> None:
        super().__init__(prefix, fetch, clock)
        self._index = 0
        self._shown: Mapping[str, int] = {}  # by key: its ModifyIndex in the newest listing
        self._absent: dict[str, int] = {}  # by key: the index of the answer that showed its absence
        self._idle_wakes = 0
        self._rate = RateLimit()

    def observe(self, key: str, outcome: Outcome) -> None:
        """Note the outcome of a query for that key alone, which may show its absence."""
        if isinstance(outcome, KeyView) and not outcome.present:
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
            answer = await self._fetch(ListQuery(self._prefix, self._index, WAIT_S, consistent, WATCH_S))
            if isinstance(answer, Listing):
                self._distribute(answer, subscribers)
                continue
            self._index = 0
            if answer is None:
                self._ask_singly()
            for future in self._waiting.values():
                give(future, answer)
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
            give(future, listing.outcome(request.key) if seen else None)
            news += 1
        self._idle_wakes = 0 if news else self._idle_wakes + 1
