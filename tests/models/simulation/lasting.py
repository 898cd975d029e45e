"""Promises for the end, when no fault has come for a while: no node is stuck for ever."""

from abc import abstractmethod
from collections.abc import Sequence

from supervisor.config.formats import tenure_record
from supervisor.core.actions import Role
from supervisor.core.claim.record import TENURE_SUFFIX
from supervisor.core.settings import ElectionSettings, SemaphoreSettings
from supervisor.rehearsal.devagent.store import Store
from tests.models.simulation.files import KEY
from tests.models.simulation.holders import OfSlots
from tests.models.simulation.judges import Judge, LoseForEveryAcquire
from tests.models.simulation.machine import Machine
from tests.models.simulation.trace import short

SOON_S = 30.0  # a node that may only rejoin this shortly before the end cannot be expected to lead


class AtTheEnd(Judge):
    """At the end the nodes that are able hold all that can be held.

    A node that does not hold has its application down and owes nothing.
    """

    def __init__(self, machines: Sequence[Machine], lose: LoseForEveryAcquire) -> None:
        self._machines = machines
        self._lose = lose

    def conclude(self) -> None:
        roles = {machine.name: self._role(machine) for machine in self._machines}
        holders = [machine for machine in self._machines if roles[machine.name] is Role.HOLDING]
        self._count(holders, ", ".join(f"{name} is {role}" for name, role in roles.items()))
        for machine in self._machines:
            session = self._lose.owed.get(machine.name)
            if machine not in holders and machine.settings.on_lose:
                self.require(session is None, f"{machine.name} still owes on_lose for {short(session or '')}")
                self.require(not machine.application.up, f"{machine.name} still acts")

    @abstractmethod
    def _count(self, holders: Sequence[Machine], told: str) -> None:
        """Check that as many nodes hold as should."""

    def _role(self, machine: Machine) -> Role | None:
        return None if machine.supervisor is None else machine.supervisor.contender.role

    def _is_able(self, machine: Machine) -> bool:
        supervisor = machine.supervisor
        if supervisor is None:
            return False
        contender = supervisor.contender
        return max(contender.rejoin_at, contender.rests_until) < supervisor.now() - SOON_S


class OneHolderAtTheEnd(AtTheEnd):
    """Exactly one node holds, and with a fence the tenure record names it."""

    def __init__(self, machines: Sequence[Machine], lose: LoseForEveryAcquire, store: Store) -> None:
        super().__init__(machines, lose)
        self._store = store

    def _count(self, holders: Sequence[Machine], told: str) -> None:
        if any(self._is_able(machine) for machine in self._machines):
            self.require(len(holders) == 1, f"after {SOON_S:g} s and more of calm {told}")
        entry = self._store.kv.get(KEY + TENURE_SUFFIX)
        recorded = "" if entry is None else tenure_record.decoded(entry.value, entry.modify_index).session
        for machine in holders:
            settings = machine.settings
            if isinstance(settings, ElectionSettings) and settings.fence is not None:
                words = f"{machine.name} holds, and the tenure record names {short(recorded) or 'nobody'}"
                self.require(recorded == machine.session, words)


class EverySlotAtTheEnd(AtTheEnd):
    """All slots of a waiting node's limit have holders, and no node holds without a slot.

    More nodes may hold than there are slots by now, because a lower limit evicts none.
    """

    def __init__(self, machines: Sequence[Machine], lose: LoseForEveryAcquire, slots: OfSlots) -> None:
        super().__init__(machines, lose)
        self._slots = slots

    def _count(self, holders: Sequence[Machine], told: str) -> None:
        for machine in holders:
            self.require(machine.session in self._slots.holders, f"{machine.name} holds without a slot")
        for machine in self._machines:
            if machine not in holders and self._is_able(machine):
                limit = self._limit(machine)
                words = f"{machine.name} waits although there are {limit} slots"
                self.require(len(holders) >= limit, f"after {SOON_S:g} s and more of calm {words}: {told}")

    def _limit(self, machine: Machine) -> int:
        settings, slot_record = machine.settings, self._slots.slot_record
        assert isinstance(settings, SemaphoreSettings)
        if slot_record is None or slot_record.limit is None:
            return settings.limit
        return min(settings.limit, slot_record.limit)
