"""Every request to Consul, one class each.

The shell sends each request once, and answers it by exactly one ``Answered`` event.
"""

from enum import Enum
from typing import ClassVar

from supervisor.core.claim.notes import Note
from supervisor.core.claim.record import TenureRecord
from supervisor.core.frozen import dataclass
from supervisor.core.settings import ServiceSettings, SessionSettings


class Answerer(Enum):
    """The part of Consul without which a request has no answer."""

    AGENT = "the local agent alone"
    SERVER = "one of Consul's servers, which may have no leader, or lag behind it"
    LEADER = "Consul's servers, which have a leader"


@dataclass(frozen=True, slots=True)
class Request:
    """An exchange with Consul, begun at ``at`` (the send time that counts for the lease).

    The exchange ends within ``timeout_s`` of ``at``, with an answer or with ``Unknown``.
    """

    answerer: ClassVar[Answerer] = Answerer.LEADER
    item: str
    at: float
    timeout_s: float


@dataclass(frozen=True, slots=True)
class CreateSession(Request):
    """``PUT /v1/session/create``; when it has no answer, its TTL ends a session that it may have made."""

    settings: SessionSettings


@dataclass(frozen=True, slots=True)
class RenewSession(Request):
    """``PUT /v1/session/renew/ID``; the answer is compared with ``asked``."""

    session: str
    asked: SessionSettings
    holds: bool = False  # a lock that is held depends on the answer


@dataclass(frozen=True, slots=True)
class DestroySession(Request):
    """``PUT /v1/session/destroy/ID``; idempotent."""

    session: str


@dataclass(frozen=True, slots=True)
class ReadSession(Request):
    """``GET /v1/session/info/ID``, for its lock-delay only: it decides nothing about life."""

    session: str


@dataclass(frozen=True, slots=True)
class ReadMaintenance(Request):
    """``GET /v1/agent/checks``: whether this node is in Consul's maintenance mode."""

    answerer: ClassVar[Answerer] = Answerer.AGENT


@dataclass(frozen=True, slots=True)
class ServiceRequest(Request):
    """A request about one instance of a service, for which nothing else waits."""

    answerer: ClassVar[Answerer] = Answerer.AGENT
    service: ServiceSettings  # the instance


@dataclass(frozen=True, slots=True)
class ReadService(ServiceRequest):
    """``GET /v1/agent/service/ID``: whether the agent has an instance of this id, and who registered it."""


@dataclass(frozen=True, slots=True)
class RegisterService(ServiceRequest):
    """``PUT /v1/agent/service/register``, with a check that passes for ``ttl_s`` from now."""

    ttl_s: float
    passing: bool = True  # False: the check is critical, because the instance is to go


@dataclass(frozen=True, slots=True)
class PassService(ServiceRequest):
    """``PUT /v1/agent/check/pass/ID``: let the check pass for its TTL from now."""


@dataclass(frozen=True, slots=True)
class DeregisterService(ServiceRequest):
    """``PUT /v1/agent/service/deregister/ID``; idempotent."""


@dataclass(frozen=True, slots=True)
class FailService(ServiceRequest):
    """``PUT /v1/agent/check/fail/ID``: the agent tells its servers before it answers."""


@dataclass(frozen=True, slots=True)
class FindService(ServiceRequest):
    """A transaction that reads the check of the instance from the servers, of this agent's node."""

    node: str = ""  # its name. The codec knows it, once a session has been renewed


@dataclass(frozen=True, slots=True)
class Acquire(Request):
    """The transaction verb ``lock`` with our value, whose answer tells a lost race from a lock-delay.

    Consul refuses it when the key has changed since ``index``, because the verb ignores the key's flags.
    """

    key: str
    session: str
    value: bytes
    index: int = 0  # the ModifyIndex of the free key. 0: the key is absent
    record: TenureRecord | None = None  # our tenure record, written with it where there is none yet
    over_record: bool = False  # over the tenure record of another session, which stays
    is_long: bool = False  # that record, or ours, may say more than a minute: see ``KeyView``


@dataclass(frozen=True, slots=True)
class Release(Request):
    """``PUT /v1/kv/KEY?release=ID``."""

    key: str
    session: str
    value: bytes  # the value that the key keeps
    ends_record: bool = False  # the transaction that also deletes our tenure record
    over_record: bool = False  # the tenure record of another session stays, and the key's flags tell of it
    is_long: bool = False  # they tell that it may say more than a minute


@dataclass(frozen=True, slots=True)
class Rewrite(Request):
    """A transaction: the key gets this value if ``session`` still holds it."""

    key: str
    session: str
    value: bytes
    of_slot: bool = False  # the key is the contender key of a semaphore
    record: TenureRecord | None = None  # our tenure record, written with it
    ends_record: bool = False  # whosever tenure record there is goes, because this node keeps none
    record_index: int = 0  # the ModifyIndex of the record that was read. 0: there was none
    is_long: bool = False  # our record says more than a minute


@dataclass(frozen=True, slots=True)
class WatchTenure(Request):
    """A consistent read of the tenure record of ``key``, answered when its index passes ``index``."""

    key: str
    index: int = 0  # 0: it is answered at once
    wait_s: float = 0.0
    consistent: ClassVar[bool] = True
    lag_s: ClassVar[float] = 0.0


@dataclass(frozen=True, slots=True)
class MarkTenure(Request):
    """Check-and-set of the tenure record of ``key``, whoever it is of."""

    key: str
    record: TenureRecord
    index: int  # the ModifyIndex of the record that was read. 0: there was none


@dataclass(frozen=True, slots=True)
class SlotRecord:
    """The content of the key ``<prefix>/.lock`` of a semaphore."""

    limit: int | None = None  # how many slots there are. None: it names no limit
    holders: tuple[str, ...] = ()  # the sessions that have a slot
    prune_delay_s: float | None = None  # how long the slot of a vanished holder stays taken
    others: str = ""  # fields of other programs, as JSON text, which survive our writes
    # The numbers of the holders' slots; None: that holder has none. A holder that is not here may have any.
    numbers: tuple[tuple[str, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Pruned:
    """A holder that has vanished."""

    session: str  # its session, which is the name of its contender key
    shown: str | None  # the session that the key shows instead, blank for none. None: there is no such key


@dataclass(frozen=True, slots=True)
class SlotRequest(Request):
    """A request about one semaphore."""

    prefix: str  # the prefix of all its keys, without a / at the end


@dataclass(frozen=True, slots=True)
class ReadSlots(SlotRequest):
    """``GET /v1/kv/PREFIX/?recurse&consistent``, answered at once."""

    # Ours while it has a slot. Where the list is too large, ``.lock`` and the contender key of this session
    # are read alone, because a holder needs no more.
    session: str | None = None


@dataclass(frozen=True, slots=True)
class WatchSlots(SlotRequest):
    """A blocking query on all keys below the prefix."""

    index: int  # the index after which the next change is the answer
    wait_s: float  # how long Consul waits for a change
    consistent: bool
    lag_s: float = 0.0  # how old the answer is before it is read


@dataclass(frozen=True, slots=True)
class JoinSemaphore(SlotRequest):
    """A transaction: our session locks our contender key and, with a record, takes a slot."""

    session: str
    value: bytes
    # The new content of ``.lock``, written if its index still is ``index``. None: ``.lock`` stays.
    slot_record: SlotRecord | None = None
    index: int = 0  # 0: ``.lock`` must be absent
    pruned: tuple[Pruned, ...] = ()  # as in ``TakeSlot``


@dataclass(frozen=True, slots=True)
class TakeSlot(SlotRequest):
    """A transaction: take a slot, if our session still holds our contender key."""

    session: str
    slot_record: SlotRecord  # the new content of ``.lock``, written if its index still is ``index``
    index: int
    # The holders that the record leaves out, written if the contender key of each is still like this. So
    # neither a false answer nor an old one prunes a holder that lives.
    pruned: tuple[Pruned, ...] = ()


@dataclass(frozen=True, slots=True)
class LeaveSemaphore(SlotRequest):
    """A transaction: delete our contender key and, with a record, give back our slot."""

    session: str
    # The new content of ``.lock``, written if its index still is ``index``. None: ``.lock`` stays.
    slot_record: SlotRecord | None = None
    index: int = 0


@dataclass(frozen=True, slots=True)
class ReadKey(Request):
    """``GET /v1/kv/KEY?consistent``, answered at once."""

    key: str
    # The prefix of the semaphore or the fleet that the key belongs to, for which the token needs the right.
    # Blank: it belongs to none.
    prefix: str = ""
    holds: bool = False  # a lock that is held depends on the answer


@dataclass(frozen=True, slots=True)
class WatchKey(Request):
    """A blocking query on the key, answered when its index passes ``index`` or after ``wait_s``."""

    key: str
    index: int
    wait_s: float
    consistent: bool
    lag_s: float = 0.0  # how old the answer is before it is read


@dataclass(frozen=True, slots=True)
class HintKey(WatchKey):
    """A blocking query on the key in mode ``stale``, whose answer is no evidence: see ``core.lock.hint``."""

    answerer: ClassVar[Answerer] = Answerer.SERVER


@dataclass(frozen=True, slots=True)
class ReadNotes(ReadKey):
    """The consistent read of the fleet's notes of shots."""


@dataclass(frozen=True, slots=True)
class WriteNotes(Request):
    """``PUT /v1/kv/KEY?cas=INDEX``: the notes of shots."""

    key: str
    notes: tuple[Note, ...]
    index: int  # the ModifyIndex of what was read. 0: there were none


Watch = WatchKey | WatchSlots | WatchTenure


Write = (
    CreateSession
    | DestroySession
    | Acquire
    | Rewrite
    | Release
    | MarkTenure
    | JoinSemaphore
    | TakeSlot
    | LeaveSemaphore
    | WriteNotes
)
