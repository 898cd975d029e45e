"""The faults: for each kind of the plan one function, which makes it happen.

A function returns False when its fault could affect no machine at that moment; the fault is then tried again
a little later. No fault lasts into the calm at the end.
"""

import random
from collections.abc import Callable
from functools import partial

from supervisor.core.actions import Action, Role, RoleChanged
from supervisor.core.events import (
    ConfigLoaded,
    OrderSeen,
    PauseAsked,
    RecoverAsked,
    ResumeAsked,
    StepDownAsked,
)
from supervisor.core.settings import Wanted
from tests.models.simulation.cluster import Cluster
from tests.models.simulation.figures import Figures
from tests.models.simulation.files import ITEM, another_file
from tests.models.simulation.hands import Hands
from tests.models.simulation.judges import Judge
from tests.models.simulation.machine import Machine
from tests.models.simulation.scenario import CALM_FROM_S, Fault
from tests.models.simulation.schedule import Schedule
from tests.models.simulation.supervisor import Doom
from tests.models.simulation.trace import short

AGAIN_AFTER_S = 2.0
NOTICED_S = 6.0  # time from an agent's death until serf notices it
DOOM_S = 40.0  # a supervisor that has not met its action by then is killed in any case

# Condition by kind, and how long it lasts.
CONDITIONS = {
    "requests lost": (1.0, 25.0),
    "answers lost": (1.0, 25.0),
    "cut off": (2.0, 30.0),
    "lossy": (5.0, 40.0),
    "delays": (5.0, 30.0),
    "late writes": (5.0, 40.0),
    "duplicates": (5.0, 40.0),
    "slow agent": (5.0, 30.0),
    "silent agent": (1.0, 25.0),
    "slow hooks": (5.0, 30.0),
    "disk full": (1.0, 25.0),
    "altered sessions": (5.0, 40.0),
}

# Where a supervisor is killed. The points of a loss come soon only when something causes a loss.
OFTEN = {
    "election": ("RenewSession", "ReadKey", "WatchKey", "WriteRecord holding"),
    "semaphore": ("RenewSession", "ReadSlots", "WatchSlots", "WriteRecord holding"),
}
LOSING = (
    *("DestroySession", "StartHook acquire", "StartHook lose", "StartHook lose"),
    *("KillHook", "StartRun", "StopRun", "WriteRecord session", "WriteRecord tenure", "WriteRecord tenure"),
    *("WriteRecord losing", "WriteRecord losing", "WriteRecord none"),
)
SELDOM = {
    "election": (
        *("CreateSession", "ReadSession", "Acquire", "Release", "MarkTenure", "StartHook fence", *LOSING),
    ),
    "semaphore": ("CreateSession", "ReadKey", "JoinSemaphore", "TakeSlot", "LeaveSemaphore", *LOSING),
}
WITHIN = ("WriteRecord", "StartHook", "StartRun")  # in a write; with a child whose group is not on record


class Faults:
    """The plan of one simulation, and the functions that carry it out."""

    def __init__(
        self, machines: tuple[Machine, ...], cluster: Cluster, schedule: Schedule, figures: Figures
    ) -> None:
        self._machines = machines
        self._cluster = cluster
        self._schedule = schedule
        self._figures = figures
        self._hands = Hands(cluster)
        self._kinds: dict[str, Callable[[Machine, random.Random], bool]] = {
            "agent restart": self._agent_restart,
            "agent leaves": self._agent_leaves,
            "leader change": self._leader_change,
            "no leader": self._no_leader,
            "server restart": self._server_restart,
            "crash": self._crash,
            "crash at an action": self._crash_at_an_action,
            "freeze": partial(self._stand_still, longest_s=12.0, whole=False),
            "machine paused": partial(self._stand_still, longest_s=30.0, whole=True),
            "another file": self._another_file,
            "stop": self._stop,
            "reboot": self._reboot,
            "failing hooks": self._failing_hooks,
            "run exits": self._run_exits,
            "unfit": self._unfit,
            "paused": self._paused,
            "ordered": self._ordered,
            **self._hands.kinds,
        }

    def plan(self, faults: tuple[Fault, ...]) -> None:
        for fault in faults:
            self._schedule.at(fault.at, self._come, fault, random.Random(fault.dice))

    def _come(self, fault: Fault, dice: random.Random) -> None:
        machine = self._target(fault, dice)
        if machine is not None and self._befall(fault.kind, machine, dice):
            self._figures.fault(fault.kind)
        elif self._schedule.now + AGAIN_AFTER_S < CALM_FROM_S:
            self._schedule.after(AGAIN_AFTER_S, self._come, fault, dice)

    def _befall(self, kind: str, machine: Machine, dice: random.Random) -> bool:
        if kind in CONDITIONS:
            return self._condition(machine, kind, CONDITIONS[kind], dice)
        return self._kinds[kind](machine, dice)

    def _target(self, fault: Fault, dice: random.Random) -> Machine | None:
        running = [machine for machine in self._machines if machine.supervisor is not None]
        holders = [machine for machine in running if _holds(machine, self._cluster)]
        if fault.at_holder and holders:
            return holders[0] if len(holders) == 1 else dice.choice(holders)
        return dice.choice(running) if running else None

    def _lasts(self, dice: random.Random, shortest_s: float, longest_s: float) -> float:
        return max(0.0, min(dice.uniform(shortest_s, longest_s), CALM_FROM_S - self._schedule.now))

    # --- conditions ----------------------------------------------------------------------------------

    def _condition(
        self, machine: Machine, kind: str, lasts_s: tuple[float, float], dice: random.Random
    ) -> bool:
        for_s = self._lasts(dice, *lasts_s)
        machine.suffer(kind, for_s)
        machine.note(f"FAULT {kind} for {for_s:.1f} s")
        return True

    def _failing_hooks(self, machine: Machine, dice: random.Random) -> bool:
        self._condition(machine, "failing hooks", (3.0, 20.0), dice)
        if dice.random() < 0.6:
            self._schedule.after(dice.uniform(0.5, 2.0), self._provoke_loss, machine, dice)
        return True

    def _unfit(self, machine: Machine, dice: random.Random) -> bool:
        if machine.settings.candidate_check is None:
            return self._failing_hooks(machine, dice)
        return self._condition(machine, "unfit", (5.0, 40.0), dice)

    def _run_exits(self, machine: Machine, dice: random.Random) -> bool:
        for child in tuple(machine.children.alive):
            if machine.children.exit(child):
                machine.note("FAULT the run child exits")
                return True
        return False

    # --- Consul ---------------------------------------------------------------------------------------

    def _agent_restart(self, machine: Machine, dice: random.Random) -> bool:
        for_s = self._lasts(dice, 0.3, 12.0)
        self._condition(machine, "agent down", (for_s, for_s), dice)
        machine.network.hang_up()
        if for_s > NOTICED_S:
            self._schedule.after(NOTICED_S, self._cluster.node_fails, machine.name)
            self._schedule.after(for_s, self._cluster.node_recovers, machine.name)
        return True

    def _agent_leaves(self, machine: Machine, dice: random.Random) -> bool:
        self._condition(machine, "agent down", (1.0, 5.0), dice)
        machine.network.hang_up()
        self._cluster.node_leaves(machine.name)
        return True

    def _leader_change(self, machine: Machine, dice: random.Random) -> bool:
        self._cluster.note("FAULT another server leads")
        self._cluster.change_leader()
        return True

    def _no_leader(self, machine: Machine, dice: random.Random) -> bool:
        for_s = self._lasts(dice, 1.0, 15.0)
        self._cluster.note(f"FAULT no server leads for {for_s:.1f} s")
        self._cluster.lose_leader()
        self._schedule.after(for_s, self._cluster.elect_leader)
        return True

    def _server_restart(self, machine: Machine, dice: random.Random) -> bool:
        for_s = self._lasts(dice, 0.3, 8.0)
        self._cluster.note(f"FAULT the server restarts, back in {for_s:.1f} s")
        self._cluster.restart(for_s)
        return True

    # --- the supervisor ---------------------------------------------------------------------------------

    def _crash(self, machine: Machine, dice: random.Random) -> bool:
        long = dice.random() < 0.2
        machine.crash("at any time", restart_s=self._lasts(dice, 5.0, 60.0) if long else None)
        return True

    def _crash_at_an_action(self, machine: Machine, dice: random.Random) -> bool:
        if machine.doom is not None:
            return False
        kind = machine.settings.kind
        label = dice.choice((OFTEN if dice.random() < 0.25 else SELDOM)[kind])
        within = label.startswith(WITHIN)
        moments = ("before", "after", "within") if within else ("before", "after")
        machine.doom = Doom(label, dice.choice(moments))
        machine.note(f"FAULT is to be killed {machine.doom.moment} {label}")
        self._schedule.after(self._lasts(dice, DOOM_S, DOOM_S), self._doom_is_over, machine, machine.doom)
        if label in SELDOM[kind] and label != "CreateSession":
            self._schedule.after(dice.uniform(0.5, 5.0), self._provoke_loss, machine, dice)
        return True

    def _doom_is_over(self, machine: Machine, doom: Doom) -> None:
        if machine.doom is doom:
            machine.doom = None
            machine.crash("its action has not come")

    def _stand_still(self, machine: Machine, dice: random.Random, *, longest_s: float, whole: bool) -> bool:
        if machine.supervisor is None or machine.supervisor.still:
            return False
        machine.freeze(self._lasts(dice, 0.5, longest_s), whole=whole)
        return True

    def _stop(self, machine: Machine, dice: random.Random) -> bool:
        if machine.supervisor is None or machine.supervisor.stopping:
            return False
        machine.note("FAULT is asked to stop")
        machine.supervisor.stop()
        return True

    def _another_file(self, machine: Machine, dice: random.Random) -> bool:
        """Replace the file; the supervisor reloads it, or the next one reads it after a crash or a stop."""
        machine.settings = another_file(machine.settings, machine.name, dice)
        machine.note("FAULT another file")
        if dice.random() < 0.5:
            return self._reload(machine, dice)
        if dice.random() < 0.3:
            return self._stop(machine, dice)
        machine.crash("with another file")
        return True

    def _reload(self, machine: Machine, dice: random.Random) -> bool:
        """Reload the file; sometimes the next file or a crash follows soon."""
        if machine.supervisor is None or machine.supervisor.stopping:
            return False
        machine.note("reloads")
        known = machine.supervisor.contender.withheld
        machine.supervisor.deliver(
            ConfigLoaded((Wanted(machine.settings, dice.random(), withheld=known),), f"r{dice.random()}")
        )
        if dice.random() < 0.3:
            self._schedule.after(self._lasts(dice, 0.01, 3.0), self._another_file, machine, dice)
        return True

    def _reboot(self, machine: Machine, dice: random.Random) -> bool:
        machine.reboot(self._lasts(dice, 3.0, 20.0))
        return True

    def _provoke_loss(self, machine: Machine, dice: random.Random) -> None:
        """Make the holder lose: in order, or because an operator destroys its session."""
        if machine.supervisor is None or not _holds(machine, self._cluster):
            return
        roll = dice.random()
        if roll < 0.4:
            self._stop(machine, dice)
        elif roll < 0.55:
            target = self._another(machine, dice)
            machine.note(f"FAULT is asked to step down{f', to {short(target)}' if target else ''}")
            machine.supervisor.deliver(StepDownAsked(ITEM, self._lasts(dice, 0.0, 20.0), target))
        else:
            self._hands.session_destroyed(machine, dice)

    def _another(self, machine: Machine, dice: random.Random) -> str:
        """Return a session for a hand-over: of a node, or of no living one; blank for none."""
        others = (other.session for other in self._machines if other is not machine and other.session)
        return dice.choice(("", "dead", *others))

    # --- pauses -------------------------------------------------------------------------------------------

    def _paused(self, machine: Machine, dice: random.Random) -> bool:
        if machine.supervisor is None:
            return False
        machine.note("FAULT an operator pauses it")
        machine.supervisor.deliver(PauseAsked(ITEM))
        self._schedule.after(self._lasts(dice, 5.0, 40.0), self._follow, machine, ResumeAsked(ITEM), True)
        return True

    # --- orders for the whole fleet -------------------------------------------------------------------------

    def _ordered(self, machine: Machine, dice: random.Random) -> bool:
        """Order a pause or a step-down. It reaches each node late, twice, long after its end, or never."""
        if dice.random() < 0.5:
            session = dice.choice(tuple(each.session or "dead" for each in self._machines))
            self._spread(StepDownAsked(ITEM, dice.uniform(0.0, 20.0), session=session), dice, 30.0)
            return True
        for_s = self._lasts(dice, 5.0, 40.0)
        self._spread(OrderSeen(ITEM, withheld=True), dice, for_s)
        for each in self._machines:  # a node learns of the end sooner or later, and then as often as it asks
            self._schedule.after(for_s, self._follow, each, OrderSeen(ITEM, withheld=False), True)
        return True

    def _spread(self, order: OrderSeen | StepDownAsked, dice: random.Random, within_s: float) -> None:
        for each in self._machines:
            for _ in range(dice.choice((0, 1, 1, 2))):
                self._schedule.after(self._lasts(dice, 0.0, within_s), self._follow, each, order, False)

    def _follow(self, machine: Machine, order: OrderSeen | StepDownAsked | ResumeAsked, again: bool) -> None:
        if machine.supervisor is not None:
            machine.note(f"FAULT sees an order: {order}")
            machine.supervisor.deliver(order)
        elif again:
            self._schedule.after(AGAIN_AFTER_S, self._follow, machine, order, again)


class Operator(Judge):
    """An operator that notices a stuck node, ends its application, and sends its supervisor a recover."""

    def __init__(self, dice: random.Random, schedule: Schedule) -> None:
        self._dice = dice
        self._schedule = schedule

    def did(self, machine: Machine, action: Action) -> None:
        """Notice a node that has become stuck, or is stuck after a restart."""
        if isinstance(action, RoleChanged) and action.role is Role.STUCK:
            soonest_s, latest_s = (1.0, 5.0) if self._schedule.now > CALM_FROM_S else (5.0, 30.0)
            self._schedule.after(self._dice.uniform(soonest_s, latest_s), self._recover, machine)

    def _recover(self, machine: Machine) -> None:
        if machine.supervisor is None:
            return  # the next supervisor of the node will notify again
        machine.application.down()
        machine.note("an operator recovers it")
        machine.supervisor.deliver(RecoverAsked(ITEM))


def _holds(machine: Machine, cluster: Cluster) -> bool:
    return machine.supervisor is not None and machine.session in cluster.witness.holders
