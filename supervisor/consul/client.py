"""Exchanges with Consul: a request of the core in, what was answered out.

It knows how a request becomes bytes and which may share a connection, or a question; what an answer
means is never its concern. A write has a connection of its own: one kept open may close just as it
is written, and then nobody knows whether it was applied.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Coroutine
from functools import partial
from itertools import count
from typing import Any, Literal

import requests

from supervisor.config import Config
from supervisor.consul.codec import Consul
from supervisor.consul.limiter import Turns
from supervisor.consul.shared import ALONE, READ_S, Folder, Listing, Question, prefixes_for, questions_of
from supervisor.consul.spacing import Spacing
from supervisor.consul.token import Token
from supervisor.core.actions import (
    PrepareWrite,
    ReadKey,
    ReadSlots,
    Release,
    Request,
    Watch,
    WatchKey,
    WatchSlots,
    Write,
)
from supervisor.core.events import Answered, Denied, Outcome, Unknown
from supervisor.core.lock.semaphore import LOCK
from supervisor.core.settings import ElectionSettings, Wanted
from supervisor.transport import Endpoint, ExchangeFailed, FailureKind, Transport

BEGIN_EVERY_S = 0.005  # a session, a try and a hook take so long
HANDED_OVER_S = 0.01  # whoever takes the lock next is let have the machine: what we hear of it can wait
BRIEF_MAX = 32  # exchanges at a time that are no watches: see sharing.WATCHES_MAX
LARGE_S = 60.0  # for so long nobody reads again all that was too much
TOO_LARGE_PAUSE_S = 2.0  # a list that cannot be read costs Consul and us as much as one that can
NOT_SENT = Unknown(f"not sent: {BRIEF_MAX} exchanges were under way all the time")


Tell = Callable[[Answered], None]
Report = Callable[[Literal["error", "info"], Literal["token-file", "token-renewed", "tls-files"], str], None]


class Answer:
    """What one exchange comes to, told once."""

    def __init__(
        self,
        request: Request,
        tell: Tell,
        decode: Callable[[requests.Response], Outcome],
        instead: Callable[[ExchangeFailed], Awaitable[Outcome]],
    ) -> None:
        """``instead``: what it comes to when there is no answer."""
        self._instead = instead
        self._request = request
        self._tell: Tell | None = tell
        self._decode = decode

    def heard(self, response: requests.Response) -> None:
        """The answer is there."""
        self._end(self._decode(response))

    async def of(self, under_way: Coroutine[Any, Any, requests.Response]) -> None:
        """The exchange, to its end: an answer has been heard by then."""
        try:
            await under_way
        except ExchangeFailed as failure:
            self._end(await self._instead(failure))

    def _end(self, outcome: Outcome) -> None:
        tell, self._tell = self._tell, None
        if tell is not None:
            tell(Answered(self._request, outcome))


class Exchanges:
    """Those of one daemon, with one Consul agent."""

    def __init__(self, config: Config, report: Report, clock: Callable[[], float]) -> None:
        """``report`` logs faults of the files with the token and for TLS; ``clock``: the core's, in
        seconds. Raises TokenError when the token file cannot be used."""
        self._clock = clock
        self.token = Token(
            config.consul,
            warn=partial(report, "error", "token-file"),
            renewed=partial(report, "info", "token-renewed"),
            patient=True,
        )
        endpoint = Endpoint.of(config.consul.address, config.consul.tls)
        self._consul = Consul(config.consul, endpoint.base_url, self.token)
        self._transport = Transport(endpoint, warn=partial(report, "error", "tls-files"))
        self._turns = Turns(BRIEF_MAX)
        self._large_until: dict[str, float] = {}  # of prefixes below which too much stands
        self._spacings: dict[str, Spacing] = {}  # of the watches, by item
        self._released_at: dict[str, float] = {}  # of items whose release has no answer yet
        self._folders: dict[str, Folder] = {}  # by prefix
        self._folder_of: dict[str, Folder] = {}  # by key
        self.follow(config)

    def follow(self, config: Config) -> None:
        """The keys of this file are asked for from now on."""
        prefixes = shared_prefixes(config)
        busy = {prefix: folder for prefix, folder in self._folders.items() if not folder.is_idle}
        for prefix in set(prefixes.values()) - busy.keys():
            busy[prefix] = Folder(prefix, self._list, self._clock)
        self._folders = busy
        self._folder_of = {key: self._folders[prefix] for key, prefix in prefixes.items()}
        names = {settings.name for settings in config.items}
        self._spacings = {name: spacing for name, spacing in self._spacings.items() if name in names}

    def prepare(self, prepare: PrepareWrite) -> None:
        """A connection is opened ahead, and the bytes are laid ready."""
        self._transport.prepare(self._consul.prepare(prepare.request))

    def begin(self, request: Request, tell: Tell) -> Coroutine[Any, Any, None]:
        """Send it, before this returns if a connection is ready. What is returned is to be awaited; until
        it ends ``tell`` has had the answer once, or that there is none, within the request's time: never
        out of this call, but as soon as the answer is there."""
        if isinstance(request, WatchKey | ReadKey):
            folder = self._folder_of.get(request.key)
            if folder is not None and folder.is_shared:
                return self._together(request, folder, tell)
        if isinstance(request, Watch):
            wait_s = self._spacings.setdefault(request.item, Spacing()).wait_s(self._clock())
            return self._send_after(wait_s, request, tell) if wait_s else self._send(request, tell)
        if self._turns.take():
            return self._briefly(request, self._send(request, tell))
        return self._in_turn(request, tell)

    async def close(self) -> None:
        """Hang up."""
        for folder in self._folders.values():
            await folder.close()
        await self._transport.close()
        self.token.close()

    # --- alone ------------------------------------------------------------------------------------

    async def _send_after(self, wait_s: float, request: Watch, tell: Tell) -> None:
        """Sent later than the core believes: a lease counts from before it, so it ends no later."""
        await asyncio.sleep(wait_s)
        await self._send(request, tell)

    def _send(self, request: Request, tell: Tell) -> Coroutine[Any, Any, None]:
        if isinstance(request, ReadSlots) and self._is_large(request):
            return self._send_parts(request, tell)
        answer = Answer(request, tell, partial(self._decoded, request), partial(self._failed, request))
        under_way = self._transport.exchange(
            self._consul.encode(request),
            timeout_s=max(0.0, request.at + request.timeout_s - self._clock()),
            fresh=isinstance(request, Write),
            lag=partial(self._lag_s, request),
            heard=answer.heard,
        )
        if isinstance(request, Release):
            self._released_at[request.item] = self._clock()
        return answer.of(under_way)

    def _decoded(self, request: Request, response: requests.Response) -> Outcome:
        if isinstance(request, ReadSlots | WatchSlots):
            self._large_until.pop(request.prefix, None)
        return self._consul.decode(request, response)

    async def _send_parts(self, request: ReadSlots, tell: Tell) -> None:
        tell(Answered(request, await self._in_parts(request)))

    def _is_large(self, request: ReadSlots) -> bool:
        """Whether a holder asks what could not be read a moment ago."""
        return bool(request.session) and self._clock() < self._large_until.get(request.prefix, 0.0)

    async def _failed(self, request: Request, failure: ExchangeFailed) -> Outcome:
        """A holder of a slot is told of what it needs to know, where all below its prefix is too much."""
        if failure.kind is not FailureKind.TOO_LARGE or not isinstance(request, ReadSlots | WatchSlots):
            return Unknown(str(failure))
        self._large_until[request.prefix] = self._clock() + LARGE_S
        if isinstance(request, WatchSlots):
            await asyncio.sleep(TOO_LARGE_PAUSE_S)
        elif request.session:
            return await self._in_parts(request)
        what = f"the keys below {request.prefix}/ are too large to be read, so nobody comes to hold"
        return Unknown(f"{what}: delete what is neither .lock nor the key of a session ({failure})")

    async def _in_parts(self, request: ReadSlots) -> Outcome:
        """Asked for after the request began, so that a lease counts from before it."""
        responses = []
        for name in (request.session, LOCK):
            part = ReadKey(request.item, request.at, request.timeout_s, f"{request.prefix}/{name}")
            left_s = max(0.0, request.at + request.timeout_s - self._clock())
            under_way = self._transport.exchange(self._consul.encode(part), timeout_s=left_s, fresh=False)
            try:
                responses.append(await under_way)
            except ExchangeFailed as failure:
                return Unknown(str(failure))
        return self._consul.slots_in_parts(request.prefix, responses)

    def _lag_s(self, request: Request) -> float:
        """For how long its answer, which begins to come now, is left alone."""
        lag_s = request.lag_s if isinstance(request, Watch) else 0.0
        calm_until = self._released_at.get(request.item, float("-inf")) + HANDED_OVER_S
        return max(lag_s, calm_until - self._clock())

    async def _briefly(self, request: Request, under_way: Coroutine[Any, Any, None]) -> None:
        try:
            await under_way
        finally:
            self._turns.give()
            if isinstance(request, Release):
                self._released_at.pop(request.item, None)

    async def _in_turn(self, request: Request, tell: Tell) -> None:
        """Not sent before others have been answered, nor when its time is over by then."""
        left_s = request.at + request.timeout_s - self._clock()
        if await self._turns.wait(left_s):
            await self._briefly(request, self._send(request, tell))
        else:
            tell(Answered(request, NOT_SENT))

    # --- together ---------------------------------------------------------------------------------

    async def _together(self, request: WatchKey | ReadKey, folder: Folder, tell: Tell) -> None:
        outcome = await folder.answer(request)
        if isinstance(request, WatchKey) and request.lag_s:
            await asyncio.sleep(request.lag_s)  # as one that asks alone: the core counts on it
        if outcome is ALONE:
            outcome = await self._alone(request, folder)
        assert isinstance(outcome, Outcome)
        tell(Answered(request, outcome))

    async def _alone(self, request: WatchKey | ReadKey, folder: Folder) -> Outcome:
        left_s = min(READ_S, request.at + request.timeout_s - self._clock())
        alone = ReadKey(request.item, self._clock(), left_s, request.key)
        answers: list[Answered] = []
        await self._in_turn(alone, answers.append)
        [answered] = answers
        folder.tell(request.key, answered.outcome)
        return answered.outcome

    async def _list(self, asked: Question) -> Listing | Unknown | Denied | None:
        if asked.index is not None:
            return await self._listed(asked)
        if not await self._turns.wait(asked.timeout_s):
            return NOT_SENT
        try:
            return await self._listed(asked)
        finally:
            self._turns.give()

    async def _listed(self, asked: Question) -> Listing | Unknown | Denied | None:
        try:
            response = await self._transport.exchange(
                self._consul.list_question(asked), timeout_s=asked.timeout_s, fresh=False
            )
        except ExchangeFailed as failure:
            return None if failure.kind is FailureKind.TOO_LARGE else Unknown(str(failure))
        return self._consul.list_answer(asked, response)


def wanted_of(config: Config, going_on: Collection[str] = ()) -> tuple[Wanted, ...]:
    """The items of the file, each with its pace: those of one prefix read together, and those that
    begin do so one after the other. ``going_on``: the names of those that do not."""
    prefixes = shared_prefixes(config)
    turns = count()
    phases = {prefix: random.random() for prefix in sorted(set(prefixes.values()))}
    return tuple(
        Wanted(
            settings,
            spread=random.random(),
            phase=phases.get(prefixes.get(settings.key, "")),
            delay_s=0.0 if settings.name in going_on else BEGIN_EVERY_S * next(turns),
            unchecked=settings.contend,
        )
        for settings in config.items
    )


def shared_prefixes(config: Config) -> dict[str, str]:
    """By key the prefix of those that are asked for together."""
    keys = [settings.key for settings in config.items if isinstance(settings, ElectionSettings)]
    return prefixes_for(keys, questions_of(len(keys), len(config.items) - len(keys)))
