"""All machines of this process: routes each event to its own, and knows the one earliest deadline.

Elections never wait for each other and share no state. This module must never let the work of
one step grow with the number of contenders that the event does not concern.
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
    """Begins when all contenders of the names ``after`` have wound up: those of its name or key."""

    contender: Contender
    after: frozenset[str]


class Node:
    """The contenders by name, stepped one event at a time."""

    def __init__(self, contenders: Iterable[Contender], successors: Iterable[Successor] = ()) -> None:
        given = tuple(contenders)
        self.contenders = {contender.settings.name: contender for contender in given}
        assert len(self.contenders) == len(given), "two contenders of one name"
        self._successors = {each.contender.settings.name: each for each in successors}
        self._due: list[tuple[float, str]] = []
        self._queued: set[tuple[float, str]] = set()
        for name in self.contenders:
            self._queue(name)

    @property
    def stopped(self) -> bool:
        """Whether every contender has wound up."""
        return all(contender.role is Role.STOPPED for contender in self.contenders.values())

    @property
    def waiting(self) -> dict[str, Contender]:
        """The contenders that have not begun yet, by name."""
        return {name: successor.contender for name, successor in self._successors.items()}

    def waiting_for(self, name: str) -> frozenset[str]:
        """What must have wound up before the contender of this name begins."""
        successor = self._successors.get(name)
        return frozenset() if successor is None else successor.after

    def deadline(self) -> float:
        """The earliest time at which a ``Tick`` has something to do."""
        while self._due:
            due_at, name = self._due[0]
            if due_at == self.contenders[name].deadline:
                return due_at
            self._unqueue()
        return NEVER

    def step(self, event: Event, now: float) -> list[Action]:
        """Everything that follows from this event, in order.

        A ``Tick`` concerns all contenders whose deadline has come, a ``StopAsked`` all of them.
        """
        actions: list[Action] = []
        if isinstance(event, StopAsked):
            self._successors.clear()
        for name in self._concerned(event, now):
            before = self.contenders[name]
            contender, begun = step(before, event, now)
            actions += begun
            self.contenders[name] = contender
            if isinstance(event, Tick) or contender.deadline != before.deadline:
                self._queue(name)
            if Finished(name, clean=True) in begun:
                self._succeed(contender)
        return actions

    def _succeed(self, past: Contender) -> None:
        """Whoever waited for nothing else than this one's end begins; paused, if it has this name and
        was paused meanwhile."""
        for name, successor in tuple(self._successors.items()):
            after = successor.after - {past.settings.name}
            if name == past.settings.name:
                successor = replace(successor, contender=replace(successor.contender, paused=past.paused))
            self._successors[name] = replace(successor, after=after)
            if not after:
                self.contenders[name] = self._successors.pop(name).contender
                self._queue(name)

    def _concerned(self, event: Event, now: float) -> Iterable[str]:
        match event:
            case Answered(request):
                return (request.item,)
            case HookEnded(started) | RunEnded(started):
                return (started.context.name,)
            case Remembered(remember):
                contender = self.contenders[remember.item]
                ours = any(
                    remember.settings is each for each in (contender.settings, contender.next_settings)
                )
                return (remember.item,) if ours else ()  # else the one before has wound up
            case RecoverAsked(name) | PauseAsked(name) | ResumeAsked(name):
                return (name,) if name in self.contenders else ()
            case StopAsked() | Resumed():
                return tuple(self.contenders)
            case Tick():
                return self._take_due(now)

    def _take_due(self, now: float) -> list[str]:
        names: dict[str, None] = {}
        while self._due and self._due[0][0] <= now:
            due_at, name = self._unqueue()
            if due_at == self.contenders[name].deadline:
                names[name] = None
        return list(names)

    def _queue(self, name: str) -> None:
        """Each once: a deadline may move there and back a million times before it comes."""
        due = (self.contenders[name].deadline, name)
        if due[0] != NEVER and due not in self._queued:
            self._queued.add(due)
            heapq.heappush(self._due, due)

    def _unqueue(self) -> tuple[float, str]:
        due = heapq.heappop(self._due)
        self._queued.remove(due)
        return due
