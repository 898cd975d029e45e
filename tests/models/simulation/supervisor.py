"""One run of a supervisor, from its start to its exit or crash: the world on which its steps act.

The driver, the contenders, the records and the restore of a start are the real ones. The parts of the daemon
that do I/O are played here, on a machine of the simulation. A crash is an exception out of the middle of a
step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from supervisor.adapters.consul.codec import Codec
from supervisor.adapters.consul.token import Token
from supervisor.adapters.hooks.abandoned import Group
from supervisor.adapters.runtime.driver import Driver, Effects
from supervisor.core.actions import (
    Action,
    Finished,
    KillHook,
    PrepareWrite,
    Role,
    RoleChanged,
    StartHook,
    StartRun,
    StopRun,
    WriteRecord,
)
from supervisor.core.contender.state import Contender
from supervisor.core.contenders import Contenders
from supervisor.core.events import Answered, Event, HookEnded, RecordWritten, RunEnded, StopAsked, Tick
from supervisor.core.outcomes import Outcome
from supervisor.core.requests import Request
from supervisor.core.settings import Wanted
from supervisor.daemon.restore import ProcessIdentity, restore
from tests.models.simulation.children import Child, Started
from tests.models.simulation.disk import CONSUL
from tests.models.simulation.files import ITEM

if TYPE_CHECKING:
    from tests.models.simulation.machine import Machine

Done = TypeVar("Done", bound=Action)
LATE_BY_S = 0.004  # a timer is never early and seldom exact


class Crash(Exception):
    """The process was killed at this point of its turn."""


@dataclass(frozen=True)
class Doom:
    """The point of a death: ``before``, ``after`` or ``within`` the next action of this label."""

    label: str
    moment: str


def label_of(action: Action) -> str:
    """Return the kind of an action, as finely as the points of a crash distinguish kinds."""
    match action:
        case StartHook(context=context):
            return f"StartHook {context.event}"
        case WriteRecord(record=record):
            return f"WriteRecord {record.step}"
    return type(action).__name__


class Supervisor:
    """A process. ``still``: it or its machine is stopped (SIGSTOP), and its events wait."""

    def __init__(self, machine: Machine, instance: str) -> None:
        self.dead = False
        self.still = False
        self.stopping = False
        self._machine = machine
        self._consul = Codec(CONSUL, CONSUL.address, Token(CONSUL))
        self._backlog: list[Callable[[], None]] = []
        self._wakes = 0
        recorded = machine.end_leftovers(machine.disk.open(machine.identity))
        records = {} if recorded is None else {ITEM: recorded}
        wanted = [Wanted(machine.settings, machine.dice.random(), place=machine.place)]
        begun = restore(wanted, records, ProcessIdentity(instance, machine.identity, self.now()))
        effects: Effects = {
            PrepareWrite: self.prepare,
            StartHook: self.start_hook,
            KillHook: self.kill_hook,
            StartRun: self.start_run,
            StopRun: self.stop_run,
            Finished: self.finished,
        }
        contenders = Contenders(begun.contenders, begun.successors)
        self.driver = Driver(contenders, self, effects, machine.kernel)

    @property
    def contender(self) -> Contender:
        return self.driver.contenders.by_name[ITEM]

    # --- events -------------------------------------------------------------------------------------

    def deliver(self, event: Event) -> None:
        """Take a step with this event, now or as soon as the process moves again."""
        if self.still:
            self._backlog.append(partial(self.deliver, event))
        elif not self.dead:
            self._turn(event)

    def _turn(self, event: Event) -> None:
        machine = self._machine
        machine.judges.saw(machine, event)
        try:
            self.driver.dispatch(event)
        except Crash as crash:
            machine.crash(str(crash))
            return
        if self.stopping and self.driver.contenders.stopped:
            machine.exited()

    def stop(self) -> None:
        self.stopping = True
        self.deliver(StopAsked())

    def move_again(self) -> None:
        """Receive SIGCONT: the events since the stop are taken now, in their order."""
        self.still = False
        backlog, self._backlog = self._backlog, []
        for call in backlog:
            call()

    def child_ended(self, child: Child) -> None:
        if self.still:
            self._backlog.append(partial(self.child_ended, child))
        elif not self.dead:
            started = child.started
            if started.context.event != "check":
                self._machine.disk.group_ended(group_of(child))
            ended = HookEnded(started, child.ok) if isinstance(started, StartHook) else RunEnded(started)
            self.deliver(ended)
            if not self.dead:
                self._machine.disk.settle()

    # --- the world on which a step acts ------------------------------------------------------------

    def now(self) -> float:
        return self._machine.clock.local(self._machine.schedule.now)

    def request(self, request: Request) -> None:
        self._carry(request, self._send)

    def _send(self, request: Request) -> None:
        machine = self._machine
        timeout_s = machine.clock.true(request.at + request.timeout_s) - machine.schedule.now
        machine.network.send(self._consul, request, timeout_s, partial(self._answered, request))

    def _answered(self, request: Request, outcome: Outcome) -> None:
        self.deliver(Answered(request, outcome))

    def prepare(self, prepare: PrepareWrite) -> None:
        self._consul.prepare(prepare.request)

    def start_hook(self, start: StartHook) -> None:
        """Start a hook as a child, which is ended when it takes too long."""
        self._carry(start, self._spawn)

    def start_run(self, start: StartRun) -> None:
        self._carry(start, self._spawn)

    def kill_hook(self, kill: KillHook) -> None:
        """Send the hook TERM, then KILL."""
        self._carry(kill, lambda kill: self._terminate(kill.started, kill.started.hook.kill_after_s))

    def stop_run(self, stop: StopRun) -> None:
        """Send the run child TERM, then KILL."""
        self._carry(stop, lambda stop: self._terminate(stop.started, stop.started.run.stop_timeout_s))

    def write_record(self, write: WriteRecord) -> str:
        machine = self._machine
        if machine.doom == Doom(label_of(write), "within"):
            machine.disk.die_in(write, after=machine.dice.random() < 0.5)
            self._die(write, "within")
        why_not: list[str] = []
        self._carry(write, lambda write: why_not.append(machine.disk.write(write)))
        return why_not[0]

    def finished(self, finished: Finished) -> None:
        """End the process; a stuck one leaves the lock to its TTL, and its application to an operator."""
        if not finished.clean and not self._is_guarded:
            self._machine.application.answerable_until = self._machine.schedule.now

    def wake(self, at: float) -> None:
        """Set the one timer; the newest call counts."""
        self._wakes += 1
        machine = self._machine
        late_s = machine.dice.random() * LATE_BY_S
        machine.schedule.at(machine.clock.true(at) + late_s, self._tick, self._wakes)

    def _tick(self, wake: int) -> None:
        if wake == self._wakes:
            self.deliver(Tick())

    def observe(self, event: Event, actions: list[Action]) -> None:
        machine = self._machine
        machine.trace.turn(machine.schedule.now, machine.name, event, actions)
        if isinstance(event, RecordWritten):
            machine.judges.saw(machine, event)
        for action in actions:
            if isinstance(action, RoleChanged):
                self._became(action)
        machine.judges.look(machine)

    def _became(self, action: RoleChanged) -> None:
        """Call an operator to a stuck node, because its supervisor can end nothing more."""
        if action.role is Role.STUCK and not self._is_guarded:
            self._machine.application.answerable_until = self._machine.schedule.now
        self._machine.judges.did(self._machine, action)

    @property
    def _is_guarded(self) -> bool:
        tenure = self.contender.tenure
        return tenure is not None and tenure.armed

    # --- carrying out -------------------------------------------------------------------------------

    def _carry(self, action: Done, carry_out: Callable[[Done], None]) -> None:
        doom = self._machine.doom
        moment = doom.moment if doom is not None and doom.label == label_of(action) else ""
        if moment == "before":
            self._die(action, moment)
        carry_out(action)
        self._machine.judges.did(self._machine, action)
        if moment == "after":
            self._die(action, moment)

    def _die(self, action: Action, moment: str) -> None:
        self._machine.doom = None
        raise Crash(f"{moment} {label_of(action)}")

    def _spawn(self, started: Started) -> None:
        machine = self._machine
        check = started.context.event == "check"
        slow = machine.has("slow hooks") and machine.dice.random() < 0.7
        failing = machine.has("failing hooks") and machine.dice.random() < 0.85
        if started.context.event == "fence":
            slow, failing = machine.dice.random() < 0.7, machine.dice.random() < 0.3
        child = machine.spawn(started, slow=slow, failing=machine.has("unfit") if check else failing)
        if isinstance(started, StartHook):
            hook = started.hook
            timeout_s = machine.clock.span(hook.timeout_s)
            machine.schedule.after(timeout_s, self._timed_out, child, hook.kill_after_s)
        if machine.doom == Doom(label_of(started), "within"):
            self._die(started, "within")
        if not check:
            machine.disk.group_began(group_of(child))

    def _timed_out(self, child: Child, kill_after_s: float) -> None:
        if self.still:
            self._backlog.append(partial(self._timed_out, child, kill_after_s))
        elif not self.dead:
            self._machine.children.terminate(child, self._machine.clock.span(kill_after_s))

    def _terminate(self, started: Started, kill_after_s: float) -> None:
        for child in tuple(self._machine.children.alive):
            if child.started == started:
                self._machine.children.terminate(child, self._machine.clock.span(kill_after_s))


def group_of(child: Child) -> Group:
    return Group(child.number, 0, child.started.context.transition)
