"""This node in Consul's catalog: registered at the agent, told anew on change, deregistered at the end.

One task looks at the agent every PASS_S, and soon after a change of a role. It asks for the id first, because
another program may have it, or the agent may have lost it. Then it lets the check pass, which the agent
answers by itself and tells its servers only if the check changes, or it registers the instance, which is a
write of the servers. The instance is registered anew with each new token: see ``services.by_token``.
"""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from zlib import crc32

from supervisor import __version__
from supervisor.adapters.consul.presence import RegisterPresence, TellPresence, cut, meta_of
from supervisor.config import Config
from supervisor.core.actions import Action, RoleChanged
from supervisor.core.beside.service import Service, next_request
from supervisor.core.events import Event, OrderSeen, PauseAsked, ResumeAsked
from supervisor.core.frozen import replace
from supervisor.core.machines.lane import Lane
from supervisor.core.outcomes import Done, Instance, Outcome
from supervisor.core.requests import ReadService, ServiceRequest
from supervisor.core.settings import ServiceSettings
from supervisor.daemon.shared import Shared
from supervisor.reporting.telemetry.formatting import when
from supervisor.reporting.telemetry.systemd import status_line

PASS_S = 10.0  # between two looks
TTL_S = 30.0  # of the check, so that two passes may be lost
WRITE_S = 2.0  # between two writes
SETTLE_S = 0.3  # from a change to its write, because one role often follows another in a hand-over
DETAIL_S = 60.0  # from a write to that of a change in words alone, such as the output of a check that fails
ASK_S = 5.0
LEAVE_S = 3.0  # for the instance to go
OUTPUT_BYTES_MAX = 512


class Presence:
    """This node in Consul's catalog."""

    def __init__(self, config: Config, shared: Shared) -> None:
        self._config, self._node, self._status = config, shared.node, shared.status
        self._ask, self._clock, self._shared = shared.client.ask, shared.clock, shared
        self._turning = asyncio.Lock()
        self._changed = asyncio.Event()
        self._of: ServiceSettings | None = None  # the instance that the agent has, or may have
        self._leaving = Service()  # a former instance, while it may still be in Consul
        self._told: tuple[ServiceSettings, float] | None = None  # the instance as the agent has confirmed it
        self._passed = True  # the state of its check, likewise
        self._is_due = False  # a change is still to be written
        self._written_at = 0.0

    def on_step(self, event: Event, actions: Sequence[Action]) -> None:
        if isinstance(event, PauseAsked | ResumeAsked | OrderSeen) or any(
            isinstance(a, RoleChanged) for a in actions
        ):
            self._changed.set()

    def follow(self, config: Config) -> None:
        self._config = config
        self._changed.set()

    async def run(self) -> None:
        """Keep the instance, until this is cancelled."""
        self._changed.set()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(PASS_S if self._config.fleet or self._leaving.of else None):
                    await self._changed.wait()
            await asyncio.sleep(SETTLE_S)
            self._is_due = self._is_due or self._changed.is_set()
            self._changed.clear()
            async with self._turning:
                wrote = await self._turn()
            await asyncio.sleep(WRITE_S - SETTLE_S if wrote else 0.0)

    async def leave(self) -> None:
        """Take this node out of the catalog, within LEAVE_S; what could not be taken out is told."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await self._turning.acquire()  # so that no turn registers it anew
                if (of := self._of or self._wanted()) is not None:
                    self._report((await withdraw(self._shared, Service(of))).notice)

    async def _turn(self) -> bool:
        """Look at the agent, and send it what it lacks. Return whether that was a write of the servers."""
        of, former, fleet, now = self._wanted(), self._of, self._config.fleet, self._clock()
        if former is not None and (of is None or of.id != former.id):
            self._leaving, self._of, self._told = Service(former), None, None
        stays = of is not None and of.id == getattr(self._leaving.of, "id", "")
        self._leaving = Service() if stays else await withdraw(self._shared, self._leaving)
        if of is None or fleet is None:
            self._report(self._leaving.notice)
            return False
        told, passing = (of, fleet.deregister_critical_service_after_s), not self._status.problems()
        found = await self._send(ReadService, of)
        is_new = found in (Instance.ABSENT, Instance.FORMER)
        if found is Instance.OURS:
            found = await self._send(TellPresence, of, passing, self._output())
            is_renewed = self._told is None or told[1] != self._told[1]
            is_new = found is Instance.UNKNOWN or (found == Done() and is_renewed)
            if found == Done() and passing is not self._passed:
                self._passed = passing
                self._changed.set()  # what else has changed follows with the next write
                return True
        is_late = self._is_due or now >= self._written_at + DETAIL_S
        writes = is_new or (found == Done() and told != self._told and is_late)
        if writes:
            self._of, self._written_at = of, now
            dated = replace(of, meta=(*of.meta, ("at", when(time.time()))))
            found = await self._send(RegisterPresence, dated, TTL_S, passing, told[1] if is_new else 0.0)
        if writes and found == Done():
            self._told, self._passed, self._is_due = told, passing, False
        self._report(_why_absent(found, of) or self._leaving.notice)
        return writes

    def _report(self, why: str) -> None:
        """Note why Consul's catalog does not show this node. Log that it begins, and that it is over."""
        fleet = self._shared.history.fleet
        if bool(why) != bool(fleet.absent):
            self._shared.log.line("warning" if why else "info", "presence", why=why)
        fleet.absent = why

    def _wanted(self) -> ServiceSettings | None:
        """Return the instance as it is to be. None: the configuration has no ``fleet``.

        Several daemons of one host differ in their state_dir.
        """
        config, node = self._config, self._node
        if config.fleet is None:
            return None
        id_ = f"{config.fleet.service}:{node}:{crc32(os.fsencode(config.state_dir)):08x}"
        facts = {"version": __version__, "node": node, "page": config.page}
        meta = tuple(meta_of(facts, self._status.parts()).items())
        return ServiceSettings(id_, config.fleet.service, config.http.port if config.http else 0, meta=meta)

    def _output(self) -> str:
        """Return the output of the check, which stays the same while nothing changes."""
        troubles = "; ".join(self._status.problems())
        health = f"NOT HEALTHY: {troubles}" if troubles else "healthy"
        line = f"{self._node}: {health}; {status_line(self._status.items().values())}"
        return cut(line, OUTPUT_BYTES_MAX)

    async def _send(self, kind: Callable[..., ServiceRequest], of: ServiceSettings, *more: object) -> Outcome:
        return await self._ask(kind("", self._clock(), ASK_S, of, *more))


async def withdraw(shared: Shared, service: Service) -> Service:
    """Take an instance out of Consul, as far as that goes at once. Return what is known of it then."""
    ends_at = shared.clock() + LEAVE_S / 2
    while service.of and (request := next_request(service, ("", shared.clock(), ASK_S, service.of), TTL_S)):
        asked = replace(service, exchange=Lane().begin(request))
        service = asked.answered(request, await shared.client.ask(request), shared.clock())
        if service.exchange.due_at > ends_at:
            break
        await asyncio.sleep(service.exchange.due_at - shared.clock())
    return service


def _why_absent(found: Outcome, of: ServiceSettings) -> str:
    """Return why Consul's catalog does not show this node as it is. Blank: it does."""
    if found is Instance.FOREIGN:
        return f"another program has its id; `consul services deregister -id={of.id}` removes it"
    return "" if found == Done() else str(getattr(found, "why", found))
