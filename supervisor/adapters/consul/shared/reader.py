"""The reads of the keys below one prefix: one list serves all holders that read at this time."""

import asyncio
from collections.abc import Callable, Collection

from supervisor.adapters.consul.shared.listing import Listing
from supervisor.adapters.consul.shared.query import FetchList, ListQuery, SharedQuery, give
from supervisor.core.outcomes import Denied, Throttled, Unknown
from supervisor.core.requests import ReadKey, WatchKey

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
                    give(future, None)
                continue
            # Each request ends by its own time, so the longest time counts for the list.
            left_s = min(READ_S, max(each.at + each.timeout_s for each in subscribers) - self._clock())
            holds = any(isinstance(each, ReadKey) and each.holds for each in subscribers)
            answer = await self._fetch(ListQuery(self._prefix, None, 0.0, True, max(0.0, left_s), holds))
            if not self._is_worthwhile(answer, subscribers):
                self._ask_singly()
            for request, future in subscribers.items():
                if isinstance(answer, Listing):
                    give(future, answer.outcome(request.key) if request.key in answer.entries else None)
                else:
                    give(future, answer)

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
