"""Behind the guard two never act: several contenders of ours, a small truthful Consul, and machines.

Consul is a key with its flags and index, the tenure record, and sessions with their lock-delays. A write may
be applied late, after its sender gave up or died. A node may be cut off from Consul, its process killed
between any two actions, its machine stopped, paused or switched off and booted, with its journal or without.
The files differ from node to node, and change. The judge counts the applications that act: from the start of
on_acquire until on_lose has ended or the machine is off. From every state sane answers must lead to a holder.

    python -m tests.models.guard_model            prints a table; names as arguments pick some
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import Any

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.actions import EMPTY_RECORD
from supervisor.core.claim import guard as guards
from supervisor.core.claim import memory
from supervisor.core.claim import record as tenure_record
from supervisor.core.claim.record import State, TenureRecord
from supervisor.core.contender.creation import new_contender
from supervisor.core.contender.state import Contender
from supervisor.core.contender.step import step
from supervisor.core.frozen import replace
from supervisor.core.lease import margin_of
from supervisor.core.lock import backoff
from supervisor.core.machines import session as sessions
from supervisor.core.machines.tenure import Phase
from supervisor.core.settings import ElectionSettings, Fence, Place
from tests.models.search import BrokenPromise, Link, Moves, Used, Walked, one_more, print_table, search
from tests.models.state_key import GRID_S, Key, Naming, part
from tests.models.walks import UP, election, hook
from tests.models.words import line, short

WRITES = (r.Acquire, r.Release, r.DestroySession, r.Rewrite, r.MarkTenure)
UNREADABLE_S = 5.0  # in place of a minute, which would only make the walks longer
Stepped = tuple[Contender, tuple[a.Action, ...]]
STEPS_KEPT = 200_000  # of some kB each
ROUNDS_MAX = 300
CUT_OFF: o.Outcome = o.Unknown("cut off")
OUTLIVED = e.SurvivorsChanged("n", "KILL has not ended app (7)")
PLAIN = "plain"  # the session of a contender of an older release


def files(*kinds: str, lose_s: float = 1.0) -> tuple[ElectionSettings, ...]:
    """Return the files of these kinds, which a walk reads one after the other."""
    made = []
    for kind in kinds:
        words = kind.split()
        fence = Fence(
            hook("fence", timeout_s=2.0, retries=9),
            after_s=1.0,
            exclusive="exclusive" in words,
            required="required" in words,
            outage_s=3.0 if "outage" in words else None,
        )
        more: dict[str, Any] = {} if "none" in words else {"fence": fence}
        down = (hook("down", timeout_s=lose_s),)
        value = b"new" if "new" in words else b"me"
        made.append(election(value=value, on_acquire=UP, on_lose=down, room_s=2.0, **more))
    return tuple(made)


FENCE, QUICK, REQUIRED = files("fence"), files("exclusive"), files("exclusive required")
OUTAGE = files("exclusive outage")  # its record says 6.3 s, which is long here


@dataclass(frozen=True)
class GuardWalk:
    """One part of the guard that is put to the test.

    files: the files of each node, in the order in which it reads them; it starts with the first.
    slow: kinds of requests that may be applied late, and whose answers may be lost.
    fence: how a fence may end: works, fails, hangs, lies, late (the shot comes after the fence was killed).
    left: the tenure record that a former machine has left behind.
    as_holder: whether the walk starts when A holds, and the others wait.
    reloaded: whether A has read its second file by then.
    old: the nodes of a release that knows no `outage`.
    only: the one node that each of these faults befalls.
    may: how often each fault may come.
    """

    name: str
    files: tuple[tuple[ElectionSettings, ...], ...]
    slow: tuple[type, ...] = ()
    fence: tuple[str, ...] = ("works",)
    left: TenureRecord | None = None
    as_holder: bool = True
    reloaded: bool = False
    old: str = ""
    only: Mapping[str, str] = field(default_factory=dict)
    may: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Node:
    """One machine with its supervisor.

    able_since: since when the supervisor runs and reaches Consul.
    acts_until: until then the application is judged, because nothing ends that of a dead supervisor.
    owed: the session whose on_acquire began and whose on_lose has not ended.
    left: the session of which KILL has not ended a process.
    """

    name: str
    contender: Contender | None
    file: int = 0
    record: a.Record = EMPTY_RECORD
    recorded: ElectionSettings | None = None
    recorded_boot: int = 0
    boot: int = 0
    journal: int = 0
    on: bool = True
    cut: bool = False
    paused: bool = False
    able_since: float = -9.0
    ticks: bool = True
    hook: tuple[a.StartHook, float] | None = None
    acts: bool = False
    acts_until: float = inf
    owed: str = ""
    left: str = ""

    @property
    def is_able(self) -> bool:
        return self.on and self.contender is not None and not self.cut and not self.paused

    @property
    def place(self) -> Place:
        return Place(self.name, self.name, str(self.boot), f"{self.name}{self.journal}")


@dataclass(frozen=True, slots=True)
class Consul:
    """The key, its tenure record, and the sessions with their lock-delays."""

    index: int = 1
    session: str = ""
    guarded: bool = False
    is_long: bool = False
    value: bytes = b""
    create: int = 0
    modify: int = 1
    locks: int = 0
    record: TenureRecord | None = None
    record_at: int = 1
    delay_until: float = -inf
    sessions: tuple[tuple[str, float], ...] = ()

    def view(self) -> o.KeyView:
        if not self.create:
            return o.KeyView(self.modify)
        indexes = (self.create, self.modify, self.locks)
        return o.KeyView(
            self.modify,
            self.session or None,
            self.value,
            *indexes,
            has_record_flags=self.guarded,
            is_long=self.is_long,
        )

    def shown(self) -> o.TenureShown:
        record = self.record
        if record is not None:  # as the format reads it
            record = replace(record, waited_s=min(record.waited_s, record.lock_delay_s))
        return o.TenureShown(self.record_at, self.record_at if record else 0, record)

    def next(self) -> "Consul":
        return replace(self, index=self.index + 1)

    def wrote(self, **changes: Any) -> "Consul":
        new = self.index + 1
        return replace(self, index=new, modify=new, create=self.create or new, **changes)

    def with_record(self, record: TenureRecord | None) -> "Consul":
        if record is None and self.record is None:
            return self
        return replace(self, record=record, record_at=self.index)

    def delay_of(self, session: str) -> float | None:
        return dict(self.sessions).get(session)

    def without(self, session: str, now: float) -> "Consul":
        delay_s = self.delay_of(session)
        if delay_s is None:
            return self
        rest = replace(self, sessions=tuple(each for each in self.sessions if each[0] != session))
        return rest.wrote(session="", delay_until=now + delay_s) if self.session == session else rest


@dataclass(frozen=True, slots=True)
class Pending:
    """A request of a node under way. answer: set once Consul has applied it."""

    node: int
    request: r.Request
    answer: o.Outcome | None = None


@dataclass(frozen=True, slots=True)
class World:
    """One state of the model.

    late: writes that may yet be applied although their sender has given up on them or died.
    shots: machines that a killed fence may yet switch off.
    plain: what the contender of an older release does: it waits, asks (its acquire is under way) or acts.
    lied: whether a fence has lied.
    used: how often each fault has come.
    saved: a snapshot of Consul, of when the walk began.
    """

    nodes: tuple[Node, ...]
    consul: Consul = Consul()
    now: float = 0.0
    pending: tuple[Pending, ...] = ()
    late: tuple[r.Request, ...] = ()
    shots: tuple[int, ...] = ()
    plain: str = "waits"
    plain_until: float = inf
    lied: bool = False
    used: Used = ()
    saved: Consul | None = None


class _Names(Naming):
    """Name each session as it is, and count the order of the indexes alone."""

    fences = True

    def session(self, name: str | None) -> str | None:
        return name

    def index(self, value: int) -> None:
        self.indexes.append(value)


def explore(walk: GuardWalk, enough: float = inf) -> Walked:
    """Search all states of the walk.

    enough: see ``search``.
    """
    with _short_times():
        model = _BehindTheGuard(walk)
        return search(model, enough)


@contextmanager
def _short_times() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        unreadable = replace(tenure_record.UNREADABLE, lock_delay_s=UNREADABLE_S)
        patch.setattr(guards, "UNREADABLE", unreadable)
        patch.setattr(backoff, "decrease", lambda probability: probability)
        patch.setattr(sessions, "DESTROY_PAUSE_S", 0.0)
        patch.setattr(tenure_record, "LOCK_DELAY_MAX_S", UNREADABLE_S)
        patch.setattr(guards, "OUTAGE_LOCKOUT_MAX_S", 8.0)
        patch.setattr(memory, "OUTAGE_LOCKOUT_MAX_S", 8.0)
        patch.setattr(memory, "LOCK_DELAY_MAX_S", UNREADABLE_S)
        patch.setattr(guards, "NOTE_S", 2.0)
        patch.setattr(guards, "HEARD_S", 1.0)
        yield


class _BehindTheGuard:
    def __init__(self, walk: GuardWalk, *, like: "_BehindTheGuard | None" = None) -> None:
        self.walk = walk
        self.sane = like is not None  # what came before is not known, so a step is not judged by it
        self.good: set[Key] = set()
        # Nodes seldom change together, so the same contender meets the same event in many worlds. What two
        # equal events may differ in reaches only logs.
        self._step: Callable[..., Stepped] = like._step if like else lru_cache(STEPS_KEPT)(step)
        self.stranger = new_contender(walk.files[0][0], spread=0.0, instance="i")

    def begin(self) -> Moves[World]:
        nodes = []
        for number, file in enumerate(self.walk.files):
            name = "ABC"[number]
            contender = new_contender(
                file[0], spread=0.0, instance="i", place=Node(name, None).place, now=0.0
            )
            nodes.append(Node(name, replace(contender, faults=())))
        consul, left = Consul(), self.walk.left
        if left is not None:
            consul = replace(consul, create=1, guarded=True, record=left)
        world = World(tuple(nodes), consul)
        if self.walk.as_holder:
            alone = replace(world, nodes=world.nodes[:1])
            alone = next(each for _, each in self._healed(alone) if self._has_holder(each))
            world = replace(alone, nodes=alone.nodes + world.nodes[1:])
            world = next(each for _, each in self._healed(world) if each.now > 0.0)
        if self.walk.reloaded:
            event = e.SettingsChanged("n", self.walk.files[0][1])
            _, world = next(self._turn(self._with(world, 0, file=1), 0, event, may_die=False))
            _, world = self._settled("", world)
        if self.walk.may.get("rolls"):
            world = replace(world, saved=world.consul)
        if self.walk.may.get("plain"):  # it saw the key free before A took it, and its acquire is under way
            alive = (*world.consul.sessions, (PLAIN, 4.0))
            world = replace(world, plain="asks", consul=replace(world.consul, sessions=alive))
        yield "begin", world

    def key(self, world: World) -> Key:
        now, indexes, keys = world.now, [], []
        for node in world.nodes:
            if node.contender is not None:
                naming = _Names(node.contender, now)
                keys.append(part(node.contender, naming))
                indexes += naming.indexes
            record = node.record
            keys += [
                (node.file, node.boot, node.journal, node.recorded_boot),
                (node.on, node.cut, node.paused, node.ticks),
                node.is_able and min(now - node.able_since, 3.0),
                node.hook and (node.hook[0].context.event, node.hook[1] - now),
                (node.acts, max(node.acts_until - now, 0.0), node.owed, node.left),
                (record.step, record.session, max(record.contact - now, -9.0), record.taken_at is None),
                (record.owes, record.asked_delay_s, node.recorded and _kind(node.recorded)),
                (record.leased_s, record.stopped_at is None),
            ]
        consul = world.consul
        names = _Names(self.stranger, now)
        keys += [
            tuple(
                (p.node, part(p.request, names), p.answer and part(p.answer, names)) for p in world.pending
            ),
            tuple(part(replace(write, at=now), names) for write in world.late),
            (
                consul.session,
                consul.guarded,
                consul.is_long,
                consul.value,
                consul.sessions,
                max(consul.delay_until - now, 0),
            ),
            consul.record and part(consul.record, names),
            (world.shots, world.plain, max(world.plain_until - now, 0.0), world.lied, world.used),
        ]
        indexes += [*names.indexes, consul.modify, consul.create, consul.locks, consul.record_at]
        order = {value: rank for rank, value in enumerate(sorted(set(indexes)))}
        return (*keys, tuple(order[value] for value in indexes))

    def judge(self, world: World, link: Link) -> None:
        self._never_two(world)
        self._waits_for_somebody(world)
        self._no_belief_beyond_the_record(world)
        if self._at_once(world, self.walk.slow) is None:  # else the state behind the answers is judged
            self._way_on(world)

    def _never_two(self, world: World) -> None:
        acting = [node for node in world.nodes if node.acts and world.now < node.acts_until]
        both = len(acting) + (world.plain == "acts" and world.now < world.plain_until)
        assert both < 2 or self._was_lied_to(world), "two act at once"

    def _no_loser_is_silent(self, world: World) -> None:
        """Check that who has lost, knows it and gets answers has said so by one look and one write."""
        record, hears = world.consul.record, not set(self.walk.slow) & {r.MarkTenure, r.WatchTenure}
        if record is None or not hears:
            return
        for node in world.nodes:
            contender = node.contender
            if contender is None or contender.tenure is None or contender.tenure.believes or not node.is_able:
                continue
            session, began = contender.tenure.session, contender.tenure.began
            knows = not contender.lock.has_entry(session) or contender.session.dead
            if began and knows and record.session == session and node.able_since <= world.now - GRID_S:
                assert record.state is not State.ACTING, f"{node.name} has lost, and its record says acting"

    def _waits_for_somebody(self, world: World) -> None:
        """Check that nobody waits for a record that is not there, unless an operator took it away."""
        if dict(world.used).keys() & {"deletes", "puts", "plain", "remakes", "rolls"} or self.sane:
            return
        for node in world.nodes:
            guard = None if node.contender is None else node.contender.guard
            waits = guard is not None and guard.end is None and guard.record and not guard.record.session
            assert not waits, f"{node.name} waits for a record that nobody has left"

    def _no_belief_beyond_the_record(self, world: World) -> None:
        """Check that who counts on a long record has one in Consul, and loses it in its journal too.

        Check as well that nobody takes Consul for another one that has lost nothing.
        """
        if dict(world.used).keys() & {"deletes", "puts", "plain", "restores", "remakes", "rolls"}:
            return
        consul, said = world.consul, world.consul.record
        for node in world.nodes:
            contender, on_record = node.contender, node.record
            begun = on_record.step in (a.Point.TENURE, a.Point.HOLDING)
            if begun and on_record.session == consul.session and on_record.leased_s:
                assert said is not None and on_record.leased_s <= said.lock_delay_s, "the journal says more"
            if contender is None:
                continue
            assert contender.claim.memory.lost is None, f"{node.name} takes Consul for another one"
            tenure, lease = contender.tenure, contender.lease
            if tenure is None or not tenure.believes or not lease.outlasts:
                continue
            if consul.session == tenure.session:
                assert said is not None and said.session == tenure.session and consul.is_long
                longest_s = said.lock_delay_s - margin_of(said.lock_delay_s) - lease.lose_time_s
                assert lease.belief_s <= longest_s + 1e-6, f"{node.name} believes more than its record says"

    def _was_lied_to(self, world: World) -> bool:
        """Return whether the lease of all who act but one is not over, after a fence that lied."""
        leases = [
            node.contender is not None
            and node.contender.tenure is not None
            and world.now < node.contender.tenure.contact + node.contender.lease.lockout_s
            for node in world.nodes
            if node.acts
        ]
        return world.lied and all(leases)

    # --- what may happen ---------------------------------------------------------------------------

    def moves(self, world: World) -> Moves[World]:
        at_once = self._at_once(world, self.walk.slow)
        for told, moved in at_once if at_once is not None else self._all_that_may_happen(world):
            yield self._settled(told, moved)

    def _settled(self, told: str, world: World) -> tuple[str, World]:
        """Return the state after all that follows at once, as long as only one thing can follow."""
        lines = [told]
        try:
            while (at_once := self._at_once(world, self.walk.slow)) is not None:
                self._never_two(world)
                first, *others = at_once
                if others:
                    break
                lines.append(first[0])
                world = first[1]
        except AssertionError as broken:
            way = broken.way if isinstance(broken, BrokenPromise) else ()
            why = broken.why if isinstance(broken, BrokenPromise) else str(broken)
            raise BrokenPromise(why, (*lines, *way)) from broken
        return "\n".join(lines), world

    def _at_once(self, world: World, slow: tuple[type, ...]) -> Moves[World] | None:
        """Return what comes before all else: a tick, the answer of a quick Consul, the end of on_acquire."""
        for number, node in enumerate(world.nodes):
            if node.ticks and node.contender is not None and not node.paused:
                return self._turn(self._with(world, number, ticks=False), number, e.Tick())
            if node.hook is not None and node.hook[0].context.event == "acquire" and not node.paused:
                return self._turn(world, number, e.HookEnded(node.hook[0], ok=True))
        quick = [p for p in world.pending if self._is_quick(world, p, slow)]
        quick.sort(key=lambda p: (isinstance(p.request, r.Acquire), isinstance(p.request, r.Watch)))
        if not quick:
            return None
        if all(isinstance(p.request, r.Acquire) for p in quick):
            return (moved for p in quick for moved in self._answered(world, p))
        return self._answered(world, quick[0])

    def _is_quick(self, world: World, pending: Pending, slow: tuple[type, ...]) -> bool:
        request, node = pending.request, world.nodes[pending.node]
        if node.paused:
            return False
        if node.cut and pending.answer is None:
            return True
        if isinstance(request, r.HintKey):
            return False
        if isinstance(request, r.WatchKey):
            if "hints" in self.walk.may and request.index:
                return False  # the watches hang
            return request.index in {0} or request.index != world.consul.modify
        if isinstance(request, r.WatchTenure) and request.index:
            if "hints" in self.walk.may:
                return False
            return request.index != world.consul.record_at
        return type(request) not in slow

    def _answered(self, world: World, pending: Pending) -> Moves[World]:
        if world.nodes[pending.node].cut:
            applied, answer = world, CUT_OFF
            if type(pending.request) in self.walk.slow and isinstance(pending.request, WRITES):
                applied = replace(world, late=(*world.late, pending.request))
        else:
            applied, answer = self._applied(world, pending)
            if world.nodes[pending.node].name in self.walk.old:
                answer = _as_old(answer)
        yield from self._answers(applied, pending, answer)

    def _answers(self, world: World, pending: Pending, answer: o.Outcome) -> Moves[World]:
        rest = tuple(other for other in world.pending if other is not pending)
        yield from self._turn(replace(world, pending=rest), pending.node, e.Answered(pending.request, answer))

    def _all_that_may_happen(self, world: World) -> Moves[World]:
        yield from self._late_writes(world)
        for target in world.shots:
            yield f"the late shot hits {target}", self._shot(replace(world, shots=()), target)
        for pending in world.pending:
            yield from self._exchange(world, pending)
        for number, node in enumerate(world.nodes):
            for told, moved in self._of_node(world, number, node):
                yield f"{node.name}: {told}", moved
        yield from self._of_consul(world)
        if self.walk.may.get("plain"):
            yield from self._of_plain(world)
        if world.now + GRID_S <= self._bound(world):
            self._no_loser_is_silent(world)
            later = self._later(world)
            yield "time passes", later
            for told, moved in self._late_writes(later):  # before a node that waits for the same moment
                yield f"time passes, {told}", moved

    def _late_writes(self, world: World) -> Moves[World]:
        for write in world.late:
            rest = tuple(other for other in world.late if other is not write)
            whose = write.record.session if isinstance(write, r.MarkTenure) else write.session  # type: ignore[attr-defined]
            sender = next((i for i, n in enumerate(world.nodes) if whose[:1] == n.name), 0)
            applied, answer = self._applied(replace(world, late=rest), Pending(sender, write))
            yield f"late {short(write)} is applied: {answer}", applied
        consul = world.consul
        if world.plain == "asks" and not consul.session and world.now >= consul.delay_until:
            held = consul.wrote(session=PLAIN, guarded=False, locks=consul.locks + 1)
            yield "plain acts", replace(world, plain="acts", consul=held)

    def _later(self, world: World) -> World:
        nodes = tuple(replace(node, ticks=True) for node in world.nodes)
        later = replace(world, now=world.now + GRID_S, nodes=nodes)
        if later.plain == "acts" and later.now >= later.plain_until:
            later = replace(later, plain="waits", plain_until=inf)
        return later

    def _exchange(self, world: World, pending: Pending) -> Moves[World]:
        request, node = pending.request, world.nodes[pending.node]
        if type(request) not in self.walk.slow or isinstance(request, r.WatchKey) or node.paused:
            return
        if isinstance(request, r.WatchTenure) and request.index == world.consul.record_at:
            return
        if pending.answer is None:
            applied, answer = self._applied(world, pending)
            done = replace(pending, answer=answer)
            others = tuple(done if other is pending else other for other in applied.pending)
            yield f"{short(request)} is applied: {answer}", replace(applied, pending=others)
        else:
            yield from self._answers(world, pending, pending.answer)
        if (lost := self._use(world, "losses")) is not None:
            if pending.answer is None and isinstance(request, WRITES):
                lost = replace(lost, late=(*lost.late, request))
            yield from self._answers(lost, pending, o.Unknown("lost"))

    def _of_node(self, world: World, number: int, node: Node) -> Moves[World]:
        if not node.on or node.contender is None:
            yield from self._start(world, number)
            return
        if node.paused:
            yield "goes on", self._resumed(world, number)
            return
        if node.hook is not None:
            yield from self._hook_ends(world, number, node.hook[0])
        if node.left:
            yield from self._process_ends(world, number)
        yield from self._hinted(world, number, node)
        if (used := self._use(world, "crashes", node.name)) is not None:
            yield "is killed", self._killed(used, number)
        if (used := self._use(world, "reboots", node.name)) is not None:
            yield "is off", self._off(used, number)
        if (used := self._use(world, "pauses", node.name)) is not None:
            until = self._last_room(world, node)
            yield "is paused", self._with(used, number, paused=True, acts_until=until)
        if node.cut:
            yield "is no longer cut off", self._with(world, number, cut=False, able_since=world.now)
        elif (used := self._use(world, "cuts", node.name)) is not None:
            yield "is cut off", self._with(used, number, cut=True)
        for fault, event in (("downs", e.StepDownAsked("n", 1.0)), ("confirms", e.ConfirmOffAsked("n"))):
            guards_now = node.contender.tenure is not None and node.contender.tenure.phase is Phase.GUARDING
            if fault == "downs" and node.contender.tenure is not None or fault == "confirms" and guards_now:
                if (used := self._use(world, fault, node.name)) is not None:
                    yield from self._turn(used, number, event)
        if (used := self._use(world, "reloads", node.name)) is not None:
            every = self.walk.files[number]
            for file in (node.file - 1, node.file + 1):
                if 0 <= file < len(every):
                    moved = self._with(used, number, file=file)
                    yield from self._turn(moved, number, e.SettingsChanged("n", every[file]))

    def _hinted(self, world: World, number: int, node: Node) -> Moves[World]:
        """Let a server show the key by itself: as it is, or newer, as one of another Consul would."""
        asked = [p for p in world.pending if p.node == number and isinstance(p.request, r.HintKey)]
        if asked and not node.cut and (used := self._use(world, "hints", node.name)) is not None:
            for index in (world.consul.modify, world.consul.modify + 9):
                yield from self._answers(used, asked[0], o.Hinted(index, present=True))

    def _of_consul(self, world: World) -> Moves[World]:
        consul = world.consul
        for session, _ in consul.sessions:
            owner = next((node for node in world.nodes if node.name == session[0]), None)
            alone = owner is None or not owner.is_able
            used = world if alone else self._use(world, "ends")
            if used is not None and session != PLAIN:
                yield f"Consul ends {session}", replace(used, consul=consul.without(session, world.now))
        if consul.record is not None and (used := self._use(world, "deletes")) is not None:
            yield "an operator deletes the record", replace(used, consul=consul.next().with_record(None))
        quiet = not consul.session and not any(node.acts for node in world.nodes)
        if quiet and (used := self._use(world, "restores")) is not None:
            place = replace(world.nodes[0].place, boot=str(world.nodes[0].boot))
            old = TenureRecord("A9", lock_delay_s=4.0, lose_time_s=1.0, target="A", node="A", place=place)
            back = consul.wrote(guarded=True, session="").with_record(old)
            yield "an old snapshot is restored", replace(used, consul=replace(back, sessions=()))
        if not any(node.cut for node in world.nodes) and (used := self._use(world, "outages")) is not None:
            silent = tuple(replace(node, cut=True) for node in world.nodes)
            yield "Consul is silent", replace(used, nodes=silent)
        is_silent = all(node.cut or not node.on for node in world.nodes)
        if is_silent and (used := self._use(world, "remakes")) is not None:
            yield "Consul is made anew", replace(used, consul=Consul(), late=())
        if is_silent and world.saved is not None and (used := self._use(world, "rolls")) is not None:
            yield "Consul is rolled back", replace(used, consul=world.saved, late=())
        holds = any(node.is_able and node.name == consul.session[:1] for node in world.nodes)
        if holds and (used := self._use(world, "puts")) is not None:
            yield "an operator puts", replace(used, consul=consul.wrote(guarded=False, locks=0))
        if consul.delay_until > world.now and (used := self._use(world, "forgets")) is not None:
            yield "Consul forgets its lock-delay", replace(used, consul=replace(consul, delay_until=-inf))

    def _of_plain(self, world: World) -> Moves[World]:
        """Let a contender of an older release try: it locks without looking at flags or index."""
        consul, now = world.consul, world.now
        if world.plain == "waits" and not consul.session and not consul.guarded:
            if (used := self._use(world, "plain")) is not None:
                alive = (*(each for each in consul.sessions if each[0] != PLAIN), (PLAIN, 4.0))
                yield "plain asks", replace(used, plain="asks", consul=replace(consul, sessions=alive))
        if world.plain == "acts" and consul.session == PLAIN:
            gone = consul.without(PLAIN, now)
            yield "plain dies", replace(world, plain_until=now + 3.0, consul=gone)
            freed = replace(consul.wrote(session="", guarded=False).without(PLAIN, now))
            yield "plain releases", replace(world, plain="waits", consul=freed)

    def _bound(self, world: World) -> float:
        bounds = [inf]
        for node in world.nodes:
            if node.hook is not None and not node.paused:
                bounds.append(node.hook[1])
        may_lose = self._use(world, "losses") is not None
        for p in world.pending:
            if not isinstance(p.request, r.Watch) and not world.nodes[p.node].paused:
                bounds.append(p.request.at + p.request.timeout_s - (0.0 if may_lose else GRID_S))
        return min(bounds)

    def _use(self, world: World, fault: str, name: str = "") -> World | None:
        """Return the world after one more fault of this kind. None: the walk has no more for this node."""
        used = one_more(world.used, self.walk.may, fault)
        if used is None or self.walk.only.get(fault, name) != name:
            return None
        return replace(world, used=used)

    # --- machines and fences -----------------------------------------------------------------------

    def _with(self, world: World, number: int, **changes: Any) -> World:
        nodes = list(world.nodes)
        nodes[number] = replace(nodes[number], **changes)
        return replace(world, nodes=tuple(nodes))

    def _last_room(self, world: World, node: Node) -> float:
        tenure = None if node.contender is None else node.contender.tenure
        if tenure is None or node.contender is None:
            return world.now
        ends_at = tenure.contact + node.contender.lease.belief_s
        return ends_at if node.acts_until == inf else min(ends_at, node.acts_until)

    def _killed(self, world: World, number: int, before: Contender | None = None) -> World:
        """Return the world after a kill of the process: its application acts on, its writes may be late."""
        node = world.nodes[number]
        ours = [p for p in world.pending if p.node == number]
        late = tuple(p.request for p in ours if p.answer is None and isinstance(p.request, WRITES))
        rest = tuple(p for p in world.pending if p.node != number)
        until = self._last_room(world, node if before is None else replace(node, contender=before))
        late = late if self.walk.slow else ()
        world = replace(world, pending=rest, late=(*world.late, *late))
        return self._with(world, number, contender=None, hook=None, paused=False, acts_until=until)

    def _off(self, world: World, number: int) -> World:
        dead = self._killed(world, number) if world.nodes[number].contender is not None else world
        return self._with(dead, number, on=False, acts=False, owed="", left="", hook=None, cut=False)

    def _shot(self, world: World, number: int) -> World:
        return self._off(world, number) if world.nodes[number].on else world

    def _fresh(self, node: Node, now: float) -> Contender:
        settings = self.walk.files["ABC".index(node.name)][node.file]
        record = node.record
        if record.step is not a.Point.NONE and node.recorded_boot != node.boot:
            record = replace(record, foreign=True)
        fresh = new_contender(
            settings,
            spread=0.0,
            instance="i",
            record=record,
            recorded=node.recorded,
            now=now,
            place=node.place,
        )
        return replace(fresh, faults=())

    def _start(self, world: World, number: int) -> Moves[World]:
        """Start the process, after a boot if the machine was off: with its journal, or without."""
        node = world.nodes[number]
        if node.on:
            boots = [("starts", node)]
        else:
            booted = replace(node, on=True, boot=node.boot + 1)
            empty = replace(booted, record=EMPTY_RECORD, recorded=None, journal=node.journal + 1)
            boots = [("boots", booted)]
            boots += [("boots without its journal", empty)] if node.record != EMPTY_RECORD else []
        if node.on and node.record != EMPTY_RECORD and (used := self._use(world, "wipes")) is not None:
            wiped = replace(node, record=EMPTY_RECORD, recorded=None, journal=node.journal + 1, owed="")
            nodes = tuple(wiped if other is node else other for other in used.nodes)
            yield "its journal is lost", replace(used, nodes=nodes)
        named = world.consul.record is not None and world.consul.record.session[:1] == node.name
        fresh = number and not node.owed and not named
        if fresh and (used := self._use(world, "clones")) is not None:
            first = used.nodes[0]
            clone: dict[str, Any] = {"record": first.record, "recorded": first.recorded, "recorded_boot": -1}
            boots = [("starts from a copy of the disk of A", replace(boots[0][1], **clone))]
        for told, each in boots:
            in_time = world.now < each.acts_until
            until = inf if in_time or not each.acts else each.acts_until
            each = replace(each, contender=self._fresh(each, world.now), acts_until=until, ticks=True)
            each = replace(each, able_since=world.now)
            nodes = tuple(each if other is node else other for other in world.nodes)
            started = replace(world, nodes=nodes)
            if each.left:
                yield from self._turn(started, number, OUTLIVED)
            else:
                yield told, started

    def _resumed(self, world: World, number: int) -> World:
        node = world.nodes[number]
        until = inf if world.now < node.acts_until else node.acts_until
        world = self._with(world, number, paused=False, acts_until=until, able_since=world.now, ticks=True)
        ((_, world),) = self._turn(world, number, e.Stalled(GRID_S), may_die=False)
        return world

    def _hook_ends(self, world: World, number: int, start: a.StartHook) -> Moves[World]:
        if start.context.event != "fence":
            yield from self._turn(world, number, e.HookEnded(start, ok=True))
            if (leaving := self._use(world, "leaves")) is not None:
                leaving = self._with(leaving, number, left=start.context.session)
                for told, moved in self._turn(leaving, number, OUTLIVED):
                    if moved.nodes[number].contender is None:
                        yield told, moved
                    else:
                        yield from self._turn(moved, number, e.HookEnded(start, ok=True))
            return
        previous = start.context.previous
        assert previous is not None
        target = "ABC".find(previous.target)
        tenure = world.nodes[number].contender.tenure  # type: ignore[union-attr]
        killed = tenure is None or tenure.killing
        if killed:
            late = replace(world, shots=(target,)) if "late" in self.walk.fence and target >= 0 else world
            yield from self._turn(late, number, e.HookEnded(start, ok=False))
            return
        if "works" in self.walk.fence:
            shot = self._shot(world, target) if target >= 0 else world
            yield from self._turn(shot, number, e.HookEnded(start, ok=True))
        if "lies" in self.walk.fence:
            yield from self._turn(replace(world, lied=True), number, e.HookEnded(start, ok=True))
        if "fails" in self.walk.fence or world.now >= world.nodes[number].hook[1]:  # type: ignore[index]
            yield from self._turn(world, number, e.HookEnded(start, ok=False))

    def _process_ends(self, world: World, number: int) -> Moves[World]:
        """End what KILL had not ended, late."""
        acts = world.nodes[number].acts and bool(world.nodes[number].owed)
        gone = self._with(world, number, left="", acts=acts)
        yield from self._turn(gone, number, e.SurvivorsChanged("n", ""))

    # --- a step ------------------------------------------------------------------------------------

    def _turn(self, world: World, number: int, event: e.Event, *, may_die: bool = True) -> Moves[World]:
        """Take a step, with a kill before each action whose loss would be noticed."""
        world = self._ended(world, number, event)
        before = world.nodes[number].contender
        assert before is not None
        after, actions = self._step(before, event, world.now)
        told = f"{world.now:g}s {world.nodes[number].name}: {line(event, actions)}"
        try:
            yield from self._carried_out(world, number, told, after, actions, may_die=may_die)
        except BrokenPromise:
            raise
        except AssertionError as broken:
            raise BrokenPromise(str(broken), (told,)) from broken

    def _carried_out(
        self,
        world: World,
        number: int,
        told: str,
        after: Contender,
        actions: tuple[a.Action, ...],
        *,
        may_die: bool,
    ) -> Moves[World]:
        before, node_name = world.nodes[number].contender, world.nodes[number].name
        world = self._with(world, number, contender=after)
        for done, action in enumerate(actions):
            if isinstance(action, a.RoleChanged | a.NoticeChanged | a.PrepareWrite):
                continue
            if may_die and (used := self._use(world, "crashes", node_name)) is not None:
                yield f"{told}, killed before action {done}", self._killed(used, number, before)
            world = self._act(world, number, action)
        if after.role is a.Role.STOPPED:
            world = self._with(world, number, contender=None)
        for action in actions:
            if isinstance(action, a.WriteRecord):
                for more, moved in self._turn(world, number, e.RecordWritten(action), may_die=may_die):
                    yield f"{told}; {more}", moved
                return
        yield told, world

    def _act(self, world: World, number: int, action: a.Action) -> World:
        node = world.nodes[number]
        match action:
            case a.StartHook(hook=started, context=context):
                assert node.hook is None, "two hooks at once"
                running = (action, world.now + started.attempt_s)
                if context.event == "fence":
                    self._may_shoot(world, number, action)
                    return self._with(world, number, hook=running)
                if context.event == "lose":
                    return self._with(world, number, hook=running)
                assert node.owed in ("", context.session), "on_acquire without the on_lose before"
                assert node.record.session == context.session, "begun before it was on record"
                self._says_who_acts(world, node, context)
                began = {"acts": True, "acts_until": inf, "owed": context.session}
                return self._with(world, number, hook=running, **began)
            case a.KillHook(started):
                assert node.hook is not None and node.hook[0] == started
                return self._with(world, number, hook=(started, world.now))
            case a.WriteRecord(record=record, settings=settings):
                assert isinstance(settings, ElectionSettings)
                kept = {"record": record, "recorded": settings, "recorded_boot": node.boot}
                return self._with(world, number, **kept)
            case r.Request():
                self._may_ask(world, node, action)
                return replace(world, pending=(*world.pending, Pending(number, action)))
        return world

    def _may_ask(self, world: World, node: Node, request: r.Request) -> None:
        if isinstance(request, r.Release | r.DestroySession):
            assert node.owed != request.session, "released before on_lose has ended"
            assert node.left != request.session, "released beside a process that KILL has not ended"
        if isinstance(request, r.Acquire):
            assert node.record.session == request.session, "an acquire that is not on record"
        if isinstance(request, r.MarkTenure) and request.record.state is State.ENDED:
            too_soon = node.acts and request.record.session in (node.owed, node.left)
            assert not too_soon, "ended is said too soon"

    def _says_who_acts(self, world: World, node: Node, context: a.HookContext) -> None:
        """Check that the tenure record and the flags tell of a node with a fence that begins to act."""
        contender, consul = node.contender, world.consul
        assert contender is not None
        fence, session = contender.settings.fence, contender.session
        if (
            fence is None
            or self.sane  # what an operator did before may have an answer that is still to come
            or self.walk.may.get("deletes")
            or self.walk.may.get("puts")
            or consul.session != context.session
        ):
            return
        if (
            not contender.claim.owes
            and consul.delay_of(session.id) == contender.settings.session.lock_delay_s
        ):
            return  # it acquired by a file without fence, so Consul itself keeps rivals out for as long
        assert consul.guarded and consul.record is not None, "it acts without a tenure record"
        assert consul.record.session == context.session, "it acts behind another's tenure record"
        before = context.previous
        waited = before is not None and before.end == "waited"
        assert not (fence.required and waited), "it acts because of the time alone"
        alien = before is None or before.node != node.name or before.end in ("said", "waited")
        assert alien, "it takes itself for the holder before"

    def _may_shoot(self, world: World, number: int, start: a.StartHook) -> None:
        """Check that nobody is shot who lives, reaches Consul and has had the time to say so."""
        previous = start.context.previous
        assert previous is not None and previous.target
        target = "ABC".find(previous.target)
        assert target != number, "a node shoots itself"
        if (
            target < 0
            or self.sane
            or dict(world.used).get("wipes")  # its record stays, with a warning
            or set(self.walk.slow) & {r.MarkTenure, r.WatchTenure, r.Acquire}
        ):
            return
        other = world.nodes[target]
        fence = world.nodes[number].contender.settings.fence  # type: ignore[union-attr]
        assert fence is not None
        lives = other.is_able and world.now - other.able_since > fence.after_s
        is_stuck = other.contender is not None and other.contender.role is a.Role.STUCK
        assert not lives or other.left or is_stuck, f"{other.name} is shot, although it lives and can speak"

    def _ended(self, world: World, number: int, event: e.Event) -> World:
        match event:
            case e.HookEnded(started) if started.context.event == "lose":
                node, tenure = world.nodes[number], world.nodes[number].contender.tenure  # type: ignore[union-attr]
                if not node.left or tenure is None:
                    return self._with(world, number, hook=None, acts=False, owed="")
                # A guard that time ends does not know of the process: docs/lease.md, Limits.
                until = min(node.acts_until, tenure.rival_at(node.contender.lease))  # type: ignore[union-attr]
                return self._with(world, number, hook=None, acts_until=until, owed="")
            case e.HookEnded():
                return self._with(world, number, hook=None)
        return world

    # --- Consul ------------------------------------------------------------------------------------

    def _applied(self, world: World, pending: Pending) -> tuple[World, o.Outcome]:
        consul, request, node = world.consul, pending.request, world.nodes[pending.node]
        match request:
            case r.CreateSession(settings=settings):
                name = self._name_for(world, node)
                alive = tuple(sorted((*consul.sessions, (name, settings.lock_delay_s))))
                return replace(world, consul=replace(consul, sessions=alive)), o.Created(name)
            case r.RenewSession(session=session, asked=asked):
                delay_s = consul.delay_of(session)
                if delay_s is None:
                    return world, o.SessionGone()
                assert delay_s == asked.lock_delay_s, "a session of ours is taken for one that was altered"
                return world, o.SessionAlive(node.name)
            case r.ReadSession(session=session):
                return world, o.SessionInfo(consul.delay_of(session))
            case r.ReadKey() | r.WatchKey():
                return world, consul.view()
            case r.WatchTenure():
                return world, consul.shown()
            case r.DestroySession(session=session):
                return replace(world, consul=consul.without(session, world.now)), o.Done()
        written, outcome = self._written(world, request)
        return replace(world, consul=written), outcome

    def _written(self, world: World, request: r.Request) -> tuple[Consul, o.Outcome]:
        """Apply a write as agent/consul/state/txn.go does: all of its operations, or none."""
        consul, now = world.consul, world.now
        match request:
            case r.Acquire(session=session, value=value, record=claim):
                if now < consul.delay_until:
                    return consul, o.LockDelayed()
                expected = consul.modify if consul.create else 0
                if consul.session not in ("", session) or request.index != expected:
                    return consul, o.LostRace()
                if consul.delay_of(session) is None:
                    return consul, o.SessionGone()
                if claim is not None and consul.record is not None:
                    return consul, o.RecordExists()
                locks = consul.locks + (consul.session != session)
                guarded = request.over_record or claim is not None
                is_long = guarded and request.is_long
                consul = consul.wrote(
                    session=session, value=value, guarded=guarded, is_long=is_long, locks=locks
                )
                won = o.Won(consul.create, consul.modify, consul.locks)
                return (consul if claim is None else consul.with_record(claim)), won
            case r.Rewrite(session=session, value=value, record=claim):
                if now < consul.delay_until:
                    return consul, o.LockDelayed()
                if consul.session != session:
                    return consul, o.LostRace()
                if claim is not None or request.ends_record:
                    if request.record_index != (consul.record_at if consul.record else 0):
                        return consul, o.RecordExists()
                assert request.is_long is (claim is not None and claim.is_long), (
                    "the flags tell of another one"
                )
                consul = consul.wrote(value=value, guarded=claim is not None, is_long=request.is_long)
                if claim is None:
                    return (consul.with_record(None) if request.ends_record else consul), o.Done()
                return consul.with_record(claim), o.Done(record_index=consul.index)
            case r.Release(session=session, value=value):
                if consul.session != session:
                    return consul, o.Done(held=not request.ends_record)
                flags = {"guarded": request.over_record, "is_long": request.over_record and request.is_long}
                consul = consul.wrote(session="", value=value, **flags)
                consul = consul.with_record(None) if request.ends_record else consul
                if not self.sane and not dict(world.used).keys() - {"downs", "reloads"}:
                    in_order = consul.record is None and not consul.guarded
                    assert in_order, "an orderly release left the record or the flags behind"
                return consul, o.Done()
            case r.MarkTenure(record=record, index=index):
                if index != (consul.record_at if consul.record else 0):
                    return consul, o.LostRace()
                boots = [node.boot for node in world.nodes if node.name == record.place.machine]
                rolled = dict(world.used).get(
                    "rolls"
                )  # which brings sessions back that nobody knows any more
                if record.state is State.ENDED and record.place.boot in map(str, boots) and not rolled:
                    assert consul.delay_of(record.session) is None, "ended is said before the destroy"
                return consul.next().with_record(record), o.Done()
        raise AssertionError(request)

    def _name_for(self, world: World, node: Node) -> str:
        known = {world.consul.session, *dict(world.consul.sessions), node.record.session, node.owed}
        known |= {getattr(each, "session", "") for each in world.late}
        known |= {getattr(p.request, "session", "") for p in world.pending}
        known |= {world.consul.record.session} if world.consul.record else set()
        known |= {world.saved.session, *dict(world.saved.sessions)} if world.saved else set()
        for other in world.nodes:
            lock = None if other.contender is None else other.contender.lock
            claim = None if other.contender is None else other.contender.claim
            known |= {claim.record.session} if claim is not None and claim.record else set()
            known |= {getattr(lock, "holder", ""), getattr(lock and lock.view, "session", "")}
            if claim is not None and claim.guard is not None and claim.guard.record is not None:
                known.add(claim.guard.record.session)
        return next(name for name in (f"{node.name}{count}" for count in range(20)) if name not in known)

    # --- is there always a way on? -----------------------------------------------------------------

    def _way_on(self, world: World) -> None:
        """Check that sane answers, machines that run and fences that work lead to one holder."""
        passed: list[Key] = []
        told: list[str] = []
        for told_of, healed in self._healed(world):
            told.append(told_of)
            if self._has_holder(healed):
                self.good.update(passed)
                return
            if told_of != "time passes":
                continue
            key = self.key(healed)
            if key in self.good:
                self.good.update(passed)
                return
            passed.append(key)
        raise BrokenPromise("no way on to a holder", told)

    def _healed(self, world: World) -> Moves[World]:
        model = _BehindTheGuard(GuardWalk("sane", self.walk.files), like=self)
        world = replace(world, late=(), shots=(), used=(), pending=tuple(world.pending))
        if world.plain != "waits":
            freed = world.consul.without(PLAIN, -inf)
            world = replace(world, plain="waits", plain_until=inf, consul=freed)
        for number, node in enumerate(world.nodes):
            world = model._with(world, number, cut=False)
            if not node.on or node.contender is None:
                world = next(moved for _, moved in model._start(world, number))
            elif node.paused:
                world = model._resumed(world, number)
        for _ in range(ROUNDS_MAX):
            answered = [p for p in world.pending if p.answer is not None]
            at_once = model._answers(world, answered[0], answered[0].answer) if answered else None  # type: ignore[arg-type]
            at_once = at_once or model._at_once(world, ())
            if at_once is None:
                known = {n.contender.session.id for n in world.nodes if n.contender is not None}
                orphans = [session for session, _ in world.consul.sessions if session not in known]
                if orphans:
                    gone = world.consul.without(orphans[0], world.now)
                    at_once = iter([(f"Consul ends {orphans[0]}", replace(world, consul=gone))])
            if at_once is None:
                for number, node in enumerate(world.nodes):
                    if node.hook is not None and node.contender is not None:
                        at_once = model._hook_ends(world, number, node.hook[0])
                        break
                    if node.left and node.contender is not None:
                        at_once = model._process_ends(world, number)
                        break
                    if node.contender is not None and node.contender.role is a.Role.STUCK:
                        at_once = model._turn(world, number, e.RecoverAsked("n"))
                        break
            told, world = next(at_once) if at_once is not None else ("time passes", model._later(world))
            yield told, world

    def _has_holder(self, world: World) -> bool:
        holders = [
            node
            for node in world.nodes
            if node.contender is not None
            and node.contender.tenure is not None
            and node.contender.tenure.phase is Phase.HOLDING
            and world.consul.session == node.contender.tenure.session
        ]
        return len(holders) == 1


def _as_old(answer: o.Outcome) -> o.Outcome:
    """Return what an answer means to a release that knows no `outage`."""
    match answer:
        case o.KeyView(is_long=True):
            return replace(answer, foreign_flags=1, is_marked=False, has_record_flags=False, is_long=False)
        case o.TenureShown(record=TenureRecord() as record) if record.is_long:
            return replace(answer, record=replace(record, lock_delay_s=UNREADABLE_S))
    return answer


def _kind(settings: ElectionSettings) -> tuple[bool, ...]:
    fence = settings.fence
    return () if fence is None else (fence.exclusive, fence.required, fence.outage_s is not None)


# --- walks -----------------------------------------------------------------------------------------


TWO_QUICK, TWO_LONG = (QUICK, QUICK), (OUTAGE, OUTAGE)
GROWN, SHRUNK = QUICK + OUTAGE, OUTAGE + QUICK
NONE, NEW, NEWER = files("none"), files("none new"), files("exclusive new")
SLOW, SLOW_NONE = files("exclusive", lose_s=3.0), files("none", lose_s=3.0)
UP_TO_QUICK, BACK = FENCE + QUICK, QUICK + FENCE
LEFT = TenureRecord(
    "old", lock_delay_s=4.0, lose_time_s=1.0, target="B", node="B", place=Place("X", "B", "0")
)


FAULTS = frozenset(
    (
        "losses ends crashes reboots cuts pauses reloads downs deletes puts confirms plain forgets clones"
        " restores wipes leaves outages remakes rolls hints"
    ).split()
)


def walk(name: str, files: tuple[tuple[ElectionSettings, ...], ...], *slow: type, **more: Any) -> GuardWalk:
    """Return the walk. ``only`` names the node that each fault befalls, as "crashes A, cuts B"."""
    only = dict(each.split() for each in more.pop("only", "").split(", ") if each)
    may = {fault: more.pop(fault) for fault in FAULTS if fault in more}
    return GuardWalk(name, files, slow, only=only, may=may, **more)


# fmt: off
WALKS = (
    walk("sessions end", TWO_QUICK, ends=2),
    walk("stepping down in order", TWO_QUICK, downs=2),
    walk("a cut-off holder is shot, not its survivor", TWO_QUICK, fence=("works", "fails"), cuts=1),
    walk("crash", TWO_QUICK, crashes=1, only="crashes A"),
    walk("crash behind the guard", TWO_QUICK, crashes=1, cuts=1, only="crashes B, cuts A"),
    walk("crash behind the guard, without a fence", (SLOW, SLOW_NONE), r.Acquire, crashes=1, cuts=1,
         only="crashes B, cuts A"),
    walk("a living holder in the middle of a long on_lose", (SLOW, SLOW), ends=1, downs=1),
    walk("a process that outlives KILL", TWO_QUICK, fence=("fails",), ends=1, downs=1, leaves=1),
    walk("a supervisor that is killed and back", (SLOW, SLOW), crashes=1, only="crashes A"),
    walk("a machine paused for longer than the lease", TWO_QUICK, pauses=1, only="pauses A"),
    walk("reboot", TWO_QUICK, reboots=1, only="reboots A"),
    walk("required after a reboot without its journal", (REQUIRED, REQUIRED), fence=("fails",), reboots=1,
         confirms=1, only="reboots A"),
    walk("required", (REQUIRED, REQUIRED), fence=("works", "fails"), cuts=1, only="cuts A"),
    walk("a file without a fence waits", (QUICK, NONE), cuts=1, only="cuts A"),
    walk("a guard that steps down", (SLOW, SLOW_NONE), fence=("fails",), cuts=1, downs=1,
         only="cuts A, downs B"),
    walk("a renamed node whose successor in name lives", TWO_QUICK, left=LEFT, as_holder=False),
    walk("a cloned disk whose journal is another's", TWO_QUICK, clones=1, cuts=1, crashes=1,
         only="crashes B, cuts A"),
    walk("reload to exclusive", (UP_TO_QUICK, UP_TO_QUICK), reloads=2, ends=1),
    walk("reload to exclusive, crash", (UP_TO_QUICK, UP_TO_QUICK), reloads=1, crashes=1,
         only="reloads A, crashes A"),
    walk("reload back from exclusive, crash", (BACK, BACK), reloads=1, crashes=1,
         only="reloads A, crashes A"),
    walk("reload to no fence, crash", (QUICK + NEW, NONE), crashes=1, cuts=1, only="crashes A, cuts A",
         reloaded=True),
    walk("an acquire that was applied, and its retry", TWO_QUICK, r.Acquire, losses=1, ends=1,
         as_holder=False),
    walk("an acquire that is given up, and applied before the destroy", (UP_TO_QUICK, FENCE), r.Acquire,
         losses=1, reloads=1, ends=1, as_holder=False, only="reloads A"),
    walk("a fence that shoots the leader of Consul", TWO_QUICK, r.Rewrite, losses=1, cuts=1,
         only="cuts A"),
    walk("a slow fence that ends after the guard", TWO_QUICK, fence=("fails", "late"), cuts=1,
         only="cuts A"),
    walk("a fence that lies", TWO_QUICK, fence=("lies",), cuts=1, only="cuts A"),
    walk("an older release that acquires late", (FENCE, FENCE), plain=1, ends=1),
    walk("lost news of the record", TWO_QUICK, r.WatchTenure, fence=("fails",), losses=1, ends=1),
    walk("a put over a held key", (QUICK + NONE, NONE), puts=1, cuts=1, only="cuts A", reloaded=True),
    walk("a record that an operator deletes", TWO_QUICK, fence=("fails",), deletes=1, cuts=1, only="cuts A"),
    walk("lock-delays that Consul forgets", (FENCE, FENCE), fence=("fails",), forgets=1, cuts=1,
         only="cuts A"),
    walk("a repair whose answer comes behind the news of it", TWO_QUICK, r.Rewrite, puts=1, ends=1),
    walk("a reload whose answer comes behind the news of it", (QUICK + NEWER, QUICK), r.Rewrite, reloads=1,
         ends=1, only="reloads A"),
    walk("a claim behind a fence, and its end", TWO_QUICK, r.Rewrite, cuts=1, ends=1, only="cuts A"),
    walk("an old snapshot", TWO_QUICK, ends=1, downs=1, restores=1),
    walk("an old snapshot, and a boot", TWO_QUICK, reboots=1, restores=1, only="reboots A"),
    walk("a journal that is lost", TWO_QUICK, crashes=1, wipes=1, restores=1, only="crashes A"),
    walk("changed over to a fence", (NONE + FENCE, FENCE, NONE + FENCE), downs=2, reloads=2, ends=1),
    walk("changed over from a fence", (FENCE + NONE, NONE, FENCE), downs=2, reloads=1, ends=1),
    walk("changed over, crash", (NONE + FENCE, FENCE, NONE), downs=1, crashes=1, reloads=1),
    walk("changed over and back, crash", (NONE + FENCE, FENCE + NONE), downs=1, crashes=1, reloads=2),
    walk("outage: silence", TWO_LONG, outages=1),
    walk("outage: silence, crash", TWO_LONG, outages=1, crashes=1, only="crashes A"),
    walk("outage: silence, reboot", TWO_LONG, fence=("works", "fails"), outages=1, reboots=1,
         only="reboots A"),
    walk("outage: a cut-off holder", TWO_LONG, fence=("works", "fails"), cuts=1, only="cuts A"),
    walk("outage: sessions end", TWO_LONG, ends=2),
    walk("outage: crash behind the guard", TWO_LONG, fence=("fails",), cuts=1, crashes=1,
         only="cuts A, crashes B"),
    walk("outage: guards one after another", (OUTAGE, OUTAGE, OUTAGE), fence=("fails",), cuts=1, crashes=1,
         only="cuts A, crashes B"),
    walk("outage: grown and shrunk", (GROWN, QUICK), r.Rewrite, cuts=1, reloads=2, losses=1,
         only="cuts A, reloads A"),
    walk("outage: grown and shrunk, crash", (GROWN, QUICK), cuts=1, reloads=2, crashes=1,
         only="cuts A, reloads A, crashes A"),
    walk("outage: shrunk, crash", (SHRUNK, QUICK), cuts=1, reloads=2, crashes=1,
         only="cuts A, reloads A, crashes A"),
    walk("outage: grown, ends", (GROWN, GROWN), ends=1, reloads=2, cuts=1),
    walk("outage: the record is deleted", TWO_LONG, fence=("fails",), cuts=1, deletes=1, only="cuts A"),
    walk("outage: an older release", (OUTAGE, QUICK), old="B", ends=1, cuts=1, only="cuts A"),
    walk("outage: grown beside an older release", (GROWN, QUICK), old="B", cuts=1, reloads=2, ends=1,
         only="cuts A, reloads A"),
    walk("outage: Consul made anew", TWO_LONG, outages=1, remakes=1),
    walk("outage: Consul rolled back", (GROWN, QUICK), outages=1, reloads=1, rolls=1, only="reloads A"),
    walk("outage: required beyond the record", (OUTAGE, files("exclusive required outage")), fence=("fails",),
         cuts=1, only="cuts A"),
    walk("outage: Consul rolled back between two tenures", TWO_LONG, outages=1, downs=1, rolls=1),
    walk("hints beside watches that hang", TWO_QUICK, hints=2, ends=1, only="hints B"),
    walk("hints beside watches that hang, a cut-off holder", TWO_QUICK, hints=1, cuts=1, only="cuts A"),
    walk("hints and an acquire without an answer", TWO_QUICK, r.Acquire, hints=1, losses=1, ends=1),
    walk("three nodes", (QUICK, QUICK, QUICK), reboots=1, cuts=1, only="reboots B, cuts A"),
)
# fmt: on

if __name__ == "__main__":
    print_table(WALKS, explore)
