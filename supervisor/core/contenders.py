"""All machines of this process: routes each event to its own, and knows the one earliest deadline.

Elections never wait for each other and share no state. This module must never let the work of
one step grow with the number of contenders that the event does not concern.
"""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from supervisor.core.actions import Action, Finished
from supervisor.core.contender import Contender, has_finished
from supervisor.core.creation import contender_of, inherit
from supervisor.core.events import (
    Answered,
    ConfigLoaded,
    Event,
    HookEnded,
    HooksChecked,
    ItemRemoved,
    PauseAsked,
    RecordWritten,
    RecoverAsked,
    ResumeAsked,
    RunEnded,
    SettingsChanged,
    Stalled,
    StepDownAsked,
    StopAsked,
    Tick,
)
from supervisor.core.frozen import replace
from supervisor.core.lane import LONG_AGO, NEVER
from supervisor.core.record import RecordKeeper
from supervisor.core.reload import ReloadEffect, blockers_of, plan_reload
from supervisor.core.step import step


@dataclass(frozen=True, slots=True)
class Successor:
    """Begins when all contenders of the names ``after`` have wound up: those of its name or key."""

    contender: Contender
    after: frozenset[str]


class Contenders:
    """The contenders by name, stepped one event at a time."""

    def __init__(self, contenders: Iterable[Contender], successors: Iterable[Successor] = ()) -> None:
        given = tuple(contenders)
        self.by_name = {contender.settings.name: contender for contender in given}
        assert len(self.by_name) == len(given), "two contenders of one name"
        self._successors = {each.contender.settings.name: each for each in successors}
        self._deadlines: dict[str, float] = {}
        self._due: list[tuple[float, str]] = []
        self._queued: set[tuple[float, str]] = set()
        for name in self.by_name:
            self._queue(name)

    @property
    def stopped(self) -> bool:
        """Whether every contender has wound up."""
        return all(has_finished(contender) for contender in self.by_name.values())

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
            if self._is_due(due_at, name):
                return due_at
            self._unqueue()
        return NEVER

    def step(self, event: Event, now: float) -> list[Action]:
        """Everything that follows from this event, in order.

        A ``Tick`` concerns all contenders whose deadline has come, a ``StopAsked`` all of them, and what
        a ``ConfigLoaded`` means for each it is told as an event of its own.
        """
        if isinstance(event, ConfigLoaded):
            return self._reload(event, now)
        actions: list[Action] = []
        if isinstance(event, StopAsked):
            self._successors.clear()
        if isinstance(event, HooksChecked) and event.item in self._successors:
            self._look_ahead(event)
            return []
        for name in self._recipients(event, now):
            actions += self._step_one(name, event, now)
        return actions

    def _look_ahead(self, event: HooksChecked) -> None:
        """Note what was found of an item that has not begun yet, so that its heir begins with it."""
        successor = self._successors[event.item]
        heir = replace(successor.contender, faults=event.faults)
        self._successors[event.item] = Successor(heir, successor.after)

    def _step_one(self, name: str, event: Event, now: float) -> tuple[Action, ...]:
        contender, begun = step(self.by_name[name], event, now)
        self.by_name[name] = contender
        self._queue(name)
        if Finished(name, clean=True) in begun:
            if contender.departing:
                del self.by_name[name], self._deadlines[name]
            self._succeed(contender)
        return begun

    # --- another file ----------------------------------------------------------------------------

    def _reload(self, event: ConfigLoaded, now: float) -> list[Action]:
        """Whoever begins is there before what is in the way ends, for that may be at once."""
        changed = {
            each.settings.name: SettingsChanged(each.settings.name, each.settings, each.unchecked)
            for each in event.wanted
        }
        wanted = {name: change.settings for name, change in changed.items()}
        effects = plan_reload(self.by_name, self.waiting, wanted)
        standing = {name: each for name, each in self.by_name.items() if not each.departing}
        staying = [
            name for name in standing if effects[name] in (ReloadEffect.UNCHANGED, ReloadEffect.CHANGES)
        ]
        leaving = {name: each for name, each in self.by_name.items() if name not in staying}
        self._begin(event, leaving, now)
        actions: list[Action] = []
        for name in standing:
            if name not in staying:
                actions += self._step_one(name, ItemRemoved(name), now)
            elif effects[name] is ReloadEffect.CHANGES:
                actions += self._step_one(name, changed[name], now)
        return actions

    def _begin(self, event: ConfigLoaded, leaving: Mapping[str, Contender], now: float) -> None:
        waiting, self._successors = self.waiting, {}
        for wanted in event.wanted:
            settings, name = wanted.settings, wanted.settings.name
            if name in self.by_name and name not in leaving:
                continue
            after = blockers_of(settings, leaving)
            former = [leaving[each] for each in after] + ([waiting[name]] if name in waiting else [])
            contender = inherit(
                replace(contender_of(wanted, instance=event.instance, now=now), record_keeper=RecordKeeper()),
                paused=any(each.paused for each in former),
                rejoin_at=now + wanted.delay_s,
                rests_until=max((each.rests_until for each in former), default=LONG_AGO),
            )
            if after:
                self._successors[name] = Successor(contender, after)
            else:
                self.by_name[name] = contender
                self._queue(name)

    def _succeed(self, predecessor: Contender) -> None:
        """Whoever waited for nothing else than this one's end begins; paused, if it has this name and
        was paused meanwhile, and not before this one would have."""
        for name, successor in tuple(self._successors.items()):
            after, heir = successor.after - {predecessor.settings.name}, successor.contender
            if predecessor.settings.name in successor.after:
                paused = predecessor.paused if name == predecessor.settings.name else heir.paused
                rejoin_at = max(heir.rejoin_at, predecessor.rejoin_at)
                rests_until = max(heir.rests_until, predecessor.rests_until)
                heir = inherit(heir, paused=paused, rejoin_at=rejoin_at, rests_until=rests_until)
            self._successors[name] = Successor(heir, after)
            if not after:
                self.by_name[name] = self._successors.pop(name).contender
                self._queue(name)

    def _recipients(self, event: Event, now: float) -> Iterable[str]:
        match event:
            case Answered(request):
                return self._known(request.item)
            case HookEnded(started) | RunEnded(started):
                return self._known(started.context.name)
            case RecordWritten(write):
                contender = self.by_name.get(write.item)
                settings = () if contender is None else (contender.settings, contender.next_settings)
                ours = any(write.settings is each for each in settings)
                return (write.item,) if ours else ()  # else the one before has wound up
            case RecoverAsked(name) | PauseAsked(name) | ResumeAsked(name) | StepDownAsked(name):
                return self._known(name)
            case SettingsChanged(name) | ItemRemoved(name) | HooksChecked(name):
                return self._known(name)
            case ConfigLoaded():
                raise AssertionError("a file concerns all contenders")
            case StopAsked() | Stalled():
                return tuple(self.by_name)
            case Tick():
                return self._take_due(now)

    def _known(self, name: str) -> tuple[str, ...]:
        """Blank for one that has ended meanwhile."""
        return (name,) if name in self.by_name else ()

    def _take_due(self, now: float) -> list[str]:
        names: dict[str, None] = {}
        while self._due and self._due[0][0] <= now:
            due_at, name = self._unqueue()
            if self._is_due(due_at, name):
                names[name] = None
        return list(names)

    def _is_due(self, due_at: float, name: str) -> bool:
        """Whether that is its deadline still."""
        return self._deadlines.get(name) == due_at

    def _queue(self, name: str) -> None:
        """Each once: a deadline may move there and back a million times before it comes."""
        due_at = self._deadlines[name] = self.by_name[name].deadline
        due = (due_at, name)
        if due_at != NEVER and due not in self._queued:
            self._queued.add(due)
            heapq.heappush(self._due, due)

    def _unqueue(self) -> tuple[float, str]:
        due = heapq.heappop(self._due)
        self._queued.remove(due)
        return due
