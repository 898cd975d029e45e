"""What goes wrong again and again, told as what it is: one trouble of this node, with a beginning and an end.

An agent that is silent fails every exchange of every item, each second. That is one line when it begins,
one a little later that says whom it concerns, then one whenever more is concerned, at most one in REPEAT_S,
and at least one in REMIND_S; and one when it is over. What begins and ends in turns is no louder. This
module decides what is said and when, never how, and forgets nothing that still goes on.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from supervisor.telemetry.log.names import Level, Name

GATHER_S = 5.0  # after the first line: by then every item has met the same trouble
REPEAT_S = 60.0  # between lines of one trouble that spreads or flaps
REMIND_S = 600.0  # between lines of one that stays as it is
FORGET_S = 90.0  # an exchange that fails is repeated long before (a watch after its wait of 30 s)
LOOK_EVERY_S = 1.0
NAMES_MAX = 5  # in a line; `status` shows them all
REASONS_MAX = 4  # that are news: some carry a number that changes each time


@dataclass(frozen=True, slots=True)
class Kind:
    """How one kind of trouble is told. ``over``: the name of the line at its end. ``forget_s``: what has
    not failed again for so long is over, for not everything that failed is tried again."""

    level: Level
    over: Name
    forget_s: float | None = None


KINDS: dict[Name, Kind] = {
    "consul-silent": Kind("warning", "consul-answers", FORGET_S),
    "consul-fails": Kind("warning", "consul-answers", FORGET_S),
    "consul-throttled": Kind("warning", "consul-answers", FORGET_S),
    "consul-denied": Kind("error", "consul-answers", FORGET_S),
    "consul-refused": Kind("error", "consul-answers", FORGET_S),
    "not-eligible": Kind("warning", "consul-answers", FORGET_S),
    "session-altered": Kind("error", "consul-answers", FORGET_S),
    "check-failed": Kind("warning", "check-recovered"),
    "journal-failed": Kind("error", "journal-recovered"),
}


@dataclass(slots=True)
class _Trouble:
    """``failing``: (item, what of it) -> when it failed last; empty: no trouble. ``said_at`` outlives the
    end of a trouble, and so does ``unsaid``, the failures since then; ``lines`` is how often it was said."""

    failing: dict[tuple[str, str], float] = field(default_factory=dict)
    began_at: float = 0.0
    items: set[str] = field(default_factory=set)
    reasons: set[str] = field(default_factory=set)
    why: str = ""
    news: bool = False
    failures: int = 0
    lines: int = 0
    said_at: float = float("-inf")
    unsaid: int = 0

    def failed(self, about: tuple[str, str], why: str, now: float) -> None:
        if not self.failing:
            self.began_at, self.failures, self.lines = now, 0, 0
            self.items, self.reasons = set(), set()
        if why not in self.reasons and len(self.reasons) < REASONS_MAX:
            self.reasons.add(why)
            self.news = True
        self.news = self.news or about not in self.failing
        self.failing[about] = now
        self.items.add(about[0])
        self.why = why
        self.failures += 1
        self.unsaid += 1

    def is_due(self, now: float) -> bool:
        """Whether it is to be said (again)."""
        waited_s = now - self.said_at
        if not self.failing or not self.lines:
            return bool(self.failing) and waited_s >= REPEAT_S
        pause_s = GATHER_S if self.lines == 1 else REPEAT_S
        return waited_s >= (pause_s if self.news else REMIND_S)

    def as_told(self, now: float) -> dict[str, Any]:
        """The fields of a line, which is said now."""
        items = sorted({item for item, _ in self.failing})
        fields = _whom(items) | {
            "kinds": sorted({what for _, what in self.failing if what}),
            "why": self.why,
            "lasts_s": round(now - self.began_at, 3) if self.lines else None,
            "times_unsaid": self.unsaid - 1 or None,
        }
        self.said_at, self.unsaid, self.news, self.lines = now, 0, False, self.lines + 1
        return fields


class RecurringFailures:
    """All kinds of trouble. ``say`` writes a line; ``clock`` in seconds."""

    def __init__(
        self, say: Callable[[Level, Name, dict[str, Any]], None], clock: Callable[[], float]
    ) -> None:
        self._say = say
        self._clock = clock
        self._troubles = {name: _Trouble() for name in KINDS}
        self._look_at = float("-inf")

    def failed(self, name: Name, item: str, why: str, what: str = "") -> None:
        """It failed, once more or for the first time. ``what``: of several things of this item."""
        now, trouble = self._clock(), self._troubles[name]
        trouble.failed((item, what), why, now)
        if trouble.is_due(now):
            self._tell(name, now)

    def recovered(self, name: Name, item: str, what: str = "", *, since: float | None = None) -> None:
        """It did not fail this time; ``since``: nor at that time, when its answer was asked for."""
        trouble = self._troubles[name]
        if trouble.failing.pop((item, what), None) is not None:
            self._end_if_over(name, self._clock() if since is None else since)

    def forget_item(self, item: str) -> None:
        """Nothing of this item is tried any more; of what nobody else suffers from no end is known."""
        for trouble in self._troubles.values():
            for about in [about for about in trouble.failing if about[0] == item]:
                del trouble.failing[about]

    def tick(self) -> None:
        """Time has passed."""
        now = self._clock()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY_S
        for name, trouble in self._troubles.items():
            if trouble.failing:
                self._forget(name, now)
            if trouble.is_due(now):
                self._tell(name, now)

    def _forget(self, name: Name, now: float) -> None:
        forget_s, failing = KINDS[name].forget_s, self._troubles[name].failing
        for about in [about for about, at in failing.items() if forget_s is not None and now - at > forget_s]:
            del failing[about]
        self._end_if_over(name, now)

    def _tell(self, name: Name, now: float) -> None:
        self._say(KINDS[name].level, name, self._troubles[name].as_told(now))

    def _end_if_over(self, name: Name, at: float) -> None:
        """The end of what was said is said; what came and went unsaid is counted in the next line."""
        trouble = self._troubles[name]
        if trouble.failing or not trouble.lines:
            return
        duration_s = round(max(0.0, at - trouble.began_at), 3)
        fields = {"after": name, "duration_s": duration_s, "failures": trouble.failures}
        self._say("info", KINDS[name].over, _whom(sorted(trouble.items)) | fields)
        trouble.lines = trouble.unsaid = 0


def _whom(items: list[str]) -> dict[str, Any]:
    """One by its name, several by their number and the first of their names."""
    if len(items) == 1:
        return {"item": items[0]}
    return {"items": len(items), "names": items[:NAMES_MAX]}
