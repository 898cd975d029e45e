"""Who holds, by Consul's own word, and whom Consul did not guard against a rival.

A witness looks at the store after every change. What the judges must know of the limits is found out
here: of a key, whose lock-delay a restart of the server cut short or whom an operator freed; of the
slots of a semaphore, who was taken out of the record by hand. It must never look at a supervisor.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from supervisor.core.requests import Roster
from supervisor.core.settings import LOCK_SUFFIX
from supervisor.devagent.store import NEVER, Store
from supervisor.formats import semaphore_record as rosters
from tests.models.simulation.files import KEY, PREFIX
from tests.models.simulation.trace import short

REPLAYED_S = 60.0  # a restarted server's replayed lock-delays are over by then
LOCK = PREFIX + LOCK_SUFFIX


class Witness(ABC):
    """``holders``: sessions, in Consul's order. ``unguarded``: sessions that another could follow before
    the time that they count on, within the limits that are stated."""

    def __init__(self, store: Store, note: Callable[[str], None]) -> None:
        self.holders: tuple[str, ...] = ()
        self.unguarded: set[str] = set()
        self._store = store
        self._note = note
        self._restarted_at = -NEVER

    @abstractmethod
    def look(self, now: float, *, several: bool = False) -> None:
        """Something may have changed; ``several`` times over, and nobody looked in between."""

    def freed_by_hand(self, session: str) -> None:
        """An operator is about to let another take what this session holds."""
        self.unguarded.add(session)

    def restarted(self, now: float) -> None:
        """The server has come back with its data: it may cut lock-delays short for a while."""
        self._restarted_at = now


# --- a key ---------------------------------------------------------------------------------------


class OfKey(Witness):
    """Of an election's key."""

    def __init__(self, store: Store, note: Callable[[str], None]) -> None:
        super().__init__(store, note)
        self._delays: dict[str, float] = {}
        self._guarded: tuple[str, float] = ("", -NEVER)  # the last lock that a session's end took away

    def look(self, now: float, *, several: bool = False) -> None:
        """Whose the key is."""
        entry = self._store.kv.get(KEY)
        session = entry.session if entry is not None else ""
        former = self.holders[0] if self.holders else ""
        if session == former:
            return
        self.holders = (session,) if session else ()
        if former and self._store.sessions.find(former) is None:
            self._guarded = (former, now + self._delays[former])
        if session:
            self._taken(session, now)
        held = f"is held by {short(session)}" if session else "is free"
        self._note(f"the key {held}")

    def _taken(self, session: str, now: float) -> None:
        found = self._store.sessions.find(session)
        assert found is not None, "a lock of a session that does not exist"
        self._delays[session] = found.lock_delay_s
        former, until = self._guarded
        if now < until:
            assert now - self._restarted_at <= REPLAYED_S + found.lock_delay_s, "a lock-delay cut short"
            self.unguarded.add(former)


# --- slots ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Taking:
    """A session has come to a slot, one of ``named``. ``limit``: as Consul's record said then;
    ``index``: the record's, or the least that it can have been."""

    session: str
    index: int
    limit: int
    named: int


@dataclass(frozen=True, slots=True)
class Pruning:
    """Somebody has taken the slot of one that had vanished ``after_s`` before; its contender key asked
    for ``guard_s``."""

    session: str
    after_s: float
    guard_s: float


class OfSlots(Witness):
    """Of a semaphore's record and contender keys. ``takings`` and ``prunings`` in their order;
    ``last_index``: the newest of the record that named a session."""

    def __init__(self, store: Store, note: Callable[[str], None]) -> None:
        super().__init__(store, note)
        self.takings: list[Taking] = []
        self.prunings: list[Pruning] = []
        self.last_index: dict[str, int] = {}
        self._index = 0
        self._alive: dict[str, float] = {}  # contender keys, and for how long others are to wait for each
        self._vanished: dict[str, tuple[float, float]] = {}  # when, and that length
        self._orphans: tuple[str, ...] = ()  # named by a record that is gone
        self._orphaned_at = -NEVER

    @property
    def roster(self) -> Roster | None:
        """The record as it is."""
        entry = self._store.kv.get(LOCK)
        return None if entry is None else rosters.decoded(entry.value)

    @property
    def index(self) -> int:
        """The record's ModifyIndex."""
        entry = self._store.kv.get(LOCK)
        return 0 if entry is None else entry.modify_index

    def look(self, now: float, *, several: bool = False) -> None:
        """Who is named, who has vanished, and whose slot was taken."""
        left = self._look_at_contenders(now)
        index, roster = self.index, self.roster
        if index == self._index:
            return
        least, self._index = self._index + 1 if several else index, index
        former = self.holders
        self.holders = () if roster is None else roster.holders
        self.last_index |= dict.fromkeys(self.holders, index)
        if roster is None:
            self._orphans, self._orphaned_at = former, now
            self._note("the record is gone")
            return
        came = [session for session in self.holders if session not in former]
        if came and not several:
            self._judge_record(now)
            self._pruned([session for session in former if session not in self.holders], left, now)
        self._orphans = ()
        assert roster.limit is not None, "a record without a limit"
        named = len(self.holders)
        self.takings += [Taking(session, least, roster.limit, named) for session in came]
        self._note(f"slots: {' '.join(map(short, self.holders)) or 'none taken'}, limit {roster.limit}")

    def _look_at_contenders(self, now: float) -> tuple[str, ...]:
        """Those that have vanished just now."""
        entries = self._store.kv.tree(f"{PREFIX}/")
        named = ((entry.key.removeprefix(f"{PREFIX}/"), entry) for entry in entries)
        alive = {
            name: rosters.prune_delay_s(entry.value) or 0.0
            for name, entry in named
            if name == entry.session != ""
        }
        left = tuple(name for name in self._alive if name not in alive)
        self._vanished |= {name: (now, self._alive[name]) for name in left}
        self._alive = alive
        return left

    def _judge_record(self, now: float) -> None:
        """It was deleted, and is there again. Of an orphan without a contender key nothing was left that
        could tell others to wait."""
        for session in self._orphans:
            if session in self.holders:
                continue
            if session in self._alive:
                self.prunings.append(Pruning(session, now - self._orphaned_at, self._alive[session]))
            else:
                self.unguarded.add(session)

    def _pruned(self, gone: list[str], left: tuple[str, ...], now: float) -> None:
        for session in gone:
            assert session not in left, "a slot is taken while its holder leaves"
            since, guard_s = self._vanished.get(session, (now, self._alive.get(session, 0.0)))
            self.prunings.append(Pruning(session, now - since, guard_s))
