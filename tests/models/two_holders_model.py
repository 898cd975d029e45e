"""Two never hold: every order of events of one election, a small model of Consul, and a rival.

Unlike in ``every_order``, Consul tells the truth here: it is a key, sessions and a lock-delay, and an answer
shows the state in which the request was applied. A request may be applied late, after we gave up on it, and
its answer may come late or never. A session may end at any moment. The rival is no code of ours: it obeys
only Consul, and takes the key at any moment Consul allows. Our process may be killed between any two actions
of a step, and a new one starts from its record. In every state the judge checks whether both act at once.

With a watchdog the application acts until its on_lose has succeeded or the machine is reset, whatever becomes
of the supervisor: also if it stands still or never comes back, or if a hook fails or never ends. So the judge
shows that the reset comes in time, and that no device is stopped while its tenure may still act.

    python -m tests.models.two_holders_model            prints a table; names as arguments pick some
"""

import errno
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from supervisor.adapters.runtime.watchdogs import Watchdogs
from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.actions import EMPTY_RECORD
from supervisor.core.contender.creation import new_contender
from supervisor.core.contender.lifecycle import depart
from supervisor.core.contender.state import Contender
from supervisor.core.contenders import Contenders
from supervisor.core.frozen import replace
from supervisor.core.lock.handover import named_session
from supervisor.core.machines.tenure import ORDERED
from supervisor.core.settings import ElectionSettings, Watchdog
from supervisor.core.watchdog import Device
from tests.models.search import Link, Moves, Used, Walked, one_more, print_table, search
from tests.models.state_key import GRID_S, Key, OwnNames, part
from tests.models.walks import HOOKS, RUN, election, hook
from tests.models.words import line, short
from tests.support.watchdog import FakeKernel

RIVAL = "rival"
OUTLIVED = e.SurvivorsChanged("n", "KILL has not ended app (7)")
NAMES = ("s0", "s1", "s2", "s3", "s4")  # used again when nothing knows them any more
DEVICE = Watchdog("/dev/watchdog", 4.0)
WRITES = (r.Acquire, r.Release, r.DestroySession, r.Rewrite)
Left = tuple[a.WriteRecord | e.WatchdogTried | a.Arm, ...]
Write = r.Acquire | r.Release | r.DestroySession | r.Rewrite


@dataclass(frozen=True)
class RivalWalk:
    """One part of the protocol that is put to the test beside a rival.

    slow: kinds of requests that may be applied late, and whose answers may be lost.
    departs: whether a restart finds that the file has no such election any more.
    hangs: whether a hook may go on for ever.
    may: how often each of these may come:
        losses: an answer is lost.
        ends: Consul ends a session by itself.
        crashes: our process is killed.
        refusals: a record cannot be written.
        stop: a stop is requested.
        files: the file changes and is read again, with another value and another room.
        alters: a proxy changes the request for a session, so that Consul makes it without a lock-delay.
        hands: we are requested to hand over, to the rival or to a session of ours that may follow.
        takes: the rival takes the key; the last time it keeps the key.
        stalls: our process stands still for a second.
        fails: the watchdog cannot be fed.
        leaves: a process that is killed goes on; without a watchdog the walk has no loss but a planned one.
    """

    name: str
    settings: ElectionSettings
    slow: tuple[type, ...]
    departs: bool
    hangs: bool
    may: Mapping[str, int]

    def file(self, changes: int) -> ElectionSettings:
        if changes % 2 == 0:
            return self.settings
        if self.settings.watchdog is not None:
            return replace(self.settings, watchdog=None)
        down = tuple(replace(each, timeout_s=each.timeout_s / 2) for each in self.settings.on_lose)
        return replace(self.settings, value=b"new", on_lose=down)


@dataclass(frozen=True, slots=True)
class Pending:
    """A request under way.

    answer: set when Consul has applied the request.
    """

    request: r.Request
    answer: o.Outcome | None = None


@dataclass(frozen=True, slots=True)
class World:
    """One state of the model.

    late: writes that may yet be applied although their sender has given up on them or died.
    acts: whether the application of our node acts as holder.
    acts_until: until then the application is judged. Nothing ends the application of a supervisor that is
        dead and restarted after its last room.
    owed: the session whose on_acquire began and whose on_lose has not ended.
    hint: the value that a hand-over has left on a key that no session has taken since.
    device: the watchdog as our process knows it. None: it knows none yet.
    fires_at: when the watchdog resets the machine. None: it does not run.
    stood: whether our process has stood still since its last step.
    reset: whether the machine was reset, which ends our part.
    left: whether a process that KILL has not ended still acts.
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
    used: Used = ()
    hint: bytes = b""
    recorded: ElectionSettings | None = None
    value: bytes = b""
    device: Device | None = None
    fires_at: float | None = None
    stood: bool = False
    reset: bool = False
    left: bool = False

    def key(self, settings: ElectionSettings) -> Key:
        """Return a key that is equal for two worlds that no event can make differ."""
        naming = OwnNames(self.contender or new_contender(settings, spread=0.0, instance="i"), self.now)
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
            self.hook and (self.hook[0].context.event, max(self.hook[1] - self.now, 0.0)),
            self.run and max(self.run[1] - self.now, 0.0),
            (self.acts, max(self.acts_until - self.now, 0.0), self.owed, self.used, self.hint),
            (self.device and (self.device.state, self.device.why_not), self.stood, self.reset, self.left),
            self.fires_at and self.fires_at - self.now,
            (self.recorded and self.recorded.value, self.value, record.leader),
        )

    @staticmethod
    def lock_delay_s(settings: ElectionSettings) -> float:
        """Return our lock-delay; the rival leaves by a release, without one."""
        return settings.session.lock_delay_s

    @property
    def view(self) -> o.KeyView:
        value = self.value if self.holder in NAMES else self.hint or b"rival"
        return o.KeyView(7, self.holder or None, value, 3, 7, 1)


def explore(walk: RivalWalk, enough: float = inf) -> Walked:
    """Search all states of the walk.

    enough: see ``search``.
    """
    return search(_BesideARival(walk), enough)


class _BesideARival:
    def __init__(self, walk: RivalWalk) -> None:
        self.walk = walk

    def begin(self) -> Moves[World]:
        yield "begin", World(new_contender(self.walk.settings, spread=0.0, instance="i"))

    def moves(self, world: World) -> Moves[World]:
        """Return every next state. Requests that are not slow are answered first and at once."""
        at_once = self._at_once(world)
        for told, moved in self._all_that_may_happen(world) if at_once is None else at_once:
            yield told, _without_idle_writes(moved)

    def key(self, world: World) -> Key:
        return world.key(self.walk.settings)

    def judge(self, world: World, link: Link) -> None:
        both = world.holder == RIVAL and world.acts and world.now < world.acts_until
        assert not both, "both act at once"

    # --- what may happen ---------------------------------------------------------------------------

    def _at_once(self, world: World) -> Moves[World] | None:
        for pending in world.pending:
            if isinstance(pending.request, r.WatchKey):
                known = world.contender.lock.view if world.contender is not None else None
                assert not isinstance(known, o.SlotsView)
                wakes = pending.request.index == 0 or known is None or known.session != world.holder
                if wakes and r.WatchKey not in self.walk.slow:
                    return self._answers(world, pending, world.view)
            elif type(pending.request) not in self.walk.slow:
                return self._answered(world, pending)
        return None

    def _answered(self, world: World, pending: Pending) -> Moves[World]:
        applied, answer = self._applied(world, pending.request)
        yield from self._answers(applied, pending, answer)
        if isinstance(answer, o.Created) and (used := self._use(applied, "alters")) is not None:
            altered = replace(used, altered=used.altered | {answer.session})
            for told, moved in self._answers(altered, pending, answer):
                yield f"altered: {told}", moved

    def _all_that_may_happen(self, world: World) -> Moves[World]:
        yield from self._consul(world)
        yield from self._rival(world)
        if world.contender is None and not world.reset:
            yield from self._restart(world)
        elif world.contender is not None:
            yield from self._exchanges(world)
            yield from self._ours(world)
        if world.contender is not None and (used := self._use(world, "stalls")) is not None:
            yield "our process stands still", replace(self._later(used), stood=True)
        if world.now + GRID_S <= self._bound(world):
            later = self._later(world)
            if later.contender is None:
                yield "time passes", later
            else:
                yield from self._turn(later, e.Tick())

    def _later(self, world: World) -> World:
        """Return the world a second later, in which the watchdog may have reset the machine."""
        later = replace(world, now=world.now + GRID_S)
        if later.fires_at is None or later.now < later.fires_at:
            return later
        dead = self._crashed(later)
        return replace(dead, hook=None, acts=False, left=False, reset=True, fires_at=None)

    def _consul(self, world: World) -> Moves[World]:
        for write in world.late:
            applied, answer = self._applied(world, write)
            rest = tuple(other for other in world.late if other is not write)
            yield f"late {short(write)} is applied: {answer}", replace(applied, late=rest)
        if (used := self._use(world, "ends")) is not None:
            for session in world.alive:
                yield f"Consul ends {session}", self._without(used, session)

    def _rival(self, world: World) -> Moves[World]:
        used = self._use(world, "takes")
        if not world.holder and world.now >= world.delay_until and used is not None:
            yield "the rival takes the key", replace(used, holder=RIVAL, hint=b"")
        if world.holder == RIVAL and used is not None:
            yield "the rival releases the key", replace(world, holder="")

    def _restart(self, world: World) -> Moves[World]:
        """Restart our process, which first kills the hooks that a crash interrupted."""
        settings, record = self.walk.file(dict(world.used).get("files", 0)), world.record
        in_time = world.now < world.acts_until
        quiet = replace(world, hook=None, run=None, acts_until=inf if in_time else world.acts_until)
        first: e.Event = OUTLIVED if world.left else e.Tick()
        fresh = new_contender(
            settings, spread=0.0, instance="i", record=record, recorded=world.recorded, now=world.now
        )
        for told, moved in self._turn(replace(quiet, contender=fresh), first):
            yield f"restart, {told}", moved
        if world.hook is not None and (killed := self._use(quiet, "leaves")) is not None:
            for told, moved in self._turn(replace(killed, contender=fresh, left=True), OUTLIVED):
                yield f"restart, {told}", moved
        if self.walk.departs and record.step is not a.Point.NONE:
            assert world.recorded is not None
            left = new_contender(world.recorded, spread=0.0, instance="i", record=record, now=world.now)
            leaving = depart(left, world.now)
            for told, moved in self._turn(replace(quiet, contender=leaving), e.Tick()):
                yield f"restart without it, {told}", moved

    def _exchanges(self, world: World) -> Moves[World]:
        for pending in world.pending:
            request = pending.request
            if type(request) not in self.walk.slow or isinstance(request, r.WatchKey):
                continue
            if pending.answer is None:
                applied, answer = self._applied(world, request)
                done = replace(pending, answer=answer)
                others = tuple(done if other is pending else other for other in applied.pending)
                yield f"{short(request)} is applied: {answer}", replace(applied, pending=others)
            else:
                yield from self._answers(world, pending, pending.answer)
            lost = self._use(world, "losses")
            if world.now >= request.at + request.timeout_s and lost is not None:
                yield from self._lost(lost, pending)

    def _lost(self, lost: World, pending: Pending) -> Moves[World]:
        if pending.answer is None and isinstance(pending.request, WRITES):
            lost = replace(lost, late=(*lost.late, pending.request))
        yield from self._answers(lost, pending, o.Unknown("lost"))

    def _ours(self, world: World) -> Moves[World]:
        if world.hook is not None:
            for ok in (True, False):
                yield from self._turn(world, e.HookEnded(world.hook[0], ok))
        if world.run is not None:
            yield from self._turn(world, e.RunEnded(world.run[0]))
        yield from self._outlived(world)
        if (stopped := self._use(world, "stop")) is not None:
            yield from self._turn(stopped, e.StopAsked())
        changed = self._use(world, "files")
        if changed is not None and world.contender is not None and not world.contender.winding_up:
            file = self.walk.file(dict(changed.used)["files"])
            yield from self._turn(changed, e.SettingsChanged("n", file))
        if (asked := self._use(world, "hands")) is not None:
            for target in (RIVAL, NAMES[1]):
                yield from self._turn(asked, e.StepDownAsked("n", 1.0, target))
        if (dying := self._use(world, "crashes")) is not None:
            yield "crash", self._crashed(dying)

    def _outlived(self, world: World) -> Moves[World]:
        """End a process that KILL had not ended, or let one be left by what ends now."""
        if world.left:
            gone = replace(world, left=False, acts=world.acts and bool(world.owed))
            yield from self._turn(gone, e.SurvivorsChanged("n", ""))
        ends: list[e.Event] = [] if world.hook is None else [e.HookEnded(world.hook[0], ok=False)]
        ends += [] if world.run is None else [e.RunEnded(world.run[0])]
        leaving, tenure = self._use(world, "leaves"), world.contender and world.contender.tenure
        if self.walk.settings.watchdog is None and (tenure is None or tenure.reason not in ORDERED):
            leaving = None
        for end in ends if leaving is not None else ():
            assert leaving is not None
            for told, moved in self._turn(replace(leaving, left=True), OUTLIVED):
                if moved.contender is None:
                    yield told, moved
                    continue
                for more, after in self._turn(moved, end):
                    yield f"{told}; {more}", after

    def _bound(self, world: World) -> float:
        """Return the latest time to which the clock may go, because something must happen by then."""
        bounds = [inf]
        if not self.walk.hangs and (world.contender is not None or self.walk.settings.watchdog is None):
            bounds += [child[1] for child in (world.hook, world.run) if child is not None]
        if world.contender is not None:
            losable = self._use(world, "losses") is not None
            bounds += [
                p.request.at + p.request.timeout_s - (0.0 if losable else GRID_S)
                for p in world.pending
                if not isinstance(p.request, r.WatchKey)
            ]
        return min(bounds)

    def _use(self, world: World, fault: str) -> World | None:
        """Return the world after one more fault of this kind. None: the walk has no more of it."""
        used = one_more(world.used, self.walk.may, fault)
        return None if used is None else replace(world, used=used)

    # --- our process -------------------------------------------------------------------------------

    def _answers(self, world: World, pending: Pending, answer: o.Outcome) -> Moves[World]:
        others = tuple(other for other in world.pending if other is not pending)
        yield from self._turn(replace(world, pending=others), e.Answered(pending.request, answer))

    def _turn(self, world: World, event: e.Event, left: Left = ()) -> Moves[World]:
        """Take a step as the driver does, with a kill before each action whose loss would be noticed.

        left: what earlier steps of this turn still have to learn, in order.
        """
        told = short(event)
        if world.stood:
            for _, moved in self._turn(replace(world, stood=False), e.Stalled(GRID_S)):
                yield from self._turn(moved, event, left) if moved.contender is not None else ()
            return
        world = self._ended(world, event)
        assert world.contender is not None
        before, contenders = world, self._contenders(world, left)
        actions = contenders.step(event, world.now)
        election = contenders.by_name.get("n")
        device = contenders.devices.by_path.get(DEVICE.device)
        world = replace(world, contender=election or world.contender, device=device)
        worlds = [(world, left)]
        for done, action in enumerate(actions):
            if isinstance(action, a.RoleChanged):
                continue
            for each, _ in worlds if not isinstance(action, a.PrepareWrite) else ():
                if (dying := self._use(each, "crashes")) is not None:
                    cut = self._crashed(replace(dying, contender=before.contender))
                    yield f"{told}, killed before action {done}: {short(action)}", cut
            if isinstance(action, a.WriteRecord):
                worlds = [(each, (*asked, action)) for each, asked in worlds]
            elif isinstance(action, a.Tend):
                worlds = [
                    (tended, (*asked, tried))
                    for each, asked in worlds
                    for tended, tried in self._tended(each, action)
                ]
            else:
                worlds = [(self._act(each, action), asked) for each, asked in worlds]
        told = line(event, tuple(actions))
        for world, asked in worlds:
            asked = (*(each for each in asked if not isinstance(each, a.Arm)), *contenders.devices.wanted)
            if asked:
                for more, moved in self._answered_at_once(world, asked[0], asked[1:]):
                    yield f"{told}; {more}", moved
            elif election is None or election.role is a.Role.STOPPED:
                outlived = world.left and world.fires_at is not None
                yield told, replace(self._crashed(world), acts_until=inf if outlived else world.now)
            else:
                yield told, world

    def _answered_at_once(
        self, world: World, answered: a.WriteRecord | e.WatchdogTried | a.Arm, left: Left
    ) -> Moves[World]:
        if isinstance(answered, e.WatchdogTried):
            yield from self._turn(world, answered, left)
            return
        assert isinstance(answered, a.WriteRecord) and isinstance(answered.settings, ElectionSettings)
        kept = replace(world, record=answered.record, recorded=answered.settings)
        yield from self._turn(kept, e.RecordWritten(answered), left)
        if (refused := self._use(world, "refusals")) is not None:
            yield from self._turn(refused, e.RecordWritten(answered, "full"), left)

    # --- the watchdog --------------------------------------------------------------------------------

    def _contenders(self, world: World, left: Left) -> Contenders:
        """Return the product's own contenders, which know what our process knows."""
        assert world.contender is not None
        contenders = Contenders([world.contender])
        if world.device is not None:
            contenders.devices.by_path = {DEVICE.device: world.device}
        contenders.devices.asked = {each.path for each in left if isinstance(each, e.WatchdogTried)}
        contenders.devices.wanted = [each for each in left if isinstance(each, a.Arm)]
        contenders.devices.note(world.contender, world.contender.settings.watchdog, world.now)
        return contenders

    def _tended(self, world: World, tend: a.Tend) -> Iterator[tuple[World, e.WatchdogTried]]:
        """Feed, open or stop the watchdog, in each way that may go."""
        tenure = None if world.contender is None else world.contender.tenure
        failed = self._use(world, "fails")
        for failing in (False, True) if failed is not None else (False,):
            kernel = FakeKernel(has_s=int(DEVICE.timeout_s))
            kernel.now, kernel.fires_at = world.now, world.fires_at
            kernel.fails = {"feed": errno.EIO} if failing else {}
            watchdogs = Watchdogs(kernel)
            if world.device is not None and world.device.is_open:
                kernel.is_open, watchdogs._fds = True, {DEVICE.device: 9}
            tried = watchdogs.tend(tend, world.now)
            if failing and not tried.device.why_not:
                continue
            stopped = kernel.fires_at is None and world.fires_at is not None
            assert not (stopped and world.acts), "the watchdog was stopped while the application acts"
            if kernel.fires_at not in (None, world.fires_at):
                assert tenure is not None and world.contender is not None, "armed for nothing"
                too_late = kernel.fires_at > tenure.reset_by(world.contender.lease)
                assert not too_late, "fed so that it fires too late"
            used = failed.used if failing and failed is not None else world.used
            yield replace(world, fires_at=kernel.fires_at, used=used), tried

    # --- the actions ---------------------------------------------------------------------------------

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
        guarded = world.contender is not None and _is_guarded(world.contender)
        assert not guarded or world.fires_at is not None, "begun before the watchdog runs"
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
                last = started.hook.name == self.walk.settings.on_lose[-1].name
                ended = replace(world, hook=None)
                guarded = world.contender is not None and _is_guarded(world.contender)
                last = last and (event.ok or not guarded)
                return replace(ended, acts=world.left, owed="") if last else ended
            case e.RunEnded():
                return replace(world, run=None)
        return world

    def _crashed(self, world: World) -> World:
        """Return the world after a crash: requests may be applied yet, and the application acts on."""
        tenure, lease = world.contender.tenure if world.contender else None, None
        if world.contender is not None:
            lease = world.contender.lease
        until = tenure.contact + lease.room_s if tenure is not None and lease is not None else world.now
        if tenure is not None and tenure.armed:
            until = inf
        writes = [p.request for p in world.pending if p.answer is None and isinstance(p.request, WRITES)]
        return replace(
            world,
            contender=None,
            pending=(),
            late=(*world.late, *(write for write in writes if isinstance(write, WRITES))),
            run=None,
            acts_until=until,
            device=None,
            stood=False,
        )

    # --- Consul ------------------------------------------------------------------------------------

    def _applied(self, world: World, request: r.Request) -> tuple[World, o.Outcome]:
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
            case r.Release(session=session, value=value):
                released = replace(world, holder="", hint=value if named_session(value) else b"")
                return released if world.holder == session else world, o.Done()
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
        return replace(world, holder=session, value=value, hint=b""), o.Won(3, 7, 1)

    def _without(self, world: World, session: str) -> World:
        if session not in world.alive:
            return world
        guarded = session not in world.altered
        world = replace(world, alive=world.alive - {session}, altered=world.altered - {session})
        if world.holder != session:
            return world
        delay_s = self.walk.settings.session.lock_delay_s if guarded else 0.0
        return replace(world, holder="", delay_until=world.now + delay_s)


def _is_guarded(contender: Contender) -> bool:
    return contender.tenure is not None and contender.tenure.armed


def _without_idle_writes(world: World) -> World:
    """Drop late writes of a dead session, which do nothing, and all but one of equal writes."""
    late = {
        (type(write), write.session, getattr(write, "value", b"")): write
        for write in world.late
        if write.session in world.alive
    }
    return replace(world, late=tuple(late.values())) if len(late) < len(world.late) else world


# --- walks -----------------------------------------------------------------------------------------


FAULTS = frozenset("losses ends crashes refusals stop files alters hands takes stalls fails leaves".split())


def walk(name: str, *slow: type, departs: bool = False, hangs: bool = False, **more: Any) -> RivalWalk:
    may = {"takes": 1} | {fault: more.pop(fault) for fault in FAULTS if fault in more}
    return RivalWalk(name, election(**{**HOOKS, **more}), slow, departs, hangs, may)


GUARDED: dict[str, Any] = {"watchdog": DEVICE, "room_s": 5.0}
WALKS = (
    walk("watchdog, crash", **GUARDED, crashes=1, ends=1),
    walk("watchdog, two crashes", **GUARDED, crashes=2),
    walk("watchdog, crash, full disk", **GUARDED, crashes=1, refusals=1, ends=1),
    walk("watchdog, standstill", **GUARDED, stalls=12, ends=1),
    walk("watchdog, silence, standstill", r.ReadKey, **GUARDED, losses=1, stalls=4),
    walk("watchdog, a hook that hangs", **GUARDED, hangs=True, ends=1, crashes=1),
    walk("watchdog, silence, a hook that hangs", r.ReadKey, **GUARDED, hangs=True, losses=3),
    walk("watchdog, stop", **GUARDED, stop=True, ends=1, crashes=1),
    walk("watchdog that fails", **GUARDED, fails=2, ends=1),
    walk("watchdog removed from the file", **GUARDED, files=2, crashes=1, ends=1),
    walk("watchdog, handing over", r.Release, **GUARDED, losses=1, hands=1, stalls=3),
    walk("watchdog, a process that outlives KILL", **GUARDED, leaves=1, ends=1, stop=True),
    walk("watchdog, silence, a process that outlives KILL", r.ReadKey, **GUARDED, leaves=1, losses=2),
    walk("a process that outlives KILL", leaves=1, stop=True, hands=1, run=RUN),
    walk("sessions end", ends=2, stop=True),
    walk("altered sessions", ends=1, crashes=1, alters=1),
    walk("altered sessions, late acquire", r.Acquire, losses=1, ends=1, alters=1),
    walk("late acquire", r.Acquire, losses=2, ends=1),
    walk("late acquire, crash", r.Acquire, losses=1, crashes=1),
    walk("late release and destroy", r.Release, r.DestroySession, losses=2, stop=True),
    walk("late writes, crash", r.Acquire, r.Release, r.DestroySession, losses=1, crashes=1),
    walk("slow reads", r.ReadKey, losses=2, ends=1),
    walk("slow reads, crash", r.ReadKey, losses=1, crashes=1),
    walk("silence", r.ReadKey, r.RenewSession, losses=2),
    walk("crash", crashes=1, ends=1, stop=True),
    walk("crash, full disk", crashes=1, refusals=2),
    walk("crash, gone from the file", crashes=1, ends=1, departs=True),
    walk("crash, run", crashes=1, ends=1, run=RUN),
    walk("crash, two hooks", crashes=1, on_lose=(hook("one"), hook("two"))),
    walk("crash, on_adopt", crashes=1, on_adopt="acquire"),
    walk("handing over", r.Release, losses=1, ends=1, hands=1),
    walk("handing over, crash", r.Release, crashes=1, hands=1),
    walk("handing over, late acquire", r.Acquire, losses=1, hands=1),
    walk("another file", r.Rewrite, losses=2, ends=1, files=2),
    walk("another file, silence", r.ReadKey, losses=2, files=1),
    walk("another file, crash", r.Rewrite, losses=1, crashes=1, files=2),
    walk("another file, crash, full disk", crashes=1, refusals=2, files=1),
    walk("another file, crash, gone from it", crashes=1, files=1, departs=True),
)
LONG = (
    walk("long: watchdog, crash, a process that outlives KILL", **GUARDED, leaves=1, crashes=1, ends=1),
    walk("long: late writes", r.Acquire, r.Release, r.DestroySession, losses=2, ends=1, takes=2),
    walk("long: writes, crash", r.Acquire, r.Release, r.DestroySession, losses=1, crashes=1, stop=True),
    walk("long: reads, crash", r.ReadKey, losses=1, ends=1, crashes=1),
    walk("long: silence", r.ReadKey, r.RenewSession, r.WatchKey, losses=3, ends=1),
    walk("long: silence, standstill", r.ReadKey, **GUARDED, losses=2, stalls=8),
    walk("long: two crashes", crashes=2, ends=1, stop=True),
    walk("long: crash, full disk", crashes=1, ends=1, refusals=2),
)


if __name__ == "__main__":
    print_table((*WALKS, *LONG), explore)
