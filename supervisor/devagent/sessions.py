"""Sessions: what one is, and how long it lives without being renewed."""

import random
import uuid
from dataclasses import dataclass, field

from supervisor.devagent.gotext import SECOND_NS, session_id
from supervisor.devagent.messages import Refused

TTL_MULTIPLIER = 2  # Consul promises "not before the TTL" and takes this many (SessionTTLMultiplier)
TTL_MAX_NS = 86_400 * SECOND_NS
LOCK_DELAY_MAX_S = 60.0  # Consul applies no more (MaxLockDelay), whatever it says that it stored
RELEASE, DELETE = "release", "delete"


@dataclass(frozen=True, slots=True)
class Session:
    """One session. ``ttl`` is its text as given; ``ttl_ns`` 0: it never ends by time.

    ``node_checks`` and ``service_checks`` None are shown as null: they were given so.
    """

    id: str
    node: str
    name: str = ""
    ttl: str = ""
    ttl_ns: int = 0
    lock_delay_ns: int = 15 * SECOND_NS
    behavior: str = RELEASE
    node_checks: tuple[str, ...] | None = ()
    service_checks: tuple[str, ...] | None = None
    checks: tuple[str, ...] = ()
    create_index: int = 0

    @property
    def lock_delay_s(self) -> float:
        """The delay as it is applied."""
        return min(self.lock_delay_ns / SECOND_NS, LOCK_DELAY_MAX_S)

    @property
    def check_ids(self) -> tuple[str, ...]:
        """All checks that it is bound to."""
        return (*self.checks, *(self.node_checks or ()), *(self.service_checks or ()))


@dataclass(slots=True)
class Sessions:
    """The table, by look-up id, and the moment at which each ends unless it is renewed.

    ``ended`` is what was removed since last asked; any other change is a new session.
    """

    table: dict[str, Session] = field(default_factory=dict)
    expiries: dict[str, float] = field(default_factory=dict)
    index: int = 0
    ended: list[str] = field(default_factory=list)

    def find(self, text: str) -> Session | None:
        """The session of this id. Raises Refused when it is no UUID."""
        return self.table.get(look_up(text))

    def of_node(self, node: str) -> list[Session]:
        """A node's sessions, in the order of their ids; a blank node stands for all."""
        wanted = node.lower()
        found = [session for session in self.table.values() if wanted in ("", session.node.lower())]
        return sorted(found, key=lambda session: session.id)

    def add(self, session: Session, now: float) -> None:
        """A new session; its time begins."""
        self.table[look_up(session.id)] = session
        self.index = session.create_index
        self.renew(session, now)

    def renew(self, session: Session, now: float) -> None:
        """Its time begins again."""
        if session.ttl_ns:
            self.expiries[look_up(session.id)] = now + TTL_MULTIPLIER * session.ttl_ns / SECOND_NS

    def renew_all(self, now: float) -> None:
        """As a new leader does, which knows nothing of the time that has passed."""
        for session in self.table.values():
            self.renew(session, now)

    def remove(self, session: Session, index: int) -> None:
        """The session has ended."""
        key = look_up(session.id)
        del self.table[key]
        self.expiries.pop(key, None)
        self.index = index
        self.ended.append(key)


def look_up(text: str) -> str:
    """The id as the table has it. Raises Refused when it is no UUID."""
    try:
        return session_id(text)
    except ValueError as error:
        raise Refused(f"failed session lookup: index error: {error}") from None


def new_id(source: random.Random) -> str:
    """An id as Consul makes them: random, and in no version of the standard."""
    return str(uuid.UUID(int=source.getrandbits(128)))
