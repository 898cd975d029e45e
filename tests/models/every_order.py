"""Every order of events: a breadth-first walk over all states that an election can reach.

A walk is one election's settings and the kinds of exchanges in which Consul is hostile. From every state the
walk takes every event that may come, and a monitor holds each step to the promises. In every state the walk
checks that there is a way on: without a stop, to a holder as soon as Consul is sane; after a stop, to the
end, whether Consul is sane or silent.

    python -m tests.models.every_order

This walks all of them, the long ones included, and prints a table.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core.claim import guard as guards
from supervisor.core.claim.record import UNREADABLE
from supervisor.core.contender.creation import contender_of
from supervisor.core.contender.step import step
from supervisor.core.frozen import replace
from supervisor.core.lock import backoff, handover
from supervisor.core.lock import base as rules
from supervisor.core.settings import Wanted
from supervisor.core.times import NEVER
from tests.models import words
from tests.models.adversary import HERE, NOBODY, World, every_answer, may_happen, settles
from tests.models.invariants import monitor_of, watch_step
from tests.models.search import BrokenPromise, Link, Moves, Walked, print_table, search
from tests.models.state_key import GRID_S, Key
from tests.models.walks import LONG, WALKS, Walk
from tests.unit.core.edges import EDGES, edges_taken

SETTLE_STEPS_MAX = 40  # more at one instant would be a storm of requests
ROUNDS_MAX = 80  # from any state to a holder, or to the end


def explore(walk: Walk, enough: float = inf) -> tuple[Walked, set[object]]:
    """Search the walk. Return what the search saw, and the kinds of all that occurred.

    enough: see ``search``.
    """
    model = _EveryOrder(walk)
    with _fewer_steps(), edges_taken() as edges:
        walked = search(model, enough, inf if walk.steps_max is None else walk.steps_max)
        model.ways_on()
    assert edges <= EDGES, edges - EDGES
    return walked, model.kinds | edges


@contextmanager
def _fewer_steps() -> Iterator[None]:
    """Count to one idle wake, one lost race and a few seconds each, because more only add states."""
    unreadable = replace(UNREADABLE, lock_delay_s=3.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "IDLE_WAKES_MAX", 1)
        patch.setattr(backoff, "DECREASE_FACTOR", round(1 / backoff.ATTEMPT_PROBABILITY_MIN))
        patch.setattr(handover, "HANDOVER_S", 2.0)
        patch.setattr(guards, "UNREADABLE", unreadable)
        yield


class _EveryOrder:
    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.kinds: set[object] = set()
        self.came: list[tuple[World, Link]] = []

    def begin(self) -> Moves[World]:
        """Return the first state, or the holder that it becomes while no exchange is hostile yet."""
        unchecked = e.HooksChecked in self.walk.hostile
        withheld = None if e.OrderSeen in self.walk.hostile else False
        wanted = Wanted(self.walk.settings, spread=0.0, unchecked=unchecked, place=HERE, withheld=withheld)
        election = contender_of(wanted, instance="i", record=self.walk.record, now=0.0)
        world = World(election, monitor_of(self.walk.record))
        told: list[str] = []
        event: e.Event | None = e.Tick() if self.walk.as_holder else None
        while event is not None:
            world = self.move(world, event, world.now, told)
            event = settles(world, NOBODY)
        yield self.settled(world, e.Tick(), world.now, told)

    def moves(self, world: World) -> Moves[World]:
        """Return the state that follows each event that may come next."""
        for event, now in may_happen(world, self.walk.hostile, stop=self.walk.stop):
            yield self.settled(world, event, now, [])

    def key(self, world: World) -> Key:
        return world.key

    def judge(self, world: World, link: Link) -> None:
        """Check the state by ``ways_on``; the monitor has judged each step."""
        self.kinds.add(world.contender.role)
        self.came.append((world, link))

    def settled(self, world: World, event: e.Event, now: float, told: list[str]) -> tuple[str, World]:
        """Return the state after this event and after all that follows at once."""
        for _ in range(SETTLE_STEPS_MAX):
            world = self.move(world, event, now, told)
            settling = settles(world, self.walk.hostile)
            if settling is None:
                return "\n".join(told), world
            event = settling
        raise BrokenPromise(f"more than {SETTLE_STEPS_MAX} exchanges at one instant", told)

    def move(self, world: World, event: e.Event, now: float, told: list[str]) -> World:
        """Take one step, which the monitor checks. Its line is added to those since the last state."""
        begun: tuple[a.Action, ...] = ()
        try:
            election, begun = step(world.contender, event, now)
            monitor = watch_step(world.monitor, world.contender, event, election, begun, now)
            created = isinstance(event, e.Answered) and isinstance(event.outcome, o.Created)
            new = World(election, monitor, now, world.sessions + created)
            if isinstance(event, e.Answered) and not begun:
                assert step(election, e.Tick(), now) == (election, ()), "an answer left something to begin"
            new = _without_orphans(new)
        except AssertionError as broken:
            raise BrokenPromise(str(broken), (*told, _told(event, begun, now))) from broken
        self.kinds |= {type(event), *map(type, begun)}
        if isinstance(event, e.Answered):
            self.kinds.add(type(event.outcome))
        told.append(_told(event, begun, now))
        return new

    # --- is there always a way on? -------------------------------------------------------------

    def ways_on(self) -> None:
        """Check that each state of the walk leads to a holder or to the end."""
        for silent in (False, True):
            good: set[Key] = set()
            for world, link in self.came:
                if world.contender.winding_up or not silent:
                    try:
                        self._way_on(world, good, silent)
                    except BrokenPromise as broken:
                        raise BrokenPromise(broken.why, (*link.way(), *broken.way)) from broken

    def _way_on(self, world: World, good: set[Key], silent: bool) -> None:
        passed: list[Key] = []
        told: list[str] = []
        for _ in range(ROUNDS_MAX):
            key = world.key
            if key in good or _arrived(world):
                good.update(passed)
                return
            passed.append(key)
            event, now = settles(world, NOBODY, silent=silent), world.now
            if event is None:
                event, now = e.Tick(), _next_turn(world)
            if now == NEVER:
                raise BrokenPromise("nothing is due, and nothing under way", told)
            world = self.move(world, event, now, told)
        raise BrokenPromise("no way on", told)


def _arrived(world: World) -> bool:
    """Return the end of every way: the state after sane answers, good hooks and some time."""
    role, settings = world.contender.role, world.contender.settings
    if world.contender.departing and (role is a.Role.STUCK or world.monitor.left):
        return True  # an operator or the end of a process must end it, while this process goes on
    if world.contender.winding_up:
        return role is a.Role.STOPPED
    awaits_word = settings.manual and not world.contender.allowed
    is_paused = world.contender.paused or world.contender.withheld is not False
    if (is_paused or awaits_word) and world.contender.tenure is None:
        return True
    if not settings.contend:
        return world.contender.lock.watch.pending is not None
    return role in (a.Role.HOLDING, a.Role.STUCK)


def _next_turn(world: World) -> float:
    due_at = world.contender.deadline
    return due_at if due_at == NEVER else max(world.now + GRID_S, -(-due_at // GRID_S) * GRID_S)


def _without_orphans(world: World) -> World:
    """Drop what Consul may answer about dead sessions, because such answers change nothing."""
    election, monitor = world.contender, world.monitor
    session = election.session
    lock = election.lock
    of_lock = (
        lock.watch,
        lock.read,
        lock.details,
        lock.hint.lane,
        election.claim.lane,
        session.write,
        session.renew,
    )
    lanes = (*of_lock, election.maintenance.read, election.service.exchange)
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


def _told(event: e.Event, begun: tuple[a.Action, ...], now: float) -> str:
    return f"{now:6g}s  {words.line(event, begun)}"


if __name__ == "__main__":
    print_table((*WALKS, *LONG), lambda walk: explore(walk)[0])
