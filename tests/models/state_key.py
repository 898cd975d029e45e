"""The key of a state: equal keys are states that no rule of the core can distinguish.

The key leaves out values that only hooks and logs get. It counts times from now, forgets times that are older
than any rule looks back, and names sessions by the order in which they appear. Every field that is not named
here is part of the key, so a new field can make the walks longer but cannot hide a state.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from math import ceil, inf
from typing import Any

from supervisor.core import actions as a
from supervisor.core import requests as r
from supervisor.core.actions import Record
from supervisor.core.beside.candidate_check import Health
from supervisor.core.beside.on_change import Change
from supervisor.core.beside.service import LOOK_TTLS, TTL_INTERVALS, Service
from supervisor.core.contender.state import Contender
from supervisor.core.lock import election as keys
from supervisor.core.lock import queue, semaphore, slots
from supervisor.core.machines import guard as guards
from supervisor.core.machines.guard import Guard
from supervisor.core.machines.lane import Lane
from supervisor.core.machines.record import RecordKeeper
from supervisor.core.machines.sequence import Sequence
from supervisor.core.machines.session import Session
from supervisor.core.machines.tenure import OUR_OWN_MAKING, Tenure
from supervisor.core.outcomes import ContenderKey, KeyView, LockKey, SlotsView, TenureShown
from supervisor.core.settings import ItemSettings
from supervisor.core.tenure_record import TenureRecord

Key = tuple[Any, ...]

GRID_S = 1.0  # events happen at whole multiples only, so a due time of 0.5 is a due time of 1
FREE_NEWS_OLD_S = 1.0
REPAIR_SEEN_S = 2.0  # a minute would only make the walks longer


class Naming:
    """One election seen from ``now``; it gives the sessions of this process their canonical names.

    indexes: every index of Consul that was met; only the order of all of them counts.
    """

    def __init__(self, election: Contender, now: float) -> None:
        self.indexes: list[int] = []
        self.now = now
        self.settings = election.settings
        self.lease = election.lease
        self.tenure = election.tenure
        self.departing = election.departing
        self.over_s = 2 * (self.lease.ttl_s or 0.0) + self.lease.lock_delay_s
        lose_side = (*self.settings.on_lose, *self.settings.on_lose_failure)
        self.retries = any(hook.retries for hook in lose_side) and election.role is not a.Role.STUCK
        self.contact_matters = self.tenure is None or self.tenure.believes or self.retries
        self._sessions: dict[str, int | str] = {"": "", "rival": "rival"}

    def session(self, name: str) -> int | str:
        """Return the canonical name of a session."""
        return self._sessions.setdefault(name, len(self._sessions))

    def index(self, value: int) -> int | None:
        """Return an index of Consul; a model in which indexes grow counts their order instead."""
        return value

    def due(self, at: float) -> float:
        """Return a due time that is only ever compared with the clock."""
        return (
            at if at == inf else float(max(0, ceil(round((at - self.now) / GRID_S, 6)))) if at > -inf else 0.0
        )

    def age(self, at: float, oldest_s: float) -> float:
        """Return the age of a time in the past; it counts until it is older than ``oldest_s``."""
        if at in (inf, -inf):
            return at
        since = round(at - self.now, 6)
        return since if since >= -oldest_s else -inf


class OwnNames(Naming):
    """The naming of a model that has few names for sessions, and uses them again."""

    def session(self, name: str) -> str:
        return name


def key_of(election: Contender, now: float, *extra: Any) -> Key:
    """Return a key that is equal for two elections (each at its own time) that no event can make differ."""
    naming = Naming(election, now)
    return (part(election, naming), extra)


ATOMS: set[type] = {type(None), bool, int, float, bytes, str}  # kinds that are their own part; more are found


def part(value: Any, naming: Naming) -> Any:
    """Return what counts of the value. Most of a search is spent here, so atoms cost no call."""
    kind = type(value)
    if kind in ATOMS:
        return value
    if isinstance(value, int | float | str | Enum):
        ATOMS.add(kind)
        return value
    if isinstance(value, tuple):
        return tuple([each if type(each) in ATOMS else part(each, naming) for each in value])
    parts = [kind.__name__] if isinstance(value, r.Request) else []
    for name, how in _plan(kind):  # type: ignore[arg-type]  # mypy: a class of anything were not hashable
        each = getattr(value, name)
        if how is not None:
            parts.append(how(each, value, naming))
        else:
            parts.append(each if type(each) in ATOMS else part(each, naming))
    return tuple(parts)


How = Callable[[Any, Any, Naming], Any]


@cache
def _plan(kind: type) -> tuple[tuple[str, How | None], ...]:
    """Return the fields that count, and how; None: as they are."""
    assert is_dataclass(kind), kind
    plan = [(field.name, _HOW.get((kind, field.name))) for field in fields(kind)]
    if issubclass(kind, r.Request):
        plan = [(name, _REQUEST.get(name)) for name, _ in plan]
    return tuple((name, how) for name, how in plan if how is not _left_out)


def _left_out(value: Any, owner: Any, naming: Naming) -> None:
    raise AssertionError("not part of the key")


def _session(value: str, owner: Any, naming: Naming) -> Any:
    return naming.session(value)


def _due(value: float, owner: Any, naming: Naming) -> float:
    return naming.due(value)


def _exact_due(value: float, owner: Any, naming: Naming) -> float:
    return naming.age(value, 0.0)


def _contact(value: float, owner: Tenure, naming: Naming) -> float:
    """Return the contact.

    After belief only retries need it, and these must end before a rival's time.
    """
    if not naming.contact_matters:
        return 0.0
    return naming.age(value, naming.lease.lock_delay_s)


def _taken_at(value: float | None, owner: Tenure, naming: Naming) -> float | None:
    if value is None or not naming.retries:
        return value and 0.0
    return naming.age(value, 0.0)


def _asked_at(value: float, owner: r.Request, naming: Naming) -> float:
    """Return the time of a request up to its deadline; for a watch, only its possible part of the contact."""
    if isinstance(owner, r.WatchTenure) and owner.wait_s:
        return 0.0
    if not isinstance(owner, r.WatchKey | r.WatchSlots):
        return naming.age(value, inf)
    if not owner.consistent or not naming.contact_matters:
        return 0.0
    contact = naming.tenure.contact if naming.tenure is not None else naming.now - naming.lease.room_s
    return naming.age(max(value, contact), inf)


def _change(value: Any, owner: Contender, naming: Naming) -> Any:
    return part(value, naming) if naming.settings.on_change else None


def _told(value: KeyView | None, owner: Any, naming: Naming) -> Any:
    return None if value is None else (naming.session(value.session), value.leader)


def _holder_session(value: keys.HolderSession | None, owner: keys.ElectionLock, naming: Naming) -> Any:
    return None if value is None else (naming.session(value.session), value.lock_delay_s)


def _ending_since(at: float, owner: Any, naming: Naming) -> float:
    """Return since when the session ends, where a process goes on without this election."""
    return naming.age(at, naming.over_s) if naming.departing else 0.0


def _settings(value: ItemSettings | None, owner: Any, naming: Naming) -> Any:
    """Return what two files of one walk differ in."""
    if value is None or value.fence is None:
        return value and value.value
    return value.value, value.fence.exclusive, value.fence.required


def _guarded_since(at: float, owner: Guard, naming: Naming) -> float:
    """Return a time of the guard up to the longest time that a guard counts from it."""
    return naming.age(at, (owner.record or vars(guards)["UNREADABLE"]).lock_delay_s)


def _to_mark(value: tuple[TenureRecord, int] | None, owner: Any, naming: Naming) -> Any:
    return value and (part(value[0], naming), naming.index(value[1]))


def _known(value: int, owner: Any, naming: Naming) -> int | None:
    return naming.index(value)


def _index(value: int, owner: Any, naming: Naming) -> None:
    """Leave an index to the owner of the key, which knows the order of all."""
    naming.indexes.append(value)


_HOW: dict[tuple[type, str], How] = {
    (Contender, "settings"): _settings,
    (Contender, "place"): _left_out,
    (Contender, "lease"): _left_out,
    (Contender, "next_settings"): _settings,
    (Contender, "retry_settings_at"): _due,
    (Contender, "spread"): _left_out,
    (Contender, "change"): _change,
    (Contender, "altered"): _left_out,
    (keys.ElectionLock, "follows_record"): _session,
    **{(keys.ElectionLock, name): _known for name in ("index", "hold_index", "record_index", "mark_index")},
    **{(KeyView, name): _known for name in ("create_index", "modify_index", "lock_index")},
    **{(TenureShown, name): _known for name in ("index", "modify_index")},
    (TenureRecord, "session"): _session,
    (TenureRecord, "token"): _left_out,
    (Guard, "lost_at"): _guarded_since,
    (Guard, "stopping_at"): _guarded_since,
    (Guard, "free_at"): _guarded_since,
    (Guard, "here"): _left_out,
    (keys.ElectionLock, "seen_free_at"): lambda at, _, naming: naming.age(at, FREE_NEWS_OLD_S),
    (keys.ElectionLock, "opens_at"): lambda at, _, naming: naming.age(
        at, naming.settings.session.lock_delay_s
    ),
    (keys.ElectionLock, "try_at"): _exact_due,
    (keys.ElectionLock, "holder"): _session,
    (keys.ElectionLock, "holder_session"): _holder_session,
    (semaphore.SemaphoreLock, "seen_free_at"): lambda at, _, naming: naming.age(at, FREE_NEWS_OLD_S),
    (semaphore.SemaphoreLock, "opens_at"): lambda at, _, naming: naming.age(at, queue.QUEUE_DELAY_MAX_S),
    (semaphore.SemaphoreLock, "try_at"): _exact_due,
    (semaphore.SemaphoreLock, "paused_until"): _exact_due,
    (semaphore.SemaphoreLock, "limit"): _left_out,
    (semaphore.SemaphoreLock, "prune_delay_s"): _left_out,
    (semaphore.SemaphoreLock, "our_session"): _session,
    (semaphore.SemaphoreLock, "index"): _index,
    (semaphore.SemaphoreLock, "idle_wakes"): _left_out,
    (slots.Missing, "name"): _session,
    (slots.Missing, "since"): lambda at, _, naming: naming.age(at, naming.lease.lock_delay_s + 1.0),
    (SlotsView, "index"): _left_out,
    (LockKey, "create_index"): _left_out,
    (LockKey, "modify_index"): _index,
    (ContenderKey, "name"): _session,
    (ContenderKey, "session"): _session,
    (ContenderKey, "create_index"): _index,
    (ContenderKey, "lock_index"): _left_out,
    (r.SlotRecord, "holders"): lambda holders, _, naming: tuple(map(naming.session, holders)),
    (r.SlotRecord, "numbers"): lambda numbers, _, naming: tuple((naming.session(s), n) for s, n in numbers),
    (Contender, "own_losses"): lambda losses, _, naming: min(losses, 1),
    (Contender, "rejoin_at"): _due,
    (Contender, "rests_until"): _due,
    (Change, "instance"): _left_out,
    (Change, "notified"): _told,
    (Change, "previous_leader"): _left_out,
    (Change, "newest"): _told,
    (Change, "context"): lambda context, _, naming: context is not None,
    (Change, "count"): _left_out,
    (Session, "id"): _session,
    (Session, "abandoned_id"): _session,
    (Session, "ending_since"): _ending_since,
    (Session, "look_at"): _due,
    (Session, "to_mark"): _to_mark,
    (Session, "node"): _left_out,
    (Session, "rewrite_at"): _exact_due,
    (Lane, "due_at"): _due,
    (Service, "of"): lambda of, _, naming: of is not None,
    (Service, "contact"): lambda at, _, naming: naming.tenure is not None and at == naming.tenure.contact,
    (Service, "looked_at"): lambda at, _, naming: naming.age(
        at, LOOK_TTLS * TTL_INTERVALS * naming.lease.interval_s
    ),
    (Sequence, "due_at"): _exact_due,
    (KeyView, "index"): _left_out,
    (KeyView, "session"): _session,
    (Tenure, "session"): _session,
    (Tenure, "token"): _left_out,
    (Tenure, "contact"): _contact,
    (Tenure, "leader"): _left_out,
    (Tenure, "previous_leader"): _left_out,
    (Tenure, "previous"): _left_out,
    (Tenure, "next_leader"): _left_out,
    (Tenure, "holders"): _left_out,
    (Tenure, "reason"): lambda reason, _, naming: reason in OUR_OWN_MAKING,
    (Tenure, "reason_deadline"): _due,
    (Tenure, "taken_at"): _taken_at,
    (Tenure, "repair_at"): lambda at, _, naming: min(naming.due(at), REPAIR_SEEN_S),
    (Tenure, "fresh_since"): lambda at, _, naming: naming.age(at, naming.lease.fresh_s),
    (Record, "key"): _left_out,
    (Record, "session"): _session,
    (Record, "token"): _left_out,
    (Record, "create_index"): _left_out,
    (Record, "lock_index"): _left_out,
    (Record, "contact"): _left_out,
    (Record, "taken_at"): _left_out,
    (Record, "leader"): _left_out,
    (Record, "previous_leader"): _left_out,
    (Record, "reason"): _left_out,
    (RecordKeeper, "due_at"): _due,
    (Health, "due_at"): _due,
    (Tenure, "held_at"): lambda at, _, naming: at is not None,
    (a.StartHook, "hook"): lambda hook, _, naming: hook.name,
    (a.StartHook, "context"): _left_out,
    (a.StartRun, "run"): _left_out,
    (a.StartRun, "context"): _left_out,
    (a.WriteRecord, "item"): _left_out,
    (a.WriteRecord, "settings"): _left_out,
}
_REQUEST: dict[str, How] = {
    "item": _left_out,
    "at": _asked_at,
    "timeout_s": _left_out,
    "session": _session,
    "settings": _left_out,
    "asked": _left_out,
    "key": _left_out,
    "value": _left_out,
    "wait_s": _left_out,
    "prefix": _left_out,
    "holds": _left_out,
    "index": _known,
}
