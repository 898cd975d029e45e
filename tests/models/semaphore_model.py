"""At most N hold: every order of events of one, two or three contenders for the slots of a semaphore.

All contenders are our code, and Consul tells the truth: a folder of keys, sessions, check-and-set. A write
may be applied late, after its sender gave up on it, and its answer may be lost. A session may end at any
moment. A node may be cut off for any length of time, and may crash and come back at once or late. An operator
may delete the record of the slots, or a contender's key, and another program may drop the numbers from the
record. In every state the judge counts the nodes that act: never more than the limit, while every holder's
lease is valid, and never two with the same number.

    python -m tests.models.semaphore_model            prints a table; names as arguments pick some
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.contender.creation import new_contender
from supervisor.core.contender.lifecycle import depart
from supervisor.core.contender.state import Contender
from supervisor.core.contender.step import step
from supervisor.core.frozen import replace
from supervisor.core.lock.slots import LOCK
from supervisor.core.machines.record import is_adoptable
from supervisor.core.reload import ReloadEffect, plan_reload
from supervisor.core.settings import SemaphoreSettings, SessionSettings
from tests.models.search import Link, Moves, Used, Walked, one_more, print_table, search
from tests.models.state_key import Key, OwnNames, part
from tests.models.walks import hook
from tests.models.words import short

STATES_SHOWN_MAX = 300_000  # most walks in the table have no end to wait for
PARTS_MAX = 10_000  # parts of keys that are remembered; an entry keeps its node, so no other gets its id
PRUNE_DELAY_S = 6.0
WRITES = (r.JoinSemaphore, r.TakeSlot, r.LeaveSemaphore, r.DestroySession, r.Rewrite)
Write = r.JoinSemaphore | r.TakeSlot | r.LeaveSemaphore | r.DestroySession | r.Rewrite


@dataclass(frozen=True)
class SemaphoreWalk:
    """One part of the protocol that some nodes put to the test.

    nodes: how many contend for the slots.
    limit: how many slots there are; the highest of ``limits``.
    may: how often each of these may come:
        losses: the answer to a write is lost, which may then be applied late.
        ends: Consul ends a session by itself.
        cuts: a node is cut off from Consul.
        crashes: a node crashes.
        deletes: an operator deletes the record or a contender's key.
        drops: another program writes the record without the numbers of its slots.
        stops: a node is requested to stop.
        files: a node reads another file.
        alters: a proxy changes the request for a session.
    prune_delays_s: those of the nodes' files.
    limits: those of the nodes' files. Empty: they are all ``limit``.
    other: limit and prune delay of that other file.
    shows: classes of events, outcomes and actions that must occur.
    numbers: those with which a node must act.
    """

    name: str
    nodes: int
    limit: int
    may: Mapping[str, int]
    prune_delays_s: tuple[float, ...] = (PRUNE_DELAY_S,)
    limits: tuple[int, ...] = ()
    other: tuple[int, float] = (1, PRUNE_DELAY_S)
    shows: frozenset[type] = frozenset()
    numbers: frozenset[int | None] = frozenset({0})

    def settings(self, node: int, other: bool = False) -> SemaphoreSettings:
        """Return the settings of this node's file, or of its other one, with the whole delay in the body."""
        delay_s = self.prune_delays_s[node % len(self.prune_delays_s)]
        limit = (self.limits or (self.limit,))[node % len(self.limits or (1,))]
        if other:
            limit, delay_s = self.other
        session = SessionSettings("n", ttl_s=3.0, lock_delay_s=0.0, behavior="delete")
        return SemaphoreSettings(
            name="n",
            key="p/.lock",
            value=b"%g" % delay_s,
            session=session,
            on_acquire=(hook("up"),),
            on_lose=(hook("down"),),
            rejoin_delay_s=1.0,
            limit=limit,
            prune_delay_s=delay_s,
        )


@dataclass(frozen=True, slots=True)
class Consul:
    """Consul's state.

    keys: keys of contenders, as (session, index of its creation, its prune delay).
    """

    index: int = 1
    lock: o.LockKey | None = None
    keys: tuple[tuple[str, int, float], ...] = ()
    alive: frozenset[str] = frozenset()
    altered: frozenset[str] = frozenset()

    @property
    def view(self) -> o.SlotsView:
        keys = (
            o.ContenderKey(name, name, b"%g" % delay_s, created, 1, delay_s)
            for name, created, delay_s in self.keys
        )
        return o.SlotsView(self.index, self.lock, tuple(keys))

    def has_key(self, session: str) -> bool:
        return any(name == session for name, _, _ in self.keys)

    def without(self, session: str) -> "Consul":
        """Return Consul after the end of this session, without the session's key."""
        ended = replace(self, alive=self.alive - {session}, altered=self.altered - {session})
        return ended.deleted(session) if self.has_key(session) else ended

    def deleted(self, session: str) -> "Consul":
        keys = tuple(key for key in self.keys if key[0] != session)
        return replace(self, keys=keys, index=self.index + 1)

    def applied(self, request: r.Request) -> tuple["Consul", o.Outcome]:
        match request:
            case r.RenewSession(session=session):
                if session not in self.alive:
                    return self, o.SessionGone()
                return self, o.SessionAltered("behavior") if session in self.altered else o.SessionAlive()
            case r.DestroySession(session=session):
                return self.without(session), o.Done()
            case r.ReadSlots() | r.WatchSlots():
                return self, self.view
            case r.ReadKey(key=key):
                name = key.removeprefix("p/")
                there = self.lock is not None if name == LOCK else self.has_key(name)
                session = "" if name == LOCK else name
                return self, o.KeyView(self.index, session, b"", 1, 1, 1) if there else o.KeyView(self.index)
            case r.JoinSemaphore(session=session):
                if session not in self.alive:
                    return self, o.SessionGone()
                consul = self if self.has_key(session) else self._enrolled(session, float(request.value))
                return consul._changed(request, request.slot_record, request.index, consul.index)
            case r.TakeSlot(session=session):
                if not self.has_key(session) or any(self.has_key(each.session) for each in request.pruned):
                    return self, o.LostRace()
                return self._changed(request, request.slot_record, request.index, self.index + 1)
            case r.Rewrite(session=session, value=value):
                keys = tuple(
                    (name, created, float(value) if name == session else delay_s)
                    for name, created, delay_s in self.keys
                )
                if not self.has_key(session):
                    return self, o.LostRace()
                return replace(self, keys=keys, index=self.index + (keys != self.keys)), o.Done()
            case r.LeaveSemaphore(session=session):
                consul, outcome = self._changed(request, request.slot_record, request.index, self.index + 1)
                if isinstance(outcome, o.LostRace):
                    return self, outcome
                return consul.deleted(session) if consul.has_key(session) else consul, o.Done()
        raise AssertionError(request)

    def _enrolled(self, session: str, delay_s: float) -> "Consul":
        index = self.index + 1
        return replace(self, keys=(*self.keys, (session, index, delay_s)), index=index)

    def _changed(
        self, request: r.SlotRequest, slot_record: r.SlotRecord | None, expected: int, index: int
    ) -> tuple["Consul", o.Outcome]:
        """Apply the check-and-set of this step, if it has one; all of the step or nothing."""
        if slot_record is not None and expected != (0 if self.lock is None else self.lock.modify_index):
            return self, o.LostRace()  # the caller then drops its earlier operations
        consul = self
        if slot_record is not None:
            created = index if self.lock is None else self.lock.create_index
            consul = replace(self, lock=o.LockKey(created, index, slot_record), index=index)
        lock = None if slot_record is None else o.KeyIndexes(1, index, 0)
        ours = next((key[1] for key in consul.keys if key[0] == getattr(request, "session", "")), 0)
        return consul, o.SlotWritten(o.KeyIndexes(ours, ours, 1), lock)


@dataclass(frozen=True, slots=True)
class Member:
    """One node that contends.

    unanswered: requests that will end without an answer.
    number: that of the slot by which it acts.
    acts_until: until then its application is judged, because nobody stops it when its supervisor has died and
        its last room is over.
    """

    contender: Contender | None
    record: a.Record = a.EMPTY_RECORD
    pending: tuple[r.Request, ...] = ()
    unanswered: tuple[r.Request, ...] = ()
    hook: tuple[a.StartHook, float] | None = None
    cut: bool = False
    acts: bool = False
    number: int | None = None
    acts_until: float = inf
    back_at: float = inf
    other: bool = False
    recorded: SemaphoreSettings | None = None


@dataclass(frozen=True, slots=True)
class World:
    """One state of the model.

    late: writes that may yet be applied.
    """

    nodes: tuple[Member, ...]
    consul: Consul = Consul()
    now: float = 0.0
    late: tuple[Write, ...] = ()
    used: Used = ()

    def with_node(self, number: int, node: Member) -> "World":
        nodes = (*self.nodes[:number], node, *self.nodes[number + 1 :])
        return replace(self, nodes=nodes)


def explore(walk: SemaphoreWalk, enough: float = STATES_SHOWN_MAX) -> tuple[Walked, "Crowd"]:
    """Search the walk, and return what the search saw and what the model did.

    enough: see ``search``.
    """
    crowd = Crowd(walk)
    return search(crowd, enough), crowd


class Crowd:
    """All that may happen in one walk.

    most: the largest number of nodes that acted at once.
    kinds: classes of the events, outcomes and actions that occurred.
    numbers: those with which nodes have acted.
    """

    def __init__(self, walk: SemaphoreWalk) -> None:
        self.walk = walk
        self.most = 0
        self.kinds: set[type] = set()
        self.numbers: set[int | None] = set()
        self._parts: dict[tuple[int, float], tuple[Member, Any, list[int]]] = {}

    def begin(self) -> Moves[World]:
        walk = self.walk
        nodes = tuple(
            Member(new_contender(walk.settings(number), spread=0.0, instance=str(number)))
            for number in range(walk.nodes)
        )
        first = World(nodes)
        for number in range(walk.nodes):
            first = self._turn(first, number, e.Tick())
        yield "begin", first

    def key(self, world: World) -> Key:
        """Return a key that is equal for two worlds that no event can make differ; indexes count by order."""
        parts, indexes = [], [world.consul.index]
        for node in world.nodes:
            seen, met = self._part(node, world.now)
            parts.append(seen)
            indexes += met
        lock, late = world.consul.lock, world.late
        indexes += [created for _, created, _ in world.consul.keys]
        indexes += [getattr(write, "index", 0) for write in late]
        indexes.append(lock.modify_index if lock else 0)
        rank = {0: 0} | {index: place for place, index in enumerate(sorted({*indexes} - {0}), 1)}
        return (
            tuple(parts),
            lock and lock.slot_record,
            tuple((name, delay_s) for name, _, delay_s in world.consul.keys),
            (tuple(sorted(world.consul.alive)), tuple(sorted(world.consul.altered))),
            tuple((type(write).__name__, write.session, getattr(write, "value", b"")) for write in late),
            world.used,
            tuple(map(rank.__getitem__, indexes)),
        )

    def _part(self, node: Member, now: float) -> tuple[Any, list[int]]:
        """Return a node's part of the key, and its indexes; most events leave the other nodes as they are."""
        known = self._parts.get((id(node), now))
        if known is not None:
            return known[1:]
        naming = OwnNames(node.contender, now) if node.contender is not None else None

        def request(asked: r.Request) -> Any:
            return part(asked, naming) if naming else (type(asked).__name__, round(asked.at - now, 6))

        recorded = (node.record.step, node.record.session, node.record.paused, node.record.slot)
        contact_s = max(node.record.contact - now, -PRUNE_DELAY_S - 1)
        seen = (
            None if naming is None else part(node.contender, naming),
            recorded if node.contender is not None else (*recorded, round(contact_s, 6)),
            tuple(map(request, node.pending)),
            tuple(map(request, node.unanswered)),
            node.hook and (node.hook[0].context.event, round(node.hook[1] - now, 6)),
            (node.cut, node.acts, node.number, round(max(node.acts_until - now, -1.0), 6)),
            round(node.back_at - now, 6),
            (node.other, node.recorded and (node.recorded.limit, node.recorded.prune_delay_s)),
        )
        if len(self._parts) > PARTS_MAX:
            self._parts.clear()
        indexes = naming.indexes if naming else []
        self._parts[id(node), now] = (node, seen, indexes)
        return seen, indexes

    def judge(self, world: World, link: Link) -> None:
        acting = [n for n, node in enumerate(world.nodes) if node.acts and world.now < node.acts_until]
        self.most = max(self.most, len(acting))
        assert len(acting) <= self.walk.limit, f"{acting} act at once at {world.now:g}"
        numbers = [node.number for node in map(world.nodes.__getitem__, acting) if node.number is not None]
        assert len(set(numbers)) == len(numbers), f"{acting} have the numbers {numbers} at {world.now:g}"

    # --- what may happen ------------------------------------------------------------------------------

    def moves(self, world: World) -> Moves[World]:
        """Return the answers in every order in which writes can meet, and then time or a fault."""
        ready = [
            (number, request)
            for number, node in enumerate(world.nodes)
            for request in node.pending
            if not node.cut and self._has_answer(world, request)
        ]
        writing = [each for each in ready if isinstance(each[1], WRITES)]
        if ready:
            firsts = {number: (number, request) for number, request in reversed(ready)}
            chosen = firsts.values() if writing and len(firsts) > 1 else [ready[0]]
            for number, request in chosen:
                yield from self._answers(world, number, request)
            return
        yield from self._misfortunes(world)
        later = self._later(world)
        if later < inf:
            yield from self._at(replace(world, now=later))

    @staticmethod
    def _has_answer(world: World, request: r.Request) -> bool:
        if not isinstance(request, r.WatchSlots):
            return True
        return request.index == 0 or world.consul.index > request.index

    def _answers(self, world: World, number: int, request: r.Request) -> Moves[World]:
        node = world.nodes[number]
        rest = tuple(each for each in node.pending if each != request)
        answered = world.with_node(number, replace(node, pending=rest))
        who = f"{world.now:7.3f} {number}"
        if isinstance(request, r.CreateSession):
            name = self._fresh_name(world, number)
            consul = replace(world.consul, alive=world.consul.alive | {name})
            yield (
                f"{who} session {name}",
                self._turn(replace(answered, consul=consul), number, e.Answered(request, o.Created(name))),
            )
            if (altered := self._use(answered, "alters")) is not None:
                altered = replace(altered, consul=replace(consul, altered=consul.altered | {name}))
                created = e.Answered(request, o.Created(name))
                yield f"{who} session {name}, altered", self._turn(altered, number, created)
            return
        consul, outcome = world.consul.applied(request)
        if isinstance(request, r.JoinSemaphore) and isinstance(outcome, o.LostRace):
            consul = world.consul
        yield (
            f"{who} {short(request)}: {type(outcome).__name__}",
            self._turn(replace(answered, consul=consul), number, e.Answered(request, outcome)),
        )
        if isinstance(request, WRITES) and (silent := self._use(world, "losses")) is not None:
            lost = replace(node, pending=rest, unanswered=(*node.unanswered, request))
            silent = silent.with_node(number, lost)
            yield f"{who} {short(request)}: applied, its answer is lost", replace(silent, consul=consul)
            yield f"{who} {short(request)}: is late", replace(silent, late=(*silent.late, request))

    def _fresh_name(self, world: World, number: int) -> str:
        known = {key[0] for key in world.consul.keys} | world.consul.alive
        known |= set(
            world.consul.lock.slot_record.holders
            if world.consul.lock and world.consul.lock.slot_record
            else ()
        )
        known |= {write.session for write in world.late}
        for node in world.nodes:
            known.add(node.record.session)
            if node.contender is not None:
                view, tenure = node.contender.lock.view, node.contender.tenure
                known |= {node.contender.session.id, tenure.session if tenure is not None else ""}
                if isinstance(view, o.SlotsView):
                    known |= {key.name for key in view.contenders}
                    known |= set(view.slot_record.holders if view.slot_record is not None else ())
        return next(f"{number}{letter}" for letter in "abcdefgh" if f"{number}{letter}" not in known)

    def _misfortunes(self, world: World) -> Moves[World]:
        at = f"{world.now:7.3f}"
        for write in world.late:
            consul, _ = world.consul.applied(write)
            rest = tuple(each for each in world.late if each != write)
            yield f"{at} the late {short(write)} is applied", replace(world, consul=consul, late=rest)
        if (ended := self._use(world, "ends")) is not None:
            for session in sorted(world.consul.alive):
                yield f"{at} Consul ends {session}", replace(ended, consul=world.consul.without(session))
        if (deleted := self._use(world, "deletes")) is not None:
            if world.consul.lock is not None:
                consul = replace(world.consul, lock=None, index=world.consul.index + 1)
                yield f"{at} an operator deletes {LOCK}", replace(deleted, consul=consul)
            for name, _, _ in world.consul.keys:
                yield f"{at} an operator deletes {name}", replace(deleted, consul=world.consul.deleted(name))
        lock, used = world.consul.lock, self._use(world, "drops")
        if used is not None and lock is not None and lock.slot_record is not None:
            index = world.consul.index + 1
            dropped = replace(lock, modify_index=index, slot_record=replace(lock.slot_record, numbers=()))
            consul = replace(world.consul, lock=dropped, index=index)
            yield f"{at} the numbers are dropped", replace(used, consul=consul)
        for number, node in enumerate(world.nodes):
            if node.cut:
                yield f"{at} {number} is back", world.with_node(number, replace(node, cut=False))
            if node.contender is None:
                continue
            if not node.cut and (used := self._use(world, "cuts")) is not None:
                yield f"{at} {number} is cut off", used.with_node(number, replace(node, cut=True))
            if (used := self._use(world, "crashes")) is not None:
                for back_s in (0.0, 2 * PRUNE_DELAY_S):
                    yield f"{at} {number} crashes, back in {back_s:g} s", self._crashed(used, number, back_s)
            if node.contender.winding_up:
                continue
            if (used := self._use(world, "files")) is not None:
                yield f"{at} {number} reads another file", self._reads(used, number)
            if (used := self._use(world, "stops")) is not None:
                yield f"{at} {number} stops", self._turn(used, number, e.StopAsked())

    def _reads(self, world: World, number: int) -> World:
        """Read another file. A contender that cannot go on with it winds up first."""
        node = world.nodes[number]
        assert node.contender is not None
        settings = self.walk.settings(number, not node.other)
        world = world.with_node(number, replace(node, other=not node.other))
        effect = plan_reload({"n": node.contender}, {}, {"n": settings})["n"]
        if effect is ReloadEffect.CHANGES:
            return self._turn(world, number, e.SettingsChanged("n", settings))
        return self._turn(world, number, e.ItemRemoved("n"))

    def _crashed(self, world: World, number: int, back_s: float) -> World:
        node = world.nodes[number]
        assert node.contender is not None
        tenure, lease = node.contender.tenure, node.contender.lease
        until = inf if tenure is None else tenure.contact + lease.room_s
        gone = Member(
            None,
            node.record,
            acts=node.acts,
            number=node.number,
            acts_until=min(node.acts_until, until) if node.acts else inf,
            back_at=world.now + back_s,
            cut=node.cut,
            other=node.other,
            recorded=node.recorded,
        )
        return world.with_node(number, gone)

    # --- time ------------------------------------------------------------------------------------------

    def _later(self, world: World) -> float:
        times = [node.back_at for node in world.nodes]
        for node in world.nodes:
            if node.contender is not None:
                times.append(node.contender.deadline)
            if node.hook is not None:
                times.append(node.hook[1])
            ending = node.unanswered if not node.cut else (*node.unanswered, *node.pending)
            times += [request.at + request.timeout_s for request in ending]
        return max(min(times), world.now)

    def _at(self, world: World) -> Moves[World]:
        """Do all that is due at this time, one thing after the other."""
        at = f"{world.now:7.3f}"
        for number, node in enumerate(world.nodes):
            if node.back_at <= world.now:
                yield f"{at} {number} starts", self._started(world, number)
                return
            if node.hook is not None and node.hook[1] <= world.now:
                start = node.hook[0]
                acts = node.acts and start.context.event != "lose"
                ended = world.with_node(number, replace(node, hook=None, acts=acts))
                yield (
                    f"{at} {number} {start.hook.name} ends",
                    self._turn(ended, number, e.HookEnded(start, ok=True)),
                )
                return
            ending = node.unanswered if not node.cut else (*node.unanswered, *node.pending)
            for request in ending:
                if request.at + request.timeout_s <= world.now:
                    yield (
                        f"{at} {number} {short(request)}: no answer",
                        self._given_up(world, number, request),
                    )
                    return
        for number, node in enumerate(world.nodes):
            if node.contender is not None and node.contender.deadline <= world.now:
                yield f"{at} {number} tick", self._turn(world, number, e.Tick())
                return
        raise AssertionError("time does not move on")

    def _given_up(self, world: World, number: int, request: r.Request) -> World:
        node = world.nodes[number]
        node = replace(
            node,
            pending=tuple(each for each in node.pending if each != request),
            unanswered=tuple(each for each in node.unanswered if each != request),
        )
        return self._turn(world.with_node(number, node), number, e.Answered(request, o.Unknown("silence")))

    def _started(self, world: World, number: int) -> World:
        node = world.nodes[number]
        contender = self._begun(node, number, world.now)
        until = inf if world.now < node.acts_until else node.acts_until
        begun = replace(node, contender=contender, back_at=inf, acts_until=until)
        return self._turn(world.with_node(number, begun), number, e.Tick())

    def _begun(self, node: Member, number: int, now: float) -> Contender:
        """Begin with the file, where the tenure on record can go on with it."""
        settings, record, recorded = self.walk.settings(number, node.other), node.record, node.recorded
        begun: dict[str, Any] = {"spread": 0.0, "instance": str(number), "record": record, "now": now}
        if recorded is not None and not is_adoptable(record, recorded, settings):
            return depart(new_contender(recorded, **begun), now)
        return new_contender(settings, recorded=recorded, **begun)

    def _use(self, world: World, fault: str) -> World | None:
        """Return the world after one more fault of this kind. None: the walk has no more of it."""
        used = one_more(world.used, self.walk.may, fault)
        return None if used is None else replace(world, used=used)

    # --- a turn ---------------------------------------------------------------------------------------

    def _turn(self, world: World, number: int, event: e.Event) -> World:
        node = world.nodes[number]
        assert node.contender is not None
        contender, actions = step(node.contender, event, world.now)
        self.kinds |= {type(event), *map(type, actions)}
        if isinstance(event, e.Answered):
            self.kinds.add(type(event.outcome))
        world = world.with_node(number, replace(node, contender=contender))
        for action in actions:
            world = self._done(world, number, action)
        return world

    def _done(self, world: World, number: int, action: a.Action) -> World:
        node = world.nodes[number]
        match action:
            case r.Request():
                return world.with_node(number, replace(node, pending=(*node.pending, action)))
            case a.Finished() if node.contender is not None and node.contender.departing:
                after = Member(None, back_at=world.now, cut=node.cut, other=node.other)
                return world.with_node(number, after)
            case a.WriteRecord(record=record, settings=settings):
                assert isinstance(settings, SemaphoreSettings)
                world = world.with_node(number, replace(node, record=record, recorded=settings))
                return self._turn(world, number, e.RecordWritten(action))
            case a.StartHook(hook=started, context=context):
                acquires = context.event == "acquire"
                ends_at = world.now if acquires else world.now + started.attempt_s
                acts = node.acts or acquires
                until = inf if acquires else node.acts_until
                kept = node.acts and (context.event == "lose" or context.reason is a.Reason.ADOPTED)
                assert not kept or context.slot == node.number, "the number changes within a tenure"
                self.numbers.add(context.slot)
                begun = replace(
                    node, hook=(action, ends_at), acts=acts, acts_until=until, number=context.slot
                )
                return world.with_node(number, begun)
            case a.KillHook(started=start):
                return world.with_node(number, replace(node, hook=(start, world.now)))
        return world


def walk(name: str, nodes: int, limit: int, *, shows: tuple[type, ...] = (), **more: Any) -> SemaphoreWalk:
    may = {fault: more.pop(fault) for fault in FAULTS if fault in more}
    return SemaphoreWalk(name, nodes, limit, may, shows=frozenset(shows), **more)


FAULTS = frozenset("losses ends cuts crashes deletes stops files alters drops".split())
ALONE = (r.ReadSlots, r.WatchSlots, r.JoinSemaphore, r.LeaveSemaphore, o.SlotWritten, o.SlotsView)
WALKS = (
    walk("one: lost answers, ends", 1, 1, losses=2, ends=1, shows=ALONE),
    walk("one: crashes, deletes", 1, 1, crashes=1, deletes=1, ends=1),
    walk("two for one: ends", 2, 1, ends=2, shows=(r.TakeSlot,)),
    walk("two for one: altered sessions", 2, 1, alters=2, ends=1, shows=(o.SessionAltered,)),
    walk("two for one: lost answers", 2, 1, losses=1, ends=1),
    walk("two for one: cut off", 2, 1, cuts=1, ends=1),
    walk("two for one: crashes", 2, 1, crashes=1, ends=1),
    walk("two for one: deletes", 2, 1, deletes=1, cuts=1),
    walk("two for one: stops", 2, 1, stops=2, losses=1),
    walk("two for one: other files", 2, 1, ends=1, cuts=1, prune_delays_s=(6.0, 4.0)),
    walk("three for two: ends", 3, 2, ends=1, numbers=frozenset({0, 1})),
    walk("two for two: numbers dropped", 2, 2, drops=1, ends=1, numbers=frozenset({0, 1, None})),
    walk("three for two: cut off", 3, 2, cuts=1, ends=1),
    walk("two for two: crashes", 2, 2, crashes=1, ends=1, numbers=frozenset({0, 1})),
    walk("three for one: stops", 3, 1, stops=1, losses=1),
    walk("one: other file", 1, 1, losses=1, files=2, other=(1, 4.0), shows=(r.Rewrite,)),
    walk("two for one: another file, longer", 2, 1, cuts=1, files=1, other=(1, 9.0)),
    walk("two for one: another file, shorter", 2, 1, cuts=1, files=2, losses=1, other=(1, 4.0)),
    walk("two for one: another file, crashes", 2, 1, crashes=1, files=2, other=(1, 4.0)),
    walk("three for two: another limit", 3, 2, files=2, cuts=1, other=(1, 6.0)),
    walk("three for two: another file, longer", 3, 2, files=1, cuts=1, other=(2, 12.0)),
    walk("three for two: other limits", 3, 2, ends=1, limits=(2, 1, 2), shows=(a.NoticeChanged,)),
)


if __name__ == "__main__":
    print_table(WALKS, lambda walk: explore(walk)[0])
