"""The metrics for Prometheus: a few figures of each item, of Consul and of this process.

    gauges.py    the present state, read off the contenders at the instant of the scrape
    counters.py  what has happened, counted at the one point that also feeds the log

No label may be free text: names come from the configuration and all else from closed lists, so that the
configuration alone determines the number of series. All series of an item exist from its first moment, with
0, and end with the item. Nothing here may decide anything, start a thread or use the library's registry,
which is global to the process.
"""

import platform
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import InfoMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector, CollectorRegistry

from supervisor import __version__
from supervisor.reporting.telemetry.history import History
from supervisor.reporting.telemetry.metrics.counters import Counters
from supervisor.reporting.telemetry.metrics.gauges import (
    PREFIX,
    of_items,
    of_semaphores,
    of_watchdogs,
    single,
)
from supervisor.reporting.telemetry.status import Status

SAMPLES_AT_ONCE = 250  # takes some 3 ms to write; then the loop does other work that is due
_HEADS = (b"# HELP ", b"# TYPE ", b"# UNIT ")


class Metrics(Collector):
    """The metrics of one daemon, with the clocks of its history."""

    def __init__(self, status: Status, history: History) -> None:
        self._status, self._history = status, history
        self._wall, self._clock = history.wall, history.clock
        self.counters = Counters(history.clock, status.item)  # what has happened, told of each step
        self._loaded_at = history.wall()
        self._load_succeeded = True
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def reloaded(self, ok: bool) -> None:
        """Note a reload. ``ok``: its configuration is in force, and was not refused."""
        self._load_succeeded = ok
        if ok:
            self._loaded_at = self._wall()

    def text(self, accept: str = "") -> tuple[str, Iterator[bytes]]:
        """Return the content type and the pieces of the body for a request with this Accept header.

        The form is OpenMetrics or plain text. Each piece takes a few milliseconds, and the loop does other
        work between two pieces.
        """
        encode, content_type = choose_encoder(accept)
        return content_type, self._pieces(encode)

    def _pieces(self, encode: Callable[[Collector], bytes]) -> Iterator[bytes]:
        for family in self._registry.collect():
            samples = family.samples
            for begin in range(0, max(1, len(samples)), SAMPLES_AT_ONCE):
                family.samples = samples[begin : begin + SAMPLES_AT_ONCE]
                lines = encode(_only(family)).splitlines(keepends=True)
                heads = _HEADS if begin == 0 else ()
                yield b"".join(line for line in lines if line[:1] != b"#" or line.startswith(heads))
        yield encode(_only())  # OpenMetrics has a line at its end

    def collect(self) -> Iterator[Metric]:
        """Yield all families except the library's own. The registry calls this at each scrape."""
        items, now = self._status.items(), self._clock()
        yield from of_items(items.values(), self._status.view, now)
        yield from of_semaphores(items.values(), self._status.view)
        yield of_watchdogs(items.values(), self._status.reset_in_s)
        yield from self.counters.families(items)
        yield from self._of_consul(now)
        yield from self._of_daemon()

    def _of_consul(self, now: float) -> Iterator[Metric]:
        refused = bool(self._history.why_token_refused(now))
        yield single("token_refused", "1 while Consul refuses the token (403).", refused)
        answered_at = self._history.answered_at
        at = 0.0 if answered_at is None else self._wall() - (now - answered_at)
        meaning = "When Consul's servers last answered, as Unix time; 0 before their first answer."
        yield single("consul_answered_timestamp_seconds", meaning, at)

    def _of_daemon(self) -> Iterator[Metric]:
        yield single("healthy", "1 while /healthz answers 200.", not self._status.problems())
        meaning = "1 while records cannot be copied to state_dir, so that a boot forgets them."
        yield single("copies_failing", meaning, bool(self._history.uncopied))
        meaning = "0 from a refused reload to the next successful one."
        yield single("config_reload_success", meaning, self._load_succeeded)
        meaning = "When the configuration in force was read, as Unix time."
        yield single("config_loaded_timestamp_seconds", meaning, self._loaded_at)
        build = {"version": __version__, "python": platform.python_version()}
        yield InfoMetricFamily(f"{PREFIX}_build", "The versions that run here.", value=build)


def _only(*families: Metric) -> Any:
    """Return a collector of these families and no others."""
    return SimpleNamespace(collect=lambda: families)
