"""Churn and rest in turn for the length of a soak, and looks at both supervisors."""

import time

from tests.support.patience import patient
from tests.system.soak.churn import Churn
from tests.system.soak.judge import Series, as_at_first, at_most, flat, the_same
from tests.system.soak.look import largest_file_kb, least_files, look
from tests.system.soak.pair import ELECTIONS, KEYS, RUNS, Pair

CHURN_S = 20.0  # between two rests
LOOK_EVERY_S = 1.0  # at least: an act is not interrupted
REAPED_WITHIN_S = 10.0  # a child that has ended is waited for at once, except on a busy machine
# The history of each election (its last 20 transitions with their hooks) is not full after some minutes, so
# some 30 KB more for each of a hundred elections is no leak. In an hour it is full long before the end.
RSS_SLACK_MB = 4.0
# Connections that were opened for a burst stay open for a minute.
SOCKETS_SLACK = 100.0
# A record grows to 128 KiB before its file is written anew; 16 KiB are reserved for the end, 4 for a line.
RECORD_KB_MAX = 128.0 + 16.0 + 4.0


class Soak:
    """One soak; ``rests``: how often everything was at rest and counted."""

    def __init__(self, pair: Pair, seed: int) -> None:
        self.churn = Churn(pair, seed)
        self.rests = 0
        self._pair = pair
        self._dead_since: dict[int, float] = {}
        self._rss = Series("memory, MB", flat(RSS_SLACK_MB))
        self._sockets = Series("sockets", flat(SOCKETS_SLACK))
        self._record = Series("largest record, KiB", at_most(RECORD_KB_MAX))
        self._threads = Series("threads", at_most(1))
        self._unreaped = Series("dead for 10 s", at_most(0))
        self._files = Series("rest: files open", as_at_first())
        self._children = Series("rest: children", the_same(RUNS))
        self._records = Series("rest: records", the_same(ELECTIONS))
        self._sessions = Series("rest: sessions", the_same(2 * ELECTIONS))
        self._keys = Series("rest: keys", the_same(ELECTIONS))

    @property
    def series(self) -> tuple[Series, ...]:
        """All figures, with those that are counted at rest."""
        always = (self._rss, self._sockets, self._record, self._threads, self._unreaped)
        resting = (self._files, self._children, self._records)
        return (*always, *resting, self._sessions, self._keys)

    def last_for(self, seconds: float) -> None:
        """Churn and rest in turn for this time; end with a rest."""
        end_at = time.monotonic() + seconds
        self._rest()
        while time.monotonic() < end_at:
            self._disturb(min(end_at, time.monotonic() + CHURN_S))
            self._rest()

    def _disturb(self, until_at: float) -> None:
        look_at = 0.0
        while time.monotonic() < until_at:
            if time.monotonic() >= look_at:
                self._look()
                look_at = time.monotonic() + LOOK_EVERY_S
            self.churn.act()

    def _look(self) -> None:
        """Look at the first supervisor in the midst of its work."""
        seen = look(self._pair.living.pid)
        self._rss.values.append(seen.rss_mb)
        self._sockets.values.append(seen.sockets)
        self._record.values.append(largest_file_kb(self._pair.living.records))
        self._threads.values.append(seen.threads)
        now = time.monotonic()
        self._dead_since = {child: self._dead_since.get(child, now) for child in seen.dead}
        within_s = patient(REAPED_WITHIN_S)
        self._unreaped.values.append(sum(now - at > within_s for at in self._dead_since.values()))

    def _rest(self) -> None:
        seen = self._pair.rest()
        self._look()
        self._files.values.append(least_files(self._pair.living.pid))
        self._children.values.append(len(seen.children))
        self._records.values.append(len(list(self._pair.living.records.glob("*.journal"))))
        self._sessions.values.append(len(self._pair.agent.sessions()))
        self._keys.values.append(len(self._pair.agent.kv_list(KEYS)))
        self.rests += 1
