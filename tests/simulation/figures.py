"""What a simulation has seen, counted: faults by kind, failovers and what else there must be enough of."""

from collections import Counter

from supervisor.core.actions import Action, Became, Reason, Role
from supervisor.core.events import Event
from tests.simulation.judges import Judge
from tests.simulation.machine import Machine

FAILOVERS, EXPIRIES, ADOPTIONS, STUCK = "failovers", "lease expiries", "adoptions", "stuck"
TENURES, TURNS = "tenures", "turns"


class Figures(Judge):
    """``counts`` by name; those of faults begin with ``fault``, those of crash points with ``crash``."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._holder = ""
        self._stuck: dict[str, str] = {}

    def fault(self, kind: str) -> None:
        """One has come."""
        self.counts[f"fault: {kind}"] += 1

    def saw(self, machine: Machine, event: Event) -> None:
        """A turn."""
        self.counts[TURNS] += 1

    def died(self, machine: Machine, why: str) -> None:
        """By a fault or by the watchdog."""
        self.counts[f"crash: {why}"] += 1

    def did(self, machine: Machine, action: Action) -> None:
        """Roles that changed."""
        if not isinstance(action, Became):
            return
        if action.role is Role.HOLDING:
            self._holds(machine, action)
        elif action.role is Role.LOSING and action.reason == Reason.LEASE_EXPIRED:
            self.counts[EXPIRIES] += 1
        elif action.role is Role.STUCK:
            session = machine.application.session
            if self._stuck.get(machine.name) != session:
                self.counts[STUCK] += 1
            self._stuck[machine.name] = session

    def _holds(self, machine: Machine, action: Became) -> None:
        if action.reason == Reason.ADOPTED:
            self.counts[ADOPTIONS] += 1
            return
        self.counts[TENURES] += 1
        if self._holder not in ("", machine.name):
            self.counts[FAILOVERS] += 1
        self._holder = machine.name
