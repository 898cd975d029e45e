"""Every meaning that Consul's answer to a request can have.

The shell decodes an answer into one of these outcomes. "No answer" is an outcome of its own, because a write
without an answer may have been applied, now or seconds later.
"""

from dataclasses import field
from enum import Enum

from supervisor.core.actions import Holder
from supervisor.core.claim.notes import Note
from supervisor.core.claim.record import TenureRecord
from supervisor.core.frozen import dataclass
from supervisor.core.requests import SlotRecord


@dataclass(frozen=True, slots=True)
class Unknown:
    """No answer, because the connection was refused, reset or timed out; a write may have been applied."""

    why: str


@dataclass(frozen=True, slots=True)
class Failed(Unknown):
    """An answer without a result: a failure (5xx) of Consul or a proxy, or the answer of another program."""


@dataclass(frozen=True, slots=True)
class Dropped(Failed):
    """A write that Consul's agents lost among themselves: mostly it succeeds at once afterwards."""


@dataclass(frozen=True, slots=True)
class Throttled(Unknown):
    """A rate limit (429, 503): ``core.beside.throttle`` then spaces requests that are not urgent."""


@dataclass(frozen=True, slots=True)
class Denied:
    """403: the token lacks a right."""

    why: str  # the reason for an operator, with the remedy
    said: str = ""  # Consul's own words, where ``why`` does not quote them


@dataclass(frozen=True, slots=True)
class Refused:
    """Consul does not accept the configuration, such as an unknown check or a TTL below session_ttl_min."""

    why: str
    may_pass: bool = False  # the agent may yet register its node or its checks


@dataclass(frozen=True, slots=True)
class Ineligible:
    """A check that the session is bound to is critical, so there can be no session now."""

    why: str


@dataclass(frozen=True, slots=True)
class Created:
    """The session exists."""

    session: str


@dataclass(frozen=True, slots=True)
class SessionAlive:
    """The session was renewed, and Consul has it as it was requested."""

    node: str | None = field(default=None, compare=False)  # the name in Consul of the node that it belongs to


@dataclass(frozen=True, slots=True)
class SessionAltered:
    """The session was renewed, and Consul has it with settings that differ from the request."""

    why: str  # the differences


@dataclass(frozen=True, slots=True)
class SessionGone:
    """The session does not exist (renew 404, or 500 ``invalid session``)."""


@dataclass(frozen=True, slots=True)
class Won:
    """Our session holds the key; the indexes are those of the moment when it began to."""

    create_index: int
    modify_index: int
    lock_index: int


@dataclass(frozen=True, slots=True)
class LockDelayed:
    """The key is free, and Consul refuses every acquire until the lock-delay is over."""


@dataclass(frozen=True, slots=True)
class LostRace:
    """Another session holds the key, or the key has changed since it was read."""


@dataclass(frozen=True, slots=True)
class RecordExists:
    """The tenure record is another than the one that was read, or than none: so the write was refused."""


@dataclass(frozen=True, slots=True)
class TenureShown:
    """The tenure record as one answer shows it."""

    index: int  # the answer's X-Consul-Index
    modify_index: int = 0
    record: TenureRecord | None = None  # None: there is none. UNREADABLE: it cannot be understood


@dataclass(frozen=True, slots=True)
class NotesShown:
    """The fleet's notes of shots."""

    notes: tuple[Note, ...]
    modify_index: int = 0  # 0: there is no such key


@dataclass(frozen=True, slots=True)
class Done:
    """A release, destroy or rewrite is done, or was not needed."""

    held: bool = True  # False: the session did not hold, so a release has deleted no tenure record
    record_index: int = 0  # the ModifyIndex of the tenure record that it has written. 0: not known


@dataclass(frozen=True, slots=True)
class Hold:
    """A session's hold as one answer shows it."""

    token: int  # the fencing token of a tenure that begins with this answer
    create_index: int
    lock_index: int
    value: bytes
    slot: int | None = None  # the number of its slot. None: ``.lock`` shows none, or there are no slots


@dataclass(frozen=True, slots=True)
class KeyView:
    """A key as one answer shows it."""

    index: int  # the answer's X-Consul-Index
    session: str | None = None  # the session that holds the key. None: none does
    value: bytes = b""
    create_index: int = 0  # 0 for an absent key, which has no value
    modify_index: int = 0
    lock_index: int = 0
    foreign_flags: int = 0  # the flags of another program's key. 0: the key has a lock's flags, or none
    is_marked: bool = True  # the key has a lock's flags
    has_record_flags: bool = False  # the key has the flags of a lock that has a tenure record
    is_long: bool = False  # by these flags that record may say more than a minute

    @property
    def present(self) -> bool:
        return self.create_index > 0

    @property
    def is_foreign(self) -> bool:
        """Whether another program keeps its data there, by the flags of the key.

        A key that a session holds counts as a lock until that session is gone, even with other flags.
        """
        return not self.session and bool(self.foreign_flags)

    @property
    def was_never_locked(self) -> bool:
        """Whether another program has put a value there, by a key without flags that nobody has locked."""
        marked = self.is_marked or self.foreign_flags or self.session or self.lock_index
        return bool(self.value) and not marked

    @property
    def leader(self) -> bytes | None:
        """The leader's value; None without a Session, even if the key has a value."""
        return self.value if self.session else None

    def find_hold(self, session: str) -> Hold | None:
        if not session or self.session != session:
            return None
        return Hold(self.modify_index, self.create_index, self.lock_index, self.value)

    def has_entry(self, session: str) -> bool:
        return self.session == session

    def excludes(self, session: str) -> bool:
        return self.session not in (None, session)

    @property
    def holders(self) -> tuple[Holder, ...]:
        return (Holder(self.session, self.value),) if self.session else ()


@dataclass(frozen=True, slots=True)
class Hinted:
    """A key as one server shows it by itself: no view, because that server may be behind the others."""

    index: int  # the answer's X-Consul-Index, which is the ModifyIndex of a key that is present
    present: bool


@dataclass(frozen=True, slots=True)
class LockKey:
    """The key ``.lock`` of a semaphore."""

    create_index: int
    modify_index: int
    slot_record: SlotRecord | None  # its content. None: the content is not that of a semaphore
    why: str = ""  # the reason for which the content is not that of a semaphore
    is_lock: bool = False  # it is a lock, such as that of an election


@dataclass(frozen=True, slots=True)
class ContenderKey:
    """The key ``<prefix>/<name>`` of one contender, named after its session."""

    name: str
    session: str  # the holder of the key. Consul blanks it, or deletes the key, when that session ends
    value: bytes
    create_index: int
    lock_index: int
    prune_delay_s: float | None = None  # the prune delay that the body names. None: it names none

    @property
    def is_alive(self) -> bool:
        return self.session == self.name


@dataclass(frozen=True, slots=True)
class SlotsView:
    """All keys below a semaphore's prefix as one answer shows them."""

    index: int
    lock: LockKey | None = None  # the key ``.lock``. None: the answer does not show it
    contenders: tuple[ContenderKey, ...] = ()
    filtered: bool = False  # Consul says that it left out keys which the token may not read

    @property
    def slot_record(self) -> SlotRecord | None:
        """The content of ``.lock``, which names the holders; None when there is none."""
        return self.lock.slot_record if self.lock is not None else None

    @property
    def named(self) -> tuple[str, ...]:
        """The sessions that ``.lock`` names as holders, whether they live or not."""
        return () if self.slot_record is None else self.slot_record.holders

    @property
    def numbers(self) -> dict[str, int | None]:
        """The numbers of the holders' slots, as ``SlotRecord`` has them."""
        return {} if self.slot_record is None else dict(self.slot_record.numbers)

    @property
    def leader(self) -> None:
        return None  # a semaphore has no leader

    @property
    def lock_index(self) -> int:
        return 0  # no session locks ``.lock``

    @property
    def hides(self) -> bool:
        """Whether Consul has left out a key that shows who has a slot."""
        if not self.filtered or self.lock is None:
            return self.filtered
        alive = self.all_alive()
        return any(each not in alive for each in self.named)

    def alive(self, session: str) -> ContenderKey | None:
        return next((each for each in self.contenders if each.name == session and each.is_alive), None)

    def all_alive(self) -> dict[str, ContenderKey]:
        return {each.name: each for each in self.contenders if each.is_alive}

    def has_entry(self, session: str) -> bool:
        return self.alive(session) is not None

    def excludes(self, session: str) -> bool:
        """Return whether ``.lock`` does not name this session, so that a rival may have its slot."""
        return self.slot_record is not None and session not in self.named

    @property
    def holders(self) -> tuple[Holder, ...]:
        alive = self.all_alive()
        keys = (alive.get(session) for session in self.named)
        return tuple(Holder(key.name, key.value) for key in keys if key is not None)

    def find_hold(self, session: str) -> Hold | None:
        key, lock = self.alive(session), self.lock
        if key is None or lock is None or session not in self.named:
            return None
        return Hold(lock.modify_index, key.create_index, key.lock_index, key.value, self.numbers.get(session))


View = KeyView | SlotsView


@dataclass(frozen=True, slots=True)
class KeyIndexes:
    """The indexes of a key that a transaction has just written."""

    create_index: int
    modify_index: int
    lock_index: int


@dataclass(frozen=True, slots=True)
class SlotWritten:
    """A transaction has joined the semaphore, or has taken a slot."""

    contender: KeyIndexes | None  # the indexes of our contender key. None: it was not written
    lock: KeyIndexes | None  # the indexes of ``.lock``. None: it was not written


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """The answer of ``session/info``."""

    lock_delay_s: float | None  # that of the session. None: Consul showed no session


@dataclass(frozen=True, slots=True)
class ListedSession:
    """One session in a list, which any program may have made."""

    id: str
    name: str  # its Name, which need not be unique
    node: str  # the Consul node whose agent made it
    ttl: str  # its TTL as that program wrote it. Blank: the session has none
    lock_delay_s: float
    create_index: int  # a smaller index belongs to an older session


@dataclass(frozen=True, slots=True)
class SessionsView:
    """All sessions that the token may read."""

    sessions: tuple[ListedSession, ...] = ()
    filtered: bool = False  # whether Consul reports that it left out some. Before 1.11 it never does


@dataclass(frozen=True, slots=True)
class InMaintenance:
    """The answer about the maintenance mode of this node."""

    why: str = ""  # the mode with the operator's reason, and the command that ends it. Blank: none
    reason: str = ""  # the operator's reason alone


class Instance(Enum):
    """The answer about the instance of a service: what the agent, or its servers, have under its id."""

    UNKNOWN = "unknown"
    ABSENT = "absent"
    OURS = "ours"
    FORMER = "ours, but not registered by this process with the token that is in use now"
    FOREIGN = "another program's"
    FAILED = "ours, with a check that fails"
    UNNAMED = "ours, named by no server"
    REMOVED = "gone from the agent, and perhaps not from its servers"
    NAMED = "passing on the servers"
    LEFT = "critical on the servers"


Outcome = (
    Unknown
    | Failed
    | Dropped
    | Throttled
    | Denied
    | Refused
    | Ineligible
    | Created
    | Hinted
    | SessionAlive
    | SessionAltered
    | SessionGone
    | Won
    | LockDelayed
    | LostRace
    | RecordExists
    | TenureShown
    | NotesShown
    | Done
    | KeyView
    | SlotsView
    | SlotWritten
    | SessionInfo
    | SessionsView
    | InMaintenance
    | Instance
)
