"""A turn: an event goes to the core, what it decides is carried out in order, then records.

This is all the logic there is between the core and the world, and the world is a parameter: the
daemon's is sockets, processes and files, the simulation's a seeded model of them. It must never
decide anything about items, and ``dispatch`` must run to its end before the next begins.

The order of a turn is the product's promise: the actions of one step are carried out as they
stand; a record that the core waits for is written, and its event taken, before anything else
happens.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from supervisor.core.actions import (
    Action,
    Finished,
    KillHook,
    PrepareWrite,
    Request,
    StartHook,
    StartRun,
    StopRun,
    WriteRecord,
)
from supervisor.core.contenders import Contenders
from supervisor.core.events import Event, RecordWritten, Stalled, Tick

TURN_EVERY_S = 1.0  # timers stand still while the machine is suspended, deadlines do not
LATE_S = 1.0  # a loop that comes so late has stood still: the machine, the process, or the disk


class World(Protocol):
    """What a turn acts upon. No method may call ``dispatch`` before it has returned."""

    def now(self) -> float:
        """Seconds of a clock that goes on while the machine is suspended."""

    def request(self, request: Request) -> None:
        """Begin this exchange; ``Answered`` follows."""

    def prepare(self, prepare: PrepareWrite) -> None:
        """Have this write ready to be sent."""

    def start_hook(self, start: StartHook) -> None:
        """Begin this attempt; ``HookEnded`` follows."""

    def kill_hook(self, kill: KillHook) -> None:
        """End this attempt."""

    def start_run(self, start: StartRun) -> None:
        """Start the run child; ``RunEnded`` follows."""

    def stop_run(self, stop: StopRun) -> None:
        """End the run child."""

    def write_record(self, write: WriteRecord) -> str:
        """Write this record; blank when the kernel has it, else why it could not be written."""

    def finished(self, finished: Finished) -> None:
        """This item has wound up."""

    def wake(self, at: float) -> None:
        """Dispatch a ``Tick`` at this time; replaces what was asked for before."""

    def tell(self, event: Event, actions: list[Action]) -> None:
        """What happened and what was done, for the log; behind everything that is urgent."""


class Driver:
    """Feeds a node's events to it, one at a time."""

    def __init__(self, contenders: Contenders, world: World) -> None:
        self.contenders = contenders
        self._world = world
        self._wake_at = world.now()
        self._carry_out: dict[type[Action], Callable[..., None]] = {
            PrepareWrite: world.prepare,
            StartHook: world.start_hook,
            KillHook: world.kill_hook,
            StartRun: world.start_run,
            StopRun: world.stop_run,
            Finished: world.finished,
        }

    def dispatch(self, event: Event) -> None:
        """Let the core decide about this event, and do what it says."""
        now = self._world.now()
        late_s = now - self._wake_at
        stood_still = late_s > LATE_S
        if stood_still:
            self._turn(Stalled(late_s), now)
        self._turn(event, now)
        deadline = self.contenders.deadline()
        if stood_still or isinstance(event, Tick) or deadline < self._wake_at:
            self._wake_at = max(now, min(deadline, now + TURN_EVERY_S))
            self._world.wake(self._wake_at)

    def _turn(self, event: Event, now: float) -> None:
        events, told = deque([event]), list[tuple[Event, list[Action]]]()
        while events:
            event = events.popleft()
            actions = self.contenders.step(event, now)
            for action in actions:
                if isinstance(action, Request):
                    self._world.request(action)
                elif isinstance(action, WriteRecord):
                    events.append(RecordWritten(action, self._world.write_record(action)))
                elif (carry_out := self._carry_out.get(type(action))) is not None:
                    carry_out(action)
            told.append((event, actions))
        for event, actions in told:
            self._world.tell(event, actions)
