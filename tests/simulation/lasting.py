"""What must hold at the end, when nothing has gone wrong for a while: nobody is stuck for ever."""

from collections.abc import Sequence

from supervisor.core.actions import Role
from tests.simulation.judges import Judge, LoseForEveryAcquire
from tests.simulation.machine import Machine
from tests.simulation.trace import short

SOON_S = 30.0  # who may only rejoin so shortly before the end cannot be expected to lead


class OneHolderAtTheEnd(Judge):
    """Exactly one node holds, its application is up, everybody else's is down and owes nothing."""

    def __init__(self, machines: Sequence[Machine], lose: LoseForEveryAcquire) -> None:
        self._machines = machines
        self._lose = lose

    def conclude(self) -> None:
        """Raises Broken."""
        roles = {machine.name: self._role(machine) for machine in self._machines}
        holders = [machine for machine in self._machines if roles[machine.name] is Role.HOLDING]
        told = ", ".join(f"{name} is {role}" for name, role in roles.items())
        if any(self._could_lead(machine) for machine in self._machines):
            self.require(len(holders) == 1, f"after {SOON_S:g} s and more of calm {told}")
        for machine in self._machines:
            session = self._lose.owed.get(machine.name)
            if machine not in holders and machine.settings.on_lose:
                self.require(session is None, f"{machine.name} still owes on_lose for {short(session or '')}")
                self.require(not machine.application.up, f"{machine.name} still acts")

    def _role(self, machine: Machine) -> Role | None:
        return None if machine.supervisor is None else machine.supervisor.election.role

    def _could_lead(self, machine: Machine) -> bool:
        supervisor = machine.supervisor
        if supervisor is None:
            return False
        return supervisor.election.rejoin_at < supervisor.now() - SOON_S
