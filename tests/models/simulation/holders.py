"""Who holds according to Consul's store, and which holders Consul did not guard against a rival.

A witness looks at the store after every change, and never at a supervisor. It finds the cases in which the
stated limits of the promise apply. For a key: a restart of the server cut its lock-delay short, or an
operator freed it. For the slots of a semaphore: an operator removed a holder from the record.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from supervisor.config.formats import slot_record as rosters
from supervisor.core.requests import SlotRecord
from supervisor.core.settings import LOCK_SUFFIX
from supervisor.rehearsal.devagent.store import NEVER, Store
from tests.models.simulation.files import KEY, PREFIX
from tests.models.simulation.trace import short

REPLAYED_S = 60.0  # by then the lock-delays that a restarted server replays are over
LOCK = PREFIX + LOCK_SUFFIX


class Witness(ABC):
    """The holders of one item in Consul's store.

    holders: their sessions, in Consul's order.
    unguarded: sessions whose lock another session could get too early, within the limits that are stated.
    """

    def __init__(self, store: Store, note: Callable[[str], None]) -> None:
        self.holders: tuple[str, ...] = ()
        self.unguarded: set[str] = set()
        self._store = store
        self._note = note
        self._restarted_at = -NEVER

    @abstractmethod
    def look(self, now: float, *, several: bool = False) -> None:
        """Look at the store after a change.

        several: there were several changes since the last look.
        """

    def freed_by_hand(self, session: str) -> None:
        """Record that an operator is about to free the lock of this session."""
        self.unguarded.add(session)

    def restarted(self, now: float) -> None:
        """Record that the server has come back with its data and may cut lock-delays short for a while."""
        self._restarted_at = now


# --- a key ---------------------------------------------------------------------------------------


class OfKey(Witness):
    """The witness of an election's key."""

    def __init__(self, store: Store, note: Callable[[str], None]) -> None:
        super().__init__(store, note)
        self._delays: dict[str, float] = {}
        self._guarded: tuple[str, float] = ("", -NEVER)  # the last lock that a session's end took away

    def look(self, now: float, *, several: bool = False) -> None:
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
    """A session that has got a slot.

    session: the session.
    index: the record's index then, or the least that it can have been.
    limit: the limit in Consul's record then.
    named: how many sessions the record names.
    """

    session: str
    index: int
    limit: int
    named: int


@dataclass(frozen=True, slots=True)
class Pruning:
    """A slot that was taken from a vanished session.

    session: the vanished session.
    after_s: the time since it had vanished.
    lockout_s: the delay in its contender key.
    """

    session: str
    after_s: float
    lockout_s: float


class OfSlots(Witness):
    """The witness of a semaphore's record and contender keys.

    takings: the slots that were taken, in their order.
    prunings: the slots that were taken from vanished sessions, in their order.
    last_index: by session, the newest index of the record that named it.
    """

    def __init__(self, store: Store, note: Callable[[str], None]) -> None:
        super().__init__(store, note)
        self.takings: list[Taking] = []
        self.prunings: list[Pruning] = []
        self.last_index: dict[str, int] = {}
        self._index = 0
        self._alive: dict[str, float] = {}  # by contender key, how long its slot is to be left alone
        self._vanished: dict[str, tuple[float, float]] = {}  # by session: when it vanished, its delay
        self._orphans: tuple[str, ...] = ()  # sessions that a deleted record had named
        self._orphaned_at = -NEVER

    @property
    def slot_record(self) -> SlotRecord | None:
        entry = self._store.kv.get(LOCK)
        return None if entry is None else rosters.decoded(entry.value)

    @property
    def index(self) -> int:
        """The ModifyIndex of the record."""
        entry = self._store.kv.get(LOCK)
        return 0 if entry is None else entry.modify_index

    def look(self, now: float, *, several: bool = False) -> None:
        """Find the named sessions, the vanished ones, and the slots that were taken."""
        left = self._look_at_contenders(now)
        index, slot_record = self.index, self.slot_record
        if index == self._index:
            return
        least, self._index = self._index + 1 if several else index, index
        former = self.holders
        self.holders = () if slot_record is None else slot_record.holders
        self.last_index |= dict.fromkeys(self.holders, index)
        if slot_record is None:
            self._orphans, self._orphaned_at = former, now
            self._note("the record is gone")
            return
        came = [session for session in self.holders if session not in former]
        if came and not several:
            self._judge_record(now)
            self._pruned([session for session in former if session not in self.holders], left, now)
        self._orphans = ()
        assert slot_record.limit is not None, "a record without a limit"
        named = len(self.holders)
        self.takings += [Taking(session, least, slot_record.limit, named) for session in came]
        self._note(f"slots: {' '.join(map(short, self.holders)) or 'none taken'}, limit {slot_record.limit}")

    def _look_at_contenders(self, now: float) -> tuple[str, ...]:
        """Find the contender keys; return those that have vanished since the last look."""
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
        """Judge a record that was deleted and made again.

        An orphan without a contender key had nothing left that would make other contenders wait.
        """
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
            since, lockout_s = self._vanished.get(session, (now, self._alive.get(session, 0.0)))
            self.prunings.append(Pruning(session, now - since, lockout_s))
