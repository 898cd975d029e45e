"""Everything that can be asked of Consul, one class a request.

The shell sends each request once, and answers it by exactly one ``Answered`` event.
"""

from dataclasses import dataclass

from supervisor.core.settings import SessionSettings


@dataclass(frozen=True, slots=True)
class Request:
    """An exchange with Consul, begun at ``at`` (the send time that counts for the lease).

    The exchange ends within ``timeout_s`` of ``at``, with an answer or with ``Unknown``.
    """

    item: str
    at: float
    timeout_s: float


@dataclass(frozen=True, slots=True)
class CreateSession(Request):
    """``PUT /v1/session/create``. Not idempotent: an unanswered one may leave a session to its TTL."""

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
class Acquire(Request):
    """The transaction verb ``lock`` with our value: it tells a race from a lock-delay."""

    key: str
    session: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Release(Request):
    """``PUT /v1/kv/KEY?release=ID``; ``value`` is what the key keeps."""

    key: str
    session: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Rewrite(Request):
    """A transaction: the key gets this value if ``session`` still holds it. ``of_slot``: it is the
    contender key of a semaphore."""

    key: str
    session: str
    value: bytes
    of_slot: bool = False


@dataclass(frozen=True, slots=True)
class Roster:
    """What the key ``<prefix>/.lock`` of a semaphore says: who has its slots, and how many there are.

    ``prune_delay_s``: for how long the slot of a holder that vanished stays taken. None: it does not
    say. ``others``: fields that are not ours, as JSON text, which survive our writes.
    """

    limit: int | None = None
    holders: tuple[str, ...] = ()
    prune_delay_s: float | None = None
    others: str = ""


@dataclass(frozen=True, slots=True)
class SlotRequest(Request):
    """About one semaphore: all below ``prefix``, which has no / at its end."""

    prefix: str


@dataclass(frozen=True, slots=True)
class ReadSlots(SlotRequest):
    """``GET /v1/kv/PREFIX/?recurse&consistent``, answered at once. ``session``: ours while it has a slot.
    Where that is too much to be read, ``.lock`` and the contender key of ``session`` alone are read, which
    is what a holder needs to know."""

    session: str = ""


@dataclass(frozen=True, slots=True)
class WatchSlots(SlotRequest):
    """A blocking query on all below the prefix: see ``WatchKey``. Its answer is not looked at before
    it is ``lag_s`` old."""

    index: int
    wait_s: float
    consistent: bool
    lag_s: float = 0.0


@dataclass(frozen=True, slots=True)
class JoinSemaphore(SlotRequest):
    """A transaction: our contender key is locked by our session and, with a ``roster``, ``.lock``
    becomes that if its index still is ``index`` (0: if it is absent)."""

    session: str
    value: bytes
    roster: Roster | None = None
    index: int = 0


@dataclass(frozen=True, slots=True)
class TakeSlot(SlotRequest):
    """A transaction: ``.lock`` becomes ``roster`` if its index still is ``index`` and our session
    still holds our contender key."""

    session: str
    roster: Roster
    index: int


@dataclass(frozen=True, slots=True)
class LeaveSemaphore(SlotRequest):
    """A transaction: with a ``roster``, ``.lock`` becomes that if its index still is ``index``; our
    contender key is deleted."""

    session: str
    roster: Roster | None = None
    index: int = 0


@dataclass(frozen=True, slots=True)
class WriteSemaphoreRecord(SlotRequest):
    """An operator's change of ``.lock``, if its index still is ``index``."""

    roster: Roster
    index: int


@dataclass(frozen=True, slots=True)
class ReadKey(Request):
    """``GET /v1/kv/KEY?consistent``, answered at once; ``prefix`` is that of its semaphore, if it has one."""

    key: str
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class WatchKey(Request):
    """A blocking query on the key: answered when its index passes ``index`` or after ``wait_s``. Its
    answer is not looked at before it is ``lag_s`` old."""

    key: str
    index: int
    wait_s: float
    consistent: bool
    lag_s: float = 0.0


Watch = WatchKey | WatchSlots


Write = (
    CreateSession | DestroySession | Acquire | Rewrite | Release | JoinSemaphore | TakeSlot | LeaveSemaphore
)
