"""The effect of an event on a contender: its knowledge changes, and a tenure may begin or end.

No exchange and no hook begins here. An answer counts only for the request that is under way, and only a
consistent answer can begin a tenure or end a belief.
"""

from supervisor.core.actions import Reason
from supervisor.core.contender.lifecycle import (
    apply_file_settings,
    begin_tenure,
    change_settings,
    confirm_off,
    depart,
    end_session,
    guard_ended,
    leave_record,
    observe,
    observe_record,
    recover,
    resume,
    session_altered,
    session_died,
    step_down,
    stop,
    take_in,
)
from supervisor.core.contender.state import Contender
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
from supervisor.core.frozen import replace
from supervisor.core.lock.base import Lost, Observation, Ours
from supervisor.core.machines import session as sessions
from supervisor.core.machines import tenure as tenures
from supervisor.core.machines.record import RECORD_RETRY_S, RecordKeeper
from supervisor.core.machines.session import Stage
from supervisor.core.machines.tenure import Phase, Tenure
from supervisor.core.outcomes import (
    Denied,
    Done,
    Ineligible,
    InMaintenance,
    KeyView,
    LockDelayed,
    LostRace,
    Outcome,
    SessionAlive,
    SessionAltered,
    SessionGone,
    TenureShown,
)
from supervisor.core.requests import (
    CreateSession,
    DestroySession,
    HintKey,
    MarkTenure,
    Request,
    Rewrite,
    ServiceRequest,
)
from supervisor.core.times import LONG_AGO

REPAIR_S = 60.0  # between two repairs of a value, so that two programs do not write in turns
REWRITE_DELAYED_S = 5.0  # a server that has just restarted delays even the holder, by up to a minute


def apply_event(contender: Contender, event: Event, now: float) -> Contender:
    match event:
        case Tick():
            return contender
        case Answered(request, outcome):
            return _answered(contender, request, outcome, now)
        case HookEnded():
            return _hook_ended(contender, event, now)
        case RunEnded():
            if contender.tenure is None:
                return contender
            return replace(contender, tenure=tenures.run_ended(contender.tenure, event, now))
        case SurvivorsChanged(survivors=survivors):
            tenure, wait_s = contender.tenure, contender.lease.lose_time_s
            wait_until = now + wait_s if survivors and contender.has_lock else LONG_AGO
            return replace(contender, tenure=tenure and tenures.outlived(tenure, survivors, wait_until))
        case HooksChecked(faults=faults):
            return replace(contender, faults=faults) if contender.settings.contend else contender
        case RecordWritten():
            return _record_written(contender, event, now)
        case WatchdogTried():
            return _watchdog_tried(contender, event, now)
        case Stalled():
            return _stalled(contender, now)
        case StopAsked(reason):
            return stop(contender, reason, now)
        case StepDownAsked():
            return step_down(contender, event, now)
        case SettingsChanged(settings=settings, unchecked=unchecked):
            return change_settings(contender, settings, now, unchecked=unchecked)
        case ItemRemoved():
            return depart(contender, now)
        case ConfigLoaded():
            raise AssertionError("Contenders alone takes in a file")
        case RecoverAsked():
            return recover(contender)
        case PauseAsked(until=until, stays_until=stays_until):  # no word to try outlives a pause
            return replace(contender, paused_until=until, stays_until=stays_until, allowed=False)
        case ConfirmOffAsked():
            return confirm_off(contender)
        case OrderSeen(withheld=withheld):
            return replace(contender, withheld=withheld)
        case PauseOver():
            return replace(contender, paused_until=LONG_AGO, stays_until=LONG_AGO)
        case ResumeAsked(by_name=by_name):
            return resume(contender, now, by_name=by_name)


def _hook_ended(contender: Contender, event: HookEnded, now: float) -> Contender:
    check, tenure = contender.settings.candidate_check, contender.tenure
    match event.started.context.event:
        case "change":
            return replace(contender, change=contender.change.ended(event))
        case "check":
            if check is None:  # the file no longer has a check
                return replace(contender, health=replace(contender.health, running=None))
            health = contender.health.ended(event, check)
            if tenure is not None and health.has_fallen(check):
                tenure = tenure.lose(Reason.UNHEALTHY, now)
            return replace(contender, health=health, tenure=tenure)
        case _:
            tenure = tenure and tenures.hook_ended(tenure, event)
            return replace(contender, tenure=tenure)


def _record_written(contender: Contender, event: RecordWritten, now: float) -> Contender:
    """Let a recorded tenure begin its hooks; give back at once a tenure that cannot be recorded."""
    if event.write.settings is contender.next_settings:  # other records carry the settings in force
        return _file_record_written(contender, event, now)
    record_keeper, tenure = contender.record_keeper.answered(event, now), contender.tenure
    # The item gets no other event between a write and its answer, so this answers the tenure's own record.
    if tenure is not None and not tenure.recorded and tenure.phase is not Phase.GUARDING:
        recorded = record_keeper.has_tenure(tenure.session)
        tenure = replace(tenure, recorded=True) if recorded else tenure.lose(Reason.ACQUIRE_FAILED, now)
    return replace(contender, record_keeper=record_keeper, tenure=tenure)


def _file_record_written(contender: Contender, event: RecordWritten, now: float) -> Contender:
    """Put the settings of the file in force if they are on record; otherwise keep those of the tenure."""
    if not event.ok:
        return replace(contender, retry_settings_at=now + RECORD_RETRY_S)
    return replace(apply_file_settings(contender, now), record_keeper=RecordKeeper(kept=event.write.record))


def _watchdog_tried(contender: Contender, event: WatchdogTried, now: float) -> Contender:
    """Let a tenure begin once its watchdog runs; give back one that must not begin without."""
    if not event.device.starves:  # else the lock leaves no time now, and may do when it is held again
        contender = replace(contender, watchdog_fault=event.device.why_not)
    tenure, watchdog = contender.tenure, contender.settings.watchdog
    if event.item != contender.settings.name or tenure is None or watchdog is None:
        return contender
    if watchdog.required and event.device.why_not:
        return replace(contender, tenure=tenure.lose(Reason.ACQUIRE_FAILED, now))
    return replace(contender, tenure=replace(tenure, armed=True, arm_answered=True))


def _stalled(contender: Contender, now: float) -> Contender:
    tenure = contender.tenure and contender.tenure.wait_for_new_contact(now)
    lock, session = contender.lock.stalled(now), contender.session.verify_soon(now)
    return replace(contender, tenure=tenure, lock=lock, claim=contender.claim.stalled(), session=session)


# --- answers -------------------------------------------------------------------------------------


def _answered(contender: Contender, request: Request, outcome: Outcome, now: float) -> Contender:
    """Hand the outcome to the lane whose request it ends; one that no lane has under way changes nothing.

    An acquire may end after its session was given up: ``_try_answered`` lets a release give back its win.
    """
    if isinstance(request, ServiceRequest):  # before the rest, because nothing else depends on its answer
        return replace(contender, service=contender.service.answered(request, outcome, now))
    if isinstance(request, HintKey):  # which tells nothing of Consul's leader, nor of its limits
        lock = contender.lock.hinted(request, outcome, now, contender.patient_retry_s)
        return replace(contender, lock=lock)
    throttle, session = contender.throttle, contender.session
    is_of_session = request in (session.write.pending, session.renew.pending)
    is_of_lock = contender.lock.has_asked(request) or request == contender.claim.lane.pending
    if not (is_of_session or is_of_lock or request == contender.maintenance.read.pending):
        return contender
    throttle = throttle.count(request, outcome, now, holds=contender.tenure is not None)
    if is_of_session:
        throttle = throttle.count_drop(outcome)
    if throttle is not contender.throttle:
        contender = replace(contender, throttle=throttle)
    contender = _lane_answered(contender, request, outcome, now)
    # A drop is a connection that ended without an answer. The first one in a row is repeated at once, because
    # ``urgent_retry_s`` is 0 while ``drops`` is 1, which is so in this step alone.
    return replace(contender, throttle=replace(throttle, drops=2)) if throttle.drops == 1 else contender


def _lane_answered(contender: Contender, request: Request, outcome: Outcome, now: float) -> Contender:
    session = contender.session
    if contender.lock.has_asked(request):
        return _lock_answered(contender, request, outcome, now)
    if request == contender.claim.lane.pending:
        return _claim_answered(contender, request, outcome, now)
    if request == contender.maintenance.read.pending:
        return _maintenance_answered(contender, outcome, now)
    if request == session.renew.pending:
        return _renew_answered(contender, request, outcome, now)
    match request:
        case CreateSession():
            session = sessions.created(session, contender.terms, outcome, now)
            ineligible = isinstance(outcome, Ineligible) or (contender.ineligible and not session.id)
            return replace(contender, session=session, ineligible=ineligible)
        case DestroySession():
            return _destroyed(contender, outcome, now)
        case Rewrite():
            return _rewritten(contender, request, outcome, now)
        case _ if session.stage is Stage.RELEASING:
            return _release_answered(contender, outcome, now)
        case _:
            return _try_answered(contender, request, outcome, now)


def _lock_answered(contender: Contender, request: Request, outcome: Outcome, now: float) -> Contender:
    is_read = request == contender.lock.read.pending
    lock, observation = contender.lock.answered(contender.terms, request, outcome, now)
    contender = replace(contender, lock=lock)
    if contender.session.awaits_observation and is_read:
        return _release_informed(contender, observation, now)
    if observation is not None:
        contender = _observe(contender, observation, now)
    if not is_read or not contender.has_lock:
        return contender
    return replace(contender, lock=contender.lock.read_by(contender.read_after(request.at)))


def _claim_answered(contender: Contender, request: Request, outcome: Outcome, now: float) -> Contender:
    """Take in the tenure record. A fence or a first try waits for a look, and silence is none."""
    claim, view, awaited = contender.claim, contender.lock.view, contender.first_try_awaits_look
    is_look = isinstance(outcome, TenureShown) and not claim.lane.stale
    ours = (contender.session.id, contender.lease.asked_s)
    claim = claim.answered(contender.terms, request, outcome, view, now, *ours, awaited=awaited)
    contender = replace(contender, claim=claim)
    if is_look:
        contender = observe_record(contender, request.at, now)
    # A token that may not write the record has written none.
    may_not = isinstance(outcome, Denied) and (claim.settles or isinstance(request, MarkTenure))
    is_awaited = awaited or claim.settles  # a look before that did not know our name to the fence
    if is_awaited and (may_not or ((is_look or outcome == Done()) and contender.correction is None)):
        return replace(contender, claim=contender.claim.concluded())
    is_silent = not isinstance(outcome, TenureShown | Done | LostRace)
    return leave_record(contender) if is_silent and claim.settles and contender.final_attempt else contender


def _destroyed(contender: Contender, outcome: Outcome, now: float) -> Contender:
    """Go on to settle the claim, once no late write can name the session any more."""
    before, session = contender.session, sessions.written(contender.session, contender.terms, outcome, now)
    claim = contender.claim
    if session.stage is Stage.ABSENT and session.abandoned_id is None:
        claim = claim.destroyed(before.id, before.may_be_abandoned_at(contender.terms), now)
    return replace(contender, session=session, claim=claim)


def _maintenance_answered(contender: Contender, outcome: Outcome, now: float) -> Contender:
    """Give the lock up in order when this node is in maintenance mode."""
    check, tenure = contender.settings.candidate_check, contender.tenure
    assert check is not None, "a request that the settings do not want"
    maintenance = contender.maintenance.answered(outcome, check, now, contender.patient_retry_s)
    if tenure is not None and tenure.believes and isinstance(outcome, InMaintenance) and outcome.why:
        tenure = tenure.lose(Reason.MAINTENANCE, now, within_s=contender.lease.lose_time_s)
        tenure = replace(tenure, note=outcome.reason)
    return replace(contender, maintenance=maintenance, tenure=tenure)


def _renew_answered(contender: Contender, request: Request, outcome: Outcome, now: float) -> Contender:
    alive, dead = isinstance(outcome, SessionAlive | SessionAltered), isinstance(outcome, SessionGone)
    is_stale = contender.session.renew.stale
    renew_at = contender.renew_after(request.at, first=not contender.session.verified)
    session = sessions.renewed(contender.session, contender.terms, outcome, now, renew_at)
    if dead and (not contender.has_lock or _has_lost(contender)):
        return session_died(replace(contender, session=session), now)
    lock, failed_before, waits = contender.lock, contender.renewal_failed, contender.tenure is None
    if waits and failed_before:
        # The watch may be stuck with an agent that has forgotten it, or with a server that waits for a leader
        # whose machine is lost. So this waiter reads after each renewal until the watch has ended. No watch
        # is abandoned, because the agent goes on counting it.
        lock = lock.doubt_watch()
    # A server that has just restarted leads before it has applied its log, and may report a living session as
    # gone, so a consistent read decides.
    if dead or (alive and (failed_before or (waits and lock.watch.stale))):
        lock = lock.read_by(now)
    tenure = contender.tenure
    if tenure is not None and alive and not is_stale:
        tenure = replace(tenure.session_still_lives(), renewed=True)
    claim, is_first = contender.claim, session.verified and not contender.session.verified
    if alive and (failed_before or is_first):
        claim = claim.returned(now)
    if is_first and contender.settings.fence is not None:
        claim = claim.look_soon(now)
    contender = replace(
        contender, session=session, lock=lock, claim=claim, tenure=tenure, renewal_failed=not alive
    )
    if isinstance(outcome, SessionAltered):
        return session_altered(contender, outcome.why, now)
    return replace(contender, altered="") if alive else contender


def _has_lost(contender: Contender) -> bool:
    """Return whether Consul has shown that we no longer hold, though it may still keep rivals out."""
    tenure, view = contender.tenure, contender.lock.view
    if tenure is None or tenure.believes or view is None:
        return False
    return view.find_hold(tenure.session) is None


def _try_answered(contender: Contender, request: Request, outcome: Outcome, now: float) -> Contender:
    session, terms = contender.session, contender.terms
    may_begin = contender.tenure is None and session.stage is Stage.LIVE and not session.ending
    contender = replace(contender, session=sessions.written(session, terms, outcome, now))
    contender = replace(contender, claim=contender.claim.tried(request, outcome))
    view = contender.lock.view_after_attempt(request, outcome)
    if isinstance(outcome, SessionGone) and may_begin:
        return session_died(contender, now)
    if view is not None and may_begin and view.find_hold(session.id) is not None:
        return begin_tenure(contender, view, request.at, now)
    if view is not None and may_begin:
        return observe(
            contender, Observation(view, request.at, request.at, consistent=True, is_stale=False), now
        )
    lock = contender.lock
    if view is not None and contender.tenure is None:
        lock = lock.with_unwanted_win(view)
    # After an unwanted win as well: the lock is read again.
    return replace(contender, lock=lock.write_failed(outcome, terms, now))


def _rewritten(contender: Contender, request: Rewrite, outcome: Outcome, now: float) -> Contender:
    """Note the result of a rewrite; when Consul reports that our session does not hold, read the lock."""
    retry_s = REWRITE_DELAYED_S if isinstance(outcome, LockDelayed) else contender.patient_retry_s
    session = contender.session.rewritten(request, outcome, now, retry_s)
    session = sessions.written(session, contender.terms, outcome, now)
    lock, claim, tenure = contender.lock, contender.claim, contender.tenure
    if isinstance(outcome, LostRace | SessionGone):
        lock = lock.read_by(now)
    claim = claim.rewritten(request, outcome)
    if isinstance(outcome, Done):
        lock = lock.rewritten(request)
    if isinstance(outcome, Done) and contender.guard_is_over:
        tenure = guard_ended(contender, request.at).tenure
    if isinstance(outcome, Denied) and tenure is not None and contender.guard_is_over:
        tenure = tenure.lose(Reason.ACQUIRE_FAILED, now)  # it cannot act, so another node may
    if isinstance(outcome, Done) and tenure is not None:
        repair_at = now + REPAIR_S if tenure.overwritten else tenure.repair_at
        tenure = replace(tenure, leader=request.value, overwritten=False, repair_at=repair_at)
    return replace(contender, session=session, lock=lock, claim=claim, tenure=tenure)


def _release_answered(contender: Contender, outcome: Outcome, now: float) -> Contender:
    claim = contender.claim.released(contender.session.write.pending, outcome)
    session = sessions.written(contender.session, contender.terms, outcome, now)
    contender = replace(contender, session=session, claim=claim)
    if not session.awaits_observation:
        return contender
    lock = contender.lock.write_failed(outcome, contender.terms, now)
    return replace(contender, lock=lock)


def _release_informed(contender: Contender, observation: Observation | None, now: float) -> Contender:
    """Let a release go on after the read that it waited for, or at the final attempt without an answer."""
    if observation is None and not contender.final_attempt:
        return contender
    session = contender.session
    if observation is not None:
        contender = take_in(contender, observation, session.id, now)
    write = session.write.schedule_at(max(now, contender.lock.paused_until))
    return replace(contender, session=replace(session, write=write, unread=observation is None))


# --- observations --------------------------------------------------------------------------------


def _observe(contender: Contender, observation: Observation, now: float) -> Contender:
    if contender.tenure is None:
        return _observe_waiting(contender, observation, now)
    return _observe_holding(contender, contender.tenure, observation, now)


def _observe_holding(contender: Contender, tenure: Tenure, observation: Observation, now: float) -> Contender:
    """Process a holder's observation: only a consistent one counts, and none that is stale ends a belief."""
    if not observation.consistent:
        return contender
    verdict = contender.lock.verdict(observation, tenure, contender.session)
    if isinstance(verdict, Ours):
        contender = replace(contender, tenure=tenure.confirmed(observation.sent_at))
    if observation.is_stale:
        return contender
    contender = observe(contender, observation, now)
    if not isinstance(verdict, Lost):
        return _with_value_of(contender, observation)
    # Whoever acquires over our tenure record waits until our lease is over.
    taken = verdict.taken and not contender.claim.keeps_out(observation.view, tenure.session)
    # Once when belief ends, and once when a lock that was delayed is taken, the session is asked for, because
    # its end is the better reason.
    is_new = tenure.believes or (taken and tenure.taken_at is None)
    session = contender.session.verify_soon(now) if is_new else contender.session
    if taken:
        tenure = tenure.key_lost(now, observation.view.leader)
    else:
        tenure = replace(tenure, next_leader=observation.view.leader)
    tenure = tenure.lose(verdict.reason, now, within_s=tenures.REASON_WITHIN_S)
    return replace(contender, tenure=tenure, session=session)


def _with_value_of(contender: Contender, observation: Observation) -> Contender:
    """Note whether another program has written over the value that this holder gave its key.

    A key that it has also given flags of its own is left alone.
    """
    tenure, view = contender.tenure, observation.view
    hold = view.find_hold(contender.session.id)
    if tenure is None or hold is None:
        return contender
    is_foreign = isinstance(view, KeyView) and bool(view.foreign_flags)
    overwritten = not is_foreign and hold.value not in (tenure.leader, contender.settings.value)
    return replace(contender, tenure=replace(tenure, overwritten=overwritten))


def _observe_waiting(contender: Contender, observation: Observation, now: float) -> Contender:
    session = contender.session
    if observation.is_stale:
        return replace(contender, lock=contender.lock.read_by(now))
    if not session.id or observation.view.find_hold(session.id) is None:
        if contender.claim.owes and observation.after_index:
            # The key has changed. If our session has ended meanwhile, its tenure record is to be put right.
            contender = replace(contender, session=session.verify_soon(now))
        return observe(contender, observation, now)
    if session.stage is not Stage.LIVE or session.ending:
        return contender
    if not session.verified:
        # Consul shows the session as the holder without any attempt, so another program has used it.
        return end_session(contender, now)
    if not observation.consistent:
        return replace(contender, lock=contender.lock.read_by(max(now, session.quiet_until)))
    # An attempt without an answer has been applied after all.
    return begin_tenure(contender, observation.view, observation.sent_at, now)
