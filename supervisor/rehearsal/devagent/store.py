"""The state of the cluster and every write to it, where each write takes one raft index.

``kv`` has the rules for one key. The store knows what a write means for the other tables: the end of a
session takes its locks away, and the failure of a node ends its sessions.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from supervisor.rehearsal.devagent.delays import LockDelays
from supervisor.rehearsal.devagent.kv import Entry, KeyValues
from supervisor.rehearsal.devagent.messages import Rejected
from supervisor.rehearsal.devagent.sessions import DELETE, SERF_HEALTH, Sessions, StoredSession, new_id

FIRST_INDEX = 6  # a new cluster's own entries come before its first node
TOMBSTONE_S = 900.0  # tombstone_ttl; then a list's index may go backwards
NEVER = float("inf")
Written = TypeVar("Written")


class Store:
    """The tables, and what the leading server keeps in memory: lock-delays and the time of sessions."""

    def __init__(self, node: str, seed: int) -> None:
        self.index = FIRST_INDEX
        self.kv = KeyValues()
        self.sessions = Sessions()
        self.nodes: dict[str, bool] = {}  # whether the agent of each is alive: then its serfHealth passes
        self.services: dict[tuple[str, str], dict[str, Any]] = {}  # instances, by node of their agent and id
        self.delays = LockDelays()
        self.reapings: list[tuple[float, int]] = []
        self.source = random.Random(seed)
        self.join(node)

    def deadline(self) -> float:
        reapings = [at for at, _ in self.reapings]
        return min([*self.sessions.expiries.values(), *reapings], default=NEVER)

    def expire(self, now: float) -> None:
        """End the sessions and tombstones that are due at ``now``, in a fixed order."""
        for session_id in sorted(name for name, at in self.sessions.expiries.items() if at <= now):
            self._end_sessions([self.sessions.table[session_id]], now)
        for at, index in tuple(self.reapings):
            if at <= now:
                self.reapings.remove((at, index))
                self._commit()
                self.kv.reap(index)

    def set(self, entry: Entry, now: float) -> bool:
        self.write(lambda index: self.kv.set(entry, index), now)
        return True

    def cas(self, entry: Entry, now: float) -> bool:
        return self.write(lambda index: self.kv.cas(entry, index), now) is not None

    def lock(self, entry: Entry, now: float) -> bool:
        """Lock a key, unless another session holds it or its lock-delay runs."""
        if self.delays.holds(entry.key, now):
            return False
        return self.write(lambda index: self.lock_now(entry, index), now) is not None

    def lock_now(self, entry: Entry, index: int) -> Entry | None:
        """Lock a key even during a lock-delay."""
        if not entry.session:
            raise Rejected("missing session")
        if self.sessions.find(entry.session) is None:
            raise Rejected(f'invalid session "{entry.session}"')
        return self.kv.lock(entry, index)

    def unlock(self, entry: Entry, now: float) -> bool:
        return self.write(lambda index: self.kv.unlock(entry, index), now) is not None

    def delete(self, key: str, now: float) -> bool:
        self.write(lambda index: self.kv.delete(key, index), now)
        return True

    def delete_cas(self, key: str, expected: int, now: float) -> bool:
        return self.write(lambda index: self.kv.delete_cas(key, expected, index), now)

    def delete_tree(self, prefix: str, now: float) -> bool:
        self.write(lambda index: self.kv.delete_tree(prefix, index), now)
        return True

    def write(self, write: Callable[[int], Written], now: float) -> Written:
        """Make one write, or those of a transaction, at the next index."""
        index = self._commit()
        written = write(index)
        self._bury(now)
        return written

    def _bury(self, now: float) -> None:
        """Plan when the tombstones of the newest write are forgotten."""
        if self.index in self.kv.tombstones.values():
            self.reapings.append((now + TOMBSTONE_S, self.index))

    def create_session(self, wanted: StoredSession, now: float) -> StoredSession:
        """Make a session with a new id. Raises Rejected when its node or its checks do not allow it."""
        index = self._commit()
        alive = self.nodes.get(wanted.node)
        if alive is None:
            raise Rejected("Missing node registration")
        for name in wanted.checks:
            if name != SERF_HEALTH:
                raise Rejected(f"Missing check '{name}' registration")
            if not alive:
                raise Rejected(f"Check '{name}' is in critical state")
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
                    self.delays.start(entry.key, session.lock_delay_s, now, index)
            self._bury(now)

    def join(self, name: str) -> None:
        """Register a node whose agent is alive."""
        self._commit()
        self.nodes[name] = True

    def leave(self, name: str, now: float) -> None:
        """Remove a node and end all its sessions, whatever their checks."""
        del self.nodes[name]
        self._end_sessions(self._of_node(name), now)

    def set_alive(self, name: str, alive: bool, now: float) -> None:
        """Change a node's serfHealth; a critical one ends the sessions bound to it."""
        if self.nodes.get(name) in (None, alive):
            return
        self.nodes[name] = alive
        bound = [] if alive else [each for each in self._of_node(name) if SERF_HEALTH in each.checks]
        self._end_sessions(bound, now)

    def _of_node(self, name: str) -> list[StoredSession]:
        return [session for session in self.sessions.sorted() if session.node == name]

    def _commit(self) -> int:
        self.index += 1
        return self.index
