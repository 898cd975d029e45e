"""Acts of operators on sessions and keys in Consul, past every supervisor.

Each act changes what the machine holds, if it holds anything, and returns False when there is nothing to
change.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from supervisor.adapters.consul.semaphore import SEMAPHORE_FLAGS
from supervisor.config.formats import slot_record as rosters
from supervisor.core.requests import SlotRecord
from tests.models.simulation.cluster import Cluster
from tests.models.simulation.files import KEY, LIMIT_MAX, PREFIX
from tests.models.simulation.holders import LOCK
from tests.models.simulation.machine import Machine
from tests.models.simulation.trace import short

Hand = Callable[[Machine, random.Random], bool]


class Hands:
    """The acts of an operator of this cluster.

    kinds: each act by its words in the plan.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.kinds: dict[str, Hand] = {
            "session destroyed": self.session_destroyed,
            "key released": partial(self._freed, "PUT", "releases", "?release={}"),
            "key deleted": partial(self._freed, "DELETE", "deletes", ""),
            "limit changed": self._limit_changed,
            "slot removed": self._slot_removed,
            "record deleted": self._record_deleted,
            "contender deleted": self._contender_deleted,
        }
        self._cluster = cluster

    def session_destroyed(self, machine: Machine, dice: random.Random) -> bool:
        holder = self._holder(machine)
        if holder:
            self._do("PUT", f"session/destroy/{holder}", "destroys the holder's session")
        return bool(holder)

    # --- an election's key -------------------------------------------------------------------------

    def _freed(self, method: str, does: str, query: str, machine: Machine, dice: random.Random) -> bool:
        holder = self._holder(machine)
        if holder:
            self._cluster.witness.freed_by_hand(holder)
            self._do(method, f"kv/{KEY}{query.format(holder)}", f"{does} the key")
        return bool(holder)

    # --- a semaphore's record and contender keys ---------------------------------------------------

    def _limit_changed(self, machine: Machine, dice: random.Random) -> bool:
        slot_record = self._slot_record
        if slot_record is None:
            return False
        limit = dice.choice([each for each in range(1, LIMIT_MAX + 2) if each != slot_record.limit])
        self._edit(replace(slot_record, limit=limit), f"makes the limit {limit}")
        return True

    def _slot_removed(self, machine: Machine, dice: random.Random) -> bool:
        slot_record, holder = self._slot_record, self._holder(machine)
        if slot_record is None or not holder:
            return False
        self._cluster.witness.freed_by_hand(holder)
        left = tuple(each for each in slot_record.holders if each != holder)
        self._edit(replace(slot_record, holders=left), f"takes {short(holder)} out of the record")
        return True

    def _record_deleted(self, machine: Machine, dice: random.Random) -> bool:
        is_there = self._slot_record is not None
        if is_there:
            self._do("DELETE", f"kv/{LOCK}", "deletes the record")
        return is_there

    def _contender_deleted(self, machine: Machine, dice: random.Random) -> bool:
        """Delete the contender key of this machine, which holds or waits."""
        session = machine.session
        if session:
            self._do("DELETE", f"kv/{PREFIX}/{session}", f"deletes the contender key of {short(session)}")
        return bool(session)

    @property
    def _slot_record(self) -> SlotRecord | None:
        slots = self._cluster.slots
        return None if slots is None else slots.slot_record

    def _edit(self, slot_record: SlotRecord, words: str) -> None:
        assert self._cluster.slots is not None
        target = f"kv/{LOCK}?cas={self._cluster.slots.index}&flags={SEMAPHORE_FLAGS}"
        self._do("PUT", target, words, rosters.encoded(slot_record))

    # --- both --------------------------------------------------------------------------------------

    def _holder(self, machine: Machine) -> str:
        """Return the machine's session if it holds, else another holder's; blank when there is no holder."""
        holders = self._cluster.witness.holders
        return machine.session if machine.session in holders else "".join(holders[:1])

    def _do(self, method: str, target: str, words: str, body: bytes = b"") -> None:
        self._cluster.note(f"FAULT an operator {words}")
        self._cluster.operator(method, f"/v1/{target}", body)
