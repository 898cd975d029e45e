"""Everything that Consul's answer to a request can mean.

The shell decodes an answer into one of these outcomes. "No answer" is an outcome of its own, because a
write without an answer may have been applied, now or seconds later.
"""

from dataclasses import dataclass

from supervisor.core.actions import Holder
from supervisor.core.requests import Roster


@dataclass(frozen=True, slots=True)
class Unknown:
    """No answer at all: refused, reset, timed out. A write may have been applied all the same."""

    why: str


@dataclass(frozen=True, slots=True)
class Failed(Unknown):
    """An answer that does not tell: Consul, or something before it, says that it failed (5xx), or what
    came is none of Consul's answers."""


@dataclass(frozen=True, slots=True)
class Throttled(Unknown):
    """Consul takes no more requests for now: a rate limit (429, 503). What does not hurry is asked
    for less and less often (``core.throttle``)."""


@dataclass(frozen=True, slots=True)
class Denied:
    """403: the token's fault. No answer either, but loud. ``said``: Consul's words, where ``why`` has
    a remedy, too."""

    why: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """Consul will not take it as configured: an unknown check, a TTL below session_ttl_min."""

    why: str


@dataclass(frozen=True, slots=True)
class Ineligible:
    """A check that the session is bound to is critical: not now."""

    why: str


@dataclass(frozen=True, slots=True)
class Created:
    """The session exists."""

    session: str


@dataclass(frozen=True, slots=True)
class SessionAlive:
    """The session was renewed, and it is the one that was asked for."""


@dataclass(frozen=True, slots=True)
class SessionAltered:
    """The session was renewed, and it is another one than was asked for; ``why`` says in what."""

    why: str


@dataclass(frozen=True, slots=True)
class SessionGone:
    """The session does not exist (renew 404, or 500 ``invalid session``)."""


@dataclass(frozen=True, slots=True)
class Won:
    """Our session holds the key; the indexes are of that moment."""

    create_index: int
    modify_index: int
    lock_index: int


@dataclass(frozen=True, slots=True)
class LockDelayed:
    """Nobody holds the key, and nobody may take it yet."""


@dataclass(frozen=True, slots=True)
class LostRace:
    """Another session holds the key."""


@dataclass(frozen=True, slots=True)
class Done:
    """A release or destroy is done, or there is nothing left for it to do."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A session's hold as one answer shows it. ``token``: the fencing token, if it begins with it."""

    token: int
    create_index: int
    lock_index: int
    value: bytes


@dataclass(frozen=True, slots=True)
class KeyView:
    """A key as one answer shows it; ``session`` is blank when nobody holds it.

    An absent key has ``create_index`` 0 and no value. ``index`` is the answer's X-Consul-Index.
    ``foreign_flags``: the key's flags where they are neither a lock's nor none, as of another program's
    data; else 0.
    """

    index: int
    session: str = ""
    value: bytes = b""
    create_index: int = 0
    modify_index: int = 0
    lock_index: int = 0
    foreign_flags: int = 0

    @property
    def present(self) -> bool:
        """Whether the key exists."""
        return self.create_index > 0

    @property
    def is_foreign(self) -> bool:
        """Whether its flags say that another program keeps its data there. A key that a session holds is a
        lock, whatever its flags are, until that session is gone."""
        return not self.session and bool(self.foreign_flags)

    @property
    def leader(self) -> bytes | None:
        """The leader's value: whenever Session is blank there is none, whatever the value says."""
        return self.value if self.session else None

    def hold_of(self, session: str) -> Hold | None:
        """What it says of this session as holder; None when it is none."""
        if not session or self.session != session:
            return None
        return Hold(self.modify_index, self.create_index, self.lock_index, self.value)

    def has_entry(self, session: str) -> bool:
        """Return whether this session holds the key."""
        return self.session == session

    def excludes(self, session: str) -> bool:
        """Return whether another session holds the key."""
        return self.session not in ("", session)

    @property
    def holders(self) -> tuple[Holder, ...]:
        """The leader, if there is one."""
        return (Holder(self.session, self.value),) if self.session else ()


@dataclass(frozen=True, slots=True)
class LockKey:
    """The key ``.lock`` of a semaphore; ``roster`` None: it is no semaphore's, as ``why`` says.
    ``is_lock``: it is a lock of its own, as of an election."""

    create_index: int
    modify_index: int
    roster: Roster | None
    why: str = ""
    is_lock: bool = False


@dataclass(frozen=True, slots=True)
class ContenderKey:
    """The key ``<prefix>/<name>`` of whoever contends for a slot. It is alive while ``session``,
    which Consul blanks or takes the key with, is its name. ``prune_delay_s``: as its body says."""

    name: str
    session: str
    value: bytes
    create_index: int
    lock_index: int
    prune_delay_s: float | None = None

    @property
    def is_alive(self) -> bool:
        """Whether Consul says that its session lives."""
        return self.session == self.name


@dataclass(frozen=True, slots=True)
class SlotsView:
    """All below a semaphore's prefix as one answer shows it; an absent ``.lock`` is None. ``filtered``:
    Consul says that it left out what the token may not read."""

    index: int
    lock: LockKey | None = None
    contenders: tuple[ContenderKey, ...] = ()
    filtered: bool = False

    @property
    def roster(self) -> Roster | None:
        """Who has which slots; None when nothing says so."""
        return self.lock.roster if self.lock is not None else None

    @property
    def leader(self) -> None:
        """No slot is more than another."""
        return None

    @property
    def lock_index(self) -> int:
        """Nobody locks the record of the slots."""
        return 0

    @property
    def hides(self) -> bool:
        """Whether Consul has left out what would say who has a slot."""
        if not self.filtered or self.lock is None:
            return self.filtered
        alive = self.all_alive()
        return self.roster is not None and any(each not in alive for each in self.roster.holders)

    def alive(self, session: str) -> ContenderKey | None:
        """The contender key of this session, if it lives."""
        return next((each for each in self.contenders if each.name == session and each.is_alive), None)

    def all_alive(self) -> dict[str, ContenderKey]:
        """The contender keys that live, by their sessions: for those who look for many of them."""
        return {each.name: each for each in self.contenders if each.is_alive}

    def has_entry(self, session: str) -> bool:
        """Return whether this session stands in line or has a slot."""
        return self.alive(session) is not None

    def excludes(self, session: str) -> bool:
        """Return whether ``.lock`` does not name this session, so that a rival may have its slot."""
        return self.roster is not None and session not in self.roster.holders

    @property
    def holders(self) -> tuple[Holder, ...]:
        """The contenders that have a slot and live."""
        named = () if self.roster is None else self.roster.holders
        alive = self.all_alive()
        keys = (alive.get(session) for session in named)
        return tuple(Holder(key.name, key.value) for key in keys if key is not None)

    def hold_of(self, session: str) -> Hold | None:
        """What it says of this session as holder; None when it is none."""
        key, lock = self.alive(session), self.lock
        if key is None or lock is None or lock.roster is None or session not in lock.roster.holders:
            return None
        return Hold(lock.modify_index, key.create_index, key.lock_index, key.value)


View = KeyView | SlotsView


@dataclass(frozen=True, slots=True)
class KeyIndexes:
    """Of a key that a transaction has just written."""

    create_index: int
    modify_index: int
    lock_index: int


@dataclass(frozen=True, slots=True)
class SlotWritten:
    """A step to a slot is done; the indexes of the keys that it wrote."""

    contender: KeyIndexes | None
    lock: KeyIndexes | None


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """The answer of ``session/info``.

    lock_delay_s: that of the session. None: Consul showed no session.
    """

    lock_delay_s: float | None


Outcome = (
    Unknown
    | Failed
    | Throttled
    | Denied
    | Refused
    | Ineligible
    | Created
    | SessionAlive
    | SessionAltered
    | SessionGone
    | Won
    | LockDelayed
    | LostRace
    | Done
    | KeyView
    | SlotsView
    | SlotWritten
    | SessionInfo
)
