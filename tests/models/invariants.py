"""A monitor that checks the promises of an election, from events and actions alone.

It counts the contact with Consul by itself. It knows the running hooks and their time limits, the requests
under way, and how far the writes of the session went. It checks every step.
"""

from dataclasses import dataclass
from math import inf

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as out
from supervisor.core import requests as r
from supervisor.core.actions import EMPTY_RECORD
from supervisor.core.beside.service import Service
from supervisor.core.contender.reducer import apply_event
from supervisor.core.contender.state import Contender
from supervisor.core.contender.step import step
from supervisor.core.frozen import replace
from supervisor.core.lock import handover
from supervisor.core.lock.election import ElectionLock
from supervisor.core.machines.lane import Lane
from supervisor.core.machines.session import Stage
from supervisor.core.machines.tenure import PLANNED, Phase
from supervisor.core.settings import ServiceSettings
from supervisor.core.watchdog import Device


@dataclass(frozen=True, slots=True)
class Running:
    """A hook or run child that lives, and the latest time at which it ends."""

    started: a.StartHook | a.StartRun
    ends_by: float = inf
    asked_to_end: bool = False


@dataclass(frozen=True, slots=True)
class Monitor:
    """The monitor's own account of an election.

    contact_at: send time of the newest consistent answer that showed us as holder.
    create_index: the index of the key with which the tenure began.
    modify_index, lock_index: the newest indexes of that key.
    owed: on_acquire or run began, and on_lose has not come to its end.
    lose_began: the first attempt of on_lose began.
    exposed: Consul itself has shown in this tenure that the key is not ours, so a rival may act at once.
    written: the last kind of write of the session.
    stop_writes: the writes since the stop.
    pending: the requests under way.
    overtaken: requests from before the tenure began, or before the watch reported a change. Their answers can
        confirm a tenure but not contradict it.
    asked: a record that waits for its answer; nothing may happen before the answer.
    arm: a watchdog that waits to be opened; nothing may happen before.
    armed: whether the watchdog guards the tenure.
    kept: the newest record that is written.
    resumed_at: until then time passed without a step.
    verified: the session that a renewal showed last with the requested settings.
    altered: the session that a renewal showed last with other settings.
    left: whether KILL has left a process of the tenure.
    """

    hook: Running | None = None
    change: Running | None = None
    check: Running | None = None
    run: Running | None = None
    contact_at: float = -inf
    create_index: int = 0
    modify_index: int = 0
    lock_index: int = 0
    owed: bool = False
    lose_began: bool = False
    exposed: bool = False
    written: tuple[str, int] = ("", 0)
    stop_writes: frozenset[str] = frozenset()
    pending: tuple[r.Request, ...] = ()
    overtaken: tuple[r.Request, ...] = ()
    asked: a.WriteRecord | None = None
    arm: a.Arm | None = None
    armed: bool = False
    kept: a.Record = EMPTY_RECORD
    resumed_at: float = -inf
    verified: str = ""
    altered: str = ""
    left: bool = False

    @property
    def running(self) -> tuple[Running, ...]:
        return tuple(
            running for running in (self.hook, self.change, self.check, self.run) if running is not None
        )


def monitor_of(record: a.Record) -> Monitor:
    """Return the monitor of a process that starts with this on record."""
    if record.step in (a.Point.NONE, a.Point.SESSION):
        return Monitor(kept=record)
    return Monitor(
        contact_at=record.contact,
        create_index=record.create_index,
        modify_index=record.token,
        lock_index=record.lock_index,
        owed=True,
        lose_began=record.step is a.Point.STUCK,
        exposed=record.foreign,
        kept=record,
        resumed_at=0.0,
    )


def watch_step(
    monitor: Monitor,
    before: Contender,
    event: e.Event,
    after: Contender,
    begun: tuple[a.Action, ...],
    now: float,
) -> Monitor:
    """Return the monitor after this step; AssertionError when a promise was broken."""
    expired = now >= monitor.contact_at + before.lease.room_s
    tells_of_a_change = _tells_of_a_change(monitor, before, event)
    monitor = _happened(monitor, before, event)
    if isinstance(event, e.Stalled):
        monitor = replace(monitor, resumed_at=now)
    _ends_belief_with_reason(monitor, before, event, after, expired=expired)
    if before.tenure is None:
        monitor = replace(monitor, overtaken=monitor.pending)
    elif tells_of_a_change:
        reads = tuple(request for request in monitor.pending if isinstance(request, r.ReadKey))
        monitor = replace(monitor, overtaken=(*monitor.overtaken, *reads))
    for action in begun:
        monitor = _begun(monitor, after, action, now)
    monitor = _held_to_its_word(monitor, before, after, now)
    _rests_until_resumed(event, after, begun, now)
    _unfit_without_session(after, begun)
    _hint_moves_the_try_alone(before, event, now)
    _matches(monitor, after)
    _names_the_holder_alone(before, after, begun)
    _naming_changes_nothing_else(before, event, after, begun, now)
    # Actions that wait for a record are due in the step of its answer, which follows at once.
    waits = monitor.asked is not None or monitor.arm is not None
    assert waits or after.deadline > now, f"a deadline of {after.deadline} is not met at {now}"
    return monitor


# --- events ------------------------------------------------------------------------------------


def _happened(monitor: Monitor, before: Contender, event: e.Event) -> Monitor:
    match event:
        case e.Answered(request, outcome):
            pending = tuple(other for other in monitor.pending if other != request)
            monitor = _shown(monitor, request, outcome)
            assert len(pending) == len(monitor.pending) - 1, "an answer to a question that nobody asked"
            monitor = _news(replace(monitor, pending=pending), before, request, outcome)
            # A later request of this instant is equal to it, and not overtaken.
            return replace(monitor, overtaken=tuple(o for o in monitor.overtaken if o != request))
        case e.HookEnded(started) if started.context.event == "change":
            return replace(monitor, change=None)
        case e.HookEnded(started) if started.context.event == "check":
            return replace(monitor, check=None)
        case e.HookEnded():
            return replace(monitor, hook=None)
        case e.RunEnded():
            return replace(monitor, run=None)
        case e.SurvivorsChanged(survivors=survivors):
            return replace(monitor, left=bool(survivors))
        case e.RecoverAsked() if before.role is a.Role.STUCK:
            return replace(monitor, left=False)
        case e.WatchdogTried(device=device, item=item) if item:
            assert monitor.arm is not None, "a watchdog that nobody asked for"
            return replace(monitor, arm=None, armed=not device.why_not)
        case e.RecordWritten(write):
            assert write == monitor.asked, "an answer to a record that nobody asked for"
            return replace(monitor, asked=None, kept=write.record if event.ok else monitor.kept)
    return monitor


def _shown(monitor: Monitor, request: r.Request, outcome: out.Outcome) -> Monitor:
    match request, outcome:
        case r.RenewSession(session=session), out.SessionAlive():
            return replace(monitor, verified=session, altered="")
        case r.RenewSession(session=session), out.SessionAltered():
            return replace(monitor, verified="", altered=session)
    return monitor


def _tells_of_a_change(monitor: Monitor, before: Contender, event: e.Event) -> bool:
    match event:
        case e.Answered(r.WatchKey() as request, out.KeyView() as view) if request not in monitor.overtaken:
            return before.lock.view is None or replace(view, index=0) != replace(before.lock.view, index=0)
    return False


def _news(monitor: Monitor, before: Contender, request: r.Request, outcome: out.Outcome) -> Monitor:
    """Return what the answer shows of the key, by the letter of the promise."""
    ours = before.tenure.session if before.tenure is not None else before.session.id
    early = before.tenure is not None and request in monitor.overtaken
    contradicts = before.tenure is not None and not early
    if early and isinstance(request, r.WatchKey):
        return monitor  # from the tenure's index on, the next answer shows as much
    match request, outcome:
        case r.Rewrite(), out.Done() if before.guard_is_over:
            return replace(monitor, contact_at=max(monitor.contact_at, request.at))
        case r.Acquire(), out.Won() if before.tenure is None:
            return _contact(monitor, before, request.at, outcome)
        case ((r.ReadKey() | r.WatchKey(consistent=True)), out.KeyView(session=session)) if session != ours:
            return replace(monitor, exposed=monitor.exposed or contradicts)
        case ((r.ReadKey() | r.WatchKey(consistent=True)), out.KeyView()) if ours:
            recreated = before.tenure is not None and outcome.create_index != monitor.create_index
            relocked = before.tenure is not None and (
                outcome.lock_index > monitor.lock_index and outcome.modify_index > monitor.modify_index
            )
            if not recreated and not relocked:
                return _contact(monitor, before, request.at, outcome, early=early)
            return replace(monitor, exposed=monitor.exposed or contradicts)
    return monitor


def _contact(
    monitor: Monitor, before: Contender, at: float, shown: out.Won | out.KeyView, *, early: bool = False
) -> Monitor:
    if before.tenure is not None:
        monitor = replace(monitor, contact_at=max(monitor.contact_at, at))
        if early:
            return monitor
    else:
        monitor = replace(monitor, contact_at=at)
    return replace(
        monitor, create_index=shown.create_index, modify_index=shown.modify_index, lock_index=shown.lock_index
    )


# --- what was begun ------------------------------------------------------------------------------


def _begun(monitor: Monitor, after: Contender, action: a.Action, now: float) -> Monitor:
    match action:
        case a.StartHook() if action.context.event == "change":
            assert monitor.change is None, "two on_change at once"
            return replace(monitor, change=Running(action, now + action.hook.attempt_s))
        case a.StartHook() if action.context.event == "check":
            assert monitor.check is None, "two checks at once"
            return replace(monitor, check=Running(action, now + action.hook.attempt_s))
        case a.StartHook():
            return _hook_begun(monitor, after, action, now)
        case a.StartRun():
            assert monitor.run is None and monitor.hook is None, "run started beside another"
            _assert_may_begin(monitor, after, now)
            return replace(monitor, run=Running(action), owed=True)
        case a.KillHook(started):
            return _hook_killed(monitor, started, now)
        case a.StopRun(started):
            assert monitor.run is not None and started == monitor.run.started, "no such run child"
            assert not monitor.run.asked_to_end, "the run child is stopped twice"
            ends_by = now + started.run.stop_timeout_s
            stopped = replace(monitor.run, ends_by=ends_by, asked_to_end=True)
            return replace(monitor, run=stopped)
        case a.PrepareWrite(request):
            assert request.session == after.session.id, "a write of another session is made ready"
            assert isinstance(request, r.Release) == (after.tenure is not None)
        case a.Arm():
            assert monitor.arm is None and not monitor.armed, "armed twice"
            assert monitor.kept.step in (a.Point.TENURE, a.Point.HOLDING), "armed before it is on record"
            return replace(monitor, arm=action)
        case a.WriteRecord():
            assert monitor.asked is None, "two records at once"
            return replace(monitor, asked=action)
        case r.Request():
            return _asked(monitor, after, action, now)
        case a.Finished(clean=clean):
            assert not monitor.running, "finished under a running hook"
            assert not (clean and _lose_is_due(monitor, after)), "finished without on_lose"
            assert not clean or after.session.stage is Stage.ABSENT, "a session is left behind"
            assert clean or after.tenure is not None, "not clean, and nothing to recover"
    return monitor


def _assert_may_begin(monitor: Monitor, after: Contender, now: float) -> None:
    assert now - monitor.contact_at <= after.lease.fresh_s, "begun on stale news"
    assert after.settings.watchdog is None or monitor.armed, "begun before the watchdog runs"
    assert monitor.contact_at >= monitor.resumed_at, "begun on news from before time passed unseen"
    assert monitor.kept.step in (a.Point.TENURE, a.Point.HOLDING), "begun before the tenure is on record"
    assert after.tenure is not None and monitor.kept.session == after.tenure.session


def _hook_begun(monitor: Monitor, after: Contender, start: a.StartHook, now: float) -> Monitor:
    assert monitor.hook is None, "two hooks at once"
    assert monitor.run is None, "a hook is started beside the run child"
    context, settings = start.context, after.settings
    running = Running(start, now + start.hook.attempt_s)
    if context.event == "acquire":
        assert not monitor.lose_began, "on_acquire after on_lose"
        _assert_may_begin(monitor, after, now)
        return replace(monitor, hook=running, owed=True)
    if context.event == "fence":
        guard = after.claim.guard
        assert guard is not None and guard.end is None and not monitor.owed, "a fence without a guard"
        return replace(monitor, hook=running)
    assert monitor.owed, "on_lose without an on_acquire that began"
    again = context.event == "lose" and start.attempt == 1 and start.hook == settings.on_lose[0]
    assert not (again and monitor.lose_began), "on_lose runs twice"
    if start.attempt > 1:
        ends_at = now + _still_to_run_s(start, after)
        assert ends_at <= monitor.contact_at + after.lease.lockout_s, "a retry reaches into a rival's time"
        assert not monitor.exposed or not after.session.id, "a retry beside a rival"
    return replace(monitor, hook=running, lose_began=True)


def _still_to_run_s(start: a.StartHook, after: Contender) -> float:
    """Return the time of this attempt, of the first attempts of all later hooks, and of on_lose_failure."""
    settings = after.settings
    if start.context.event == "lose":
        hooks = (*settings.on_lose, *settings.on_lose_failure)
    else:
        hooks = settings.on_lose_failure
    return sum(hook.attempt_s for hook in hooks[hooks.index(start.hook) :])


def _hook_killed(monitor: Monitor, started: a.StartHook, now: float) -> Monitor:
    event = started.context.event
    lane = event if event in ("change", "check") else "hook"
    running: Running | None = getattr(monitor, lane)
    assert running is not None and started == running.started, "a hook is killed that does not run"
    assert not running.asked_to_end, "a hook is killed twice"
    ends_by = min(running.ends_by, now + started.hook.kill_after_s)
    running = replace(running, ends_by=ends_by, asked_to_end=True)
    match lane:
        case "change":
            return replace(monitor, change=running)
        case "check":
            return replace(monitor, check=running)
    return replace(monitor, hook=running)


_RANK: dict[type[r.Request], int] = {r.Acquire: 1, r.Release: 2, r.DestroySession: 3}


def _asked(monitor: Monitor, after: Contender, request: r.Request, now: float) -> Monitor:
    assert request.at == now, "a request that claims another time"
    rank = _RANK.get(type(request), 0)
    if rank:
        assert isinstance(request, r.Acquire | r.Release | r.DestroySession)
        seen, written = monitor.written
        assert request.session != seen or rank >= written, "a write of a session goes backwards"
        assert rank == 1 or not _lose_is_due(monitor, after), "released before on_lose ran"
        assert rank == 1 or (monitor.hook is None and monitor.run is None), "released under a hook"
        assert rank > 1 or after.tenure is None, "an acquire during a tenure"
        assert rank > 1 or monitor.kept.session == request.session, "an acquire that is not on record"
        assert rank > 1 or monitor.verified == request.session, "an acquire with a session not looked at"
        assert rank > 1 or after.may_come_to_hold, "an acquire while paused or unfit"
        assert rank > 1 or after.withheld is False, "an acquire against an order, or before one is known"
        has_word = after.allowed or after.lock.is_handed_to(request.session)
        assert rank > 1 or has_word or not after.settings.manual, "an acquire without a word"
        assert rank > 1 or after.faults == (), "an acquire while a hook may be unable to start"
        monitor = replace(monitor, written=(request.session, rank))
    if isinstance(request, r.Rewrite):
        assert after.tenure is not None and after.tenure.believes, "a value is written without a tenure"
        assert monitor.written == (after.session.id, 1) or after.tenure.acquire_done
        assert monitor.kept.session == request.session == after.session.id
        is_news = request.value != after.session.last_value or after.session.rewrite_at <= now
        repairs = after.tenure.overwritten and after.tenure.repair_at <= now
        guards = after.tenure.phase is Phase.GUARDING
        for_record = guards or after.claim.lacks(after.lock.view, request.session, after.our_record)
        assert is_news or repairs or for_record, "a value is written again without need, or too soon"
    name = type(request).__name__
    if after.final_attempt and after.tenure is None and (rank or isinstance(request, r.CreateSession)):
        assert name not in monitor.stop_writes, f"{name} is tried twice after the stop"
        monitor = replace(monitor, stop_writes=monitor.stop_writes | {name})
    return replace(monitor, pending=(*monitor.pending, request))


# --- what must hold in every step --------------------------------------------------------------


def _ends_belief_with_reason(
    monitor: Monitor, before: Contender, event: e.Event, after: Contender, *, expired: bool
) -> None:
    """Check that belief ends with the room, whatever is answered then, and sooner for a reason only."""
    if before.tenure is None or not before.tenure.believes:
        return
    believes = after.tenure is not None and after.tenure.believes
    assert not (expired and believes), "an answer outran the end of belief"
    reason = expired or monitor.exposed
    match event:
        case (
            e.StopAsked()
            | e.StepDownAsked(session=None)
            | e.ItemRemoved()
            | e.RunEnded()
            | e.RecordWritten(why_not="full")
            | e.HookEnded(ok=False)
            | e.WatchdogTried(device=Device(why_not="gone"), item="n")
            | e.Answered(outcome=out.SessionGone() | out.SessionAltered() | out.InMaintenance("upgrade"))
        ):
            reason = True
    assert believes or reason, "belief ended without a reason"


def _rests_until_resumed(event: e.Event, after: Contender, begun: tuple[a.Action, ...], now: float) -> None:
    """Check that a resting contender does not contend and shows its rest; a resume ends both."""
    rests = now < after.rests_until
    created = any(isinstance(action, r.CreateSession) for action in begun)
    assert not (rests and created), "a session is created during the rest"
    assert rests or after.role is not a.Role.RESTING, "the role tells of a rest that is over"
    assert not (rests and after.role is a.Role.WAITING), "the role hides the rest"
    resumed = isinstance(event, e.ResumeAsked)
    assert not (resumed and (rests or after.rest_s or after.paused)), "a resume left a rest or a pause"


def _unfit_without_session(after: Contender, begun: tuple[a.Action, ...]) -> None:
    """Check that a node that must not hold has no session, which other nodes would take for a candidate."""
    if after.may_come_to_hold or after.tenure is not None:
        return
    assert after.session.stage is Stage.ABSENT or after.session.ending, "an unfit waiter keeps its session"
    assert not any(isinstance(action, r.CreateSession) for action in begun), "an unfit waiter makes a session"


def _hint_moves_the_try_alone(before: Contender, event: e.Event, now: float) -> None:
    """Check that a hand-over changes the time of a try and nothing else, by a twin that sees no hint."""
    match event:
        case e.StepDownAsked(handover_to=target) if target:
            hinted = apply_event(before, event, now)
            plain = apply_event(before, replace(event, handover_to=None), now)
            assert _handing_over_to_nobody(hinted) == _handing_over_to_nobody(plain)
        case e.Answered(request, out.KeyView(session=None, value=value) as view) if handover.named_session(
            value
        ):
            hinted = apply_event(before, event, now)
            plain = apply_event(_without_hints(before), e.Answered(request, _without_hint(view) or view), now)
            moved_s = hinted.lock.try_at - plain.lock.try_at if hinted.lock.is_free else 0.0
            later_s = round(moved_s, 6)
            assert later_s <= handover.HANDOVER_S, "a hint delays a try for too long"
            is_target = handover.named_session(value) == before.session.id
            assert later_s <= 0.0 if is_target else later_s >= 0.0, "a hint moves a try the wrong way"
            assert _at_no_time(_without_hints(hinted)) == _at_no_time(plain), "a hint does more than that"


def _names_the_holder_alone(before: Contender, after: Contender, begun: tuple[a.Action, ...]) -> None:
    """Check that only a holder is named, and that the end of its name comes before anything of the loss."""
    holds = after.tenure is not None and after.tenure.phase is Phase.HOLDING
    for action in begun:
        passes = isinstance(action, r.RegisterService) and action.passing
        assert holds or not (passes or isinstance(action, r.PassService)), "named without holding"
        adopts = after.tenure is not None and after.tenure.phase is Phase.ADOPTING
        assert not adopts or not isinstance(action, r.ServiceRequest), "the name changes amid an adoption"
    held = before.tenure is not None and before.tenure.phase is Phase.HOLDING
    named = before.service.found is out.Instance.OURS and before.service.exchange.pending is None
    if held and not holds and named:
        assert isinstance(begun[0], r.ReadService), "something of the loss came before the name's end"


def _naming_changes_nothing_else(
    before: Contender, event: e.Event, after: Contender, begun: tuple[a.Action, ...], now: float
) -> None:
    """Check, by a twin whose requests about the service never end, that nothing depends on their answers."""
    if after.settings.service is None:
        return
    twin, others = step(_unnamed(before), event, now)
    assert _unnamed(twin) == _unnamed(after), "the contender depends on its service"
    ours = [each for each in begun if not isinstance(each, r.ServiceRequest | a.NoticeChanged)]
    assert [each for each in others if not isinstance(each, a.NoticeChanged)] == ours, (
        "an action depends on it"
    )


_ENDLESS = r.ReadService("", -inf, inf, ServiceSettings("", ""))


def _unnamed(contender: Contender) -> Contender:
    return replace(contender, service=Service(exchange=Lane(pending=_ENDLESS)), told_notice="")


def _handing_over_to_nobody(contender: Contender) -> Contender:
    return replace(contender, session=replace(contender.session, handover_to=None))


def _without_hints(contender: Contender) -> Contender:
    """Return the contender as if it had seen other values in the place of hints."""
    lock = replace(contender.lock, view=_without_hint(contender.lock.view))
    newest = _without_hint(contender.change.newest)
    return replace(contender, lock=lock, change=replace(contender.change, newest=newest))


def _without_hint(view: out.View | None) -> out.View | None:
    if isinstance(view, out.KeyView) and (target := handover.named_session(view.value)):
        return replace(view, value=target.encode())
    return view


def _at_no_time(contender: Contender) -> Contender:
    """Return the contender without the time of its try."""
    assert isinstance(contender.lock, ElectionLock)
    return replace(contender, lock=replace(contender.lock, try_at=0.0, backoff_s=0.0))


def _held_to_its_word(monitor: Monitor, before: Contender, after: Contender, now: float) -> Monitor:
    tenure = after.tenure
    if tenure is not None and tenure.believes:
        assert now < monitor.contact_at + after.lease.room_s, "belief outlives the room"
        assert not after.winding_up, "belief after a stop was asked for"
        assert not monitor.exposed, "belief against Consul's word"
        assert tenure.session != monitor.altered, "belief with a session that is not what was asked for"
    acts = monitor.hook is not None or monitor.run is not None
    if acts and not after.settings.accept_overlap:
        assert now <= _rival_at(monitor, after), "a hook or child of ours in a rival's time"
    if tenure is not None and tenure.phase is Phase.HOLDING:
        monitor = replace(monitor, owed=True)
    former = before.tenure
    is_planned = former is not None and former.reason in PLANNED
    if tenure is not None and tenure.phase is Phase.STOPPING and monitor.left and not acts:
        assert tenure.reason in PLANNED and after.has_lock, "a loss waits for a process"
        assert now < monitor.contact_at + after.lease.room_s, "on_lose waits for a process in silence"
    if former is not None and tenure is None and monitor.left:
        assert after.settings.fence is None and after.settings.watchdog is None, "a guard ended too soon"
        kept = is_planned and former.taken_at is None and not after.session.dead
        assert not kept, "released beside a process that KILL has not ended"
    if tenure is None:
        if before.tenure is not None:
            assert not _lose_is_due(monitor, after), "a tenure ended without its on_lose"
        assert not acts, "a hook or child without a tenure"
        monitor = replace(
            monitor, owed=False, lose_began=False, contact_at=-inf, exposed=False, create_index=0, armed=False
        )
        monitor = replace(monitor, left=False)
    if monitor.written[0] not in ("", after.session.id):
        monitor = replace(monitor, written=("", 0))
    return monitor


def _rival_at(monitor: Monitor, after: Contender) -> float:
    """Return when a rival may hold. An operator's act may expose the lock, and then nothing is promised."""
    return inf if monitor.exposed else monitor.contact_at + after.lease.lockout_s


def _lose_is_due(monitor: Monitor, election: Contender) -> bool:
    return monitor.owed and not monitor.lose_began and bool(election.settings.on_lose)


def _matches(monitor: Monitor, after: Contender) -> None:
    """Check that the election awaits exactly the requests under way, and answers about dead sessions."""
    tenure, session = after.tenure, after.session
    if after.role is a.Role.STOPPED:
        return  # the election awaits no answer any more
    lock = after.lock
    lanes = (
        lock.watch,
        lock.read,
        lock.details,
        lock.hint.lane,
        after.claim.lane,
        session.write,
        session.renew,
    )
    awaited = [lane.pending for lane in (*lanes, after.maintenance.read)]
    for request in awaited:
        assert request is None or request in monitor.pending, f"waits for an answer to {request}"
    # For a hint, a read that hangs is given up. Nothing else may be.
    hints = after.settings.fence is not None
    under_way = [
        each for each in monitor.pending if not (hints and isinstance(each, r.ReadKey)) or each in awaited
    ]
    # A look at the tenure record may go beside a watch on it that is given up, because that may hang.
    blocks = [isinstance(request, r.WatchTenure) and request.index > 0 for request in under_way]
    named = [(type(request), getattr(request, "session", "")) for request in under_way]
    kinds = [(*kind, blocking) for kind, blocking in zip(named, blocks, strict=True)]
    assert len(kinds) == len(set(kinds)), f"two exchanges of one kind at once: {kinds}"
    hook = monitor.hook.started if monitor.hook is not None else None
    run = monitor.run.started if monitor.run is not None else None
    change = monitor.change.started if monitor.change is not None else None
    assert hook == (tenure.hooks.running if tenure is not None else None), "it lost track of a hook"
    assert run == (tenure.run if tenure is not None else None), "it lost track of the run child"
    assert change == after.change.hooks.running, "it lost track of on_change"
    check = monitor.check.started if monitor.check is not None else None
    assert check == after.health.running, "it lost track of the check"
