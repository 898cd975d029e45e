"""Every order of events: a breadth-first walk over all states that an election can reach.

Consul is played by an adversary: whatever was asked may be answered with anything that its kind
of request can be answered with, at once, later or never, whether or not a sane Consul would.
Time moves in steps of GRID_S, never past a deadline of the election by more than one step. States
that differ only in absolute time, in session ids or in counters are one state.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from math import ceil, inf
from typing import Any

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core.election import Election, new_election, step
from supervisor.core.lane import NEVER
from supervisor.core.session import Stage
from supervisor.core.settings import ElectionSettings
from supervisor.core.tenure import Phase

GRID_S = 1.0
STATES_MAX = 60_000  # the walk is meant to end; a state that grows without bound is a defect
# Older than this is as good as for ever: no rule looks further back in the settings explored.
OLD_S = {"try_at": 0.0, "rejoin_at": 0.0, "free_at": 1.0, "free_since": 4.0, "contact": 4.0, "contact_at": 4.0}
OLD_ELSE_S = 4.0


class BrokenInvariant(AssertionError):
    """A promise was broken; the message tells the way there."""


@dataclass(frozen=True, slots=True)
class Monitor:
    """What an onlooker remembers, from events and actions alone.

    ``contact``: send time of the newest consistent answer that showed us as holder.
    ``owed``: on_acquire began and on_lose has not come to its end.
    ``lost_runs``: whether on_lose began. ``written``: how far the writes of the session went.
    """

    hook: a.StartHook | None = None
    change: a.StartHook | None = None
    run: a.StartRun | None = None
    contact_at: float = -inf
    owed: bool = False
    lost_runs: bool = False
    written: tuple[str, int] = ("", 0)
    pending: tuple[a.Request, ...] = ()
    created: str = ""


@dataclass(frozen=True, slots=True)
class World:
    """One state of the walk; all its times count from now."""

    election: Election
    monitor: Monitor
    asked_to_stop: bool = False


@dataclass(slots=True)
class Walk:
    """What a walk saw."""

    states: int = 0
    steps: int = 0
    kinds: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()


VIEWS = (
    e.KeyView(index=5),
    e.KeyView(index=9, session="rival", value=b"rival", create_index=3, modify_index=9, lock_index=2),
)


Kinds = frozenset[type[a.Request]]


def explore(settings: ElectionSettings, *, hostile: Kinds, stop: bool = True) -> Walk:
    """Walk through every reachable state; raises BrokenInvariant with the way to the first fault.

    Requests of the ``hostile`` kinds get every answer that there is, the others a sane one.
    """
    first = World(_normal(new_election(settings, spread=0.0, instance="i"), 0.0), Monitor())
    came: dict[World, tuple[World, str] | None] = {first: None}
    frontier, walk, kinds, roles = [first], Walk(), set[str](), set[str]()
    while frontier:
        following = []
        for world in frontier:
            for event, now in _events(world, stop, hostile):
                try:
                    new, begun = _move(world, event, now)
                except AssertionError as broken:
                    raise BrokenInvariant(f"{broken}\n{_way(came, world, event, now)}") from broken
                walk.steps += 1
                kinds |= _kinds(event, begun)
                if new not in came:
                    came[new] = (world, f"+{now:g}s {_short(event)} -> {', '.join(map(_short, begun))}")
                    following.append(new)
                    roles.add(new.election.role)
        if len(came) > STATES_MAX:
            raise AssertionError(f"more than {STATES_MAX} states: something grows without bound")
        frontier = following
    walk.states, walk.kinds, walk.roles = len(came), frozenset(kinds), frozenset(roles)
    return walk


# --- what can happen next ---------------------------------------------------------------------


def sane_answer(election: Election, request: a.Request) -> Iterator[e.Outcome]:
    """What a Consul answers on which nobody else acts; a watch that has no news goes on."""
    ours, tenure = election.session.id, election.tenure
    match request:
        case a.CreateSession():
            yield e.Created("")
        case a.RenewSession():
            yield e.Alive()
        case a.Acquire():
            yield e.Won(3, 7, 1)
        case a.Release() | a.DestroySession():
            yield e.Done()
        case a.ReadKey() | a.WatchKey():
            view = e.KeyView(7, tenure.session, b"me", 3, 7, 1) if tenure is not None else VIEWS[0]
            if isinstance(request, a.ReadKey) or view != election.view:
                yield view
        case a.ReadSession():
            yield e.SessionInfo(2.0)


def every_answer(election: Election, request: a.Request) -> Iterator[e.Outcome]:
    """All outcomes of this kind of request."""
    ours = election.session.id
    yield e.Unknown("silence")
    match request:
        case a.CreateSession():
            yield from (e.Created(""), e.Refused(""), e.Ineligible(""))
        case a.RenewSession():
            yield from (e.Alive(), e.Dead(), e.Denied(""))
        case a.Acquire():
            yield from (e.Won(3, 7, 1), e.LockDelayed(), e.Raced(), e.Dead())
        case a.Release() | a.DestroySession():
            yield e.Done()
        case a.ReadKey() | a.WatchKey():
            yield from VIEWS
            if ours and election.session.tried:
                yield e.KeyView(7, ours, b"me", 3, 7, 1)
                yield e.KeyView(8, ours, b"put over", 3, 8, 0)
                yield e.KeyView(8, ours, b"me", 8, 8, 1)
        case a.ReadSession():
            yield from (e.SessionInfo(2.0), e.SessionInfo(None))


def _events(world: World, stop: bool, hostile: Kinds) -> Iterator[tuple[e.Event, float]]:
    monitor, election = world.monitor, world.election
    for request in monitor.pending:
        answers = every_answer if type(request) in hostile else sane_answer
        for outcome in answers(election, request):
            if isinstance(outcome, e.Created):
                outcome = e.Created(_new_session(monitor))
            yield e.Answered(request, outcome), 0.0
    for hook in (monitor.hook, monitor.change):
        if hook is not None:
            yield e.HookEnded(hook, ok=True), 0.0
            yield e.HookEnded(hook, ok=False), 0.0
    if monitor.run is not None:
        yield e.RunEnded(monitor.run), 0.0
    if stop and not world.asked_to_stop:
        yield e.StopAsked(), 0.0
    if election.role is not a.Role.STOPPED:
        later = _later(world)
        if later is not None:
            yield e.Tick(), later


def _new_session(monitor: Monitor) -> str:
    """A name that nothing under way speaks of: a session's last exchanges end within a second."""
    return "s1" if monitor.created else "s0"


def _later(world: World) -> float | None:
    """The next point of the grid, unless an exchange would outlive its time-out by it."""
    moves = [election_due for election_due in [world.election.deadline] if election_due < NEVER]
    moves += [request.at + request.timeout_s for request in world.monitor.pending]
    if not moves:
        return None
    later = max(GRID_S, ceil(max(min(moves), 0.0) / GRID_S) * GRID_S)
    overdue = any(
        request.at + request.timeout_s < later and not isinstance(request, a.WatchKey)
        for request in world.monitor.pending
    )
    return None if overdue else later


def _move(world: World, event: e.Event, now: float) -> tuple[World, tuple[a.Action, ...]]:
    monitor = _happened(world.monitor, world.election, event)
    election, begun = step(world.election, event, now)
    monitor = _check(monitor, world.election, election, begun, now)
    assert election.deadline > now, f"a deadline of {election.deadline} is not met at {now}"
    stopped = world.asked_to_stop or isinstance(event, e.StopAsked)
    written = monitor.written if monitor.written[0] == election.session.id else ("", 0)
    pending = tuple(sorted(monitor.pending, key=_kind_name))
    monitor = replace(monitor, pending=pending, written=written)
    new = World(_normal(election, now), _normal(monitor, now), stopped)
    return _renamed(new, monitor.created), begun


def _kind_name(request: a.Request) -> str:
    return type(request).__name__ + getattr(request, "session", "")


def _renamed(world: World, newest: str) -> World:
    """The newest session is called s0 in every state, the one before it s3, all others s2."""
    if newest in ("", "s0"):
        return world
    ids = {"s1": "s0", "s0": "s3", "s3": "s2"}
    renamed: World = _mapped(world, ids)
    return renamed


def _mapped(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, str):
        return ids.get(value, value) if type(value) is str else value
    if isinstance(value, tuple):
        return tuple(_mapped(item, ids) for item in value)
    if not is_dataclass(value) or isinstance(value, ElectionSettings):
        return value
    changed = {}
    for name, _ in _shape(type(value)):
        old = getattr(value, name)
        if (new := _mapped(old, ids)) is not old:
            changed[name] = new
    return replace(value, **changed) if changed else value  # type: ignore[type-var]


# --- the promises -----------------------------------------------------------------------------


def _happened(monitor: Monitor, election: Election, event: e.Event) -> Monitor:
    match event:
        case e.Answered(request, outcome):
            pending = tuple(other for other in monitor.pending if other != request)
            assert len(pending) == len(monitor.pending) - 1
            monitor = replace(monitor, pending=pending)
            if isinstance(outcome, e.Created):
                monitor = replace(monitor, created=outcome.session)
            if _shows_us(election, request, outcome):
                return replace(monitor, contact_at=max(monitor.contact_at, request.at))
        case e.HookEnded(started) if started.context.event == "change":
            return replace(monitor, change=None)
        case e.HookEnded():
            return replace(monitor, hook=None)
        case e.RunEnded():
            return replace(monitor, run=None)
    return monitor


def _shows_us(election: Election, request: a.Request, outcome: e.Outcome) -> bool:
    ours = election.session.id
    if isinstance(outcome, e.Won):
        return True
    consistent = isinstance(request, a.ReadKey) or (isinstance(request, a.WatchKey) and request.consistent)
    return isinstance(outcome, e.KeyView) and consistent and bool(ours) and outcome.session == ours


def _check(
    monitor: Monitor, before: Election, after: Election, begun: tuple[a.Action, ...], now: float
) -> Monitor:
    for action in begun:
        monitor = _checked(monitor, after, action, now)
    tenure = after.tenure
    if tenure is not None and tenure.believes:
        assert now < monitor.contact_at + after.lease.room_s, "belief outlives the room"
        assert not after.stopping, "belief after a stop was asked for"
    if tenure is not None and tenure.phase is Phase.HOLDING:
        monitor = replace(monitor, owed=True)
    if tenure is None and before.tenure is not None:
        assert not _lose_is_due(monitor, after), "a tenure ended without its on_lose"
        assert monitor.hook is None and monitor.run is None, "a tenure ended under a running hook"
        monitor = replace(monitor, owed=False, lost_runs=False, contact_at=-inf)
    lanes = [(type(request), getattr(request, "session", "")) for request in monitor.pending]
    assert len(lanes) == len(set(lanes)), f"two at once: {lanes}"
    return monitor


def _checked(monitor: Monitor, after: Election, action: a.Action, now: float) -> Monitor:
    match action:
        case a.StartHook() if action.context.event == "change":
            assert monitor.change is None, "two on_change at once"
            return replace(monitor, change=action)
        case a.StartHook():
            return _hook_checked(monitor, after, action, now)
        case a.StartRun():
            assert monitor.run is None and monitor.hook is None, "run started beside another"
            assert now - monitor.contact_at <= after.lease.fresh_s, "run started on stale news"
            return replace(monitor, run=action, owed=True)
        case a.KillHook(started):
            assert started in (monitor.hook, monitor.change), "a hook is killed that does not run"
        case a.StopRun(started):
            assert started == monitor.run, "a run child is stopped that does not run"
        case a.Request():
            return _request_checked(monitor, after, action, now)
        case a.Finished(clean=clean):
            ended = monitor.run is None and monitor.hook is None and monitor.change is None
            assert ended, "finished under a running hook"
            assert not (clean and _lose_is_due(monitor, after)), "finished without on_lose"
            assert not clean or after.session.stage is Stage.ABSENT, "a session is left behind"
    return monitor


def _hook_checked(monitor: Monitor, after: Election, start: a.StartHook, now: float) -> Monitor:
    assert monitor.hook is None, "two hooks at once"
    assert monitor.run is None, "a hook is started beside the run child"
    context = start.context
    if context.event == "acquire":
        assert not monitor.lost_runs, "on_acquire after on_lose"
        assert now - monitor.contact_at <= after.lease.fresh_s, "on_acquire on stale news"
        return replace(monitor, hook=start, owed=True)
    assert monitor.owed, "on_lose without an on_acquire that began"
    first = context.event == "lose" and start.attempt == 1 and start.hook == after.settings.on_lose[0]
    assert not (first and monitor.lost_runs), "on_lose runs twice"
    if start.attempt > 1:
        assert context.rival_at is not None
        assert now + start.hook.attempt_s <= context.rival_at, "a retry reaches into a rival's time"
    return replace(monitor, hook=start, lost_runs=True)


def _lose_is_due(monitor: Monitor, election: Election) -> bool:
    return monitor.owed and not monitor.lost_runs and bool(election.settings.on_lose)


_RANK: dict[type[a.Request], int] = {a.Acquire: 1, a.Release: 2, a.DestroySession: 3}


def _request_checked(monitor: Monitor, after: Election, request: a.Request, now: float) -> Monitor:
    assert request.at == now
    rank = _RANK.get(type(request), 0)
    if rank:
        session: str = request.session  # type: ignore[attr-defined]
        seen, written = monitor.written
        assert session != seen or rank >= written, "a write of a session goes backwards"
        assert rank == 1 or not _lose_is_due(monitor, after), "released before on_lose ran"
        assert rank == 1 or (monitor.hook is None and monitor.run is None), "released under a hook"
        assert rank > 1 or after.tenure is None, "an acquire during a tenure"
        monitor = replace(monitor, written=(session, rank))
    return replace(monitor, pending=(*monitor.pending, request))


# --- what makes two states one ----------------------------------------------------------------

# What hooks and logs are told but no rule looks at.
_TOLD_ONLY: dict[str, Any] = {
    "count": 0,
    "transition": "",
    "leader": b"",
    "previous_leader": None,
    "next_leader": None,
    "past_leader": None,
    "rival_at": None,
}
_TIMES = {"at", "contact", "reason_by", "free_since"}


@lru_cache(maxsize=None)
def _shape(kind: type) -> tuple[tuple[str, bool], ...]:
    return tuple((f.name, f.name in _TIMES or f.name.endswith("_at")) for f in fields(kind))


def _normal(value: Any, now: float) -> Any:
    """The same value with its times counted from now, without what cannot matter any more."""
    if isinstance(value, tuple) and not value:
        return value
    if isinstance(value, tuple):
        return tuple(_normal(item, now) for item in value)
    if not is_dataclass(value) or isinstance(value, ElectionSettings):
        return value
    if isinstance(value, a.WatchKey):
        return replace(value, at=0.0)  # a watch has no age here: it may end at any time
    changed: dict[str, Any] = {}
    for name, is_time in _shape(type(value)):
        old = getattr(value, name)
        if is_time:
            new = None if old is None else _time(name, old, now)
        elif name in _TOLD_ONLY:
            new = _TOLD_ONLY[name]
        elif name == "own_losses":
            new = min(old, 1)
        else:
            new = _normal(old, now)
        if new is not old:
            changed[name] = new
    return replace(value, **changed) if changed else value


def _time(name: str, old: float, now: float) -> float:
    if name == "held_at":
        return 0.0
    if old in (inf, -inf):
        return old
    new = round(old - now, 6)
    return -inf if new < -OLD_S.get(name, OLD_ELSE_S) else new


def _kinds(event: e.Event, begun: tuple[a.Action, ...]) -> set[str]:
    names = {type(event).__name__, *(type(action).__name__ for action in begun)}
    if isinstance(event, e.Answered):
        names.add(type(event.outcome).__name__)
    return names


def _short(value: object) -> str:
    match value:
        case e.Answered(request, outcome):
            return f"{type(request).__name__}={outcome}"
        case e.HookEnded(started, ok=ok):
            return f"{started.hook.name} ended {'well' if ok else 'badly'}"
        case a.StartHook(hook, attempt):
            return f"start {hook.name}#{attempt}"
        case a.Became(role=role):
            return f"became {role}"
    return type(value).__name__


def _way(came: dict[World, tuple[World, str] | None], world: World, event: e.Event, now: float) -> str:
    lines = [f"+{now:g}s {_short(event)} -> !"]
    link = came[world]
    while link is not None:
        lines.append(link[1])
        link = came[link[0]]
    return "\n".join(reversed(lines))
