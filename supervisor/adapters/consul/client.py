"""The client of Consul: sends the core's requests and delivers their outcomes.

The client knows how a request becomes bytes and which requests may share a connection or a query. It must
never decide what an answer means.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Literal, TypeVar

import requests

from supervisor.adapters.consul.codec import Codec
from supervisor.adapters.consul.limiter import Limiter
from supervisor.adapters.consul.presence import Present, asked_at, not_shown
from supervisor.adapters.consul.rate import RateLimit
from supervisor.adapters.consul.sessions import ReadSessions
from supervisor.adapters.consul.shared.listing import Listing
from supervisor.adapters.consul.shared.query import (
    READ_S,
    ListQuery,
    PrefixHinter,
    PrefixReader,
    PrefixWatcher,
    SharedQuery,
)
from supervisor.adapters.consul.token import Token, TokenError, TokenHangs
from supervisor.adapters.consul.wanted import read_together, watched_together
from supervisor.adapters.transport import Endpoint, ExchangeFailed, FailureKind, Transport
from supervisor.config import Config
from supervisor.core.actions import PrepareWrite
from supervisor.core.events import Answered
from supervisor.core.frozen import replace
from supervisor.core.lock.slots import LOCK
from supervisor.core.outcomes import Denied, Hinted, KeyView, Outcome, Unknown
from supervisor.core.requests import (
    DestroySession,
    HintKey,
    LeaveSemaphore,
    MarkTenure,
    ReadKey,
    ReadSlots,
    Release,
    RenewSession,
    Request,
    Rewrite,
    ServiceRequest,
    Watch,
    WatchKey,
    WatchSlots,
    Write,
)

HANDOVER_QUIET_S = 0.01  # yields the CPU to the next holder, because our own watch of the release can wait
CONCURRENT_MAX = 16  # requests in flight that keep no lock, besides watches, which shared.WATCHES_MAX limits
HOLDING_CONCURRENT_MAX = 16  # of those that keep or give back a lock, which never wait for what only begins
LARGE_CONCURRENT_MAX = 2  # of reads of keys whose values were too large for a list: they wait for each other
SESSIONS_S = 10.0  # Consul holds a request for 7 s while it has no leader
SERVICE_CONCURRENT_MAX = 8  # of requests about services, which no other request waits for
READ_BYTES_MAX = 256 << 10  # of a list that is read each few seconds; its decoding stops the loop
LARGE_S = 60.0  # how long a list that was too large is not read again, and a large key waits for others
LARGE_BYTES = 128 << 10  # of the answer for one key; a holder's own value has at most 64 KiB
TOO_LARGE_PAUSE_S = 2.0  # because Consul sends much of a list before its size is known to be too large
NOT_SENT = Unknown("not sent: too many requests were already in flight")


_Query = TypeVar("_Query", bound=SharedQuery)
Deliver = Callable[[Answered], None]
Report = Callable[[Literal["error", "info"], Literal["token-file", "token-renewed", "tls-files"], str], None]


class ConsulClient:
    """The exchanges of one daemon with one Consul agent."""

    def __init__(
        self,
        config: Config,
        report: Report,
        clock: Callable[[], float],
        forgiven: type[TokenError] = TokenHangs,
    ) -> None:
        """Read the token, and open no connection yet. Raises TokenError when the token file cannot be used.

        report: logs faults of the token file and of the files for TLS.
        forgiven: the faults of the token file with which to begin without a token.
        """
        self._clock = clock  # the core's clock, in seconds
        self.token = Token(
            config.consul,
            warn=partial(report, "error", "token-file"),
            renewed=partial(report, "info", "token-renewed"),
            forgiven=forgiven,
        )
        endpoint = Endpoint.of(config.consul.address, config.consul.tls)
        self._codec = Codec(config.consul, endpoint.base_url, self.token)
        self._transport = Transport(endpoint, warn=partial(report, "error", "tls-files"))
        self._permits = Limiter(CONCURRENT_MAX)
        self._holding_permits = Limiter(HOLDING_CONCURRENT_MAX)
        self._service_permits = Limiter(SERVICE_CONCURRENT_MAX)
        self._large_permits = Limiter(LARGE_CONCURRENT_MAX)
        self._large_until: dict[str, float] = {}  # by prefix whose list, or by key whose value, was too large
        self._rates: dict[str, RateLimit] = {}  # by item, for its watch
        self._released_at: dict[str, float] = {}  # by item whose release has no answer yet
        self._watchers: dict[str, PrefixWatcher] = {}  # by prefix
        self._watcher_of: dict[str, PrefixWatcher] = {}  # by key
        self._hinters: dict[str, PrefixHinter] = {}  # by prefix
        self._hinter_of: dict[str, PrefixWatcher] = {}  # by key
        self._readers: dict[str, PrefixReader] = {}  # by prefix
        self._reader_of: dict[str, PrefixReader] = {}  # by key
        self.follow(config)

    def follow(self, config: Config) -> None:
        """Query the keys of this configuration from now on."""
        watched, read = watched_together(config), read_together(config)
        self._watchers = self._queries(PrefixWatcher, self._watchers, watched.values())
        self._watcher_of = {key: self._watchers[prefix] for key, prefix in watched.items()}
        self._hinters = self._queries(PrefixHinter, self._hinters, watched.values())
        self._hinter_of = {key: self._hinters[prefix] for key, prefix in watched.items()}
        self._readers = self._queries(PrefixReader, self._readers, read.values())
        self._reader_of = {key: self._readers[prefix] for key, prefix in read.items()}
        names = {settings.name for settings in config.items}
        self._rates = {name: rate for name, rate in self._rates.items() if name in names}

    def _queries(
        self, kind: type[_Query], former: Mapping[str, _Query], prefixes: Iterable[str]
    ) -> dict[str, _Query]:
        """Return a query for each prefix, and those under way, which serve requests of the new ones too."""
        busy = {prefix: query for prefix, query in former.items() if not query.is_idle}
        new = {*prefixes} - busy.keys()
        return busy | {prefix: kind(prefix, self._list, self._clock) for prefix in new}

    def prepare(self, prepare: PrepareWrite) -> None:
        """Open a connection and encode the write before the write is due."""
        self._transport.prepare(self._codec.prepare(prepare.request))

    def begin(self, request: Request, deliver: Deliver) -> Coroutine[Any, Any, None]:
        """Send the request and return a coroutine to await. If a connection is ready, send before returning.

        ``deliver`` is called once, as soon as the answer is there, and never before this method returns. The
        outcome is Unknown when no answer comes within the request's time.
        """
        if isinstance(request, WatchKey | ReadKey):
            shared = self._query_for(request)
            if shared is not None and shared.is_shared:
                return self._shared(request, shared, deliver)
        if isinstance(request, HintKey) and request.index:
            return self._send(request, deliver)
        if isinstance(request, Watch) and not isinstance(request, HintKey):
            wait_s = self._rates.setdefault(request.item, RateLimit()).wait_s(self._clock())
            return self._send_after(wait_s, request, deliver) if wait_s else self._send(request, deliver)
        permits = self._permits_of(request)
        if permits.try_acquire():
            return self._with_permit(request, permits, self._send(request, deliver))
        return self._queued(request, deliver)

    def _query_for(self, request: WatchKey | ReadKey) -> SharedQuery | None:
        if isinstance(request, HintKey):
            return self._hinter_of.get(request.key) if request.index else None
        reads = isinstance(request, ReadKey) or not request.index
        return (self._reader_of if reads else self._watcher_of).get(request.key)

    def _permits_of(self, request: Request | ListQuery) -> Limiter:
        if isinstance(request, ServiceRequest):
            return self._service_permits
        if isinstance(request, ReadKey) and self._was_too_large(request.key):
            return self._large_permits
        return self._holding_permits if _keeps_lock(request) else self._permits

    async def sessions(self) -> Outcome:
        return await self.ask(ReadSessions("", self._clock(), SESSIONS_S))

    async def ask(self, request: Request) -> Outcome:
        """Send a request that no contender waits for, and return its outcome: Unknown without an answer."""
        answers: list[Answered] = []
        await self._queued(request, answers.append)
        return answers[0].outcome

    async def present(self, service: str, within_s: float) -> list[Present] | str:
        """Return the daemons that are registered as this service, or why Consul does not show them."""
        try:
            question = self._codec.question(asked_at(service))
            response = await self._transport.exchange(question, timeout_s=within_s, fresh=False)
        except ExchangeFailed as failure:
            return not_shown(service, str(failure))
        if len(response.content) > READ_BYTES_MAX:
            return not_shown(service, f"its answer has more than {READ_BYTES_MAX} bytes; `members` shows it")
        return self._codec.decode_present(service, response)

    async def close(self) -> None:
        for query in (*self._watchers.values(), *self._hinters.values(), *self._readers.values()):
            await query.close()
        await self._transport.close()
        self.token.close()

    # --- one request, one exchange ----------

    async def _send_after(self, wait_s: float, request: Watch, deliver: Deliver) -> None:
        """Send the watch after ``wait_s``. The lease counts from the core's earlier time, which is safe."""
        await asyncio.sleep(wait_s)
        await self._send(request, deliver)

    def _send(self, request: Request, deliver: Deliver) -> Coroutine[Any, Any, None]:
        if isinstance(request, ReadSlots) and request.session and self._was_too_large(request.prefix):
            return self._send_parts(request, deliver)
        under_way = self._transport.exchange(
            self._codec.encode(request),
            timeout_s=max(0.0, request.at + request.timeout_s - self._clock()),
            fresh=isinstance(request, Write),
            delay=partial(self._delay_s, request),
            on_response=lambda response: deliver(Answered(request, self._decoded(request, response))),
        )
        if isinstance(request, Release):
            self._released_at[request.item] = self._clock()
        return self._answered(request, under_way, deliver)

    async def _answered(
        self, request: Request, under_way: Coroutine[Any, Any, requests.Response], deliver: Deliver
    ) -> None:
        """Await the exchange to its end, and deliver its outcome if it has no answer."""
        try:
            await under_way
        except ExchangeFailed as failure:
            deliver(Answered(request, await self._failed(request, failure)))

    def _decoded(self, request: Request, response: requests.Response) -> Outcome:
        if isinstance(request, ReadSlots | WatchSlots):
            self._large_until.pop(request.prefix, None)
        if isinstance(request, ReadKey) and len(response.content) > LARGE_BYTES:
            self._note_too_large(request.key)
        return self._codec.decode(request, response)

    async def _send_parts(self, request: ReadSlots, deliver: Deliver) -> None:
        deliver(Answered(request, await self._in_parts(request)))

    def _note_too_large(self, name: str) -> None:
        self._large_until[name] = self._clock() + LARGE_S

    def _was_too_large(self, name: str) -> bool:
        """Return whether the list below this prefix, or the value of this key, was too large lately."""
        return self._clock() < self._large_until.get(name, 0.0)

    async def _failed(self, request: Request, failure: ExchangeFailed) -> Outcome:
        """Return the outcome of an exchange without an answer.

        When the list of all keys is too large, a holder's own keys are read one by one.
        """
        if isinstance(request, ReadKey) and failure.kind is FailureKind.TOO_LARGE:
            self._note_too_large(request.key)
        if failure.kind is not FailureKind.TOO_LARGE or not isinstance(request, ReadSlots | WatchSlots):
            return Unknown(str(failure))
        self._note_too_large(request.prefix)
        if isinstance(request, WatchSlots):
            await asyncio.sleep(TOO_LARGE_PAUSE_S)
        elif request.session:
            return await self._in_parts(request)
        fault = f"the keys below {request.prefix}/ are too large to be read, so no contender gets a slot"
        return Unknown(f"{fault}: delete what is neither .lock nor the key of a session ({failure})")

    async def _in_parts(self, request: ReadSlots) -> Outcome:
        """Read the holder's key and ``.lock``. The lease counts from the earlier time of ``request``."""
        responses = []
        for name in (request.session, LOCK):
            part = ReadKey(request.item, request.at, request.timeout_s, f"{request.prefix}/{name}")
            left_s = max(0.0, request.at + request.timeout_s - self._clock())
            under_way = self._transport.exchange(self._codec.encode(part), timeout_s=left_s, fresh=False)
            try:
                responses.append(await under_way)
            except ExchangeFailed as failure:
                return Unknown(str(failure))
        return self._codec.slots_in_parts(request.prefix, responses)

    def _delay_s(self, request: Request) -> float:
        """Return for how many seconds the answer that begins to arrive now is not read."""
        lag_s = request.lag_s if isinstance(request, Watch) else 0.0
        calm_until = self._released_at.get(request.item, float("-inf")) + HANDOVER_QUIET_S
        return max(lag_s, calm_until - self._clock())

    async def _with_permit(
        self, request: Request, permits: Limiter, under_way: Coroutine[Any, Any, None]
    ) -> None:
        try:
            await under_way
        finally:
            permits.release()
            if isinstance(request, Release):
                self._released_at.pop(request.item, None)

    async def _queued(self, request: Request, deliver: Deliver) -> None:
        """Send once a permit is free. When the request's time ends first, deliver NOT_SENT."""
        left_s = request.at + request.timeout_s - self._clock()
        permits = self._permits_of(request)
        if await permits.acquire(left_s):
            await self._with_permit(request, permits, self._send(request, deliver))
        else:
            deliver(Answered(request, NOT_SENT))

    # --- one query for many keys ----------

    async def _shared(self, request: WatchKey | ReadKey, query: SharedQuery, deliver: Deliver) -> None:
        outcome = await query.answer(request)
        if isinstance(request, WatchKey) and request.lag_s:
            await asyncio.sleep(request.lag_s)  # as ``_delay_s`` does, because the core relies on the lag
        if outcome is None:
            outcome = await self._single(request)
        if isinstance(request, HintKey) and isinstance(outcome, KeyView):
            outcome = Hinted(outcome.index, outcome.present)
        deliver(Answered(request, outcome))

    async def _single(self, request: WatchKey | ReadKey) -> Outcome:
        left_s = min(READ_S, request.at + request.timeout_s - self._clock())
        alone: ReadKey | HintKey
        if isinstance(request, HintKey):
            watchers = self._hinter_of
            alone = replace(request, at=self._clock(), timeout_s=left_s, index=0, lag_s=0.0)
        else:
            holds = isinstance(request, ReadKey) and request.holds
            watchers = self._watcher_of
            alone = ReadKey(request.item, self._clock(), left_s, request.key, holds=holds)
        outcome = await self.ask(alone)
        if (watcher := watchers.get(request.key)) is not None:
            watcher.observe(request.key, outcome)
        return outcome

    async def _list(self, query: ListQuery) -> Listing | Unknown | Denied | None:
        if query.index is not None:
            return await self.list_keys(query)
        permits = self._permits_of(query)
        if not await permits.acquire(query.timeout_s):
            return NOT_SENT
        try:
            return await self.list_keys(query)
        finally:
            permits.release()

    async def list_keys(self, query: ListQuery) -> Listing | Unknown | Denied | None:
        """Send a query for all keys below a prefix. None: Consul refuses it, or its answer is too large."""
        try:
            response = await self._transport.exchange(
                self._codec.encode_list(query), timeout_s=query.timeout_s, fresh=False
            )
        except ExchangeFailed as failure:
            return None if failure.kind is FailureKind.TOO_LARGE else Unknown(str(failure))
        if query.index is None and len(response.content) > READ_BYTES_MAX:
            return None
        return self._codec.decode_list(query, response)


def _keeps_lock(request: Request | ListQuery) -> bool:
    """Return whether a lock that is held, or that another node waits for, depends on this request."""
    if isinstance(request, RenewSession | ReadKey | ListQuery):
        return request.holds
    if isinstance(request, ReadSlots):
        return bool(request.session)
    return isinstance(request, Release | DestroySession | Rewrite | MarkTenure | LeaveSemaphore)
