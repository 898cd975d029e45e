"""The start of every exchange, hook and record that is due, in a fixed order.

Hooks begin before exchanges, because an exchange waits for Consul anyway. The record comes before both where
they depend on it, or where a loss has the time for it. This module never looks at an event, because
``reducer.py`` has already applied it to the contender.
"""

from collections.abc import Iterator

from supervisor.core.actions import (
    Action,
    CannotStart,
    Finished,
    NoticeChanged,
    PrepareWrite,
    Role,
    RoleChanged,
    WriteRecord,
)
from supervisor.core.beside import candidate_check as healths
from supervisor.core.beside import maintenance as maintenances
from supervisor.core.beside import on_change as changes
from supervisor.core.beside import service as services
from supervisor.core.claim.guard import Guard
from supervisor.core.contender.lifecycle import (
    end_session,
    lease_by,
    leave_record,
    release_once_recorded,
    want_session,
)
from supervisor.core.contender.state import Contender, has_finished, has_let_go
from supervisor.core.frozen import replace
from supervisor.core.machines import phases
from supervisor.core.machines import record as records
from supervisor.core.machines import session as sessions
from supervisor.core.machines.session import Stage
from supervisor.core.machines.tenure import Phase, Tenure
from supervisor.core.requests import Acquire, Release, Request, Watch

OVERWRITTEN = "another program has written over the value by which this node is named: that is written again"
Begun = tuple[Contender, tuple[Action, ...]]


def begin_exchanges(contender: Contender, now: float) -> Begun:
    """Begin the renewal and the read that are due. The caller knows that nothing else is."""
    contender, renewal = _advance_session(contender, now)
    contender, read = _advance_lock(contender, now)
    return contender, (*renewal, *read)


def begin_due(contender: Contender, now: float) -> Iterator[Begun]:
    """Begin everything that is due, and yield the actions for the shell in portions: see ``step.decide``."""
    if contender.tenure is not None and not contender.tenure.believes:
        contender, withdrawn = _advance_service(contender, now)  # before anything of the loss
        if withdrawn:
            yield contender, withdrawn
    if offered := _offer_file(contender, now):
        yield contender, offered
        return
    contender, actions = _advance_tenure(contender, now)
    awaited = _awaits_record(contender)
    record_first: tuple[Action, ...] = ()
    if awaited or _has_time_for_record(contender, now):
        contender, record_first = advance_record(contender, now)
        actions = (*record_first, *actions)
    if awaited and record_first:  # what comes next waits for the record, whose answer is the next event
        contender, reported = _report_loss(contender, now)
        yield contender, (*actions, *reported)
        return
    if actions:
        yield contender, actions
    for begin in _IN_ORDER:
        if not (record_first and begin is advance_record):  # it has had its turn
            contender, begun = begin(contender, now)
            if begun:
                yield contender, begun
    yield contender, ()


def _offer_file(contender: Contender, now: float) -> tuple[Action, ...]:
    """Offer the settings of the file for the record, so that a tenure goes on by them once they are written.

    The newest contact must be young enough for both leases, because a smaller room counts from the next
    contact.
    """
    tenure, settings = contender.tenure, contender.next_settings
    if tenure is None or settings is None or now < contender.retry_settings_at:
        return ()
    if settings.watchdog != contender.settings.watchdog:
        return ()  # the record of a tenure names its watchdog
    leases = (contender.lease, lease_by(contender, settings))
    if not any(
        all(may(tenure, lease, now) for lease in leases) for may in (phases.may_adopt, phases.goes_on)
    ):
        return ()
    return (WriteRecord(settings.name, contender.record, settings),)


def _awaits_record(contender: Contender) -> bool:
    tenure = contender.tenure
    if tenure is None or tenure.phase is Phase.GUARDING:
        return False
    return tenure.phase is Phase.LOST or (tenure.believes and not tenure.recorded)


def _has_time_for_record(contender: Contender, now: float) -> bool:
    """Return whether a loss goes on record before on_lose begins.

    A loss goes on record first while belief would still last, because a process that starts after a crash
    would otherwise adopt a tenure whose application is down. No process adopts a tenure whose belief is over,
    so then on_lose begins first. A record that cannot be written does not stop on_lose.
    """
    tenure = contender.tenure
    if tenure is None or tenure.believes:
        return False
    return contender.has_lock and now < tenure.contact + contender.lease.belief_s


def _advance_tenure(contender: Contender, now: float) -> Begun:
    tenure = contender.tenure
    if tenure is None:
        return contender, ()
    if contender.guard is not None:
        return _advance_guard(contender, contender.guard, tenure, now)
    tenure, actions = phases.advance(tenure, contender.settings, contender.lease, now)
    contender = replace(contender, tenure=tenure)
    if tenure.phase is Phase.LOST:
        return release_once_recorded(contender, tenure, now), actions
    if actions and (tenure.phase is Phase.LOSING or _releases_at_once(contender)):
        actions = (*actions, *_prepared_release(contender, now))
    return contender, actions


def _advance_guard(contender: Contender, guard: Guard, tenure: Tenure, now: float) -> Begun:
    guard, tenure, actions = guard.advance(tenure, contender.settings, contender.lease, now)
    claim = replace(contender.claim, guard=guard)
    claim = claim.look_again(now) if guard.awaits_look else claim
    return replace(contender, claim=claim, tenure=tenure), actions


def _releases_at_once(contender: Contender) -> bool:
    """Return whether the release follows the end of the run child at once, because there is no on_lose."""
    return contender.settings.run is not None and not contender.settings.on_lose


def _prepared_release(contender: Contender, now: float) -> tuple[Action, ...]:
    """Return the preparation of the release, if the lock is still ours as far as this node knows."""
    release = _release(contender, now) if contender.has_lock else None
    return (PrepareWrite(release),) if isinstance(release, Release) else ()


def _advance_session(contender: Contender, now: float) -> Begun:
    # Without a tenure, a node has a session only while it may come to hold.
    if contender.tenure is None and contender.may_come_to_hold:
        contender = want_session(contender, now)
    elif contender.tenure is None:
        contender = end_session(contender, now)
        session = contender.session
        if contender.departing and now >= session.may_be_abandoned_at(contender.terms):
            contender = replace(contender, session=session.abandoned(session.id))
        if contender.departing and now >= contender.claim.settle_by:
            contender = leave_record(contender)
    session = contender.session
    if contender.tenure is None and session.stage is Stage.LIVE:
        if session.asked_delay_s not in (None, contender.asked_session.lock_delay_s):
            contender = end_session(contender, now)  # the file has changed, and this node must not hold by it
    # A create, a release or a destroy goes first, because another node may wait for it.
    begun: list[Action] = []
    if contender.session.write.ready(now):
        contender, write = _write(contender, now)
        begun += () if write is None else (write,)
    # An attempt or a rewrite comes next. A renewal is sent last: it can wait for a moment.
    session, lock = contender.session, contender.lock
    renewal: Request | None = None
    if session.stage is Stage.LIVE and session.renew.ready(now):
        session, renewal = sessions.begin_renewal(session, contender.terms, now)
        contender = replace(contender, session=session)
    if contender.may_try and now >= lock.try_at and lock.is_surely_free(now) and lock.is_as_decided:
        attempt = _attempt(contender, now)
        claim = contender.claim.sent(attempt)
        contender = replace(contender, session=session.attempt(attempt), claim=claim)
        begun.append(attempt)
    elif contender.rewrite_due_at <= now:
        rewrite = lock.rewrite_for(contender.terms, session.id, contender.settings.value, now)
        rewrite = contender.claim.for_rewrite(rewrite, lock.view, contender.our_record)
        claim = contender.claim.sent(rewrite)
        contender = replace(contender, session=session.rewrite(rewrite), claim=claim)
        begun.append(rewrite)
    if renewal is not None:
        begun.append(renewal)
        if contender.tenure is not None and _releases_at_once(contender):
            # The renewal uses the connection that was opened ahead.
            begun += _prepared_release(contender, now)
    return contender, tuple(begun)


def _write(contender: Contender, now: float) -> tuple[Contender, Request | None]:
    """Begin the create, release or destroy that is due; a release may wait for a read instead."""
    session = contender.session
    if session.stage is not Stage.RELEASING:
        claim = contender.claim.next_asked() if session.stage is Stage.ABSENT else contender.claim
        session, write = sessions.begin_write(session, contender.terms, now)
        return replace(contender, session=session, claim=claim), write
    release = _release(contender, now)
    if release is None:
        return replace(contender, session=session.await_read(), lock=contender.lock.read_by(now)), None
    return replace(contender, session=session.release(release)), release


def _release(contender: Contender, now: float) -> Request | None:
    value, session, lock = contender.settings.value, contender.session, contender.lock
    release = lock.release_for(contender.terms, session, value, now)
    return release and contender.claim.for_release(release, lock.view, session)


def _attempt(contender: Contender, now: float) -> Request:
    lock, settings = contender.lock, contender.settings
    attempt = lock.attempt_for(contender.terms, contender.session.id, settings.value, now)
    return contender.claim.for_acquire(attempt, lock.view, contender.our_record)


def _advance_claim(contender: Contender, now: float) -> Begun:
    if contender.winding_up and contender.tenure is None and not contender.claim.settles:
        return replace(contender, claim=contender.claim.silenced()), ()
    terms, view, awaited = contender.terms, contender.lock.view, contender.first_try_awaits_look
    claim, request = contender.claim.begin(terms, view, contender.correction, now, awaited=awaited)
    return replace(contender, claim=claim), () if request is None else (request,)


def _advance_lock(contender: Contender, now: float) -> Begun:
    if contender.winding_up and contender.tenure is None and not contender.session.awaits_observation:
        return replace(contender, lock=contender.lock.silenced()), ()
    lock, session = contender.lock, contender.session
    if contender.may_try and lock.lacks_observation(now):
        lock = lock.read_by(now)
    lock, hint = lock.with_hint(contender.terms, now) if contender.takes_hints else (lock, ())
    if lock.watch.ready(now):
        lock = replace(lock, watch=lock.watch.schedule_at(max(lock.watch.due_at, session.quiet_until)))
    lock, begun = lock.due_requests(contender.terms, now, holding=contender.tenure is not None)
    contender, begun = replace(contender, lock=lock), (*begun, *hint)
    idle = session.stage is Stage.LIVE and session.write.pending is None
    if contender.tenure is not None or not idle or lock.queues:
        return contender, begun
    # An acquire is prepared anew with each watch, because a prepared request does not stay valid for ever.
    if session.prepared and not any(isinstance(request, Watch) for request in begun):
        return contender, begun
    attempt = _attempt(contender, now)
    assert isinstance(attempt, Acquire), "only an election's attempt is known before its key is free"
    contender = replace(contender, session=replace(session, prepared=True))
    return contender, (*begun, PrepareWrite(attempt))


def _advance_change(contender: Contender, now: float) -> Begun:
    if not contender.winding_up:
        change, actions = changes.advance(contender.change, contender.settings, contender.role, now)
    elif has_let_go(contender):
        change, actions = changes.stop(contender.change)
    else:
        return contender, ()
    return replace(contender, change=change), actions


def _advance_health(contender: Contender, now: float) -> Begun:
    if contender.winding_up:
        health, actions = healths.stop(contender.health)
        return replace(contender, health=health, maintenance=contender.maintenance.stopped()), actions
    change = contender.change
    health, actions = healths.advance(
        contender.health, contender.settings, change.newest, change.instance, contender.role, now
    )
    maintenance, requests = maintenances.advance(contender.maintenance, contender.terms, now)
    return replace(contender, health=health, maintenance=maintenance), (*actions, *requests)


def _advance_service(contender: Contender, now: float) -> Begun:
    item, tenure, lease = contender.settings, contender.tenure, contender.lease
    service, requests = services.advance(contender.service, item, tenure, lease, now, acts=contender.acts)
    return replace(contender, service=service), requests


def advance_record(contender: Contender, now: float) -> Begun:
    """Write the record if it is due. ``begin_due`` puts it first where something waits for it."""
    record_keeper, begun = records.advance(contender.record_keeper, contender.record, contender.settings, now)
    return replace(contender, record_keeper=record_keeper), begun


def _advance_role(contender: Contender, now: float) -> Begun:
    contender, actions = _report_role(contender, now)
    if actions and has_finished(contender):
        actions = (*actions, Finished(contender.settings.name, clean=contender.tenure is None))
    return contender, actions


def _report_role(contender: Contender, now: float) -> Begun:
    """Report a change of the role, and a loss once more when its reason becomes known later.

    A loss whose reason may be known soon is not reported before.
    """
    tenure = contender.tenure
    name, role = contender.settings.name, contender.role
    reported = (role, contender.reason)
    if reported == contender.told_role or (tenure is not None and tenure.awaits_reason(now)):
        return contender, ()
    if tenure is None:
        changed = RoleChanged(name, role)
    else:
        transition = phases.transition_of(tenure)
        told = tenure.previous if tenure.guarded and tenure.phase is Phase.ACQUIRING else None
        note = "" if told is None else told.how
        changed = RoleChanged(name, role, contender.reason, tenure.session, tenure.token, transition, note)
    return replace(contender, told_role=reported), (changed,)


def _report_loss(contender: Contender, now: float) -> Begun:
    """Report the reason of a tenure without hooks, which is over in the step in which it is lost."""
    tenure, (reported, _) = contender.tenure, contender.told_role
    if tenure is None or tenure.believes or reported not in (Role.ACQUIRING, Role.HOLDING, Role.LOSING):
        return contender, ()
    return _report_role(contender, now)


def _advance_notice(contender: Contender, now: float) -> Begun:
    watchdog = contender.watchdog_fault and f"no watchdog: {contender.watchdog_fault}"
    value = OVERWRITTEN if contender.tenure is not None and contender.tenure.overwritten else ""
    lock, service = contender.lock.notice, contender.service.notice
    left = "" if contender.tenure is None else contender.tenure.survivors
    notices = (watchdog, contender.maintenance.why, lock, contender.record_fault, value, service, left)
    notice = "; ".join(filter(None, notices))
    if notice == contender.told_notice:
        return contender, ()
    return replace(contender, told_notice=notice), (NoticeChanged(contender.settings.name, notice),)


def _advance_faults(contender: Contender, now: float) -> Begun:
    """Report hooks that cannot start, and later that all of them can start again."""
    faults = contender.faults
    if faults is None or faults == contender.told_faults:
        return contender, ()
    leads = contender.tenure is not None
    told = CannotStart(contender.settings.name, faults, leads)
    return replace(contender, told_faults=faults), (told,)


_IN_ORDER = (
    _advance_session,
    _advance_claim,
    _advance_lock,
    _advance_change,
    _advance_health,
    advance_record,
    _advance_role,
    _advance_notice,
    _advance_faults,
    _advance_service,
)
