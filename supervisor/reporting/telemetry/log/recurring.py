"""Recurring failures, logged as one failure of this node, with a begin and an end.

A Consul agent that is silent fails every exchange of every item, each second. The log has one line when that
begins, and one a little later that names the items. Then the log has at most one line in REPEAT_S when more
items or reasons are concerned, at least one in REMIND_S, and one at the end. A failure that begins and ends
in turns makes no more lines.

When the last item that still fails ends, nothing shows whether the failure is over. So the failure stays
open, without lines. The next success of an item that it has concerned ends it, if the request was sent after
the newest failure. If any item fails instead, the failure goes on. If neither happens within FORGET_S of the
newest failure, it is forgotten without a line. So neither a stop nor the removal of the only item logs that
Consul answers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from supervisor.reporting.telemetry.facts import FAILURES
from supervisor.reporting.telemetry.names import Level

SETTLE_S = 2.0  # a reconnection and the reads after it take less
GATHER_S = 5.0  # after the first line: by then every item has met the same failure
REPEAT_S = 60.0  # between lines of one failure that spreads or flaps
REMIND_S = 600.0  # between lines of one failure that does not change
DROPS_FORGET_S = 900.0  # a write may follow another one only after a third of a long TTL
FORGET_S = 90.0  # an exchange is repeated long before (a watch after its wait of 25 s)
NAMES_MAX = 5  # in a line; `status` shows them all
REASONS_MAX = 4  # that count as news, because some reasons carry a number that changes each time


@dataclass(frozen=True, slots=True)
class Kind:
    """The lines of one kind of failure."""

    level: Level
    over: str  # the name of the line at its end
    # The seconds after which an exchange that has not failed again counts as recovered, because not
    # everything that failed is tried again. None: it never does.
    forget_s: float | None = None
    recovers: bool = True  # whether a success ends it. False: a success follows each failure


KINDS: dict[str, Kind] = {
    **{each.line: Kind(each.level, "consul-answers", FORGET_S) for each in FAILURES.values()},
    "consul-drops": Kind("warning", "consul-answers", DROPS_FORGET_S, recovers=False),
    "outage": Kind("warning", "outage-over"),
    "check-failed": Kind("warning", "check-recovered"),
    "journal-failed": Kind("error", "journal-recovered"),
    "copies-failed": Kind("warning", "copies-recovered"),
    "events-failed": Kind("warning", "events-recovered"),
    "history-failed": Kind("warning", "history-recovered"),
    "orders-failed": Kind("warning", "orders-recovered"),
}


@dataclass(slots=True)
class _Failure:
    """One kind of failure, from its begin to its end and to the next begin."""

    # When each pair of an item and a kind of request failed last. Empty: no pair fails now.
    failing: dict[tuple[str, str], float] = field(default_factory=dict)
    began_at: float = 0.0  # when it began
    failed_at: float = 0.0  # when anything failed last, also an item that has been removed since
    items: set[str] = field(default_factory=set)  # all items that have failed since it began
    reasons: set[str] = field(default_factory=set)  # the first REASONS_MAX reasons since it began
    why: str = ""  # the newest reason
    news: bool = False  # whether an item or a reason has been added since the last line
    failures: int = 0  # how often anything has failed since it began
    lines: int = 0  # the number of its lines. 0: it has none yet
    logged_at: float = float("-inf")  # when its last line was written, also after its end
    unlogged: int = 0  # the number of failures since that line, also after its end

    def begin(self, now: float) -> None:
        self.began_at, self.failures, self.lines = now, 0, 0
        self.items, self.reasons = set(), set()

    def failed(self, about: tuple[str, str], why: str, now: float) -> None:
        if why not in self.reasons and len(self.reasons) < REASONS_MAX:
            self.reasons.add(why)
            self.news = True
        self.news = self.news or about not in self.failing
        self.failing[about] = self.failed_at = now
        self.items.add(about[0])
        self.why = why
        self.failures += 1
        self.unlogged += 1

    def is_disproved(self, item: str, at: float) -> bool:
        """Return whether a success of this item, in a request of this time, shows the end of the failure."""
        return item in self.items and at >= self.failed_at

    def is_due(self, now: float) -> bool:
        """Return whether a line is due, the first one or a further one."""
        waited_s = now - self.logged_at
        if not self.failing or not self.lines:
            return bool(self.failing) and waited_s >= REPEAT_S
        pause_s = GATHER_S if self.lines == 1 else REPEAT_S
        return waited_s >= (pause_s if self.news else REMIND_S)

    def line_fields(self, now: float) -> dict[str, Any]:
        items = sorted({item for item, _ in self.failing})
        fields = _item_fields(items) | {
            "kinds": sorted({what for _, what in self.failing if what}),
            "why": self.why,
            "lasts_s": now - self.began_at if self.lines else None,
            "times_unsaid": self.unlogged - 1 or None,
        }
        self.logged_at, self.unlogged, self.news, self.lines = now, 0, False, self.lines + 1
        return fields


class RecurringFailures:
    """All kinds of recurring failures. ``write`` writes a line; ``clock`` returns seconds."""

    def __init__(
        self, write: Callable[[Level, str, dict[str, Any]], None], clock: Callable[[], float]
    ) -> None:
        self._write = write
        self._clock = clock
        self._failures = {name: _Failure() for name in KINDS}
        self.going_on: set[str] = set()  # the kinds with a failure now, even if its last item was removed

    def failed(self, name: str, item: str, why: str, what: str = "") -> None:
        """Note a failure, the first or a further one. ``what`` is the kind of request, if there is one."""
        now, failure = self._clock(), self._failures[name]
        if name not in self.going_on:
            self.going_on.add(name)
            failure.begin(now)
        failure.failed((item, what), why, now)
        if failure.is_due(now):
            self._log(name, now)

    def noted(self, name: str, item: str, why_not: str) -> None:
        """Note a failure, or with a blank ``why_not`` that something did not fail."""
        if why_not:
            self.failed(name, item, why_not)
        else:
            self.recovered(name, item)

    def recovered(self, name: str, item: str, what: str = "", *, since: float | None = None) -> None:
        """Note that something did not fail. ``since``: when its request was sent, which counts. None: now."""
        if name not in self.going_on or not KINDS[name].recovers:
            return
        failure, at = self._failures[name], self._clock() if since is None else since
        was_failing = failure.failing.pop((item, what), None) is not None
        if not failure.failing and (was_failing or failure.is_disproved(item, at)):
            self._end(name, at)

    def forget_item(self, item: str) -> None:
        """Forget an item that is not tried any more, which ends no failure."""
        for failure in self._failures.values():
            for about in [about for about in failure.failing if about[0] == item]:
                del failure.failing[about]

    def tick(self) -> None:
        now = self._clock()
        for name, failure in self._failures.items():
            if failure.failing:
                self._forget(name, now)
            elif now - failure.failed_at > (KINDS[name].forget_s or FORGET_S):
                self.going_on.discard(name)
            if failure.is_due(now):
                self._log(name, now)

    def _forget(self, name: str, now: float) -> None:
        forget_s, failing = KINDS[name].forget_s, self._failures[name].failing
        for about in [about for about, at in failing.items() if forget_s is not None and now - at > forget_s]:
            del failing[about]
        if not failing:
            self._end(name, now if KINDS[name].recovers else self._failures[name].failed_at)

    def _log(self, name: str, now: float) -> None:
        self._write(KINDS[name].level, name, self._failures[name].line_fields(now))

    def _end(self, name: str, at: float) -> None:
        """End a failure, and write that. A failure that had no line is counted in the next line."""
        failure = self._failures[name]
        self.going_on.discard(name)
        if not failure.lines:
            return
        lasted_s = max(0.0, at - failure.began_at)
        fields = {"after": name, "duration_s": lasted_s, "failures": failure.failures}
        self._write("info", KINDS[name].over, _item_fields(sorted(failure.items)) | fields)
        failure.lines = failure.unlogged = 0


def _item_fields(items: list[str]) -> dict[str, Any]:
    """Return the fields that name the items: one by its name, several by their number and the first names."""
    if len(items) == 1:
        return {"item": items[0]}
    return {"items": len(items), "names": items[:NAMES_MAX]}


class Notices:
    """The newest notice of each item, logged once although it comes and goes.

    Consul's view may be incomplete for a moment, as after a reconnection. So a notice that ends and comes
    back unchanged within SETTLE_S counts as one.
    """

    def __init__(
        self, write: Callable[[Level, str, dict[str, Any]], None], clock: Callable[[], float]
    ) -> None:
        self._write = write
        self._clock = clock
        self._logged: dict[str, str] = {}
        self._over_since: dict[str, float] = {}

    def noticed(self, item: str, notice: str) -> None:
        """Take the notice of this item. Blank: there is none any more."""
        if not notice:
            if item in self._logged:
                self._over_since[item] = self._clock()
            return
        self._over_since.pop(item, None)
        if self._logged.get(item) != notice:
            self._logged[item] = notice
            self._write("warning", "notice", {"item": item, "why": notice})

    def tick(self) -> None:
        """Log the end of each notice that has been over for long enough."""
        now = self._clock()
        for item in [item for item, since in self._over_since.items() if now - since >= SETTLE_S]:
            self._end(item)

    def forget_item(self, item: str) -> None:
        """Forget an item that has ended. If its notice was over, log the end."""
        if item in self._over_since:
            self._end(item)
        self._logged.pop(item, None)

    def _end(self, item: str) -> None:
        del self._over_since[item]
        del self._logged[item]
        self._write("info", "notice-over", {"item": item})
