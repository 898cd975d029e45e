"""Tells Consul of each tenure of this node's elections, for people who ask who led and why that changed.

An observer of steps, which sees them after everything urgent. A tenure is told once on_acquire is done, and
again after the end of on_lose. Each election has one request at a time, and one write in EVERY_S: meanwhile
the newest tenures wait, at most TENURES_MAX of them. What Consul does not take is tried again until the
process ends, and once more then. Nothing waits for any of this, and nothing of it is kept over a restart: a
tenure whose end could not be told counts as ended without a word.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from random import uniform

from supervisor.adapters.consul.fleet_requests import ReadHistory, WriteHistory, history_key
from supervisor.adapters.runtime.background import Background
from supervisor.config import Config
from supervisor.config.formats.json_values import holder_node
from supervisor.core.actions import Action, Reason, Role
from supervisor.core.events import Event
from supervisor.core.outcomes import Done, KeyView, LostRace
from supervisor.core.settings import ElectionSettings
from supervisor.daemon.fleet.tenures import (
    ACTED,
    GONE,
    TENURES_MAX,
    ForeignHistory,
    Tenure,
    document_of,
    with_tenures,
)
from supervisor.daemon.shared import Shared
from supervisor.reporting.telemetry.facts import Fact
from supervisor.reporting.telemetry.formatting import when

SETTLE_S = 0.5  # from the end of a hand-over to the write, which is not to delay the next holder
EVERY_S = 2.0  # between two writes of one election by this node
REQUEST_S = 10.0  # Consul holds a request for 7 s while it has no leader
AT_ONCE_MAX = 2  # elections, because a failover has many requests that are urgent
RACES_MAX = 5  # attempts; other nodes write at most once in EVERY_S
RETRY_S = (2.0, 120.0)  # the first pause after a failure, and the longest
CLOSE_S = 2.0  # in which a process that stops may still tell of its last tenures


@dataclass(slots=True)
class _Untold:
    """What is to be told of one election."""

    tenures: dict[str, Tenure] = field(default_factory=dict)  # by session, the oldest first
    missed: int = 0  # how many tenures were dropped before Consul knew them
    known: str = ""  # the session of the newest tenure that Consul knows
    next_at: float = -inf  # when the next write may follow
    is_busy: bool = False


class TenureHistory:
    """The tenures of one node."""

    def __init__(self, config: Config, shared: Shared) -> None:
        self._node, self._contenders, self._ask = shared.node, shared.contenders, shared.client.ask
        self._history, self._log = shared.history, shared.log
        self._clock, self._wall = shared.clock, shared.wall
        self._prefix = config.fleet.prefix if config.fleet else ""  # blank: nothing is told
        self._background = Background(shared.report)
        self._closing, self._turns = asyncio.Event(), asyncio.Semaphore(AT_ONCE_MAX)
        self._untold: dict[str, _Untold] = {}
        self._tenures: dict[str, Tenure] = {}  # by election, that of this node

    def follow(self, config: Config) -> None:
        before, self._prefix = self._prefix, config.fleet.prefix if config.fleet else ""
        names = {settings.name for settings in config.items} | self._tenures.keys()
        for known in (self._untold, self._history.fleet.untold):
            for item in known.keys() - names:
                del known[item]
        if before != self._prefix:
            self._history.fleet.untold.clear()
            for item in tuple(self._tenures):
                self._tell(item)

    # --- what happens ----------------------------------------------------------------------------

    def on_step(self, event: Event, actions: Sequence[Action], facts: Sequence[Fact]) -> None:
        for _, name, fields in facts:
            if name == "role":
                self._became(**fields)

    def _became(
        self, *, role: Role, item: str, session: str, token: int | None, reason: str, note: str, **_: object
    ) -> None:
        now, contender = when(self._wall()), self._contenders.by_name.get(item)
        tenure = self._tenures.get(item)
        if contender and token and isinstance(contender.settings, ElectionSettings):
            if tenure is None or tenure["session"] != session:
                tenure = dict.fromkeys(("to", "why", "by", "note", "guard"))
                node = holder_node(contender.settings.value) or self._node
                tenure |= {"token": token, "node": node, "session": session, "from": now}
                tenure[GONE] = self._history.leaders.gone.get(item)
                self._tenures[item] = tenure
        if tenure is None:
            return
        holds = contender.tenure if contender else None
        tenure[ACTED] = tenure.get(ACTED) or role is Role.HOLDING or (holds is not None and holds.began)
        if role is Role.HOLDING:
            if holds is not None and holds.session == session and holds.previous is not None:
                tenure["guard"] = holds.previous.how
            self._tell(item)
        elif role is Role.LOSING:
            tenure |= {"why": str(reason), "note": note or tenure["note"]}
            if reason == Reason.STEP_DOWN:
                tenure["by"] = self._giver(item, tenure["from"])
        elif not token:  # one that is stuck keeps its token
            tenure["to"] = now
            if tenure[ACTED]:  # and did not only guard
                self._tell(item)
            del self._tenures[item]

    def _giver(self, item: str, since: str) -> str | None:
        """Return the user who has stepped this node down. None: no such command is known."""
        given = self._history.events.command("step-down", item)
        if given is None or given["time"] < since:
            return None
        return str(given.get("user") or f"user id {given.get('uid')}")

    # --- telling ---------------------------------------------------------------------------------

    def _tell(self, item: str) -> None:
        if not self._prefix:
            return
        tenure, untold = dict(self._tenures[item]), self._untold.setdefault(item, _Untold())
        untold.tenures[tenure["session"]] = tenure
        if len(untold.tenures) > TENURES_MAX:
            dropped = next(iter(untold.tenures))
            del untold.tenures[dropped]
            untold.missed += dropped != untold.known
        if not untold.is_busy:
            untold.is_busy = True
            self._background.start(self._tell_all(item, untold))

    async def _tell_all(self, item: str, untold: _Untold) -> None:
        """Write until nothing is left to tell. While the process ends, try once."""
        retry_s, wait_s = RETRY_S[0], SETTLE_S
        while untold.tenures and self._untold.get(item) is untold:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(wait_s, untold.next_at - self._clock())):
                    await self._closing.wait()
            told, missed = tuple(untold.tenures.values()), untold.missed
            async with self._turns:
                why_not = await self._write(item, untold, told, missed)
            if self._untold.get(item) is not untold:
                break  # the file has the election no more
            self._log.noted("history-failed", item, why_not)
            if why_not:
                self._history.fleet.untold[item] = why_not
                if self._closing.is_set():
                    break
                retry_s, wait_s = min(2 * retry_s, RETRY_S[1]), uniform(0.5, 1.0) * retry_s
                continue
            self._history.fleet.untold.pop(item, None)
            retry_s, wait_s, untold.known = RETRY_S[0], SETTLE_S, told[-1]["session"]
            untold.missed -= missed
            for tenure in told:
                if untold.tenures.get(tenure["session"]) is tenure:
                    del untold.tenures[tenure["session"]]
        untold.is_busy = False

    async def _write(self, item: str, untold: _Untold, told: Iterable[Tenure], missed: int) -> str:
        """Write these tenures into the key, and return why that was not done. Blank: it was."""
        if not (prefix := self._prefix):
            return ""
        key = history_key(prefix, item)
        for _ in range(RACES_MAX):
            found = await self._ask(ReadHistory(item, self._clock(), REQUEST_S, key, prefix))
            if not isinstance(found, KeyView):
                return str(getattr(found, "why", found))
            try:
                value = with_tenures(document_of(found), told, missed)
            except ForeignHistory as error:
                return f"{key} is left alone: {error}; delete it, or give fleet another prefix"
            if value == found.value:
                return ""
            untold.next_at = self._clock() + EVERY_S
            write = WriteHistory(item, self._clock(), REQUEST_S, key, prefix, value, found.modify_index)
            if isinstance(done := await self._ask(write), Done):
                return ""
            if not isinstance(done, LostRace):
                return str(getattr(done, "why", done))
        return f"other nodes changed {key} at each attempt"

    async def close(self, within_s: float = CLOSE_S) -> None:
        """Tell what is still to be told, within this time, because the process ends."""
        self._closing.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._background.ended()
        self._background.cancel()
        await self._background.ended()
