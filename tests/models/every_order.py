"""Every order of events: a breadth-first walk over all states that an election can reach.

A walk is one election's settings and the kinds of exchanges in which Consul is hostile. From every
state it lets happen whatever may; an onlooker holds every step to the promises; and from every
state it makes sure that there is a way on: without a stop to a holder once Consul is sane, after a
stop to the end, whether Consul is sane or silent.

    python -m tests.models.every_order

walks all of them, the long ones too, and prints a table.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from math import inf

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.creation import contender_of
from supervisor.core.lane import NEVER
from supervisor.core.lock import backoff
from supervisor.core.lock import base as rules
from supervisor.core.settings import Wanted
from supervisor.core.step import step
from tests.models.adversary import NOBODY, World, every_answer, may_happen, settles
from tests.models.invariants import monitor_of, watch_step
from tests.models.state_key import GRID_S, Key
from tests.models.walks import LONG, WALKS, Walk
from tests.unit.core.edges import EDGES, edges_taken

STATES_MAX = 200_000
SETTLE_STEPS_MAX = 40  # more at one instant would be a storm of requests
ROUNDS_MAX = 80  # from any state to a holder, or to the end


class BrokenPromise(AssertionError):
    """A promise was broken; the message tells the way there."""


@dataclass(slots=True)
class Walked:
    """What a walk saw."""

    states: int = 0
    steps: int = 0
    kinds: set[object] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Link:
    """How a state was reached."""

    before: "Link | None"
    told: str


def explore(walk: Walk, enough: float = inf) -> Walked:
    """Go to every state within the walk; raises BrokenPromise with the way to the first fault.

    ``enough``: with so many states found it ends, at the end of a step.
    """
    explorer = _Explorer(walk)
    steps = count() if walk.steps_max is None else range(walk.steps_max)
    wanted = Wanted(walk.settings, spread=0.0, unchecked=e.HooksChecked in walk.hostile)
    election = contender_of(wanted, instance="i", record=walk.record, now=0.0)
    first = World(election, monitor_of(walk.record))
    with _fewer_steps(), edges_taken() as edges:
        frontier = list(explorer.begin(first))
        for _ in steps:
            frontier = [found for world, link in frontier for found in explorer.onward(world, link)]
            if not frontier or explorer.walked.states >= enough:
                break
        explorer.ways_on()
    assert edges <= EDGES, edges - EDGES
    explorer.walked.kinds |= edges
    return explorer.walked


@contextmanager
def _fewer_steps() -> Iterator[None]:
    """Five idle wakes are not other than one, and a lost race than seven, but for the number of states."""
    usual = rules.IDLE_WAKES_MAX, backoff.DECREASE_FACTOR
    rules.IDLE_WAKES_MAX, backoff.DECREASE_FACTOR = 1, round(1 / backoff.ATTEMPT_PROBABILITY_MIN)
    try:
        yield
    finally:
        rules.IDLE_WAKES_MAX, backoff.DECREASE_FACTOR = usual


class _Explorer:
    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.walked = Walked()
        self.came: dict[Key, tuple[World, Link]] = {}

    def begin(self, first: World) -> Iterator[tuple[World, Link]]:
        """The first state, or the holder that it becomes while nobody is hostile yet."""
        world, link = first, None
        if self.walk.as_holder:
            world, link = self.move(first, e.Tick(), first.now, None)
        while self.walk.as_holder and (event := settles(world, NOBODY)) is not None:
            world, link = self.move(world, event, world.now, link)
        yield from self.arrive(world, e.Tick(), world.now, link)

    def onward(self, world: World, link: Link) -> Iterator[tuple[World, Link]]:
        """The new states one event away."""
        for event, now in may_happen(world, self.walk.hostile, stop=self.walk.stop):
            yield from self.arrive(world, event, now, link)

    def arrive(
        self, world: World, event: e.Event, now: float, link: Link | None
    ) -> Iterator[tuple[World, Link]]:
        """Where this event leads, if nobody has been there before."""
        for _ in range(SETTLE_STEPS_MAX):
            world, link = self.move(world, event, now, link)
            settling = settles(world, self.walk.hostile)
            if settling is None:
                break
            event = settling
        else:
            raise BrokenPromise(f"more than {SETTLE_STEPS_MAX} exchanges at one instant\n{_way(link)}")
        key = world.key
        if key in self.came:
            return
        assert len(self.came) < STATES_MAX, f"{STATES_MAX} states: something grows without bound"
        self.came[key] = (world, link)
        self.walked.states += 1
        self.walked.kinds.add(world.contender.role)
        yield world, link

    def move(self, world: World, event: e.Event, now: float, link: Link | None) -> tuple[World, Link]:
        """One step, looked at by the onlooker."""
        self.walked.steps += 1
        begun: tuple[a.Action, ...] = ()
        try:
            election, begun = step(world.contender, event, now)
            monitor = watch_step(world.monitor, world.contender, event, election, begun, now)
            created = isinstance(event, e.Answered) and isinstance(event.outcome, o.Created)
            new = World(election, monitor, now, world.sessions + created)
            new = _without_orphans(new)
        except AssertionError as broken:
            raise BrokenPromise(f"{broken}\n{_way(Link(link, _told(world, event, begun, now)))}") from broken
        self.walked.kinds |= {type(event), *map(type, begun)}
        if isinstance(event, e.Answered):
            self.walked.kinds.add(type(event.outcome))
        return new, Link(link, _told(world, event, begun, now))

    # --- is there always a way on? -------------------------------------------------------------

    def ways_on(self) -> None:
        """From every state of the walk to a holder, or to the end; dead states are broken promises."""
        for silent in (False, True):
            good: set[Key] = set()
            for key, (world, link) in self.came.items():
                if world.contender.winding_up or not silent:
                    self._way_on(key, world, link, good, silent)

    def _way_on(self, key: Key, world: World, link: Link, good: set[Key], silent: bool) -> None:
        passed: list[Key] = []
        for _ in range(ROUNDS_MAX):
            if key in good or _arrived(world):
                good.update(passed)
                return
            passed.append(key)
            event, now = settles(world, NOBODY, silent=silent), world.now
            if event is None:
                event, now = e.Tick(), _next_turn(world)
            assert now < NEVER, f"nothing is due, and nothing under way\n{_way(link)}"
            world, link = self.move(world, event, now, link)
            key = world.key
        raise BrokenPromise(f"no way on\n{_way(link)}")


def _arrived(world: World) -> bool:
    """At the end of every way: what a sane Consul, hooks that work and some time lead to."""
    role, settings = world.contender.role, world.contender.settings
    if world.contender.departing and role is a.Role.STUCK:
        return True  # it stays for an operator to see to, while this process goes on
    if world.contender.winding_up:
        return role is a.Role.STOPPED
    if world.contender.paused and world.contender.tenure is None:
        return True
    if not settings.contend:
        return world.contender.lock.watch.pending is not None
    return role in (a.Role.HOLDING, a.Role.STUCK)


def _next_turn(world: World) -> float:
    due_at = world.contender.deadline
    return due_at if due_at == NEVER else max(world.now + GRID_S, -(-due_at // GRID_S) * GRID_S)


def _without_orphans(world: World) -> World:
    """Nothing that Consul may answer about a session already dead changes anything: forget it."""
    election, monitor = world.contender, world.monitor
    session = election.session
    lanes = (election.lock.watch, election.lock.read, election.lock.details, session.write, session.renew)
    stopped = election.role is a.Role.STOPPED
    awaited = [] if stopped else [lane.pending for lane in lanes]
    orphans = [request for request in monitor.pending if request not in awaited]
    for orphan in orphans:
        idle = step(election, e.Tick(), world.now)
        for outcome in every_answer(world, orphan):
            same = step(election, e.Answered(orphan, outcome), world.now) == idle
            assert same, f"a late {outcome} to {orphan} changes something"
    if not orphans:
        return world
    pending = tuple(request for request in monitor.pending if request in awaited)
    return replace(world, monitor=replace(monitor, pending=pending))


# --- the way to a state, in words ------------------------------------------------------------------


def _told(world: World, event: e.Event, begun: tuple[a.Action, ...], now: float) -> str:
    return f"{now:6g}s  {_short(event)} -> {', '.join(map(_short, begun)) or '-'}"


def _way(link: Link | None) -> str:
    lines = []
    while link is not None:
        lines.append(link.told)
        link = link.before
    return "\n".join(reversed(lines))


def _short(value: object) -> str:
    match value:
        case e.Answered(request, outcome):
            return f"{_short(request)} = {outcome}"
        case r.WatchKey(index=index, consistent=consistent):
            return f"WatchKey({index}{', consistent' if consistent else ''})"
        case e.HookEnded(started, ok=ok):
            return f"{started.hook.name} ended {'well' if ok else 'badly'}"
        case a.StartHook(hook, attempt):
            return f"start {hook.name}#{attempt}"
        case a.RoleChanged(role=role):
            return f"became {role}"
    return type(value).__name__


def main() -> None:
    """The table; names as arguments pick some."""
    names = sys.argv[1:]
    print(f"{'walk':24}{'states':>9}{'steps':>10}{'seconds':>9}", flush=True)
    for walk in (*WALKS, *LONG):
        if names and walk.name not in names:
            continue
        began_at = time.process_time()
        try:
            walked = explore(walk)
        except AssertionError as broken:
            sys.exit(f"{walk.name}: {broken}")
        seconds = time.process_time() - began_at
        print(f"{walk.name:24}{walked.states:9}{walked.steps:10}{seconds:9.1f}", flush=True)


if __name__ == "__main__":
    main()
