"""Counts of a simulation's faults by kind, of failovers, and of all else that must be frequent enough."""

from collections import Counter

from supervisor.core.actions import Action, Reason, Role, RoleChanged
from supervisor.core.events import Event
from tests.models.simulation.children import Child
from tests.models.simulation.holders import OfSlots
from tests.models.simulation.judges import Judge
from tests.models.simulation.machine import Machine

FAILOVERS, EXPIRIES, ADOPTIONS, STUCK = "failovers", "lease expiries", "adoptions", "stuck"
TENURES, TURNS = "tenures", "turns"
SEMAPHORES = "semaphores: "  # worlds with a semaphore are counted apart
PRUNED, BY_HAND = "slots pruned", "slots freed by hand"
HEADLINES = (
    *(FAILOVERS, EXPIRIES, ADOPTIONS, STUCK, TENURES, TURNS),
    *(SEMAPHORES + name for name in (PRUNED, BY_HAND, EXPIRIES, ADOPTIONS, STUCK, TENURES, TURNS)),
)


class Figures(Judge):
    """The counts of one simulation, by name.

    The names of faults begin with ``fault``, those of crash points with ``crash``.
    slots: whether the nodes take part in a semaphore.
    """

    def __init__(self, slots: OfSlots | None = None) -> None:
        self._slots = slots
        self._counts: Counter[str] = Counter()
        self._holder = ""
        self._stuck: dict[str, str] = {}

    @property
    def counts(self) -> Counter[str]:
        if self._slots is None:
            return self._counts
        pruned, freed = len(self._slots.prunings), len(self._slots.unguarded)
        counts = self._counts + Counter({PRUNED: pruned, BY_HAND: freed})
        return Counter({SEMAPHORES + name: count for name, count in counts.items()})

    def spawned(self, machine: Machine, child: Child) -> None:
        context = child.started.context
        if context.event == "acquire" and context.previous is not None:
            self._counts[f"tenure before: {context.previous.end}"] += 1

    def fault(self, kind: str) -> None:
        self._counts[f"fault: {kind}"] += 1

    def saw(self, machine: Machine, event: Event) -> None:
        self._counts[TURNS] += 1

    def died(self, machine: Machine, why: str) -> None:
        self._counts[f"crash: {why}"] += 1

    def did(self, machine: Machine, action: Action) -> None:
        if not isinstance(action, RoleChanged):
            return
        if action.role is Role.HOLDING:
            self._holds(machine, action)
        elif action.role is Role.LOSING and action.reason == Reason.LEASE_EXPIRED:
            self._counts[EXPIRIES] += 1
        elif action.role is Role.STUCK:
            session = machine.application.session
            if self._stuck.get(machine.name) != session:
                self._counts[STUCK] += 1
            self._stuck[machine.name] = session

    def _holds(self, machine: Machine, action: RoleChanged) -> None:
        if action.reason == Reason.ADOPTED:
            self._counts[ADOPTIONS] += 1
            return
        self._counts[TENURES] += 1
        if self._slots is None and self._holder not in ("", machine.name):
            self._counts[FAILOVERS] += 1
        self._holder = machine.name
