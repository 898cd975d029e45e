"""What Prometheus is told: a few figures of each item, of Consul and of this process.

Counters are fed from the one point that also feeds the log; gauges are read off the contenders at
the instant of the scrape. No label may be free text: names come from the file, all else from closed
lists, so that the file alone says how many series there are. All series of an item are there from
its first moment, with 0, and go with it. Nothing here may decide anything, start a thread or use the
library's registry, which is the whole process's.
"""

import platform
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector, CollectorRegistry

from supervisor import __version__
from supervisor.core.actions import (
    Action,
    Became,
    KillHook,
    ReadKey,
    ReadSession,
    ReadSlots,
    RenewSession,
    Request,
    Role,
    StartHook,
    WatchKey,
    WatchSlots,
)
from supervisor.core.contender import Contender
from supervisor.core.events import Answered, Denied, Event, HookEnded, Outcome, Refused, Unknown
from supervisor.core.settings import ItemSettings
from supervisor.core.slots import Slots
from supervisor.history import History
from supervisor.status import Status, holds, lease_left_s

PREFIX = "consul_supervisor"
ITEM = ("name", "kind")
ROLES = tuple(role for role in Role if role is not Role.STOPPED)  # who has stopped is no item any more
HAS_LOCK = (Role.ACQUIRING, Role.HOLDING)
TRANSITIONS = ("acquire", "lose")
OPERATIONS = ("read", "renew", "write")
ERRORS: dict[type[Outcome], str] = {Unknown: "no-answer", Denied: "denied", Refused: "refused"}
HOOK_BOUNDS_S = (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0)  # 5 s and 30 s: default timeouts
CONSUL_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0)  # none lasts longer

SAMPLES_AT_ONCE = 250  # to write them takes some 3 ms; then whatever else is due has its turn

_HEADS = (b"# HELP ", b"# TYPE ", b"# UNIT ")
_Labels = tuple[str, ...]
_Gauge = Callable[[Contender, float], float]


class Metrics(Collector):
    """The metrics of one daemon. ``clock`` is what durations are taken from, ``wall`` the time of day."""

    def __init__(
        self, status: Status, history: History, clock: Callable[[], float], wall: Callable[[], float]
    ) -> None:
        self._status = status
        self._history = history
        self._clock = clock
        self._wall = wall
        self._loaded_at = wall()
        self._load_succeeded = True
        self._roles: dict[str, Role] = {}
        self._begun: dict[_Labels, float] = {}
        self._killed: set[_Labels] = set()
        self._transitions: Counter[_Labels] = Counter()
        self._hook_failures: Counter[_Labels] = Counter()
        self._hooks: dict[_Labels, _Durations] = defaultdict(lambda: _Durations(HOOK_BOUNDS_S))
        self._errors: Counter[_Labels] = Counter()
        self._exchanges: dict[_Labels, _Durations] = defaultdict(lambda: _Durations(CONSUL_BOUNDS_S))
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def text(self, accept: str = "") -> tuple[str, Iterator[bytes]]:
        """The content type and the pieces of the body for whoever asks with this Accept: OpenMetrics, or
        plain text. Each piece takes a few milliseconds; the loop is to have its turn between them."""
        encode, content_type = choose_encoder(accept)
        return content_type, self._pieces(encode)

    def _pieces(self, encode: Callable[[Collector], bytes]) -> Iterator[bytes]:
        for family in self._registry.collect():
            samples = family.samples
            for begin in range(0, max(1, len(samples)), SAMPLES_AT_ONCE):
                family.samples = samples[begin : begin + SAMPLES_AT_ONCE]
                lines = encode(_Only(family)).splitlines(keepends=True)
                heads = _HEADS if begin == 0 else ()
                yield b"".join(line for line in lines if line[:1] != b"#" or line.startswith(heads))
        yield encode(_Only())

    def reloaded(self, ok: bool) -> None:
        """The configuration was read again; when it was refused, the one before it stays in force."""
        self._load_succeeded = ok
        if ok:
            self._loaded_at = self._wall()

    # --- what happens ------------------------------------------------------------------------------

    def turn(self, event: Event, actions: Sequence[Action]) -> None:
        """An event, and what was done about it."""
        match event:
            case Answered(request, outcome):
                self._answered(request, outcome)
            case HookEnded():
                self._hook_ended(event)
        for action in actions:
            match action:
                case StartHook():
                    self._begun[_of_hook(action)] = self._clock()
                case KillHook(started):
                    self._killed.add(_of_hook(started))
                case Became(item, role):
                    self._became(item, role)

    def _answered(self, request: Request, outcome: Outcome) -> None:
        operation = _operation(request)
        if (error := ERRORS.get(type(outcome))) is not None:
            self._errors[operation, error] += 1
        if operation != "watch" and not isinstance(outcome, Unknown):  # a watch lasts till something changes
            self._exchanges[operation,].observe(self._clock() - request.at)

    def _hook_ended(self, event: HookEnded) -> None:
        hook = _of_hook(event.started)
        self._hooks[hook].observe(self._clock() - self._begun.pop(hook))
        if not event.ok and hook not in self._killed:
            self._hook_failures[hook] += 1
        self._killed.discard(hook)

    def _became(self, item: str, role: Role) -> None:
        had, has = self._roles.get(item) in HAS_LOCK, role in HAS_LOCK
        self._roles[item] = role
        if had != has:
            self._transitions[item, "acquire" if has else "lose"] += 1

    # --- what is told ------------------------------------------------------------------------------

    def collect(self) -> Iterator[Metric]:
        """All families; called by the registry for each scrape."""
        items = self._status.items()
        self._forget_all_but(items)
        yield from self._of_items(items)
        yield from self._of_semaphores(items)
        yield from self._of_hooks(items)
        yield from self._of_consul()
        yield from self._of_daemon()

    def _forget_all_but(self, items: Mapping[str, Contender]) -> None:
        for known in (self._transitions, self._hook_failures, self._hooks):
            for labels in [labels for labels in known if labels[0] not in items]:
                del known[labels]
        for item in self._roles.keys() - items.keys():
            del self._roles[item]

    def _of_items(self, items: Mapping[str, Contender]) -> Iterator[Metric]:
        now = self._clock()
        for name, (meaning, value) in _GAUGES.items():
            yield _gauge(name, meaning, ITEM, ((_labels(each), value(each, now)) for each in items.values()))
        roles = (((*_labels(each), role), each.role is role) for each in items.values() for role in ROLES)
        yield _gauge("role", "1 for what this node is in it now, 0 for the others.", (*ITEM, "role"), roles)
        transitions = CounterMetricFamily(
            f"{PREFIX}_transitions",
            "How often the lock or slot came to this node, and how often it went.",
            labels=(*ITEM, "event"),
        )
        for name, each in items.items():
            for event in TRANSITIONS:
                transitions.add_metric((*_labels(each), event), self._transitions[name, event])
        yield transitions

    def _of_semaphores(self, items: Mapping[str, Contender]) -> Iterator[Metric]:
        claims = [(each, each.claim) for each in items.values()]
        slots = [(_labels(each), claim) for each, claim in claims if isinstance(claim, Slots)]
        limits = ((labels, float(claim.limit)) for labels, claim in slots)
        yield _gauge("limit", "Holders at most, as the file says.", ITEM, limits)
        limits = ((labels, float(claim.effective_limit)) for labels, claim in slots)
        yield _gauge("effective_limit", "The smaller of that and the limit in Consul.", ITEM, limits)
        holders = ((labels, float(len(claim.view.holders) if claim.view else 0)) for labels, claim in slots)
        yield _gauge("holders", "Holders, as this node last heard.", ITEM, holders)

    def _of_hooks(self, items: Mapping[str, Contender]) -> Iterator[Metric]:
        durations = HistogramMetricFamily(
            f"{PREFIX}_hook_duration_seconds", "How long attempts of hooks took.", labels=(*ITEM, "event")
        )
        failures = CounterMetricFamily(
            f"{PREFIX}_hook_failures",
            "Attempts of hooks that failed; not those that we ended ourselves.",
            labels=(*ITEM, "event"),
        )
        for name, each in items.items():
            for event in _hook_events(each.settings):
                labels = (*_labels(each), event)
                self._hooks[name, event].add_to(durations, labels)
                failures.add_metric(labels, self._hook_failures[name, event])
        yield durations
        yield failures

    def _of_consul(self) -> Iterator[Metric]:
        durations = HistogramMetricFamily(
            f"{PREFIX}_consul_request_duration_seconds",
            "How long Consul took to answer; neither watches nor what it left unanswered.",
            labels=("operation",),
        )
        for operation in OPERATIONS:
            self._exchanges[operation,].add_to(durations, (operation,))
        yield durations
        errors = CounterMetricFamily(
            f"{PREFIX}_consul_errors",
            "Requests to Consul without an answer (no-answer), denied or refused.",
            labels=("operation", "error"),
        )
        for operation in (*OPERATIONS, "watch"):
            for error in ERRORS.values():
                errors.add_metric((operation, error), self._errors[operation, error])
        yield errors
        now, answered_at = self._clock(), self._history.answered_at
        refused = self._history.token_refused(now)
        yield _plain("token_refused", "1 while Consul refuses the token (403).", refused)
        when = "When Consul last answered, as Unix time; 0 before its first answer."
        at = 0.0 if answered_at is None else self._wall() - (now - answered_at)
        yield _plain("consul_answered_timestamp_seconds", when, at)

    def _of_daemon(self) -> Iterator[Metric]:
        yield _plain("healthy", "1 while /healthz is green.", not self._status.troubles())
        read = "0 after a reload that was refused, until one succeeds."
        yield _plain("config_reload_success", read, self._load_succeeded)
        loaded = "When the configuration in force was read, as Unix time."
        yield _plain("config_loaded_timestamp_seconds", loaded, self._loaded_at)
        build = {"version": __version__, "python": platform.python_version()}
        yield InfoMetricFamily(f"{PREFIX}_build", "What runs here.", value=build)


class _Only(Collector):
    """These families and no others."""

    def __init__(self, *families: Metric) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


class _Durations:
    """How many lasted at most as long as each bound, and how long all lasted together."""

    def __init__(self, bounds_s: tuple[float, ...]) -> None:
        self._bounds_s = (*bounds_s, inf)
        self._counts = [0] * len(self._bounds_s)
        self._sum_s = 0.0

    def observe(self, seconds: float) -> None:
        """One more."""
        self._counts[bisect_left(self._bounds_s, seconds)] += 1
        self._sum_s += seconds

    def add_to(self, family: HistogramMetricFamily, labels: _Labels) -> None:
        """As Prometheus counts: each bucket holds those before it, too."""
        buckets, total = [], 0
        for bound_s, count in zip(self._bounds_s, self._counts, strict=True):
            total += count
            buckets.append(("+Inf" if bound_s == inf else str(bound_s), float(total)))
        family.add_metric(labels, buckets, self._sum_s)


def _someone_holds(contender: Contender, now: float) -> bool:
    view = contender.claim.view
    return holds(contender, now) or (view is not None and bool(view.holders))


_GAUGES: dict[str, tuple[str, _Gauge]] = {
    "holding": ("1 while this node holds: on_acquire is done and the lease valid.", holds),
    "lease_seconds": (
        "How long this node goes on believing that it holds without news of Consul; 0 when it does not.",
        lambda contender, now: lease_left_s(contender, now) or 0.0,
    ),
    "lease_room_seconds": (
        "The whole lease: what lease_seconds is just after news of Consul.",
        lambda contender, now: contender.lease.room_s if contender.settings.contend else 0.0,
    ),
    "leader_present": ("1 while somebody holds, as this node last heard.", _someone_holds),
    "stuck": ("1 when on_lose failed: it waits for `recover`.", lambda each, now: each.role is Role.STUCK),
    "paused": ("1 while it does not contend because of `pause`.", lambda each, now: each.paused),
    "notice": ("1 while the log and status have a notice about it.", lambda each, now: bool(each.noticed)),
}


def _gauge(
    name: str, meaning: str, labelnames: _Labels, values: Iterable[tuple[_Labels, float]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"{PREFIX}_{name}", meaning, labels=labelnames)
    for labels, value in values:
        family.add_metric(labels, float(value))
    return family


def _plain(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}_{name}", meaning, value=float(value))


def _labels(contender: Contender) -> _Labels:
    return contender.settings.name, contender.settings.kind


def _of_hook(started: StartHook) -> _Labels:
    """Never two of them at a time."""
    return started.context.name, started.context.event


def _hook_events(settings: ItemSettings) -> Iterator[str]:
    """What the hooks of the file may be called for."""
    lists = {
        "acquire": settings.on_acquire,
        "lose": settings.on_lose,
        "lose-failure": settings.on_lose_failure,
        "change": settings.on_change,
    }
    yield from (event for event, hooks in lists.items() if hooks)
    if settings.candidate_check is not None:
        yield "check"


def _operation(request: Request) -> str:
    match request:
        case WatchKey() | WatchSlots():
            return "watch"
        case RenewSession():
            return "renew"
        case ReadKey() | ReadSlots() | ReadSession():
            return "read"
        case _:
            return "write"
