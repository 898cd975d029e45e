"""The table of sessions, and the moment at which each session ends unless a client renews it."""

import math
import random
import uuid
from dataclasses import dataclass, field

from supervisor.config.formats.durations import parse_duration

SECOND_NS = 1_000_000_000
TTL_MULTIPLIER = 2  # Consul promises "not before the TTL" and takes this many (SessionTTLMultiplier)
TTL_MAX_NS = 86_400 * SECOND_NS
LOCK_DELAY_MAX_S = 60.0  # Consul applies no more (MaxLockDelay), whatever it says that it stored
RELEASE, DELETE = "release", "delete"
SERF_HEALTH = "serfHealth"  # the check that passes while the node's agent is alive


@dataclass(frozen=True, slots=True)
class StoredSession:
    """One session."""

    id: str
    node: str
    name: str = ""
    ttl: str = ""  # the text that the client sent
    ttl_ns: int = 0  # 0: the session never ends by time
    lock_delay_ns: int = 15 * SECOND_NS
    behavior: str = RELEASE
    node_checks: tuple[str, ...] = ()
    service_checks: tuple[str, ...] = ()
    create_index: int = 0

    @property
    def lock_delay_s(self) -> float:
        return min(self.lock_delay_ns / SECOND_NS, LOCK_DELAY_MAX_S)

    @property
    def checks(self) -> tuple[str, ...]:
        return (*self.node_checks, *self.service_checks)


@dataclass(slots=True)
class Sessions:
    """All sessions by id."""

    table: dict[str, StoredSession] = field(default_factory=dict)
    expiries: dict[str, float] = field(default_factory=dict)  # when each session with a TTL ends
    index: int = 0

    def find(self, session_id: str) -> StoredSession | None:
        return self.table.get(session_id)

    def sorted(self) -> list[StoredSession]:
        return sorted(self.table.values(), key=lambda session: session.id)

    def add(self, session: StoredSession, now: float) -> None:
        self.table[session.id] = session
        self.index = session.create_index
        self.renew(session, now)

    def renew(self, session: StoredSession, now: float) -> None:
        if session.ttl_ns:
            self.expiries[session.id] = now + TTL_MULTIPLIER * session.ttl_ns / SECOND_NS

    def remove(self, session: StoredSession, index: int) -> None:
        del self.table[session.id]
        self.expiries.pop(session.id, None)
        self.index = index


def nanoseconds(text: str) -> int:
    """Return the nanoseconds of a duration, or of a bare 0, which Go takes too.

    Raises ValueError when the text is neither.
    """
    if not math.isfinite(length_s := parse_duration("0s" if text == "0" else text)):
        raise ValueError("a number of hundreds of digits")
    return round(length_s * SECOND_NS)


def new_id(source: random.Random) -> str:
    """Return an id as Consul makes them: random, and in no version of the standard."""
    return str(uuid.UUID(int=source.getrandbits(128)))
