"""A step: an event goes to the core, and the actions that the core decides are carried out in order.

The driver is all the logic between the core and the world, and the world is a parameter: the daemon's world
is sockets, processes and files, the simulation's world a seeded model of them. The driver must never decide
anything about items, and ``dispatch`` must run to its end before the next call begins.

The order within a step is the product's promise. The actions are carried out in the order in which the core
lists them. A record that the core waits for is written, and the core gets the event of that, before its item
gets any other.
"""

import sys
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from supervisor.adapters.runtime.watchdogs import Kernel, Watchdogs
from supervisor.core.actions import Action, Tend, WriteRecord
from supervisor.core.contenders import Contenders
from supervisor.core.events import Event, RecordWritten, Stalled, Tick, WatchdogTried
from supervisor.core.frozen import make_copiers
from supervisor.core.requests import Request

SLEEP_MAX_S = 1.0  # timers pause while the machine is suspended, deadlines do not
STARTED_S = 0.1  # until a free lock is acquired: ``prepare_hand_over`` is called after that
STALL_S = 1.0  # a wake-up this late means a stall: a suspended machine, a frozen process, a blocked disk


def prepare_hand_over() -> None:
    """Compile what a step needs, because the first hand-over of a waiter would do so while nobody leads."""
    make_copiers(module for name, module in sys.modules.items() if name.startswith("supervisor.core."))


Effects = Mapping[type[Action], Callable[[Any], None]]
"""The function that carries out each type of action. Actions of other types are only observed."""


class World(Protocol):
    """The clock, Consul, the journal and the observers. No method may call ``dispatch`` before it returns."""

    def now(self) -> float:
        """Return the seconds of a clock that goes on while the machine is suspended."""

    def request(self, request: Request) -> None:
        """Begin this exchange with Consul. An ``Answered`` follows."""

    def write_record(self, write: WriteRecord) -> str:
        """Write this record. Return blank when the kernel has it, and else why it could not be written."""

    def wake(self, at: float) -> None:
        """Dispatch a ``Tick`` at this time, instead of at the time of an earlier call."""

    def observe(self, event: Event, actions: list[Action]) -> None:
        """Report an event and its actions to the log and other observers, after everything urgent."""


class Driver:
    """The contenders of one process and the steps that they take, one event at a time."""

    def __init__(
        self, contenders: Contenders, world: World, effects: Effects, kernel: Kernel | None = None
    ) -> None:
        self.contenders = contenders
        self._watchdogs = Watchdogs(kernel or Kernel())
        self._world = world
        self._effects = effects
        self._wake_at = world.now()

    def dispatch(self, event: Event) -> None:
        """Let the core decide about this event, and carry out its actions."""
        now = self._world.now()
        late_s = now - self._wake_at
        stalled = late_s > STALL_S
        if stalled:
            self._run_step(Stalled(late_s), now)
        self._run_step(event, now)
        deadline = self.contenders.deadline()
        if stalled or isinstance(event, Tick) or deadline < self._wake_at:
            self._wake_at = max(now, min(deadline, now + SLEEP_MAX_S))
            self._world.wake(self._wake_at)

    def _run_step(self, event: Event, now: float) -> None:
        """Carry out each portion of actions before the core decides the next one: see ``step.decide``."""
        events, steps = deque([event]), list[tuple[Event, list[Action]]]()
        while events:
            event = events.popleft()
            if isinstance(event, WatchdogTried):
                now = self._world.now()  # the device was written to meanwhile, or it was too late for that
            actions: list[Action] = []
            for action in self.contenders.decide(event, now):
                actions.append(action)
                if isinstance(action, Request):
                    self._world.request(action)
                elif isinstance(action, WriteRecord):
                    events.append(RecordWritten(action, self._world.write_record(action)))
                elif isinstance(action, Tend):
                    events.append(self._watchdogs.tend(action, self._world.now()))
                elif (effect := self._effects.get(type(action))) is not None:
                    effect(action)
            steps.append((event, actions))
        for event, actions in steps:
            self._world.observe(event, actions)
