"""All machines of this process: routes each event to its own, and knows the one earliest deadline.

Elections never wait for each other and share no state. This module must never let the work of
one step grow with the number of elections that the event does not concern.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, replace

from supervisor.core.actions import Action, Finished, Role
from supervisor.core.contender import Contender
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
from supervisor.core.step import step


@dataclass(frozen=True, slots=True)
class Successor:
    """Begins when all elections of the names ``after`` have wound up: those of its name or key."""

    election: Contender
    after: frozenset[str]


class Node:
    """The elections by name, stepped one event at a time."""

    def __init__(self, elections: Iterable[Contender], successors: Iterable[Successor] = ()) -> None:
        given = tuple(elections)
        self.elections = {election.settings.name: election for election in given}
        assert len(self.elections) == len(given), "two elections of one name"
        self._successors = {each.election.settings.name: each for each in successors}
        self._due: list[tuple[float, str]] = []
        self._queued: set[tuple[float, str]] = set()
        for name in self.elections:
            self._queue(name)

    @property
    def stopped(self) -> bool:
        """Whether every election has wound up."""
        return all(election.role is Role.STOPPED for election in self.elections.values())

    @property
    def waiting(self) -> dict[str, Contender]:
        """The elections that have not begun yet, by name."""
        return {name: successor.election for name, successor in self._successors.items()}

    def waiting_for(self, name: str) -> frozenset[str]:
        """What must have wound up before the election of this name begins."""
        successor = self._successors.get(name)
        return frozenset() if successor is None else successor.after

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
            self.elections[name] = election
            if isinstance(event, Tick) or election.deadline != before.deadline:
                self._queue(name)
            if Finished(name, clean=True) in begun:
                self._succeed(election)
        return actions

    def _succeed(self, past: Contender) -> None:
        """Whoever waited for nothing else than this one's end begins; paused, if it has this name and
        was paused meanwhile."""
        for name, successor in tuple(self._successors.items()):
            after = successor.after - {past.settings.name}
            if name == past.settings.name:
                successor = replace(successor, election=replace(successor.election, paused=past.paused))
            self._successors[name] = replace(successor, after=after)
            if not after:
                self.elections[name] = self._successors.pop(name).election
                self._queue(name)

    def _concerned(self, event: Event, now: float) -> Iterable[str]:
        match event:
            case Answered(request):
                return (request.item,)
            case HookEnded(started) | RunEnded(started):
                return (started.context.name,)
            case Remembered(remember):
                contender = self.elections[remember.item]
                ours = any(
                    remember.settings is each for each in (contender.settings, contender.next_settings)
                )
                return (remember.item,) if ours else ()  # else the one before has wound up
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
