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
from supervisor.core.claim import guard as guards
from supervisor.core.claim.claim import Claim
from supervisor.core.claim.guard import Guard
from supervisor.core.claim.memory import LostWord, Memory
from supervisor.core.claim.record import TenureRecord
from supervisor.core.contender.state import Contender
from supervisor.core.lock import election as keys
from supervisor.core.lock import queue, semaphore, slots
from supervisor.core.lock.hint import HINT_EVERY_S, Hint
from supervisor.core.machines.lane import Lane
from supervisor.core.machines.record import RecordKeeper
from supervisor.core.machines.sequence import Sequence
from supervisor.core.machines.session import Session
from supervisor.core.machines.tenure import OUR_OWN_MAKING, Tenure
from supervisor.core.outcomes import ContenderKey, KeyView, LockKey, SlotsView, TenureShown, Won
from supervisor.core.settings import ItemSettings

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
        self.over_s = 2 * (self.lease.ttl_s or 0.0) + self.lease.lockout_s
        self.leased_s = max(self.lease.lockout_s, self.lease.asked_s, self.lease.belief_s)
        lose_side = (*self.settings.on_lose, *self.settings.on_lose_failure)
        self.retries = any(hook.retries for hook in lose_side) and election.role is not a.Role.STUCK
        self.contact_matters = self.tenure is None or self.tenure.believes or self.retries
        self._sessions: dict[str | None, int | str | None] = {None: None, "": "", "rival": "rival"}

    @property
    def fences(self) -> bool:
        """Return whether a guard of this item may shoot, now or by another file of the walk."""
        return self.settings.fence is not None

    def session(self, name: str | None) -> int | str | None:
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

    def session(self, name: str | None) -> str | None:
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


TIMES = ("_at", "_until", "_since")  # how the names of times end, which never belong into a key as they are

How = Callable[[Any, Any, Naming], Any]


@cache
def _plan(kind: type) -> tuple[tuple[str, How | None], ...]:
    """Return the fields that count, and how; None: as they are."""
    assert is_dataclass(kind), kind
    plan = [(field.name, _HOW.get((kind, field.name))) for field in fields(kind)]
    if issubclass(kind, r.Request):
        plan = [(name, _REQUEST.get(name)) for name, _ in plan]
    raw = [name for name, how in plan if how is None and name.endswith(TIMES)]
    assert not raw, f"{kind.__name__}: {raw}: a walk would never end, as each moment were another state"
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
    return naming.age(value, naming.leased_s)


def _taken_at(value: float | None, owner: Tenure, naming: Naming) -> float | None:
    if value is None or not naming.retries:
        return value and 0.0
    return naming.age(value, 0.0)


def _asked_at(value: float, owner: r.Request, naming: Naming) -> float:
    """Return the time of a request up to its deadline; for a watch, only its possible part of the contact."""
    if isinstance(owner, r.WatchTenure) and owner.wait_s:
        return 0.0
    if not isinstance(owner, r.WatchKey | r.WatchSlots):
        return naming.age(value, owner.timeout_s + naming.over_s)  # a paused process looks at it later
    if not owner.consistent or not naming.contact_matters:
        return 0.0
    contact = naming.tenure.contact if naming.tenure is not None else naming.now - naming.lease.room_s
    return naming.age(max(value, contact), naming.leased_s)


def _told(value: KeyView | None, owner: Any, naming: Naming) -> Any:
    return None if value is None else (naming.session(value.session), value.leader)


def _ending_since(at: float, owner: Any, naming: Naming) -> float:
    """Return since when the session ends, where a process goes on without this election."""
    return naming.age(at, naming.over_s) if naming.departing else 0.0


def _settings(value: ItemSettings | None, owner: Any, naming: Naming) -> Any:
    """Return what two files of one walk differ in."""
    if value is None or value.fence is None:
        return value and value.value
    return value.value, value.fence.exclusive, value.fence.required, value.fence.outage_s


def _guarded_since(at: float, owner: Guard, naming: Naming) -> float:
    """Return a time of the guard up to the longest time that a guard counts from it; none after its end."""
    if owner.end is not None:
        return 0.0
    return naming.age(at, owner.longest_s or vars(guards)["UNREADABLE"].lock_delay_s)


def _looked_at(at: float, owner: Guard, naming: Naming) -> tuple[float, bool]:
    """Return the time of the newest look at the record, and whether the fence awaits another one."""
    return _guarded_since(at, owner, naming), owner.awaits_look


def _known(value: int, owner: Any, naming: Naming) -> int | None:
    return naming.index(value)


def _index(value: int, owner: Any, naming: Naming) -> None:
    """Leave an index to the owner of the key, which knows the order of all."""
    naming.indexes.append(value)


_ALIKE: dict[How, dict[type, str]] = {
    _left_out: {
        Contender: "lease spread altered",
        Claim: "here",
        TenureRecord: "token serial",
        Guard: "here shots",
        keys.ElectionLock: "holder_seen_at",
        semaphore.SemaphoreLock: "limit prune_delay_s idle_wakes holder_seen_at",
        SlotsView: "index",
        LockKey: "create_index",
        ContenderKey: "lock_index",
        Change: "instance previous_leader count",
        Session: "node",
        KeyView: "index",
        Tenure: "token leader previous_leader previous next_leader holders",
        Record: "key token create_index lock_index contact taken_at leader previous_leader reason",
        a.StartHook: "context",
        a.StartRun: "run context",
        a.WriteRecord: "item settings",
    },
    _settings: {Contender: "settings next_settings"},
    _due: {
        Contender: "retry_settings_at rejoin_at rests_until paused_until stays_until",
        LostWord: "ends_at",
        keys.ElectionLock: "paused_until",
        Lane: "due_at",
        Hint: "read_at",
        Tenure: "reason_deadline",
        RecordKeeper: "due_at",
        Health: "due_at",
    },
    _session: {
        keys.ElectionLock: "holder",
        Claim: "watches settling",
        TenureRecord: "session",
        semaphore.SemaphoreLock: "our_session",
        slots.Missing: "name",
        ContenderKey: "name session",
        Session: "id abandoned_id",
        KeyView: "session",
        Tenure: "session",
        Record: "session",
    },
    _guarded_since: {Guard: "lost_at stopping_at free_at shot_due_at"},
    _exact_due: {
        keys.ElectionLock: "try_at",
        semaphore.SemaphoreLock: "try_at paused_until",
        Session: "rewrite_at",
        Sequence: "due_at",
    },
    _index: {semaphore.SemaphoreLock: "index", LockKey: "modify_index", ContenderKey: "create_index"},
    _told: {Change: "notified newest"},
    _known: {
        keys.ElectionLock: "index hold_index",
        Hint: "index shown",
        Claim: "index record_index",
        Memory: "record_index",
        KeyView: "create_index modify_index lock_index",
        TenureShown: "index modify_index",
        Won: "create_index modify_index lock_index",
        Tenure: "create_index lock_index",
    },
}
_HOW: dict[tuple[type, str], How] = {
    (Tenure, "taken_at"): _taken_at,
    (Tenure, "contact"): _contact,
    (Hint, "read_before"): lambda at, _, naming: naming.age(at, HINT_EVERY_S),
    (Tenure, "stopped_at"): lambda at, _, naming: naming.age(at, naming.leased_s) if naming.retries else 0.0,
    (Record, "stopped_at"): lambda at, _, naming: at is None,
    **dict.fromkeys(
        ((Guard, "returned_at"), (Claim, "returned_at")),
        lambda at, _, naming: naming.age(at, vars(guards)["HEARD_S"] + 1.0) if naming.fences else 0.0,
    ),
    (Session, "ending_since"): _ending_since,
    (Claim, "settle_by"): lambda at, _, naming: naming.due(at) if naming.departing else 0.0,
    (keys.ElectionLock, "holder_session"): lambda of, _, naming: (
        of and (naming.session(of.session), of.lock_delay_s)
    ),
    (Contender, "change"): lambda told, _, naming: part(told, naming) if naming.settings.on_change else None,
    (keys.ElectionLock, "seen_free_at"): lambda at, _, naming: naming.age(at, FREE_NEWS_OLD_S),
    (keys.ElectionLock, "opens_at"): lambda at, _, naming: naming.age(
        at, naming.settings.session.lock_delay_s
    ),
    (semaphore.SemaphoreLock, "seen_free_at"): lambda at, _, naming: naming.age(at, FREE_NEWS_OLD_S),
    (semaphore.SemaphoreLock, "opens_at"): lambda at, _, naming: naming.age(at, queue.QUEUE_DELAY_MAX_S),
    (slots.Missing, "since"): lambda at, _, naming: naming.age(at, naming.lease.lockout_s + 1.0),
    (r.SlotRecord, "holders"): lambda holders, _, naming: tuple(map(naming.session, holders)),
    (r.SlotRecord, "numbers"): lambda numbers, _, naming: tuple((naming.session(s), n) for s, n in numbers),
    (Contender, "own_losses"): lambda losses, _, naming: min(losses, 1),
    (Change, "context"): lambda context, _, naming: context is not None,
    (Service, "of"): lambda of, _, naming: of is not None,
    (Service, "contact"): lambda at, _, naming: naming.tenure is not None and at == naming.tenure.contact,
    (Service, "looked_at"): lambda at, _, naming: naming.age(
        at, LOOK_TTLS * TTL_INTERVALS * naming.lease.interval_s
    ),
    (Tenure, "reason"): lambda reason, _, naming: reason in OUR_OWN_MAKING,
    (Tenure, "repair_at"): lambda at, _, naming: min(naming.due(at), REPAIR_SEEN_S),
    (Tenure, "fresh_since"): lambda at, _, naming: naming.age(at, naming.lease.fresh_s),
    (Record, "pause_ends_at"): lambda at, _, naming: at is not None,
    (Record, "stays_until"): lambda at, _, naming: at is not None,
    (Tenure, "held_at"): lambda at, _, naming: at is not None,
    (Guard, "seen_at"): _looked_at,
    (a.StartHook, "hook"): lambda hook, _, naming: hook.name,
    **{
        (kind, name): how
        for how, fields_of in _ALIKE.items()
        for kind, names in fields_of.items()
        for name in names.split()
    },
}
_REQUEST: dict[str, How] = {
    **dict.fromkeys("item timeout_s settings asked key value wait_s prefix holds".split(), _left_out),
    "at": _asked_at,
    "session": _session,
    "index": _known,
}
