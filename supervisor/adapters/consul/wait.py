"""Waits until an election or semaphore is in some state, by blocking queries.

A failure of Consul is ridden out until the time is over, because a command that waits is often typed while
something starts. A missing right ends the wait at once, because time does not cure it.
"""

import asyncio
from collections.abc import Callable

from supervisor.adapters.consul.query import LookupFailed, NotReadable, OneOffClient, key_view, slots_view
from supervisor.adapters.consul.rate import RateLimit
from supervisor.config import ConsulSettings
from supervisor.core.lock.base import WAIT_JITTER, WAIT_S
from supervisor.core.outcomes import KeyView, View
from supervisor.core.requests import WatchKey, WatchSlots
from supervisor.core.settings import ItemSettings, SemaphoreSettings

LEAST_S = 0.002  # a shorter wait could become 0, which Consul takes for its default of five minutes
FAILED_PAUSE_S = 1.0
ANSWER_S = 1.0  # how much longer than the time that is left an answer may take


def has_leader(view: View) -> bool:
    return isinstance(view, KeyView) and bool(view.session)


def is_free(view: View, limit: int) -> bool:
    """Return whether nobody holds the key, or fewer than ``limit`` sessions have a slot."""
    if isinstance(view, KeyView):
        return not view.session
    if view.slot_record is None:
        return view.lock is None
    return len(view.slot_record.holders) < min(limit, view.slot_record.limit or limit)


async def wait_until(
    settings: ConsulSettings, item: ItemSettings, condition: Callable[[View], bool], timeout_s: float
) -> bool:
    """Return whether the condition was met within the time.

    Raises LookupFailed when Consul's last answer at that time was not usable, NotReadable when the token may
    not read the keys, and TokenError when the token file cannot be used.
    """
    clock = asyncio.get_running_loop().time
    deadline, rate, index = clock() + timeout_s, RateLimit(), 0
    async with OneOffClient(settings) as consul:
        while True:
            left_s = deadline - clock()
            if left_s < LEAST_S:
                left_s = 0.0
            try:
                view = await _look(consul, item, index, left_s)
            except NotReadable:
                raise
            except LookupFailed:
                if left_s == 0.0:
                    raise
                index = 0
                await asyncio.sleep(min(FAILED_PAUSE_S, left_s))
                continue
            if condition(view):
                return True
            if left_s == 0.0:
                return False
            index = view.index if view.index >= index else 0
            await asyncio.sleep(min(rate.wait_s(clock()), max(0.0, deadline - clock())))


async def _look(consul: OneOffClient, item: ItemSettings, index: int, left_s: float) -> View:
    """Return the item's keys when they differ from those at ``index``, or at the end of the time.

    index: 0: return them at once, as with a time of 0.
    """
    if left_s == 0.0:
        index = 0
    wait_s = min(WAIT_S, round(left_s * WAIT_JITTER / (WAIT_JITTER + 1), 3))
    within_s = left_s + ANSWER_S
    if isinstance(item, SemaphoreSettings):
        slots = WatchSlots("", 0.0, within_s, item.prefix, index, wait_s, consistent=True)
        view = slots_view(item.prefix, await consul.ask(slots))
        return await consul.slots(item.prefix) if await consul.lacks_record(item.prefix, view) else view
    watch = WatchKey("", 0.0, within_s, item.key, index, wait_s, consistent=True)
    return key_view(item.key, await consul.ask(watch))
