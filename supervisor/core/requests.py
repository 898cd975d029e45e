"""Every request to Consul, one class each.

The shell sends each request once, and answers it by exactly one ``Answered`` event.
"""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from supervisor.core.settings import SessionSettings


class Answerer(Enum):
    """The part of Consul without which a request has no answer.

    No request allows a stale answer, so none is answered by a server without a leader.
    """

    AGENT = "the local agent alone"
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
class Acquire(Request):
    """The transaction verb ``lock`` with our value, whose answer tells a lost race from a lock-delay."""

    key: str
    session: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Release(Request):
    """``PUT /v1/kv/KEY?release=ID``.

    value: the value that the key keeps.
    """

    key: str
    session: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Rewrite(Request):
    """A transaction: the key gets this value if ``session`` still holds it.

    of_slot: the key is the contender key of a semaphore.
    """

    key: str
    session: str
    value: bytes
    of_slot: bool = False


@dataclass(frozen=True, slots=True)
class SlotRecord:
    """The content of the key ``<prefix>/.lock`` of a semaphore.

    limit: how many slots there are. None: it names no limit.
    holders: the sessions that have a slot.
    prune_delay_s: how long the slot of a holder that vanished stays taken. None: it names no such time.
    others: fields of other programs, as JSON text, which survive our writes.
    """

    limit: int | None = None
    holders: tuple[str, ...] = ()
    prune_delay_s: float | None = None
    others: str = ""


@dataclass(frozen=True, slots=True)
class Pruned:
    """A holder that has vanished.

    session: its session, which is the name of its contender key.
    shown: the session that the key shows instead, blank for none. None: there is no such key.
    """

    session: str
    shown: str | None


@dataclass(frozen=True, slots=True)
class SlotRequest(Request):
    """A request about one semaphore.

    prefix: the prefix of all its keys, without a / at the end.
    """

    prefix: str


@dataclass(frozen=True, slots=True)
class ReadSlots(SlotRequest):
    """``GET /v1/kv/PREFIX/?recurse&consistent``, answered at once.

    session: ours while it has a slot. Where the list is too large, ``.lock`` and the contender key of this
        session are read alone, because a holder needs no more.
    """

    session: str = ""


@dataclass(frozen=True, slots=True)
class WatchSlots(SlotRequest):
    """A blocking query on all keys below the prefix.

    index: the index after which the next change is the answer.
    wait_s: how long Consul waits for a change.
    lag_s: how old the answer is before it is read.
    """

    index: int
    wait_s: float
    consistent: bool
    lag_s: float = 0.0


@dataclass(frozen=True, slots=True)
class JoinSemaphore(SlotRequest):
    """A transaction: our session locks our contender key and, with a record, takes a slot.

    slot_record: the new content of ``.lock``, written if its index still is ``index``. None: ``.lock`` stays.
    index: 0: ``.lock`` must be absent.
    pruned: as in ``TakeSlot``.
    """

    session: str
    value: bytes
    slot_record: SlotRecord | None = None
    index: int = 0
    pruned: tuple[Pruned, ...] = ()


@dataclass(frozen=True, slots=True)
class TakeSlot(SlotRequest):
    """A transaction: take a slot, if our session still holds our contender key.

    slot_record: the new content of ``.lock``, written if its index still is ``index``.
    pruned: the holders that the record leaves out, written if the contender key of each is still like this.
        So neither a false answer nor an old one prunes a holder that lives.
    """

    session: str
    slot_record: SlotRecord
    index: int
    pruned: tuple[Pruned, ...] = ()


@dataclass(frozen=True, slots=True)
class LeaveSemaphore(SlotRequest):
    """A transaction: delete our contender key and, with a record, give back our slot.

    slot_record: the new content of ``.lock``, written if its index still is ``index``. None: ``.lock`` stays.
    """

    session: str
    slot_record: SlotRecord | None = None
    index: int = 0


@dataclass(frozen=True, slots=True)
class ReadKey(Request):
    """``GET /v1/kv/KEY?consistent``, answered at once.

    prefix: the prefix of the semaphore that the key belongs to. Blank: it belongs to none.
    """

    key: str
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class WatchKey(Request):
    """A blocking query on the key, answered when its index passes ``index`` or after ``wait_s``.

    lag_s: how old the answer is before it is read.
    """

    key: str
    index: int
    wait_s: float
    consistent: bool
    lag_s: float = 0.0


Watch = WatchKey | WatchSlots


Write = (
    CreateSession | DestroySession | Acquire | Rewrite | Release | JoinSemaphore | TakeSlot | LeaveSemaphore
)
