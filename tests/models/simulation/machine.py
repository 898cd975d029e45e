"""One node: its clock, disk, network, processes and application, and the supervisor while it runs.

A fault is either a condition that lasts until a time, or an act: a crash of the supervisor, a machine that
stands still or loses its power.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.adapters.journal import MachineIdentity, Recorded
from supervisor.core.actions import StartHook, StartRun
from supervisor.core.settings import ItemSettings, Place
from supervisor.daemon.restore import transitions_of
from tests.models.simulation.application import NEVER, Application
from tests.models.simulation.children import Child, Children, Started
from tests.models.simulation.cluster import Cluster
from tests.models.simulation.disk import Disk
from tests.models.simulation.network import Network
from tests.models.simulation.schedule import Schedule
from tests.models.simulation.supervisor import Doom, Supervisor, group_of
from tests.models.simulation.trace import Trace
from tests.models.simulation.watchdog import MachineKernel

if TYPE_CHECKING:
    from tests.models.simulation.judges import Judge

RESTART_S = (1.0, 1.3)  # RestartSec, and the time of a start
WATCHDOG_S = 10.0
SHOT_ALL_THE_SAME = 0.3  # the share of fences that fail, or are killed, and have hit
UNSEEN_S = 2.1  # a loop that stood still for longer is surely late
BOOTED_S = 5.0  # time of the clock when the first supervisor of a boot starts


class Clock:
    """CLOCK_BOOTTIME of a machine: ``rate`` of its seconds in a second of the simulation."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._zero = -BOOTED_S

    def boot(self, now: float) -> None:
        self._zero = now - BOOTED_S

    def local(self, now: float) -> float:
        """Return the time that it shows."""
        return (now - self._zero) * self.rate

    def true(self, local: float) -> float:
        """Return the time of the simulation at which it shows this."""
        return local / self.rate + self._zero

    def span(self, local_s: float) -> float:
        """Return how long this number of its seconds takes."""
        return local_s / self.rate


class Machine:
    """A node of the simulation.

    conditions: its conditions, and until when each lasts.
    doom: the point at which its supervisor is going to be killed.
    fence: switches off the machine of this name.
    moved_at: the time from which it moves again, after it stood still for longer than any step may be late.
    """

    def __init__(
        self,
        name: str,
        settings: ItemSettings,
        rate: float,
        *,
        seed: int,
        folder: Path,
        cluster: Cluster,
        schedule: Schedule,
        trace: Trace,
        judges: Judge,
        fence: Callable[[str], None],
    ) -> None:
        self.name = name
        self.settings = settings
        self.clock = Clock(rate)
        self.dice = random.Random(f"machine {seed} {name}")
        self.schedule = schedule
        self.trace = trace
        self.judges = judges
        self._fence = fence
        self.disk = Disk(folder, lambda: self.has("disk full"))
        self.application = Application(settings)
        self.children = Children(random.Random(f"children {seed} {name}"), schedule, self._child_ended)
        self.kernel = MachineKernel(self)
        self.network = Network(self, cluster, random.Random(f"network {seed} {name}"), schedule)
        self.conditions: dict[str, float] = {}
        self.supervisor: Supervisor | None = None
        self.doom: Doom | None = None
        self.moved_at = -NEVER
        self._boots = 0
        self._starts = 0

    @property
    def identity(self) -> MachineIdentity:
        """The process identity in its records."""
        return MachineIdentity("machine", self.name, f"boot {self._boots}")

    @property
    def place(self) -> Place:
        return Place(f"machine {self.name}", self.name, f"boot {self._boots}")

    @property
    def in_force(self) -> ItemSettings:
        """The settings of its supervisor: not the file's, while a tenure on record is being wound up."""
        return self.settings if self.supervisor is None else self.supervisor.contender.settings

    @property
    def session(self) -> str:
        """The session with which its supervisor contends; blank for none."""
        return "" if self.supervisor is None else self.supervisor.contender.session.id

    @property
    def acts(self) -> bool:
        """Whether this node acts as holder, and a supervisor answers for it."""
        if not self.application.up and not any(child.acts for child in self.children.alive):
            return False
        return self.schedule.now < self.application.answerable_until

    def has(self, condition: str) -> bool:
        return self.conditions.get(condition, 0.0) > self.schedule.now

    def suffer(self, condition: str, for_s: float) -> None:
        """Give the machine a condition from now on, for this time at least."""
        until = max(self.schedule.now + for_s, self.conditions.get(condition, 0.0))
        self.conditions[condition] = until

    def note(self, words: str) -> None:
        self.trace.note(self.schedule.now, self.name, words)

    # --- processes ---------------------------------------------------------------------------------

    def spawn(self, started: Started, *, slow: bool, failing: bool) -> Child:
        """Start a child, and apply its effect on the application."""
        child = self.children.spawn(started, slow=slow, failing=failing)
        if isinstance(started, StartRun) or started.context.event == "acquire":
            self.application.begin(started.context)
        self.judges.spawned(self, child)
        return child

    def _child_ended(self, child: Child) -> None:
        started = child.started
        if isinstance(started, StartHook) and started.context.event.startswith("lose") and child.ok:
            self.application.lost(started.hook.name)
        if isinstance(started, StartHook) and started.context.event == "fence":
            previous = started.context.previous
            assert previous is not None and previous.target != self.name, "it shoots itself"
            if child.ok or self.dice.random() < SHOT_ALL_THE_SAME:
                self._fence(previous.target)
        if self.supervisor is not None:
            self.supervisor.child_ended(child)

    # --- the supervisor's life ---------------------------------------------------------------------

    def start(self) -> None:
        """Start the supervisor as systemd does, unless it runs."""
        now = self.schedule.now
        if self.supervisor is not None:
            return
        if now < self.children.still_until:
            self.schedule.at(self.children.still_until, self.start)
            return
        self._answer_for_it()
        self._starts += 1
        self.note(f"starts, on record: {self._on_record()}")
        self.supervisor = Supervisor(self, f"{self.name}{self._starts}")
        self.supervisor.wake(0.0)

    def power_off(self) -> None:
        """End the machine, because the simulation is over."""
        self.disk.close()

    def _on_record(self) -> str:
        recorded = self.disk.recorded()
        return "nothing" if recorded is None else str(recorded.state.step)

    def end_leftovers(self, recorded: Recorded | None) -> Recorded | None:
        """Kill the hooks that a crash interrupted and that the record names by their group or transition."""
        if recorded is None or recorded.identity != self.identity:
            return recorded
        marks = {group.transition for group in recorded.groups} | set(transitions_of(recorded.state))
        found = [child for child in self.children.alive if child.started.context.transition in marks]
        for child in found:
            self.children.kill(child)
        return replace(recorded, groups=(*recorded.groups, *map(group_of, found)))

    def crash(self, why: str, *, restart_s: float | None = None) -> None:
        """Kill the supervisor; its run child dies with it, and its hooks do not."""
        supervisor = self.supervisor
        if supervisor is None:
            return
        self.note(f"CRASH {why}")
        self._nobody_answers(supervisor)
        for child in tuple(self.children.alive):
            if isinstance(child.started, StartRun):
                self.children.kill(child)
        self._gone(supervisor, self.dice.uniform(*RESTART_S) if restart_s is None else restart_s)
        self.judges.died(self, why)

    def exited(self) -> None:
        """Start the supervisor again some time after it has wound up."""
        assert self.supervisor is not None
        self.note("exits")
        for child in tuple(self.children.alive):
            self.children.kill(child)
        self._gone(self.supervisor, self.dice.uniform(1.0, 10.0))

    def _gone(self, supervisor: Supervisor, restart_s: float) -> None:
        supervisor.dead = True
        self.supervisor = None
        self.kernel.dies()
        self.disk.close()
        self.network.forget()
        self.schedule.after(restart_s, self.start)

    def reboot(self, down_s: float) -> None:
        self.crash("power lost", restart_s=down_s)
        for child in tuple(self.children.alive):
            self.children.kill(child)
        self.application.down()
        self.kernel.boot()
        self._boots += 1
        self.clock.boot(self.schedule.now + down_s)

    def reset(self, by: str = "its watchdog") -> None:
        """Boot anew, because nobody has fed the watchdog, or because another node has shot this machine."""
        self.note(f"RESET by {by}")
        self.children.still_until = 0.0
        self.reboot(self.dice.uniform(3.0, 10.0) if self.supervisor is not None else 0.0)
        self.judges.died(self, f"reset by {by}")

    # --- standing still ----------------------------------------------------------------------------

    def freeze(self, for_s: float, *, whole: bool) -> None:
        """Stop the supervisor or the ``whole`` machine; the watchdog notices only the first."""
        supervisor = self.supervisor
        if supervisor is None or supervisor.still:
            return
        self.note(f"{'everything' if whole else 'the supervisor'} stands still for {for_s:.1f} s")
        supervisor.still = True
        self._nobody_answers(supervisor, whole=whole)
        if whole:
            self.kernel.stand_still(for_s)
            self.children.still_until = self.schedule.now + for_s
        elif for_s > WATCHDOG_S:
            self.schedule.after(WATCHDOG_S, self._watchdog, supervisor)
            return
        self.schedule.after(for_s, self._moves_again, supervisor, for_s)

    def _watchdog(self, supervisor: Supervisor) -> None:
        if supervisor is self.supervisor:
            self.crash("by the watchdog")

    def _moves_again(self, supervisor: Supervisor, stood_still_s: float) -> None:
        if supervisor is not self.supervisor:
            return
        self.note("moves again")
        if stood_still_s >= UNSEEN_S:
            self.moved_at = self.schedule.now
        self._answer_for_it()
        supervisor.move_again()

    def _nobody_answers(self, supervisor: Supervisor, *, whole: bool = False) -> None:
        """Count the node as holding to the end of its last room, in any state of its application.

        A watchdog answers for a node whose supervisor does not, unless the ``whole`` machine stands still.
        """
        contender = supervisor.contender
        if contender.tenure is not None and (whole or not contender.tenure.armed):
            ends_at = self.clock.true(contender.tenure.contact + contender.lease.room_s)
            self.application.answerable_until = min(ends_at, self.application.answerable_until)

    def _answer_for_it(self) -> None:
        """Make a supervisor answer for the node again; within its last room it can keep every promise."""
        if self.schedule.now < self.application.answerable_until:
            self.application.answerable_until = NEVER
