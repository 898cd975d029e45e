"""The queries for the keys below one prefix: one recursive query serves all requests that wait.

Each request is answered as if its key had been queried alone, or with ASK_SINGLY. A listing proves only the
keys that it shows, because Consul leaves out keys that the token may not read. So a key that is not listed
is queried alone. A listing answers only requests that were waiting before its query was sent, because a
lease counts from the time of the request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any

from supervisor.consul.shared.listing import Listing
from supervisor.consul.spacing import Spacing
from supervisor.core.lock.base import WAIT_S, WATCH_S
from supervisor.core.outcomes import Denied, KeyView, Outcome, Unknown
from supervisor.core.requests import ReadKey, WatchKey

REARM_S = 0.002  # contenders repeat their requests meanwhile, so that the next query serves them
IDLE_WAKES_MAX = 5  # answers in a row without news for any request
IDLE_PAUSE_S = 0.05  # after that, because other programs' keys change below this prefix
FAILED_PAUSE_S = 0.5
READ_S = 3.0  # a read takes milliseconds, so after this time another attempt is better
SINGLY_S = 60.0  # how long each key is queried alone after a list was too large or forbidden
LATEST_S = WAIT_S * 17 / 16 + 2.0  # until the next answer, at the latest


class AskSingly(Enum):
    """The missing answer of a shared query. The caller must query this key alone."""

    ASK_SINGLY = "alone"


ASK_SINGLY = AskSingly.ASK_SINGLY


@dataclass(frozen=True, slots=True)
class ListQuery:
    """One query for all keys below the prefix.

    index: the index that a blocking query waits from. None: a read, which Consul answers at once.
    wait_s: how long Consul may hold a blocking query.
    consistent: whether Consul must answer consistently.
    timeout_s: how long the client waits for the answer.
    """

    prefix: str
    index: int | None
    wait_s: float
    consistent: bool
    timeout_s: float


FetchList = Callable[[ListQuery], Awaitable[Listing | Unknown | Denied | None]]
"""Sends a query and returns the answer. None: Consul refuses the list, or it is too large."""
_Waiting = dict[WatchKey | ReadKey, "asyncio.Future[Outcome | AskSingly]"]


class PrefixWatcher:
    """The queries for all keys below one prefix. ``clock`` is the core's, in seconds."""

    def __init__(self, prefix: str, fetch: FetchList, clock: Callable[[], float]) -> None:
        self._prefix = prefix
        self._fetch = fetch
        self._clock = clock
        self._watchers: _Waiting = {}
        self._readers: _Waiting = {}
        self._index = 0
        self._shown: Mapping[str, int] = {}  # by key: its ModifyIndex in the newest listing
        self._absent: dict[str, int] = {}  # by key: the index of the answer that showed its absence
        self._idle_wakes = 0
        self._spacing = Spacing()
        self._watching: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._singly_until = float("-inf")

    @property
    def is_shared(self) -> bool:
        """Whether requests may share a query now."""
        return self._clock() >= self._singly_until

    @property
    def is_idle(self) -> bool:
        """Whether no request waits here."""
        return not self._watchers and not self._readers

    def observe(self, key: str, outcome: Outcome) -> None:
        """Note the outcome of a query for that key alone, which may show its absence."""
        if isinstance(outcome, KeyView) and not outcome.present:
            self._absent[key] = outcome.index

    async def answer(self, request: WatchKey | ReadKey) -> Outcome | AskSingly:
        """Return the outcome of this request. ASK_SINGLY: the caller must query the key alone, now.

        The outcome is Unknown when there is no answer within the request's time.
        """
        if isinstance(request, WatchKey) and request.index and self._has_missed(request):
            return ASK_SINGLY
        watches = isinstance(request, WatchKey) and request.index > 0
        waiting = self._watchers if watches else self._readers
        future: asyncio.Future[Outcome | AskSingly] = asyncio.get_running_loop().create_future()
        waiting[request] = future
        if watches:
            self._watch()
        else:
            self._read()
        try:
            async with asyncio.timeout(max(0.0, request.at + request.timeout_s - self._clock())):
                return await future
        except TimeoutError:
            return Unknown(f"no answer about the keys {self._prefix}… within {request.timeout_s:.3g} s")
        finally:
            del waiting[request]

    async def close(self) -> None:
        """Cancel all queries."""
        for task in (self._watching, self._reading):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    def _has_missed(self, request: WatchKey) -> bool:
        """Return whether the awaited change is past already, so that the query under way will not show it."""
        return self._shown.get(request.key, 0) > request.index

    # --- watches ----------------------------------------------------------------------------------

    def _watch(self) -> None:
        if self._watching is None or self._watching.done():
            self._watching = _started(self._keep_watching())

    async def _keep_watching(self) -> None:
        while self._watchers:
            pause_s = IDLE_PAUSE_S if self._idle_wakes > IDLE_WAKES_MAX else REARM_S
            await asyncio.sleep(max(pause_s, self._spacing.wait_s(self._clock())))
            subscribers = frozenset(self._watchers)
            if not subscribers:
                return
            consistent = any(isinstance(each, WatchKey) and each.consistent for each in subscribers)
            answer = await self._fetch(ListQuery(self._prefix, self._index, WAIT_S, consistent, WATCH_S))
            if isinstance(answer, Listing):
                self._distribute(answer, subscribers)
                continue
            self._index = 0
            self._fail(self._watchers, answer)
            await asyncio.sleep(FAILED_PAUSE_S)

    def _distribute(self, listing: Listing, subscribers: frozenset[WatchKey | ReadKey]) -> None:
        self._index = 0 if listing.index < self._index else listing.index
        self._shown = listing.indexes
        news = 0
        for request, future in self._watchers.items():
            assert isinstance(request, WatchKey)
            modified = self._shown.get(request.key)
            known = self._absent.get(request.key, 0) if modified is None else modified
            ends = self._clock() + LATEST_S > request.at + request.timeout_s
            if not ends and (
                known == request.index or (request not in subscribers and known < request.index)
            ):
                continue
            seen = request in subscribers and modified is not None
            _give(future, listing.outcome(request.key) if seen else ASK_SINGLY)
            news += 1
        self._idle_wakes = 0 if news else self._idle_wakes + 1

    # --- reads ------------------------------------------------------------------------------------

    def _read(self) -> None:
        if self._reading is None or self._reading.done():
            self._reading = _started(self._keep_reading())

    async def _keep_reading(self) -> None:
        await asyncio.sleep(0)  # requests of this iteration of the loop share the query
        while subscribers := {each: future for each, future in self._readers.items() if not future.done()}:
            if len(subscribers) == 1:
                _give(next(iter(subscribers.values())), ASK_SINGLY)
                continue
            left_s = min(READ_S, min(each.at + each.timeout_s for each in subscribers) - self._clock())
            answer = await self._fetch(ListQuery(self._prefix, None, 0.0, True, max(0.0, left_s)))
            if not isinstance(answer, Listing):
                self._fail(subscribers, answer)
                continue
            for request, future in subscribers.items():
                is_there = request.key in answer.entries
                _give(future, answer.outcome(request.key) if is_there else ASK_SINGLY)

    def _fail(self, waiting: _Waiting, outcome: Unknown | Denied | None) -> None:
        """Give the failure to each request. ``outcome`` None: each key is queried alone for SINGLY_S."""
        if outcome is None:
            self._singly_until = self._clock() + SINGLY_S
        for future in waiting.values():
            _give(future, ASK_SINGLY if outcome is None else outcome)


def _started(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    task = asyncio.create_task(work)
    task.add_done_callback(_surface)
    return task


def _surface(task: asyncio.Task[None]) -> None:
    """Report a bug at once and not when the task is collected, because its requests would wait in vain."""
    if not task.cancelled() and (error := task.exception()) is not None:
        context = {"message": "a prefix watcher's task failed", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)


def _give(future: "asyncio.Future[Outcome | AskSingly]", outcome: Outcome | AskSingly) -> None:
    if not future.done():
        future.set_result(outcome)
