"""All machines of this process: routes each event to its own, and knows the one earliest deadline.

Elections never wait for each other and share no state. This module must never let the work of
one step grow with the number of elections that the event does not concern.
"""

import heapq
from collections.abc import Iterable

from supervisor.core.actions import Action, Finished, Role
from supervisor.core.election import Election, step
from supervisor.core.events import (
    Answered,
    Event,
    HookEnded,
    PauseAsked,
    RecoverAsked,
    Remembered,
    ResumeAsked,
    Resumed,
    RunEnded,
    StopAsked,
    Tick,
)
from supervisor.core.lane import NEVER


class Node:
    """The elections by name, stepped one event at a time."""

    def __init__(self, elections: Iterable[Election], successors: Iterable[Election] = ()) -> None:
        """``successors``: each begins when the election of its name has wound up."""
        self.elections = {election.settings.name: election for election in elections}
        self._successors = {election.settings.name: election for election in successors}
        self._due: list[tuple[float, str]] = []
        self._queued: set[tuple[float, str]] = set()
        for name in self.elections:
            self._queue(name)

    @property
    def stopped(self) -> bool:
        """Whether every election has wound up."""
        return all(election.role is Role.STOPPED for election in self.elections.values())

    def deadline(self) -> float:
        """The earliest time at which a ``Tick`` has something to do."""
        while self._due:
            due_at, name = self._due[0]
            if due_at == self.elections[name].deadline:
                return due_at
            self._unqueue()
        return NEVER

    def step(self, event: Event, now: float) -> list[Action]:
        """Everything that follows from this event, in order.

        A ``Tick`` concerns all elections whose deadline has come, a ``StopAsked`` all of them.
        """
        actions: list[Action] = []
        if isinstance(event, StopAsked):
            self._successors.clear()
        for name in self._concerned(event, now):
            before = self.elections[name]
            election, begun = step(before, event, now)
            actions += begun
            if Finished(name, clean=True) in begun:
                election = self._successors.pop(name, election)
            self.elections[name] = election
            if isinstance(event, Tick) or election.deadline != before.deadline:
                self._queue(name)
        return actions

    def _concerned(self, event: Event, now: float) -> Iterable[str]:
        match event:
            case Answered(request):
                return (request.election,)
            case HookEnded(started) | RunEnded(started):
                return (started.context.name,)
            case Remembered(remember):
                ours = self.elections[remember.election].settings is remember.settings
                return (remember.election,) if ours else ()  # else the one before has wound up
            case RecoverAsked(name) | PauseAsked(name) | ResumeAsked(name):
                return (name,) if name in self.elections else ()
            case StopAsked() | Resumed():
                return tuple(self.elections)
            case Tick():
                return self._take_due(now)

    def _take_due(self, now: float) -> list[str]:
        names: dict[str, None] = {}
        while self._due and self._due[0][0] <= now:
            due_at, name = self._unqueue()
            if due_at == self.elections[name].deadline:
                names[name] = None
        return list(names)

    def _queue(self, name: str) -> None:
        """Each once: a deadline may move there and back a million times before it comes."""
        due = (self.elections[name].deadline, name)
        if due[0] != NEVER and due not in self._queued:
            self._queued.add(due)
            heapq.heappush(self._due, due)

    def _unqueue(self) -> tuple[float, str]:
        due = heapq.heappop(self._due)
        self._queued.remove(due)
        return due
