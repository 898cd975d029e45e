"""Two never hold: every order of events of one election, a small model of Consul, and a rival.

Unlike ``explore`` Consul is no liar here: it is a key, sessions and a lock-delay, and it answers what
is true when a request is applied. But a request may be applied late, after we gave up on it; its
answer may come late or never; a session may end at any moment. The rival is no code of ours: it obeys
only Consul, and takes the key at any moment Consul allows. Our process may be killed between any two
actions of a turn, and a new one starts from what is on record. In every state the judge asks whether
both act at once.

    python -m tests.models.two_holders_model            prints a table; names as arguments pick some
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.actions import EMPTY_RECORD
from supervisor.core.contender import Contender
from supervisor.core.creation import departing_contender, new_contender
from supervisor.core.settings import ElectionSettings
from supervisor.core.step import step
from tests.models.state_key import GRID_S, Key, Naming, part
from tests.models.walks import HOOKS, RUN, election, hook

RIVAL = "rival"
NAMES = ("s0", "s1", "s2", "s3", "s4")  # of our sessions; a name is used again when nothing knows it any more
STATES_MAX = 400_000
WRITES = (r.Acquire, r.Release, r.DestroySession, r.Rewrite)
Write = r.Acquire | r.Release | r.DestroySession | r.Rewrite


class BothAct(AssertionError):
    """A promise was broken; the message tells the way there."""


@dataclass(frozen=True)
class Scene:
    """``slow``: kinds of requests that may be applied late, and whose answers may be lost, so often
    (``losses``). ``ends``: how often Consul ends a session by itself. ``crashes``, ``refusals``: how
    often we are killed, and a record cannot be written. ``takes``: how often the rival takes the key; the
    last time it keeps it. ``departs``: a restart finds that the file
    has no such election any more. ``stop``: a stop may be asked for. ``files``: so often the file changes
    and is read again, and then has another value and another room. ``alters``: so often a proxy changes
    the request for a session, which Consul then makes without a lock-delay."""

    name: str
    settings: ElectionSettings
    slow: tuple[type, ...] = ()
    losses: int = 0
    ends: int = 0
    crashes: int = 0
    refusals: int = 0
    stop: bool = False
    departs: bool = False
    files: int = 0
    alters: int = 0
    takes: int = 1
    steps_max: int | None = None
    shows: frozenset[object] = frozenset()

    def file(self, changes: int) -> ElectionSettings:
        """The file after so many changes."""
        if changes % 2 == 0:
            return self.settings
        down = tuple(replace(each, timeout_s=each.timeout_s / 2) for each in self.settings.on_lose)
        return replace(self.settings, value=b"new", on_lose=down)


@dataclass(frozen=True, slots=True)
class Pending:
    """A request under way; ``answer`` once Consul has applied it."""

    request: r.Request
    answer: o.Outcome | None = None


@dataclass(frozen=True, slots=True)
class World:
    """``late``: writes whose sender has given up on them or died, and that may yet be applied.

    ``acts``: the application of our node acts as holder; ``acts_until``: so far it is judged, for nobody
    tells the application of a supervisor that is dead and restarted after its last room.
    ``owed``: the session whose on_acquire began and whose on_lose has not ended.
    """

    contender: Contender | None
    record: a.Record = EMPTY_RECORD
    now: float = 0.0
    holder: str = ""
    delay_until: float = -inf
    alive: frozenset[str] = frozenset()
    altered: frozenset[str] = frozenset()
    pending: tuple[Pending, ...] = ()
    late: tuple[Write, ...] = ()
    hook: tuple[a.StartHook, float] | None = None
    run: tuple[a.StartRun, float] | None = None
    acts: bool = False
    acts_until: float = inf
    owed: str = ""
    stopped: bool = False
    losses: int = 0
    ends: int = 0
    crashes: int = 0
    refusals: int = 0
    takes: int = 0
    files: int = 0
    alters: int = 0
    recorded: ElectionSettings | None = None
    value: bytes = b""

    def key(self, settings: ElectionSettings) -> Key:
        """Equal for two worlds that no event can make differ."""
        naming = _OwnNames(self.contender or new_contender(settings, spread=0.0, instance="i"), self.now)
        past = -self.lock_delay_s(settings) - GRID_S
        record = self.record
        recorded = (
            record.step,
            record.session,
            max(record.contact - self.now, past),
            record.taken_at is None,
        )
        return (
            part(self.contender, naming),
            recorded,
            self.holder,
            max(self.delay_until - self.now, 0.0),
            tuple(sorted(self.alive)),
            tuple(sorted(self.altered)),
            tuple((part(p.request, naming), part(p.answer, naming)) for p in self.pending),
            tuple((type(write).__name__, write.session, getattr(write, "value", b"")) for write in self.late),
            self.hook and (self.hook[0].context.event, self.hook[1] - self.now),
            self.run and self.run[1] - self.now,
            (self.acts, max(self.acts_until - self.now, 0.0), self.owed, self.stopped),
            (self.losses, self.ends, self.crashes, self.refusals, self.takes),
            (self.alters, self.files, self.recorded and self.recorded.value, self.value, record.leader),
        )

    @staticmethod
    def lock_delay_s(settings: ElectionSettings) -> float:
        """Ours; the rival leaves by a release, without one."""
        return settings.session.lock_delay_s

    @property
    def view(self) -> o.KeyView:
        """The key as an answer of now shows it."""
        value = self.value if self.holder in NAMES else b"rival"
        return o.KeyView(7, self.holder, value, 3, 7, 1)


class _OwnNames(Naming):
    """Sessions have few names here, which are used again."""

    def session(self, name: str) -> str:
        return name


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


def explore(scene: Scene, enough: float = inf) -> Walked:
    """Go to every state of the scene; raises BothAct with the way to the first broken promise.

    ``enough``: with so many states found it ends, at the end of a step.
    """
    return _Explorer(scene).walk(enough)


class _Explorer:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.walked = Walked()

    def walk(self, enough: float) -> Walked:
        first = World(new_contender(self.scene.settings, spread=0.0, instance="i"))
        came: set[Key] = set()
        frontier: list[tuple[World, Link | None]] = [(first, None)]
        steps = 0
        steps_max = inf if self.scene.steps_max is None else self.scene.steps_max
        while frontier and len(came) < enough and steps <= steps_max:
            found: list[tuple[World, Link | None]] = []
            for world, link in frontier:
                for told, moved in self._onward(world, link):
                    moved = _without_idle_writes(moved)
                    self.walked.steps += 1
                    key = moved.key(self.scene.settings)
                    if key not in came:
                        came.add(key)
                        self._judge(moved, Link(link, told))
                        found.append((moved, Link(link, told)))
            assert len(came) < STATES_MAX, f"{STATES_MAX} states: something grows without bound"
            frontier, steps = found, steps + 1
        self.walked.states = len(came)
        return self.walked

    def _judge(self, world: World, link: Link) -> None:
        both = world.holder == RIVAL and world.acts and world.now < world.acts_until
        if both:
            raise BothAct(f"both act at once\n{_way(link)}")

    # --- what may happen ---------------------------------------------------------------------------

    def _onward(self, world: World, link: Link | None) -> Iterator[tuple[str, World]]:
        """Every next state. What is not slow happens at once, before anything else may."""
        try:
            at_once = self._at_once(world)
            yield from self._all_that_may_happen(world) if at_once is None else at_once
        except AssertionError as broken:
            raise BothAct(f"{broken}\n{_way(link)}") from broken

    def _at_once(self, world: World) -> Iterator[tuple[str, World]] | None:
        for pending in world.pending:
            if isinstance(pending.request, r.WatchKey):
                known = world.contender.lock.view if world.contender is not None else None
                assert not isinstance(known, o.SlotsView)
                wakes = pending.request.index == 0 or known is None or known.session != world.holder
                if wakes and r.WatchKey not in self.scene.slow:
                    return self._answers(world, pending, world.view)
            elif type(pending.request) not in self.scene.slow:
                return self._answered(world, pending)
        return None

    def _answered(self, world: World, pending: Pending) -> Iterator[tuple[str, World]]:
        applied, answer = self._applied(world, pending.request)
        yield from self._answers(applied, pending, answer)
        if isinstance(answer, o.Created) and world.alters < self.scene.alters:
            altered = replace(applied, altered=applied.altered | {answer.session}, alters=world.alters + 1)
            for told, moved in self._answers(altered, pending, answer):
                yield f"altered: {told}", moved

    def _all_that_may_happen(self, world: World) -> Iterator[tuple[str, World]]:
        yield from self._consul(world)
        yield from self._rival(world)
        if world.contender is None:
            yield from self._restart(world)
        else:
            yield from self._exchanges(world)
            yield from self._ours(world)
        if world.now + GRID_S <= self._bound(world):
            later = replace(world, now=world.now + GRID_S)
            if world.contender is None:
                yield "time passes", later
            else:
                yield from self._turn(later, e.Tick())

    def _consul(self, world: World) -> Iterator[tuple[str, World]]:
        for write in world.late:
            applied, answer = self._applied(world, write)
            rest = tuple(other for other in world.late if other is not write)
            yield f"late {_short(write)} is applied: {_short(answer)}", replace(applied, late=rest)
        if world.ends < self.scene.ends:
            for session in world.alive:
                ended = self._without(world, session)
                yield f"Consul ends {session}", replace(ended, ends=world.ends + 1)

    def _rival(self, world: World) -> Iterator[tuple[str, World]]:
        left = self.scene.takes - world.takes
        if not world.holder and world.now >= world.delay_until and left:
            yield "the rival takes the key", replace(world, holder=RIVAL, takes=world.takes + 1)
        if world.holder == RIVAL and left:
            yield "the rival releases the key", replace(world, holder="")

    def _restart(self, world: World) -> Iterator[tuple[str, World]]:
        """What a crash interrupted is killed before anything else begins."""
        settings, record = self.scene.file(world.files), world.record
        in_time = world.now < world.acts_until
        quiet = replace(world, hook=None, run=None, acts_until=inf if in_time else world.acts_until)
        fresh = new_contender(
            settings, spread=0.0, instance="i", record=record, recorded=world.recorded, now=world.now
        )
        for told, moved in self._turn(replace(quiet, contender=fresh), e.Tick()):
            yield f"restart, {told}", moved
        if self.scene.departs and record.step is not a.Step.NONE:
            assert world.recorded is not None
            leaving = departing_contender(
                world.recorded, spread=0.0, instance="i", record=record, now=world.now
            )
            for told, moved in self._turn(replace(quiet, contender=leaving), e.Tick()):
                yield f"restart without it, {told}", moved

    def _exchanges(self, world: World) -> Iterator[tuple[str, World]]:
        for pending in world.pending:
            request = pending.request
            if type(request) not in self.scene.slow or isinstance(request, r.WatchKey):
                continue
            if pending.answer is None:
                applied, answer = self._applied(world, request)
                done = replace(pending, answer=answer)
                others = tuple(done if other is pending else other for other in applied.pending)
                yield f"{_short(request)} is applied: {_short(answer)}", replace(applied, pending=others)
            else:
                yield from self._answers(world, pending, pending.answer)
            if world.now >= request.at + request.timeout_s and world.losses < self.scene.losses:
                yield from self._lost(world, pending)

    def _lost(self, world: World, pending: Pending) -> Iterator[tuple[str, World]]:
        lost = replace(world, losses=world.losses + 1)
        if pending.answer is None and isinstance(pending.request, WRITES):
            lost = replace(lost, late=(*lost.late, pending.request))
        yield from self._answers(lost, pending, o.Unknown("lost"))

    def _ours(self, world: World) -> Iterator[tuple[str, World]]:
        if world.hook is not None:
            for ok in (True, False):
                yield from self._turn(world, e.HookEnded(world.hook[0], ok))
        if world.run is not None:
            yield from self._turn(world, e.RunEnded(world.run[0]))
        if self.scene.stop and not world.stopped:
            yield from self._turn(replace(world, stopped=True), e.StopAsked())
        if world.files < self.scene.files and world.contender is not None and not world.contender.winding_up:
            changed = replace(world, files=world.files + 1)
            yield from self._turn(changed, e.SettingsChanged("n", self.scene.file(changed.files)))
        if world.crashes < self.scene.crashes:
            yield "crash", self._crashed(world)

    def _bound(self, world: World) -> float:
        """Time goes no further than what must happen by then."""
        bounds = [inf]
        bounds += [child[1] for child in (world.hook, world.run) if child is not None]
        if world.contender is not None:
            losable = world.losses < self.scene.losses
            bounds += [
                p.request.at + p.request.timeout_s - (0.0 if losable else GRID_S)
                for p in world.pending
                if not isinstance(p.request, r.WatchKey)
            ]
        return min(bounds)

    # --- our process -------------------------------------------------------------------------------

    def _answers(self, world: World, pending: Pending, answer: o.Outcome) -> Iterator[tuple[str, World]]:
        others = tuple(other for other in world.pending if other is not pending)
        yield from self._turn(replace(world, pending=others), e.Answered(pending.request, answer))

    def _turn(self, world: World, event: e.Event) -> Iterator[tuple[str, World]]:
        """As the driver does it; killed before each action, unless nothing of it would be missing."""
        told = _short(event)
        self.walked.kinds.add(type(event))
        world = self._ended(world, event)
        assert world.contender is not None
        election, actions = step(world.contender, event, world.now)
        before, world = world, replace(world, contender=election)
        records: list[tuple[World, e.RecordWritten]] = []
        asked: a.WriteRecord | None = None
        for done, action in enumerate(actions):
            self.walked.kinds.add(type(action))
            if isinstance(action, a.RoleChanged):
                continue
            if world.crashes < self.scene.crashes and not isinstance(action, a.PrepareWrite):
                cut = self._crashed(replace(world, contender=before.contender))
                yield f"{told}, killed before action {done}: {_short(action)}", cut
            if isinstance(action, a.WriteRecord):
                asked = action
            else:
                world = self._act(world, action)
        told = f"{told} -> {', '.join(map(_short, actions)) or '-'}"
        if election.role is a.Role.STOPPED and asked is None:
            world = replace(self._crashed(world), crashes=world.crashes, acts_until=world.now)
        if asked is None:
            yield told, world
            return
        assert isinstance(asked.settings, ElectionSettings)
        kept = replace(world, record=asked.record, recorded=asked.settings)
        records.append((kept, e.RecordWritten(asked)))
        if world.refusals < self.scene.refusals:
            refused = replace(world, refusals=world.refusals + 1)
            records.append((refused, e.RecordWritten(asked, "full")))
        for written, remembered in records:
            for more, moved in self._turn(written, remembered):
                yield f"{told}; {more}", moved

    def _act(self, world: World, action: a.Action) -> World:
        match action:
            case a.StartHook(hook=hook, context=context):
                assert world.hook is None and world.run is None, "two at once"
                running = (action, world.now + hook.attempt_s)
                if context.event == "acquire":
                    return self._begin(replace(world, hook=running), context.session)
                may = world.owed == context.session or world.record.session == context.session
                assert may, "on_lose for an on_acquire that never began"
                return replace(world, hook=running)
            case a.StartRun(context=context):
                return self._begin(replace(world, run=(action, inf)), context.session)
            case a.KillHook(started):
                assert world.hook is not None and world.hook[0] == started
                return replace(world, hook=(started, world.now + started.hook.kill_after_s))
            case a.StopRun(started):
                return replace(world, run=(started, world.now + started.run.stop_timeout_s))
            case r.Request():
                return self._ask(world, action)
        return world

    def _begin(self, world: World, session: str) -> World:
        assert world.owed in ("", session), "on_acquire without the on_lose of the tenure before"
        assert world.record.session == session, "begun before it was on record"
        return replace(world, acts=True, owed=session, acts_until=inf)

    def _ask(self, world: World, request: r.Request) -> World:
        if isinstance(request, r.Release | r.DestroySession):
            assert world.owed != request.session, "released before on_lose has ended"
        if isinstance(request, r.Acquire):
            passed = [w for w in world.late if w.session == request.session and not isinstance(w, r.Acquire)]
            assert not passed, "an acquire after a release or destroy of its session"
            assert world.record.session == request.session, "an acquire that is not on record"
        return replace(world, pending=(*world.pending, Pending(request)))

    def _ended(self, world: World, event: e.Event) -> World:
        match event:
            case e.HookEnded(started) if started.context.event == "acquire":
                return replace(world, hook=None)
            case e.HookEnded(started):
                last = started.hook.name == self.scene.settings.on_lose[-1].name
                ended = replace(world, hook=None)
                return replace(ended, acts=False, owed="") if last else ended
            case e.RunEnded():
                return replace(world, run=None)
        return world

    def _crashed(self, world: World) -> World:
        """Its requests may be applied yet; its application acts on, and is judged to the last room."""
        tenure, lease = world.contender.tenure if world.contender else None, None
        if world.contender is not None:
            lease = world.contender.lease
        until = tenure.contact + lease.room_s if tenure is not None and lease is not None else world.now
        writes = [p.request for p in world.pending if p.answer is None and isinstance(p.request, WRITES)]
        return replace(
            world,
            contender=None,
            pending=(),
            late=(*world.late, *(write for write in writes if isinstance(write, WRITES))),
            run=None,
            acts_until=until,
            crashes=world.crashes + 1,
        )

    # --- Consul ------------------------------------------------------------------------------------

    def _applied(self, world: World, request: r.Request) -> tuple[World, o.Outcome]:
        """What Consul does with this request now, and what it answers."""
        match request:
            case r.CreateSession():
                known = {world.record.session, world.owed, world.holder, *(w.session for w in world.late)}
                known |= {getattr(x, "session", "") for p in world.pending for x in (p.request, p.answer)}
                known |= world.alive
                name = next(name for name in NAMES if name not in known)
                return replace(world, alive=world.alive | {name}), o.Created(name)
            case r.RenewSession(session=session):
                if session not in world.alive:
                    return world, o.SessionGone()
                return world, o.SessionAltered("lock-delay") if session in world.altered else o.SessionAlive()
            case r.ReadSession():
                return world, o.SessionInfo(2.0)
            case r.Acquire(session=session, value=value):
                return self._acquired(world, session, value)
            case r.Rewrite(session=session, value=value):
                if world.holder != session:
                    return world, o.LostRace()
                return replace(world, value=value), o.Done()
            case r.Release(session=session):
                return replace(world, holder="") if world.holder == session else world, o.Done()
            case r.DestroySession(session=session):
                return self._without(world, session), o.Done()
        return world, world.view

    def _acquired(self, world: World, session: str, value: bytes) -> tuple[World, o.Outcome]:
        if session not in world.alive:
            return world, o.SessionGone()
        if world.now < world.delay_until:
            return world, o.LockDelayed()
        if world.holder not in ("", session):
            return world, o.LostRace()
        return replace(world, holder=session, value=value), o.Won(3, 7, 1)

    def _without(self, world: World, session: str) -> World:
        if session not in world.alive:
            return world
        guarded = session not in world.altered
        world = replace(world, alive=world.alive - {session}, altered=world.altered - {session})
        if world.holder != session:
            return world
        delay_s = self.scene.settings.session.lock_delay_s if guarded else 0.0
        return replace(world, holder="", delay_until=world.now + delay_s)


def _without_idle_writes(world: World) -> World:
    """A write of a session that is dead does nothing any more, and two alike do what one does."""
    late = {
        (type(write), write.session, getattr(write, "value", b"")): write
        for write in world.late
        if write.session in world.alive
    }
    return replace(world, late=tuple(late.values())) if len(late) < len(world.late) else world


# --- the way to a state, in words ------------------------------------------------------------------


def _way(link: Link | None) -> str:
    lines = []
    while link is not None:
        lines.append(link.told)
        link = link.before
    return "\n".join(reversed(lines))


def _short(value: object) -> str:
    match value:
        case e.Answered(request, outcome):
            return f"{_short(request)} = {_short(outcome)}"
        case o.KeyView(session=session):
            return f"key of {session or 'nobody'}"
        case e.HookEnded(started, ok=ok):
            return f"{started.hook.name} ended {'well' if ok else 'badly'}"
        case a.StartHook(hook):
            return f"start {hook.name}"
        case a.WriteRecord(record=record):
            return f"record {record.step} {record.session}"
        case e.RecordWritten(why_not=why_not):
            return why_not or "recorded"
        case a.RoleChanged(role=role):
            return f"became {role}"
        case r.Acquire(session=s) | r.Release(session=s) | r.DestroySession(session=s):
            return f"{type(value).__name__} {s}"
    return type(value).__name__


# --- scenes ----------------------------------------------------------------------------------------


def scene(name: str, *slow: type, shows: tuple[object, ...] = (), **more: Any) -> Scene:
    powers = (
        "losses",
        "ends",
        "crashes",
        "refusals",
        "stop",
        "departs",
        "files",
        "alters",
        "takes",
        "steps_max",
    )
    given = {power: more.pop(power) for power in powers if power in more}
    return Scene(name, election(**{**HOOKS, **more}), slow, shows=frozenset(shows), **given)


SCENES = (
    scene("sessions end", ends=2, stop=True),
    scene("altered sessions", ends=1, crashes=1, alters=1),
    scene("altered sessions, late acquire", r.Acquire, losses=1, ends=1, alters=1),
    scene("late acquire", r.Acquire, losses=2, ends=1),
    scene("late acquire, crash", r.Acquire, losses=1, crashes=1),
    scene("late release and destroy", r.Release, r.DestroySession, losses=2, stop=True),
    scene("late writes, crash", r.Acquire, r.Release, r.DestroySession, losses=1, crashes=1),
    scene("slow reads", r.ReadKey, losses=2, ends=1),
    scene("slow reads, crash", r.ReadKey, losses=1, crashes=1),
    scene("silence", r.ReadKey, r.RenewSession, losses=2),
    scene("crash", crashes=1, ends=1, stop=True),
    scene("crash, full disk", crashes=1, refusals=2),
    scene("crash, gone from the file", crashes=1, ends=1, departs=True),
    scene("crash, run", crashes=1, ends=1, run=RUN),
    scene("crash, two hooks", crashes=1, on_lose=(hook("one"), hook("two"))),
    scene("crash, on_adopt", crashes=1, on_adopt="acquire"),
    scene("another file", r.Rewrite, losses=2, ends=1, files=2, shows=(e.SettingsChanged, r.Rewrite)),
    scene("another file, silence", r.ReadKey, losses=2, files=1),
    scene("another file, crash", r.Rewrite, losses=1, crashes=1, files=2),
    scene("another file, crash, full disk", crashes=1, refusals=2, files=1),
    scene("another file, crash, gone from it", crashes=1, files=1, departs=True),
)
LONG = (
    scene("long: late writes", r.Acquire, r.Release, r.DestroySession, losses=2, ends=1, takes=2),
    scene("long: writes, crash", r.Acquire, r.Release, r.DestroySession, losses=1, crashes=1, stop=True),
    scene("long: reads, crash", r.ReadKey, losses=1, ends=1, crashes=1),
    scene("long: silence", r.ReadKey, r.RenewSession, r.WatchKey, losses=3, ends=1),
    scene("long: two crashes", crashes=2, ends=1, stop=True),
    scene("long: crash, full disk", crashes=1, ends=1, refusals=2),
)


def main() -> None:
    """The table; names as arguments pick some."""
    names = sys.argv[1:]
    print(f"{'scene':28}{'states':>9}{'steps':>10}{'seconds':>9}", flush=True)
    for one in (*SCENES, *LONG):
        if names and one.name not in names:
            continue
        began_at = time.process_time()
        try:
            walked = explore(one)
        except AssertionError as broken:
            sys.exit(f"{one.name}: {broken}")
        seconds = time.process_time() - began_at
        print(f"{one.name:28}{walked.states:9}{walked.steps:10}{seconds:9.1f}", flush=True)


if __name__ == "__main__":
    main()
