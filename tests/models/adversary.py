"""Every event that may come next: the clock, the hooks, the operator, and a Consul that may give any answer.

A request to a hostile Consul may be answered with every outcome that its kind of request can have, whether or
not a sane Consul would, at any time until the exchange's own time-out. A sane Consul answers at once, and no
other client acts on it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from supervisor.core.claim.record import UNREADABLE, State, TenureRecord
from supervisor.core.contender.state import Contender
from supervisor.core.frozen import replace
from supervisor.core.lock.handover import naming
from supervisor.core.machines.tenure import Phase
from supervisor.core.settings import Place
from supervisor.core.times import NEVER
from supervisor.core.watchdog import Device
from tests.models.invariants import Monitor
from tests.models.state_key import GRID_S, Key, key_of

FREE = o.KeyView(index=7)
FELL = o.KeyView(index=3)
RIVAL = o.KeyView(7, "rival", b"rival", 3, 6, 2)
OURS = o.KeyView(7, None, b"me", 3, 7, 1)
GUARDED = replace(FREE, create_index=3, modify_index=6, has_record_flags=True)
HERE, ELSEWHERE = Place("here", "here", "2"), Place("there", "there", "1")
OTHER = TenureRecord(
    "other", lock_delay_s=2.0, lose_time_s=1.0, target="there", node="there", place=ELSEWHERE
)
RECORDS = (
    None,
    replace(UNREADABLE, lock_delay_s=3.0),
    OTHER,
    replace(OTHER, state=State.STOPPING),
    replace(OTHER, state=State.ENDED),
    replace(OTHER, target="here", place=replace(HERE, boot="1")),
)

FENCED_KEY = "fenced"  # its other contenders have a fence

NOBODY: frozenset[type] = frozenset()
FAULT = a.Fault("down", "no such program /down", "install it")


@dataclass(frozen=True, slots=True)
class World:
    """One state of a walk, as it was first reached."""

    contender: Contender
    monitor: Monitor
    now: float = 0.0
    sessions: int = 0

    @property
    def key(self) -> Key:
        """A key that is equal for two worlds that no event can make differ."""
        monitor, now, tenure = self.monitor, self.now, self.contender.tenure
        if self.contender.role is a.Role.STOPPED:
            return (tenure is None,)
        matters = tenure is not None and (tenure.believes or monitor.running)
        oldest = -self.contender.lease.lockout_s - GRID_S
        onlooker = (
            max(monitor.contact_at - now, oldest) if matters else 0.0,
            tuple((running.ends_by - now, running.asked_to_end) for running in monitor.running),
            (
                monitor.owed,
                monitor.lose_began,
                monitor.exposed,
                monitor.create_index,
                monitor.modify_index,
                monitor.lock_index,
            ),
            monitor.written[1],
            (monitor.asked is not None, monitor.arm is not None, monitor.armed),
            max(monitor.resumed_at - now, -self.contender.lease.fresh_s - GRID_S),
            monitor.stop_writes,
            (monitor.verified == self.contender.session.id, monitor.left),
        )
        return key_of(self.contender, now, onlooker)


def may_happen(world: World, hostile: frozenset[type], *, stop: bool) -> Iterator[tuple[e.Event, float]]:
    """List every event that may come next, with its time.

    Time moves by ticks, except where belief is about to end: there any event may come before the tick.
    """
    now, later, tenure = world.now, _later(world, hostile), world.contender.tenure
    for event in _events(world, hostile, stop=stop):
        yield event, now
        if later is not None and tenure is not None and tenure.expires_at(world.contender.lease) <= later:
            yield event, later
    if later is not None:
        yield e.Tick(), later


def _events(world: World, hostile: frozenset[type], *, stop: bool) -> Iterator[e.Event]:
    monitor = world.monitor
    if monitor.asked is not None:
        yield e.RecordWritten(monitor.asked)
        yield e.RecordWritten(monitor.asked, "full")
        return
    name = world.contender.settings.name
    if e.WatchdogTried in hostile:
        yield from (_tried(name if monitor.arm is not None else "", why_not) for why_not in ("", "gone"))
        if monitor.arm is not None:
            return
    for operator in (e.PauseAsked, e.PauseOver, e.ResumeAsked, e.RecoverAsked, e.ConfirmOffAsked):
        if operator in hostile:
            yield operator(name)
    if e.OrderSeen in hostile:
        yield from (e.OrderSeen(name, withheld) for withheld in (True, False))
    yield from _another_file(world.contender, hostile)
    if e.HooksChecked in hostile:
        yield e.HooksChecked(name, ())
        yield e.HooksChecked(name, (FAULT,))
    if e.StepDownAsked in hostile:
        yield e.StepDownAsked(name, 2.0)
        yield e.StepDownAsked(name, 2.0, "other")
        yield e.StepDownAsked(name, 2.0, session="of another tenure")
    if e.Stalled in hostile:
        yield e.Stalled(GRID_S)
    tenure = world.contender.tenure
    if e.SurvivorsChanged in hostile and tenure is not None:
        if monitor.left:
            yield e.SurvivorsChanged(name, "")
        elif tenure.phase is not Phase.GUARDING and (monitor.hook or monitor.run):
            yield e.SurvivorsChanged(name, "KILL has not ended app (7)")
    for request in monitor.pending:
        if type(request) in hostile:
            for outcome in every_answer(world, request):
                yield e.Answered(request, outcome)
            if e.StepDownAsked in hostile and isinstance(request, r.ReadKey | r.WatchKey):
                yield from (e.Answered(request, view) for view in _handed_over(world.contender))
    for running in (monitor.hook, monitor.change, monitor.check):
        if running is not None and a.StartHook in hostile:
            assert isinstance(running.started, a.StartHook)
            yield e.HookEnded(running.started, ok=True)
            yield e.HookEnded(running.started, ok=False)
    if monitor.run is not None:
        assert isinstance(monitor.run.started, a.StartRun)
        yield e.RunEnded(monitor.run.started)
    if stop and not world.contender.winding_up:
        yield e.StopAsked()


def _tried(item: str, why_not: str = "") -> e.WatchdogTried:
    return e.WatchdogTried("/dev/watchdog", Device(4.0, is_open=not why_not, why_not=why_not), item)


def _handed_over(election: Contender) -> Iterator[o.KeyView]:
    """Return a free key that a holder has handed over: to another contender, or to our session."""
    targets = ("other", election.session.id) if election.session.id else ("other",)
    yield from (o.KeyView(7, None, naming(target), 3, 7, 1) for target in targets)


def _another_file(election: Contender, hostile: frozenset[type]) -> Iterator[e.Event]:
    """Return a file with another value and room, or the file before it, or one without this election."""
    name, in_file = election.settings.name, election.next_settings or election.settings
    if election.winding_up:
        return
    if e.ItemRemoved in hostile:
        yield e.ItemRemoved(name)
    if e.SettingsChanged in hostile:
        new = in_file.value == b"me"
        down = tuple(replace(hook, timeout_s=0.5 if new else 1.0) for hook in in_file.on_lose)
        yield e.SettingsChanged(name, replace(in_file, value=b"new" if new else b"me", on_lose=down))


def settles(world: World, hostile: frozenset[type], *, silent: bool = False) -> e.Event | None:
    """Return the event that comes before any other: a sane answer, or the good end of a hook."""
    monitor = world.monitor
    if monitor.asked is not None:
        return e.RecordWritten(monitor.asked) if a.WriteRecord not in hostile else None
    if monitor.arm is not None:
        return _tried(world.contender.settings.name) if e.WatchdogTried not in hostile else None
    if world.contender.watchdog_fault and e.WatchdogTried not in hostile:
        return _tried("")
    for request in sorted(monitor.pending, key=lambda request: type(request).__name__):
        if type(request) not in hostile:
            outcome = o.Unknown("silence") if silent else sane_answer(world, request)
            if outcome is not None:
                return e.Answered(request, outcome)
    if monitor.left and not silent and e.SurvivorsChanged not in hostile:
        return e.SurvivorsChanged(world.contender.settings.name, "")
    if world.contender.faults != () and e.HooksChecked not in hostile and not world.contender.winding_up:
        return e.HooksChecked(world.contender.settings.name, ())
    for running in (monitor.hook, monitor.change, monitor.check):
        if running is not None and a.StartHook not in hostile:
            assert isinstance(running.started, a.StartHook)
            return e.HookEnded(running.started, ok=True)
    if monitor.run is not None and monitor.run.ends_by < NEVER and a.StartHook not in hostile:
        assert isinstance(monitor.run.started, a.StartRun)
        return e.RunEnded(monitor.run.started)
    return None


def sane_answer(world: World, request: r.Request) -> o.Outcome | None:
    """Return the answer of a sane Consul. None: a watch without news goes on waiting."""
    tenure, view = world.contender.tenure, world.contender.lock.view
    match request:
        case r.CreateSession():
            return o.Created(f"s{world.sessions}")
        case r.RenewSession():
            return o.SessionAlive()
        case r.Acquire():
            return o.Won(OURS.create_index, OURS.modify_index, OURS.lock_index)
        case r.ReadSession():
            return o.SessionInfo(2.0)
        case r.WatchTenure(index=index):
            return None if index else o.TenureShown(7, 7, world.contender.claim.record)
        case r.ReadMaintenance():
            return o.InMaintenance()
        case r.ReadService():
            return o.Instance.ABSENT if world.contender.service.registered is None else o.Instance.OURS
        case r.FindService():
            return o.Instance.ABSENT
        case r.HintKey():
            return None
        case r.ReadKey() | r.WatchKey():
            guarded = world.contender.settings.fence is not None
            ours = replace(OURS, has_record_flags=guarded)
            now = FREE if tenure is None else replace(ours, session=tenure.session, value=tenure.leader)
            news = view is None or replace(view, index=now.index) != now
            asks = isinstance(request, r.ReadKey) or request.index == 0
            return now if news or asks else None
        case _:
            return o.Done()


def every_answer(world: World, request: r.Request) -> Iterator[o.Outcome]:
    """List all outcomes of this kind of request."""
    yield o.Unknown("silence")
    match request:
        case r.CreateSession():
            yield from (o.Created(f"s{world.sessions}"), o.Refused(""), o.Ineligible(""), o.Denied(""))
            yield o.Throttled("")
        case r.RenewSession():
            yield from (o.SessionAlive(), o.SessionAltered("lock-delay"), o.SessionGone(), o.Denied(""))
            yield o.Dropped("500 EOF")
        case r.Acquire():
            yield from (o.Won(3, 7, 1), o.LockDelayed(), o.LostRace(), o.SessionGone(), o.Denied(""))
            if request.record is not None:
                yield o.RecordExists()
        case r.WatchTenure():
            yield from (o.TenureShown(7, 7 if record else 0, record) for record in RECORDS)
            session = world.contender.session.id
            if session:
                yield o.TenureShown(7, 7, replace(OTHER, session=session, place=HERE))
            yield o.Denied("")
        case r.MarkTenure():
            yield from (o.Done(), o.LostRace(), o.Denied(""))
        case r.Rewrite():
            yield from (o.Done(), o.LockDelayed(), o.LostRace(), o.SessionGone(), o.Denied(""))
        case r.Release() | r.DestroySession():
            yield from (o.Done(), o.Denied(""))
            if isinstance(request, r.Release) and request.ends_record:
                yield o.Done(held=False)
        case r.ReadSession():
            yield from (o.SessionInfo(2.0), o.SessionInfo(None), o.Denied(""))
        case r.ReadMaintenance():
            yield from (o.InMaintenance(), o.InMaintenance("upgrade"), o.Denied(""))
        case r.ReadService():
            yield from (
                o.Instance.ABSENT,
                o.Instance.OURS,
                o.Instance.FORMER,
                o.Instance.FOREIGN,
                o.Denied(""),
            )
        case r.FindService():
            yield from (o.Instance.NAMED, o.Instance.LEFT, o.Instance.ABSENT, o.Instance.UNKNOWN)
        case r.ServiceRequest():
            yield from (o.Done(), o.Instance.UNKNOWN, o.Denied(""))
        case r.HintKey():
            yield from (o.Hinted(1, present=True), o.Hinted(99, present=True), o.Hinted(99, present=False))
        case r.ReadKey() | r.WatchKey():
            yield from (FREE, RIVAL, o.Denied(""))
            if world.contender.settings.fence is not None or request.key == FENCED_KEY:
                yield GUARDED
            if isinstance(request, r.WatchKey):
                yield FELL
            yield from _our_views(world.contender, watch=isinstance(request, r.WatchKey))


def _our_views(election: Contender, *, watch: bool) -> Iterator[o.KeyView]:
    """Return two views of a change each, because more would only add states."""
    tenure = election.tenure
    if tenure is not None:
        ours = replace(OURS, session=tenure.session)
        yield ours
        if watch:
            yield replace(ours, value=b"put over", modify_index=8, lock_index=0)
            yield replace(ours, create_index=8, modify_index=8)
        else:
            yield replace(ours, modify_index=8, lock_index=2)
    elif election.session.id and election.session.tried:
        yield replace(OURS, session=election.session.id)


def _later(world: World, hostile: frozenset[type]) -> float | None:
    """Return the next point of the grid at which something is due; None while something must end first."""
    monitor, now = world.monitor, world.now
    if monitor.asked is not None or monitor.arm is not None:
        return None
    ends = [
        request.at + request.timeout_s
        for request in monitor.pending
        if type(request) in hostile or not isinstance(request, r.WatchKey | r.WatchTenure)
    ]
    ends += [running.ends_by for running in monitor.running]
    due_at = min([world.contender.deadline, *ends])
    if due_at == NEVER or world.contender.role is a.Role.STOPPED:
        return None
    later = max(now + GRID_S, ceil(round(due_at / GRID_S, 6)) * GRID_S)
    return later if later <= min([*ends, NEVER]) else None
