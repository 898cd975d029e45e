"""The present state, read off the contenders at the instant of the scrape.

Nothing here is kept from one scrape to the next, so an item that has gone leaves nothing behind.
"""

from collections.abc import Callable, Collection, Iterable, Iterator

from prometheus_client.metrics_core import GaugeMetricFamily

from supervisor.core.actions import Role
from supervisor.core.contender.state import Contender
from supervisor.core.lock.semaphore import SemaphoreLock
from supervisor.core.outcomes import View
from supervisor.reporting.telemetry.status import lease_left_s

PREFIX = "consul_supervisor"
ITEM = ("name", "kind")
ROLES = tuple(role for role in Role if role is not Role.STOPPED)  # a stopped contender is no item any more

Labels = tuple[str, ...]
Seen = Callable[[Contender], View | None]


def labels_of(contender: Contender) -> Labels:
    return contender.settings.name, contender.settings.kind


def single(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    """Return a gauge of the daemon. ``name`` is without its prefix."""
    return GaugeMetricFamily(f"{PREFIX}_{name}", meaning, value=float(value))


def of_items(items: Collection[Contender], seen: Seen, now: float) -> Iterator[GaugeMetricFamily]:
    """Yield the gauges of all items, elections and semaphores.

    seen: returns the newest view of an item's lock. None: there is none that may still be true.
    """
    for name, meaning, value in _GAUGES:
        yield _gauge(name, meaning, ITEM, ((labels_of(each), value(each, now)) for each in items))
    registered = ((labels_of(each), each.service.is_registered) for each in items if each.settings.service)
    yield _gauge("service_registered", "1 while Consul names this node by `service`.", ITEM, registered)
    views = ((each, seen(each)) for each in items)
    present = ((labels_of(each), each.may_act(now) or bool(view and view.holders)) for each, view in views)
    yield _gauge("leader_present", "1 while any node holds, as far as this node can tell.", ITEM, present)
    roles = (((*labels_of(each), role), each.role is role) for each in items for role in ROLES)
    yield _gauge("role", "1 for what this node is in it now, 0 for the others.", (*ITEM, "role"), roles)


def of_watchdogs(items: Iterable[Contender], reset_in_s: Callable[[str], float | None]) -> GaugeMetricFamily:
    meaning = "When the watchdog resets the machine unless it is fed; 0 when it is not armed."
    left = (
        (labels_of(each), reset_in_s(each.settings.name) or 0.0) for each in items if each.settings.watchdog
    )
    return _gauge("watchdog_reset_seconds", meaning, ITEM, left)


def of_semaphores(items: Iterable[Contender], seen: Seen) -> Iterator[GaugeMetricFamily]:
    slots = [(each, each.lock) for each in items if isinstance(each.lock, SemaphoreLock)]
    for name, meaning, value in _GAUGES_OF_SLOTS:
        yield _gauge(name, meaning, ITEM, ((labels_of(each), value(lock)) for each, lock in slots))
    held = ((labels_of(each), None if each.tenure is None else each.tenure.slot) for each, _ in slots)
    numbers = ((labels, -1 if slot is None else slot) for labels, slot in held)
    yield _gauge("slot", "The number of the slot that this node has; -1 when it has none.", ITEM, numbers)
    holders = ((labels_of(each), len(view.holders) if (view := seen(each)) else 0) for each, _ in slots)
    yield _gauge("holders", "The number of holders, as far as this node can tell.", ITEM, holders)


def _gauge(
    name: str, meaning: str, labelnames: Labels, values: Iterable[tuple[Labels, float]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"{PREFIX}_{name}", meaning, labels=labelnames)
    for labels, value in values:
        family.add_metric(labels, float(value))
    return family


_LEASE = "How long this node goes on believing that it holds without news from Consul; 0 when it does not."
_GAUGES: tuple[tuple[str, str, Callable[[Contender, float], float]], ...] = (
    ("holding", "1 while this node holds: on_acquire is done and the lease valid.", Contender.may_act),
    ("lease_seconds", _LEASE, lambda each, now: lease_left_s(each, now) or 0.0),
    (
        "lease_room_seconds",
        "The whole lease, as it is just after news from Consul.",
        lambda each, now: each.lease.belief_s if each.settings.contend else 0.0,
    ),
    (
        "outage_left_seconds",
        "How long this node still goes on in a silence of Consul that it rides out by `outage`; else 0.",
        lambda each, now: each.rides_out(now) * (lease_left_s(each, now) or 0.0),
    ),
    (
        "stuck",
        "1 when on_lose failed and the item waits for `recover`.",
        lambda each, now: each.role is Role.STUCK,
    ),
    (
        "guarding",
        "1 while this node has the lock, and waits until the machine of the former holder is off.",
        lambda each, now: each.guard is not None,
    ),
    (
        "fence_limited",
        "1 while this node waits for a machine that it may not switch off, because of `fence_limit`.",
        lambda each, now: each.guard is not None and each.guard.is_limited(each.settings.fence),
    ),
    ("paused", "1 while this node does not contend because of `pause`.", lambda each, now: each.paused),
    (
        "paused_everywhere",
        "1 while `pause --everywhere` keeps all nodes from contending.",
        lambda each, now: each.withheld is True,
    ),
    (
        "notice",
        "1 while the log and status have a notice about the item.",
        lambda each, now: bool(each.told_notice),
    ),
)
_GAUGES_OF_SLOTS: tuple[tuple[str, str, Callable[[SemaphoreLock], float]], ...] = (
    ("limit", "The largest number of holders, as the configuration declares.", lambda slots: slots.limit),
    ("effective_limit", "The smaller of that and the limit in Consul.", lambda slots: slots.effective_limit),
)
