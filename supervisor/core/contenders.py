"""All contenders of this process: it routes each event to its contender, and knows the earliest deadline.

Contenders share two things: how many locks this node holds, and the shots of their guards. A contender
learns both anew at each of its own steps, and waits for no other, but for a shot that serves both. The work
of one step must never grow with the number of contenders that the event does not concern.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from supervisor.core.actions import Action, Arm, Finished, KillHook, StartHook
from supervisor.core.claim.shots import SharedShots
from supervisor.core.contender.creation import INHERITED, contender_of, inherit
from supervisor.core.contender.state import Contender, has_finished
from supervisor.core.contender.step import decide
from supervisor.core.devices import Devices
from supervisor.core.events import (
    Answered,
    ConfigLoaded,
    ConfirmOffAsked,
    Event,
    HookEnded,
    HooksChecked,
    ItemRemoved,
    OrderSeen,
    PauseAsked,
    PauseOver,
    RecordWritten,
    RecoverAsked,
    ResumeAsked,
    RunEnded,
    SettingsChanged,
    Stalled,
    StepDownAsked,
    StopAsked,
    SurvivorsChanged,
    Tick,
    WatchdogTried,
)
from supervisor.core.frozen import dataclass, replace
from supervisor.core.machines.record import RecordKeeper
from supervisor.core.reload import ReloadEffect, blockers_of, plan_reload
from supervisor.core.requests import ReadNotes, WriteNotes
from supervisor.core.times import LONG_AGO, NEVER


@dataclass(frozen=True, slots=True)
class Successor:
    """A contender that begins when the contenders named in ``after``, of its name or key, have wound up."""

    contender: Contender
    after: frozenset[str]


class Contenders:
    """The contenders by name. Each step handles one event."""

    def __init__(self, contenders: Iterable[Contender], successors: Iterable[Successor] = ()) -> None:
        given = tuple(contenders)
        self.by_name = {contender.settings.name: contender for contender in given}
        assert len(self.by_name) == len(given), "two contenders of one name"
        self._successors = {each.contender.settings.name: each for each in successors}
        self._deadlines: dict[str, float] = {}
        self._due: list[tuple[float, str]] = []
        self._queued: set[tuple[float, str]] = set()
        self._moved = dict.fromkeys(self.by_name)  # the contenders whose deadline may have moved
        self.devices = Devices()  # the watchdogs of all items
        self.shots = SharedShots()
        self._held = defaultdict[str, set[str]](set)  # the items that hold, by their group. Blank: all
        for each in given:
            self._count(each, each.settings.group)

    @property
    def stopped(self) -> bool:
        return not self.shots.lasts and all(map(has_finished, self.by_name.values()))

    @property
    def not_begun(self) -> dict[str, Contender]:
        return {name: successor.contender for name, successor in self._successors.items()}

    def begins_after(self, name: str) -> frozenset[str]:
        """Return the names of the contenders that must wind up before the contender of this name begins."""
        successor = self._successors.get(name)
        return frozenset() if successor is None else successor.after

    def deadline(self) -> float:
        """Return the earliest time at which a ``Tick`` has something to do. NEVER: there is none."""
        self._queue_moved()
        shared = min(self.devices.due_at, self.shots.grants.due_at)
        while self._due:
            due_at, name = self._due[0]
            if self._is_due(due_at, name):
                return min(due_at, shared)
            self._unqueue()
        return shared

    def step(self, event: Event, now: float) -> list[Action]:
        return list(self.decide(event, now))

    def decide(self, event: Event, now: float) -> Iterator[Action]:
        """Yield the actions that follow from this event, in order, to be carried out one after the other.

        The event is dealt with when the last action has been yielded, so the caller must take all of them.
        A ``Tick`` concerns all contenders whose deadline has come, and a ``StopAsked`` concerns all
        contenders. A ``ConfigLoaded`` becomes one event for each contender that it changes. What is due for
        a watchdog comes last.
        """
        if isinstance(event, WatchdogTried):
            self.devices.tried(event)
        yield from self._decide_each(event, now)
        if self.shots.grants.due_at <= now:
            yield from self.shots.grants.tend(now)
            yield from self._tell_of_shots(self.shots.news(), now)
        yield from self.shots.unwanted()
        if self.devices.due_at <= now:
            yield from self.devices.tend(self.by_name.values(), now)

    def _decide_each(self, event: Event, now: float) -> Iterator[Action]:
        if isinstance(event, ConfigLoaded):
            yield from self._reload(event, now)
            return
        if isinstance(event, Answered) and isinstance(event.request, ReadNotes | WriteNotes):
            yield from self.shots.grants.answered(event.request, event.outcome, now)
            yield from self._tell_of_shots(self.shots.news(), now)
            return
        if isinstance(event, HookEnded):
            yield from self._tell_of_shots(self.shots.orphan_ended(event.started, ok=event.ok), now)
        if isinstance(event, StopAsked):
            self._successors.clear()
        if isinstance(event, HooksChecked | OrderSeen) and event.item in self._successors:
            self._look_ahead(event)
            return
        for name in self._recipients(event, now):
            yield from self._decide_one(name, event, now)

    def _look_ahead(self, event: HooksChecked | OrderSeen) -> None:
        """Note what is known of an item that has not begun yet."""
        successor = self._successors[event.item]
        heir = successor.contender
        match event:
            case HooksChecked(faults=faults):
                heir = replace(heir, faults=faults)
            case OrderSeen(withheld=withheld):
                heir = replace(heir, withheld=withheld)
        self._successors[event.item] = Successor(heir, successor.after)

    def _decide_one(self, name: str, event: Event, now: float) -> Iterator[Action]:
        self._moved[name], finished, former = None, False, self.by_name[name].settings
        left: list[StartHook] = []
        for contender, begun in decide(self._informed(self.by_name[name]), event, now):
            self.by_name[name] = contender
            for action in begun:
                if isinstance(action, Arm):
                    self.devices.want(action)
                elif isinstance(action, KillHook) and self.shots.take_over(name, action.started):
                    left.append(action.started)
                else:
                    yield action
                finished = finished or (isinstance(action, Finished) and action.clean)
        if self.by_name[name].settings.watchdog is not None or name in self.devices.armed:
            self.devices.note(self.by_name[name], former.watchdog, now)
        self._count(self.by_name[name], former.group)
        contender = self.by_name[name]
        told = self.shots.note(name, contender.guard, contender.tenure, contender.settings.fence, now)
        yield from self._tell_of_shots(told, now)
        for started in left:  # the item goes on as if it had been killed
            yield from self._decide_one(name, HookEnded(started, ok=False), now)
        if finished:
            self._end(contender)

    def _tell_of_shots(self, items: Iterable[str], now: float) -> Iterator[Action]:
        for name in items:
            if name in self.by_name:
                yield from self._decide_one(name, Tick(), now)

    def _informed(self, contender: Contender) -> Contender:
        """Return the contender that knows what it shares with others: the locks of its group, and shots."""
        held, name, guard = self._held[contender.settings.group], contender.settings.name, contender.guard
        lock = contender.lock.beside(len(held) - (name in held), contender.session.id)
        contender = contender if lock is contender.lock else replace(contender, lock=lock)
        if guard is None:
            return contender
        guard = self.shots.informed(name, guard, contender.settings.fence)
        return replace(contender, claim=replace(contender.claim, guard=guard))

    def _count(self, contender: Contender, former_group: str) -> None:
        """Note whether this contender holds, in its group and in that of its former settings."""
        settings = contender.settings
        self._held[former_group].discard(settings.name)
        for group in ("", settings.group):
            (self._held[group].add if contender.may_have_lock else self._held[group].discard)(settings.name)

    def _end(self, contender: Contender) -> None:
        """Begin each item that waited for this contender, and forget a contender that departs."""
        if contender.departing:
            name = contender.settings.name
            del self.by_name[name]
            self._deadlines.pop(name, None)
        self._succeed(contender)

    # --- another file ----------------------------------------------------------------------------

    def _reload(self, event: ConfigLoaded, now: float) -> Iterator[Action]:
        """Yield the actions that follow from another file.

        New contenders are ready before the contenders in their way end, because some of these end at once.
        On a node that is drained they are drained, too.
        """
        changed = {
            each.settings.name: SettingsChanged(each.settings.name, each.settings, each.unchecked)
            for each in event.wanted
        }
        wanted = {name: change.settings for name, change in changed.items()}
        effects = plan_reload(self.by_name, self.not_begun, wanted)
        standing = {name: each for name, each in self.by_name.items() if not each.departing}
        staying = [
            name for name in standing if effects[name] in (ReloadEffect.UNCHANGED, ReloadEffect.CHANGES)
        ]
        leaving = {name: each for name, each in self.by_name.items() if name not in staying}
        self._begin(event, leaving, now)
        for name in standing:
            if name not in staying:
                yield from self._decide_one(name, ItemRemoved(name), now)
            elif effects[name] is ReloadEffect.CHANGES:
                yield from self._decide_one(name, changed[name], now)

    def _begin(self, event: ConfigLoaded, leaving: Mapping[str, Contender], now: float) -> None:
        not_begun, self._successors = self.not_begun, {}
        staying = (each for name, each in self.by_name.items() if name not in leaving)
        contending = [each for each in staying if each.settings.contend]
        is_drained = bool(contending) and all(each.drained for each in contending)
        drained_until = min(each.paused_until for each in contending) if is_drained else LONG_AGO
        for wanted in event.wanted:
            settings, name = wanted.settings, wanted.settings.name
            if name in self.by_name and name not in leaving:
                continue
            after = blockers_of(settings, leaving)
            former = [leaving[each] for each in after] + ([not_begun[name]] if name in not_begun else [])
            contender = inherit(
                replace(contender_of(wanted, instance=event.instance, now=now), record_keeper=RecordKeeper()),
                paused_until=not_begun[name].paused_until if name in not_begun else drained_until,
                stays_until=not_begun[name].stays_until if name in not_begun else LONG_AGO,
                rejoin_at=now + wanted.delay_s,
                rests_until=max((each.rests_until for each in former), default=LONG_AGO),
            )
            if after:
                self._successors[name] = Successor(contender, after)
            else:
                self.by_name[name] = contender
                self._moved[name] = None

    def _succeed(self, predecessor: Contender) -> None:
        """Begin each successor that waited only for this predecessor.

        A successor inherits the rest, the delay and the pause of each predecessor, as they are by then.
        """
        for name, successor in tuple(self._successors.items()):
            after, heir = successor.after - {predecessor.settings.name}, successor.contender
            if predecessor.settings.name in successor.after:
                later = {each: max(getattr(heir, each), getattr(predecessor, each)) for each in INHERITED}
                heir = inherit(heir, **later)
            self._successors[name] = Successor(heir, after)
            if not after:
                self.by_name[name] = self._successors.pop(name).contender
                self._moved[name] = None

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
                return (write.item,) if ours else ()  # else the record's contender has wound up
            case (
                RecoverAsked(name) | PauseAsked(name) | PauseOver(name) | ResumeAsked(name) | OrderSeen(name)
            ):
                return self._known(name)
            case StepDownAsked(name) | ConfirmOffAsked(name) | HooksChecked(name):
                return self._known(name)
            case SettingsChanged(name) | ItemRemoved(name) | SurvivorsChanged(name):
                return self._known(name)
            case ConfigLoaded():
                raise AssertionError("a file concerns all contenders")
            case WatchdogTried(path, device, item):
                known = self.by_name.items()
                return [name for name, each in known if name == item or each.must_hear_of(path, device)]
            case StopAsked() | Stalled():
                return tuple(self.by_name)
            case Tick():
                return self._take_due(now)

    def _known(self, name: str) -> tuple[str, ...]:
        """Return the name alone, or nothing when its contender has ended meanwhile."""
        return (name,) if name in self.by_name else ()

    def _take_due(self, now: float) -> list[str]:
        self._queue_moved()
        names: dict[str, None] = {}
        while self._due and self._due[0][0] <= now:
            due_at, name = self._unqueue()
            if self._is_due(due_at, name):
                names[name] = None
        return list(names)

    def _is_due(self, due_at: float, name: str) -> bool:
        return self._deadlines.get(name) == due_at

    def _queue_moved(self) -> None:
        """Queue each new deadline once, because a deadline may move back and forth a million times."""
        for name in self._moved:
            contender = self.by_name.get(name)
            if contender is None:
                continue
            due_at = self._deadlines[name] = contender.deadline
            due = (due_at, name)
            if due_at != NEVER and due not in self._queued:
                self._queued.add(due)
                heapq.heappush(self._due, due)
        self._moved.clear()

    def _unqueue(self) -> tuple[float, str]:
        due = heapq.heappop(self._due)
        self._queued.remove(due)
        return due
