"""The state of the cluster and every write to it: one raft index a write, whatever comes of it.

Time is an argument. The rules for one key are in ``kv``; here is what a write means for the other
tables: the end of a session takes its locks away, a check that turns critical ends sessions. It
must never answer a request: it knows no HTTP, and nobody who waits.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from supervisor.devagent.catalog import CRITICAL, Catalog, Check, Node
from supervisor.devagent.delays import LockDelays
from supervisor.devagent.kv import Entry, KeyValues, held_by
from supervisor.devagent.messages import Refused
from supervisor.devagent.sessions import DELETE, Session, Sessions, look_up, new_id

FIRST_INDEX = 6  # a new cluster's own entries come before its first node
TOMBSTONE_S = 900.0  # tombstone_ttl; then a list's index may go backwards
NEVER = float("inf")
Written = TypeVar("Written")


class Store:
    """The tables, and the memory of the server that leads (lock-delays, the time of sessions)."""

    def __init__(self, node: str, seed: int) -> None:
        self.index = FIRST_INDEX
        self.kv = KeyValues()
        self.sessions = Sessions()
        self.catalog = Catalog()
        self.delays = LockDelays()
        self.check_expiries: dict[tuple[str, str], float] = {}
        self.reapings: list[tuple[float, int]] = []
        self.source = random.Random(seed)
        self.join(node)

    # --- time ------------------------------------------------------------------------------------

    def deadline(self) -> float:
        """When something of this state ends by itself: a session, a check's status, tombstones."""
        reapings = [at for at, _ in self.reapings]
        expiries = [*self.sessions.expiries.values(), *self.check_expiries.values()]
        return min(expiries + reapings, default=NEVER)

    def expire(self, now: float) -> None:
        """End what is due at ``now``, in a fixed order."""
        for key in sorted(key for key, at in self.sessions.expiries.items() if at <= now):
            if key in self.sessions.table:
                self._end_sessions([self.sessions.table[key]], now)
        for node, check in sorted(name for name, at in self.check_expiries.items() if at <= now):
            del self.check_expiries[node, check]
            self.set_check(node, check, CRITICAL, "TTL expired", now)
        for at, index in tuple(self.reapings):
            if at <= now:
                self.reapings.remove((at, index))
                self._commit()
                self.kv.reap(index)

    # --- keys ------------------------------------------------------------------------------------

    def set(self, entry: Entry, now: float) -> bool:
        """A plain write."""
        self._keys(lambda index: self.kv.set(entry, index), now)
        return True

    def cas(self, entry: Entry, now: float) -> bool:
        """A write that depends on the key's ModifyIndex."""
        return self._keys(lambda index: self.kv.cas(entry, index), now) is not None

    def lock(self, entry: Entry, now: float) -> bool:
        """False when another holds the key, or its lock-delay runs (which is looked at first)."""
        if self.delays.holds(entry.key, now):
            return False
        return self._keys(lambda index: self.lock_at(self.kv, entry, index), now) is not None

    def lock_at(self, kv: KeyValues, entry: Entry, index: int) -> Entry | None:
        """The lock itself, in this table or in a transaction's copy of it."""
        if not entry.session:
            raise Refused("missing session")
        if self.sessions.find(entry.session) is None:
            raise Refused(f'invalid session "{entry.session}"')
        return kv.lock(entry, index)

    def unlock(self, entry: Entry, now: float) -> bool:
        """False when this session does not hold the key."""
        return self._keys(lambda index: self.kv.unlock(entry, index), now) is not None

    def delete(self, key: str, now: float) -> bool:
        """Remove one key."""
        self._keys(lambda index: self.kv.delete(key, index), now)
        return True

    def delete_cas(self, key: str, expected: int, now: float) -> bool:
        """Remove one key if its ModifyIndex is as expected."""
        return self._keys(lambda index: self.kv.delete_cas(key, expected, index), now)

    def delete_tree(self, prefix: str, now: float) -> bool:
        """Remove all keys with the prefix."""
        self._keys(lambda index: self.kv.delete_tree(prefix, index), now)
        return True

    def transact(self, write: Callable[[KeyValues, int], bool], now: float) -> None:
        """Several writes with one index on a copy of the table, kept when ``write`` says so."""

        def attempt(index: int) -> None:
            copy = self.kv.copy()
            if write(copy, index):
                self.kv = copy

        self._keys(attempt, now)

    def _keys(self, write: Callable[[int], Written], now: float) -> Written:
        index = self._commit()
        written = write(index)
        self._bury(now)
        return written

    def _bury(self, now: float) -> None:
        """The tombstones of the newest write are forgotten in time."""
        if self.index in self.kv.tombstones.values():
            self.reapings.append((now + TOMBSTONE_S, self.index))

    # --- sessions --------------------------------------------------------------------------------

    def create_session(self, wanted: Session, now: float) -> Session:
        """A session with a new id. Raises Refused when its node or checks do not allow it."""
        index = self._commit()
        node = self.catalog.node(wanted.node)
        if node is None:
            raise Refused("Missing node registration")
        for name in wanted.check_ids:
            check = node.checks.get(name.lower())
            if check is None:
                raise Refused(f"Missing check '{name}' registration")
            if check.status == CRITICAL:
                raise Refused(f"Check '{name}' is in critical state")
        session = replace(wanted, id=new_id(self.source), create_index=index)
        self.sessions.add(session, now)
        return session

    def destroy_session(self, session_id: str, now: float) -> None:
        """End a session; an unknown one has ended already. Raises Refused for what is no id."""
        key = look_up(session_id)
        session = self.sessions.table.get(key)
        if session is None:
            self._commit()
        else:
            self._end_sessions([session], now)

    def _end_sessions(self, sessions: Iterable[Session], now: float) -> None:
        index = self._commit()
        for session in sessions:
            self._end_session(session, now, index)

    def _end_session(self, session: Session, now: float, index: int) -> None:
        self.sessions.remove(session, index)
        for entry in held_by(tuple(self.kv.entries.values()), look_up(session.id)):
            if session.behavior == DELETE:
                self.kv.delete(entry.key, index)
            else:
                self.kv.free(entry, index)
            if session.lock_delay_s > 0:
                self.delays.start(entry.key, session.lock_delay_s, now, index)
        self._bury(now)

    # --- nodes and checks ------------------------------------------------------------------------

    def join(self, name: str) -> Node:
        """A node's agent is alive and registered."""
        return self.catalog.join(name, self._commit())

    def leave(self, name: str, now: float) -> None:
        """A node's agent has left: all its sessions end, whatever their checks."""
        self.catalog.nodes.pop(name.lower())
        self.catalog.index = self.index + 1
        self._end_sessions(self.sessions.of_node(name), now)
        self.check_expiries = {key: at for key, at in self.check_expiries.items() if key[0] != name.lower()}

    def put_check(self, node: Node, check: Check, now: float) -> None:
        """Register a check, or change one; turned critical, it ends the sessions bound to it."""
        index = self._commit()
        key = check.id.lower()
        known = node.checks.get(key)
        created = known.create_index if known else index
        node.checks[key] = replace(check, create_index=created, modify_index=index)
        self.catalog.index = index
        self._time_check(node, check, now)
        if check.status == CRITICAL:
            self._end_bound(node, check.id, now, index)

    def set_check(self, node_name: str, check_id: str, status: str, output: str, now: float) -> None:
        """Change a known check's status; the same status and output again is no write."""
        node = self.catalog.node(node_name)
        check = node.checks.get(check_id.lower()) if node else None
        if node is None or check is None:
            return
        self._time_check(node, replace(check, status=status), now)
        if (check.status, check.output) != (status, output):
            self.put_check(node, replace(check, status=status, output=output), now)

    def remove_check(self, node: Node, check_id: str, now: float) -> None:
        """A check is registered no more; the sessions bound to it end."""
        key = check_id.lower()
        if node.checks.pop(key, None) is not None:
            self.check_expiries.pop((node.name.lower(), key), None)
            self.catalog.index = self._commit()
            self._end_bound(node, check_id, now, self.index)

    def _time_check(self, node: Node, check: Check, now: float) -> None:
        key = (node.name.lower(), check.id.lower())
        self.check_expiries.pop(key, None)
        if check.ttl_s is not None and check.status != CRITICAL:
            self.check_expiries[key] = now + check.ttl_s

    def _end_bound(self, node: Node, check_id: str, now: float, index: int) -> None:
        for session in self.sessions.of_node(node.name):
            if check_id.lower() in (name.lower() for name in session.check_ids):
                self._end_session(session, now, index)

    def _commit(self) -> int:
        self.index += 1
        return self.index
