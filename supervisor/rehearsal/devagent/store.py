"""The state of the cluster and every write to it, where each write takes one raft index.

``kv`` has the rules for one key. The store knows what a write means for the other tables: the end of a
session takes its locks away, and the failure of a node ends its sessions.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from supervisor.rehearsal.devagent.kv import Entry, KeyValues, Rejected
from supervisor.rehearsal.devagent.sessions import DELETE, SERF_HEALTH, Sessions, StoredSession, new_id

FIRST_INDEX = 6  # a new cluster's own entries come before its first node
NEVER = float("inf")
Written = TypeVar("Written")


class Store:
    """The tables, and what the leading server keeps in memory: lock-delays and the time of sessions."""

    def __init__(self, node: str, seed: int) -> None:
        self.index = FIRST_INDEX
        self.kv = KeyValues()
        self.sessions = Sessions()
        self.nodes: set[str] = set()
        self.services: dict[tuple[str, str], dict[str, Any]] = {}  # instances, by node of their agent and id
        self.delays: dict[str, float] = {}  # until when each key cannot be locked
        self.source = random.Random(seed)
        self.join(node)

    def deadline(self) -> float:
        return min(self.sessions.expiries.values(), default=NEVER)

    def expire(self, now: float) -> None:
        """End the sessions that are due at ``now``, in a fixed order."""
        for session_id in sorted(name for name, at in self.sessions.expiries.items() if at <= now):
            self._end_sessions([self.sessions.table[session_id]], now)

    def lock(self, entry: Entry, index: int) -> Entry | None:
        """Lock a key even during a lock-delay. None: another session holds it. Raises Rejected."""
        if not entry.session:
            raise Rejected("missing session")
        if self.sessions.find(entry.session) is None:
            raise Rejected(f'invalid session "{entry.session}"')
        return self.kv.lock(entry, index)

    def is_delayed(self, key: str, now: float) -> bool:
        """Return whether the lock-delay of a session that has ended keeps the key free."""
        return now < self.delays.get(key, now)

    def delay(self, key: str, delay_s: float, now: float) -> None:
        """Begin the lock-delay of a key, and forget those that are over. Its end wakes no query."""
        self.delays = {name: end for name, end in self.delays.items() if end > now} | {key: now + delay_s}

    def write(self, write: Callable[[int], Written], now: float) -> Written:
        """Make one write, or those of a transaction, at the next index."""
        return write(self._commit())

    def create_session(self, wanted: StoredSession, now: float) -> StoredSession:
        """Make a session with a new id. Raises Rejected when its node or its checks do not allow it."""
        index = self._commit()
        if wanted.node not in self.nodes:
            raise Rejected("Missing node registration")
        for name in wanted.checks:
            if name != SERF_HEALTH:
                raise Rejected(f"Missing check '{name}' registration")
        session = replace(wanted, id=new_id(self.source), create_index=index)
        self.sessions.add(session, now)
        return session

    def destroy_session(self, session_id: str, now: float) -> None:
        """End a session; an unknown one counts as ended."""
        session = self.sessions.find(session_id)
        self._end_sessions([session] if session else [], now)

    def _end_sessions(self, sessions: Iterable[StoredSession], now: float) -> None:
        """End sessions at one index: free or delete their keys, and start the lock-delays."""
        index = self._commit()
        for session in sessions:
            self.sessions.remove(session, index)
            for entry in [each for each in self.kv.entries.values() if each.session == session.id]:
                if session.behavior == DELETE:
                    self.kv.delete(entry.key, index)
                else:
                    self.kv.free(entry, index)
                if session.lock_delay_s > 0:
                    self.delay(entry.key, session.lock_delay_s, now)

    def join(self, node: str) -> None:
        """Register a node, whose agent is alive, so that its serfHealth passes."""
        self._commit()
        self.nodes.add(node)

    def _commit(self) -> int:
        self.index += 1
        return self.index
