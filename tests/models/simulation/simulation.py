"""One seed: ten minutes of a few supervisors, the faults, and the judges."""

import hashlib
import random
from pathlib import Path

from tests.models.simulation import judges as each_state
from tests.models.simulation.cluster import Cluster
from tests.models.simulation.faults import Faults, Operator
from tests.models.simulation.figures import Figures
from tests.models.simulation.judges import Judge, Judges, LoseForEveryAcquire, OneActs, TokensGrow
from tests.models.simulation.lasting import AtTheEnd, EverySlotAtTheEnd, OneHolderAtTheEnd
from tests.models.simulation.machine import Machine
from tests.models.simulation.scenario import DURATION_S, Scenario, scenario_of
from tests.models.simulation.schedule import Schedule
from tests.models.simulation.slot_judges import LimitKept, PrunesLate, TokensOfSlots
from tests.models.simulation.trace import Trace


class Simulation:
    """The simulation of one seed.

    ``run`` raises Broken when a promise is not kept; ``trace`` has the events before it.
    folder: holds the nodes' disks.
    scenario: replaces the seed's own scenario.
    """

    def __init__(self, seed: int, folder: Path, scenario: Scenario | None = None) -> None:
        self.scenario = scenario = scenario or scenario_of(seed)
        self.trace = Trace()
        self.schedule = Schedule()
        cluster = self.cluster = Cluster(seed, scenario.nodes, self.schedule, self.trace, scenario.kind)
        self.figures = Figures(cluster.slots)
        machines = self.machines = list[Machine]()
        lose = LoseForEveryAcquire()
        self._at_the_end: AtTheEnd
        of_kind: tuple[Judge, ...]
        if (slots := cluster.slots) is None:
            of_kind = OneActs(machines, cluster.witness, fenced=scenario.fenced), TokensGrow()
            self._at_the_end = OneHolderAtTheEnd(machines, lose, cluster.model.store)
        else:
            of_kind = LimitKept(machines, slots), PrunesLate(slots), TokensOfSlots(slots)
            self._at_the_end = EverySlotAtTheEnd(machines, lose, slots)
        judges = Judges(
            (
                self.figures,
                *of_kind,
                lose,
                each_state.OneHookAtATime(),
                each_state.WritesGoForward(),
                each_state.NoReleaseWhileActing(),
                each_state.Gentle(),
                each_state.BeliefHasRoom(),
                each_state.OnRecordFirst(),
                each_state.FollowsOrders(),
                Operator(random.Random(f"operator {seed}"), self.schedule),
            )
        )
        for name, settings, rate in zip(scenario.nodes, scenario.settings, scenario.rates, strict=True):
            machine = Machine(
                name,
                settings,
                rate,
                seed=seed,
                folder=folder / name,
                cluster=cluster,
                schedule=self.schedule,
                trace=self.trace,
                judges=judges,
                fence=self._fence,
            )
            machines.append(machine)
            self.schedule.at(machine.dice.random(), machine.start)
        Faults(tuple(machines), cluster, self.schedule, self.figures).plan(scenario.faults)

    def run(self) -> None:
        """Run ten minutes. Raises Broken."""
        try:
            self.schedule.run(DURATION_S)
            self._at_the_end.conclude()
        finally:
            for machine in self.machines:
                machine.power_off()

    def _fence(self, target: str) -> None:
        """Switch off the machine of this name, which boots again."""
        next(machine for machine in self.machines if machine.name == target).reset("another node")

    def digest(self) -> str:
        return hashlib.sha256("\n".join(self.trace.lines()).encode()).hexdigest()
