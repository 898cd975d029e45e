"""The counters: what has happened since this process began.

The counters get their events where the log gets them, after everything urgent. The counts of an item are
forgotten with the item, and nothing is counted under a name that the configuration does not have.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric

from supervisor.adapters.consul.endpoints import endpoint_of
from supervisor.adapters.hooks.reasons import REASONS
from supervisor.core.actions import Action, Role
from supervisor.core.claim.guard import GuardEnd
from supervisor.core.contender.state import Contender
from supervisor.core.events import Answered, Event, Stalled
from supervisor.core.outcomes import Outcome, Unknown
from supervisor.core.requests import Request
from supervisor.core.settings import HOOK_EVENTS, ItemSettings
from supervisor.reporting.telemetry.facts import FAILURES, Fact
from supervisor.reporting.telemetry.metrics.gauges import ITEM, PREFIX, Labels, labels_of

HAS_LOCK = (Role.ACQUIRING, Role.HOLDING)
COUNTED = ("acquire", "lose")  # the events whose transitions are counted
WATCH = "watch"
TIMED = ("read", "renew", "write")  # a watch lasts until something changes
ERRORS = tuple(dict.fromkeys(each.error for each in FAILURES.values() if each.error is not None))
HOOK_BOUNDS_S = (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0)  # 5 s and 30 s: default timeouts
CONSUL_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0)  # 3 s: the longest


class Counters:
    """The counters and histograms of one daemon. ``clock`` is the core's, ``item`` finds an item by name."""

    def __init__(self, clock: Callable[[], float], item: Callable[[str], Contender | None]) -> None:
        self._clock, self._item = clock, item
        self._killed: set[Labels] = set()
        self._transitions: Counter[Labels] = Counter()
        self._hook_failures: Counter[Labels] = Counter()
        self._hooks: dict[Labels, _Durations] = defaultdict(lambda: _Durations(HOOK_BOUNDS_S))
        self._errors: Counter[Labels] = Counter()
        self._stalled_s = 0.0
        self._exchanges = {operation: _Durations(CONSUL_BOUNDS_S) for operation in TIMED}

    # --- what happens ------------------------------------------------------------------------------

    def on_step(self, event: Event, actions: Sequence[Action], facts: Sequence[Fact]) -> None:
        match event:
            case Answered(request, outcome):
                self._answered(request, outcome)
            case Stalled(late_s):
                self._stalled_s += late_s
        for _, name, fields in facts:
            match name:
                case "hook-succeeded" | "hook-failed":
                    self._hook_ended(fields, ok=name == "hook-succeeded")
                case "hook-killed" if not self._took_too_long(fields["item"]):
                    self._killed.add(_of_hook(fields))
                case "role":
                    self._became(fields)

    def _answered(self, request: Request, outcome: Outcome) -> None:
        operation = endpoint_of(request).operation
        failure = FAILURES.get(type(outcome))
        if failure is not None and failure.error is not None:
            self._errors[operation, failure.error] += 1
        if operation != WATCH and not isinstance(outcome, Unknown):
            self._exchanges[operation].observe(self._clock() - request.at)

    def _hook_ended(self, fields: Mapping[str, Any], *, ok: bool) -> None:
        hook = _of_hook(fields)
        self._hooks[hook].observe(fields["duration_s"])
        if not ok and hook not in self._killed:
            self._hook_failures[hook] += 1
        self._killed.discard(hook)

    def _took_too_long(self, name: str) -> bool:
        """Return whether the hook that is killed is a fence that has not answered by the end of the wait."""
        item = self._item(name)
        return item is not None and item.guard is not None and item.guard.end is GuardEnd.WAITED

    def _became(self, fields: Mapping[str, Any]) -> None:
        """Count a transition with its first reason, because a counter cannot move a count later."""
        had, has = fields["former_role"] in HAS_LOCK, fields["role"] in HAS_LOCK
        if had != has:
            self._transitions[fields["item"], "acquire" if has else "lose", fields["reason"]] += 1

    # --- what is scraped ---------------------------------------------------------------------------

    def families(self, items: Mapping[str, Contender]) -> Iterator[Metric]:
        """Yield what was counted, of these items, of Consul and of this process. Forget other items."""
        for known in (self._transitions, self._hook_failures, self._hooks):
            for labels in [labels for labels in known if labels[0] not in items]:
                del known[labels]
        yield self._of_transitions(items)
        yield from self._of_hooks(items)
        yield from self._of_consul()
        meaning = "How long the process or the machine stood still."
        yield CounterMetricFamily(f"{PREFIX}_event_loop_stalled_seconds", meaning, value=self._stalled_s)

    def _of_transitions(self, items: Mapping[str, Contender]) -> CounterMetricFamily:
        meaning = "How often the lock or slot came to this node, and how often it went."
        transitions = CounterMetricFamily(f"{PREFIX}_transitions", meaning, labels=(*ITEM, "event", "reason"))
        for name, each in items.items():
            for event in COUNTED:
                for reason in REASONS[event]:
                    count = self._transitions[name, event, reason]
                    transitions.add_metric((*labels_of(each), event, reason), count)
        return transitions

    def _of_hooks(self, items: Mapping[str, Contender]) -> Iterator[Metric]:
        meaning, labelnames = "How long attempts of hooks took.", (*ITEM, "event")
        durations = HistogramMetricFamily(f"{PREFIX}_hook_duration_seconds", meaning, labels=labelnames)
        meaning = "Attempts of hooks that failed; not those that we ended because the lock was lost."
        failures = CounterMetricFamily(f"{PREFIX}_hook_failures", meaning, labels=labelnames)
        for name, each in items.items():
            for event in _hook_events(each.settings):
                labels = (*labels_of(each), event)
                self._hooks[name, event].add_to(durations, labels)
                failures.add_metric(labels, self._hook_failures[name, event])
        yield durations
        yield failures

    def _of_consul(self) -> Iterator[Metric]:
        name = f"{PREFIX}_consul_request_duration_seconds"
        meaning = "How long Consul took to answer, without watches and requests without an answer."
        durations = HistogramMetricFamily(name, meaning, labels=("operation",))
        for operation, exchanges in self._exchanges.items():
            exchanges.add_to(durations, (operation,))
        yield durations
        meaning = "Requests to Consul without an answer (no-answer), or with an error as the answer."
        errors = CounterMetricFamily(f"{PREFIX}_consul_errors", meaning, labels=("operation", "error"))
        for operation in (*TIMED, WATCH):
            for error in ERRORS:
                errors.add_metric((operation, error), self._errors[operation, error])
        yield errors


class _Durations:
    """The number of durations up to each bound, and the sum of all durations, in seconds."""

    def __init__(self, bounds_s: tuple[float, ...]) -> None:
        self._bounds_s = (*bounds_s, inf)
        self._counts = [0] * len(self._bounds_s)
        self._sum_s = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds_s, seconds)] += 1
        self._sum_s += seconds

    def add_to(self, family: HistogramMetricFamily, labels: Labels) -> None:
        """Add these durations to the family.

        Each bucket includes the buckets before it, as Prometheus requires.
        """
        buckets, total = [], 0
        for bound_s, count in zip(self._bounds_s, self._counts, strict=True):
            total += count
            buckets.append(("+Inf" if bound_s == inf else str(bound_s), float(total)))
        family.add_metric(labels, buckets, self._sum_s)


def _of_hook(fields: Mapping[str, Any]) -> Labels:
    """Return the item and event of a hook, of which there are never two under way."""
    return fields["item"], fields["event_kind"]


def _hook_events(settings: ItemSettings) -> Iterator[str]:
    yield from (event for name, event in HOOK_EVENTS.items() if settings.hooks_of(name))
    if settings.check_hook is not None:
        yield "check"
    if settings.fence is not None:
        yield "fence"
