"""Which node acts, by what Consul and the recorders show.

A tenure begins when Consul first shows a session of the node as holder. Its node acts from the begin of the
first hook until every hook of on_lose has ended. An item may lack on_lose, or both on_acquire and run. There
the node acts as long as Consul shows it or a hook runs.
"""

import time
from collections import Counter
from dataclasses import dataclass, field

from supervisor.core.settings import ItemSettings
from supervisor.rehearsal.drill.recorders import RUN, RecordedRun

KNOWN_S = 0.5  # for a supervisor to learn that it holds, if the item has no hook that shows this
OF_TENURE = ("on_acquire", RUN, "on_lose", "on_lose_failure")


@dataclass(slots=True)
class ObservedTenure:
    """One tenure of one node."""

    item: ItemSettings
    node: str
    session: str
    since: float  # when Consul first showed the session as holder
    freed_at: float | None = None  # when Consul no longer showed it. None: Consul still does
    is_dead: bool = False  # whether the supervisor was killed, and has not come back to this tenure
    attempts: list[RecordedRun] = field(default_factory=list)  # by their begin

    def of(self, *lists: str) -> list[RecordedRun]:
        return [attempt for attempt in self.attempts if attempt.list in lists]

    @property
    def is_running(self) -> bool:
        return any(attempt.is_running for attempt in self.attempts)

    @property
    def has_begun(self) -> bool:
        return bool(self.of("on_acquire", RUN))

    @property
    def is_held(self) -> bool:
        return self.freed_at is None

    @property
    def holds(self) -> bool:
        """Whether the node holds: on_acquire has succeeded, run runs, and on_lose has not begun."""
        done = {attempt.place for attempt in self.of("on_acquire") if attempt.succeeded}
        runs = self.item.run is None or any(attempt.is_running for attempt in self.of(RUN))
        runs = runs and (_begins_with_hook(self.item) or time.monotonic() > self.since + KNOWN_S)
        acquired = len(done) == len(self.item.on_acquire) and runs
        return acquired and self.is_held and not self.is_dead and not self.of("on_lose", "on_lose_failure")

    @property
    def has_lost(self) -> bool:
        """Whether every hook of on_lose has ended, and nothing of the tenure runs."""
        ended = {attempt.place for attempt in self.of("on_lose") if not attempt.is_running}
        return len(ended) == len(self.item.on_lose) and not self.is_running

    @property
    def is_stuck(self) -> bool:
        """Whether on_lose has failed in all its attempts, and Consul still shows the node as holder."""
        done = {one.place for one in self.of("on_lose") if one.succeeded}
        failed = Counter(one.place for one in self.of("on_lose") if one.place not in done)
        hooks = enumerate(self.item.on_lose)
        spent = any(failed[f"on_lose[{position}]"] > hook.retries for position, hook in hooks)
        return spent and self.has_lost and self.is_held

    @property
    def acts(self) -> bool:
        if self.is_dead or (_begins_with_hook(self.item) and not self.has_begun):
            return False
        if _begins_with_hook(self.item) and self.item.on_lose:
            return not self.has_lost
        return self.is_held or self.is_running

    @property
    def lost_from(self) -> float | None:
        """When the first part of losing began or ended: on_lose, or the end of run. None: nothing yet."""
        ends = [attempt.ended_at for attempt in self.of(RUN) if attempt.ended_at is not None]
        begins = [attempt.began_at for attempt in self.of("on_lose")]
        return min([*ends, *begins], default=None)

    @property
    def lost_at(self) -> float | None:
        """When the last part of losing ended. None: there is none, or it has not ended."""
        ends = [attempt.ended_at for attempt in self.of(RUN, "on_lose", "on_lose_failure")]
        if not ends or not self.has_lost:
            return None
        return max(end for end in ends if end is not None)


def _begins_with_hook(item: ItemSettings) -> bool:
    return bool(item.on_acquire) or item.run is not None
