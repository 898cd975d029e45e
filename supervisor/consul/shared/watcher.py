"""The questions about the keys below one prefix: one recursive query watches for all who wait.

Whoever asks is answered as if alone, or is told to ask alone. A listing is believed in what it
shows, never in what it does not: a list leaves out what the token may not read, so a key that is
not listed is asked for alone. And it is news for those alone who had asked before it was sent, for
the time of their question is what a lease counts from.
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

REARM_S = 0.002  # those who were answered ask again meanwhile, and are aboard of the next query
IDLE_WAKES_MAX = 5  # answers in a row of which nobody here had any news
IDLE_PAUSE_S = 0.05  # then: somebody else's keys change below this prefix
FAILED_PAUSE_S = 0.5
READ_S = 3.0  # an answer at once comes within milliseconds, or whoever asked had better ask again
ALONE_S = 60.0  # where a list cannot be had (too large, forbidden) each asks alone for so long
LATEST_S = WAIT_S * 17 / 16 + 2.0  # until the next answer, at the latest


class AskSingly(Enum):
    """No answer: the caller must query this key by itself."""

    ASK_SINGLY = "alone"


ASK_SINGLY = AskSingly.ASK_SINGLY


@dataclass(frozen=True, slots=True)
class ListQuery:
    """For all keys below the prefix. ``index`` None: answered at once, else when it has passed."""

    prefix: str
    index: int | None
    wait_s: float
    consistent: bool
    timeout_s: float


Ask = Callable[[ListQuery], Awaitable[Listing | Unknown | Denied | None]]
"""None: there is no such list to be had."""
_Waiting = dict[WatchKey | ReadKey, "asyncio.Future[Outcome | AskSingly]"]


class PrefixWatcher:
    """Asks for all keys below one prefix. ``ask`` is the exchange, ``clock`` the core's, in seconds."""

    def __init__(self, prefix: str, ask: Ask, clock: Callable[[], float]) -> None:
        self._prefix = prefix
        self._ask = ask
        self._clock = clock
        self._watchers: _Waiting = {}
        self._readers: _Waiting = {}
        self._index = 0
        self._shown: Mapping[str, int] = {}  # the indexes of the newest listing
        self._absent: dict[str, int] = {}  # the index of each answer by which a key was not there
        self._idle_wakes = 0
        self._spacing = Spacing()
        self._watching: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._singly_until = float("-inf")

    @property
    def is_shared(self) -> bool:
        """Whether questions may be asked together now."""
        return self._clock() >= self._singly_until

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits here."""
        return not self._watchers and not self._readers

    def observe(self, key: str, outcome: Outcome) -> None:
        """What a question for that key alone was answered."""
        if isinstance(outcome, KeyView) and not outcome.present:
            self._absent[key] = outcome.index

    async def answer(self, request: WatchKey | ReadKey) -> Outcome | AskSingly:
        """The answer to this question, within its time; or that it is to be asked alone, now."""
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
        """Ask nothing any more."""
        for task in (self._watching, self._reading):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    def _has_missed(self, request: WatchKey) -> bool:
        """Whether what it waits for is past already, so that the query under way will not tell."""
        return self._shown.get(request.key, 0) > request.index

    # --- watches ----------------------------------------------------------------------------------

    def _watch(self) -> None:
        if self._watching is None or self._watching.done():
            self._watching = _started(self._go_on_watching())

    async def _go_on_watching(self) -> None:
        while self._watchers:
            pause_s = IDLE_PAUSE_S if self._idle_wakes > IDLE_WAKES_MAX else REARM_S
            await asyncio.sleep(max(pause_s, self._spacing.wait_s(self._clock())))
            subscribers = frozenset(self._watchers)
            if not subscribers:
                return
            consistent = any(isinstance(each, WatchKey) and each.consistent for each in subscribers)
            asked = ListQuery(self._prefix, self._index, WAIT_S, consistent, WATCH_S)
            answer = await self._ask(asked)
            if isinstance(answer, Listing):
                self._hear(answer, subscribers)
                continue
            self._index = 0
            self._fail(self._watchers, answer)
            await asyncio.sleep(FAILED_PAUSE_S)

    def _hear(self, listing: Listing, subscribers: frozenset[WatchKey | ReadKey]) -> None:
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
            self._reading = _started(self._go_on_reading())

    async def _go_on_reading(self) -> None:
        await asyncio.sleep(0)  # others of this turn of the loop
        while subscribers := {each: future for each, future in self._readers.items() if not future.done()}:
            if len(subscribers) == 1:
                _give(next(iter(subscribers.values())), ASK_SINGLY)
                continue
            left_s = min(READ_S, min(each.at + each.timeout_s for each in subscribers) - self._clock())
            answer = await self._ask(ListQuery(self._prefix, None, 0.0, True, max(0.0, left_s)))
            if not isinstance(answer, Listing):
                self._fail(subscribers, answer)
                continue
            for request, future in subscribers.items():
                is_there = request.key in answer.entries
                _give(future, answer.outcome(request.key) if is_there else ASK_SINGLY)

    def _fail(self, waiting: _Waiting, outcome: Unknown | Denied | None) -> None:
        """What silence means is for each to say; where there is no list each asks alone for a while."""
        if outcome is None:
            self._singly_until = self._clock() + ALONE_S
        for future in waiting.values():
            _give(future, ASK_SINGLY if outcome is None else outcome)


def _started(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    task = asyncio.create_task(work)
    task.add_done_callback(_surface)
    return task


def _surface(task: asyncio.Task[None]) -> None:
    """A bug is told at once, not when the task is forgotten: all who wait here would wait in vain."""
    if not task.cancelled() and (error := task.exception()) is not None:
        told = {"message": "a folder's task failed", "exception": error}
        asyncio.get_running_loop().call_exception_handler(told)


def _give(future: "asyncio.Future[Outcome | AskSingly]", outcome: Outcome | AskSingly) -> None:
    if not future.done():
        future.set_result(outcome)
