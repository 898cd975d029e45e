"""The reads of the keys below one prefix: one list serves all holders that read at this time."""

import asyncio

from supervisor.consul.shared.listing import Listing
from supervisor.consul.shared.query import ASK_SINGLY, ListQuery, SharedQuery, give

READ_S = 3.0  # a read takes milliseconds, so after this time another attempt is better
SHOWN_MAX = 16  # keys for each read: a longer list takes more time than the reads that it saves


class PrefixReader(SharedQuery):
    """The reads of all keys below one prefix. A watch that waits from no index is a read, too."""

    async def _query(self) -> None:
        await asyncio.sleep(0)  # requests of this iteration of the loop share the query
        while subscribers := {each: future for each, future in self._waiting.items() if not future.done()}:
            if len(subscribers) == 1 or not self.is_shared:
                for future in subscribers.values():
                    give(future, ASK_SINGLY)
                continue
            left_s = min(READ_S, min(each.at + each.timeout_s for each in subscribers) - self._clock())
            answer = await self._fetch(ListQuery(self._prefix, None, 0.0, True, max(0.0, left_s)))
            shown = answer.entries if isinstance(answer, Listing) else {}
            if answer is None or len(shown) > SHOWN_MAX * len(subscribers):
                self._ask_singly()
            for request, future in subscribers.items():
                if isinstance(answer, Listing):
                    give(future, answer.outcome(request.key) if request.key in shown else ASK_SINGLY)
                else:
                    give(future, ASK_SINGLY if answer is None else answer)
