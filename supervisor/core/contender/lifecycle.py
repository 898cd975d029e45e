"""How a contender changes: it wants a session, begins a tenure, loses it, and ends.

A change that ties several parts of a contender together is a function of this module and no method of the
contender. The function takes the contender first and returns the new one. ``reducer.py`` calls these
functions when an event means such a change, ``scheduler.py`` when the change is due, and ``creation.py``
when a contender is born. No function here sends a request or starts a hook.
"""

from supervisor.core.actions import Previous, Reason
from supervisor.core.beside import candidate_check as healths
from supervisor.core.claim.guard import GuardEnd
from supervisor.core.claim.record import ABSENT
from supervisor.core.contender.state import Contender
from supervisor.core.events import StepDownAsked
from supervisor.core.frozen import replace
from supervisor.core.lease import Lease, lease_of
from supervisor.core.lock.base import Observation
from supervisor.core.machines import phases
from supervisor.core.machines import session as sessions
from supervisor.core.machines import tenure as tenures
from supervisor.core.machines.session import Stage
from supervisor.core.machines.tenure import OUR_OWN_MAKING, PLANNED, Phase, PhaseEnd, Tenure
from supervisor.core.outcomes import KeyView, View
from supervisor.core.settings import ItemSettings
from supervisor.core.times import LONG_AGO

REJOIN_DELAY_MAX_S = 300.0
OWN_LOSSES_MAX = 16  # the delay has long been at its maximum
STEADY_S = 600.0  # a loss of our own making counts as the first after a tenure of this length


# --- a session is wanted ---------------------------------------------------------------------------


def want_session(contender: Contender, at: float) -> Contender:
    """Plan to create a session at that time, or later if this node rests.

    The next step cancels the plan of a node that must not come to hold.
    """
    if contender.claim.settles:
        return contender
    wanted_at = max(at, contender.rejoin_at, contender.rests_until)
    return replace(contender, session=contender.session.plan_create(wanted_at))


def want_session_anew(contender: Contender) -> Contender:
    """Plan again when a session is created, by the present state of the lock."""
    return want_session(replace(contender, session=contender.session.cancel_create()), LONG_AGO)


# --- a tenure begins -------------------------------------------------------------------------------


def begin_tenure(contender: Contender, view: View, contact: float, now: float) -> Contender:
    """Begin the tenure that Consul itself has shown; when that answer is old, read the lock again."""
    if now >= contact + contender.lease.room_s:
        return replace(contender, lock=contender.lock.must_reread(now + contender.patient_retry_s))
    hold = view.find_hold(contender.session.id)
    assert hold is not None, f"{view} does not show {contender.session.id} as holder"
    assert contender.may_come_to_hold, "a node that must not hold has given its session up"
    fence, ours, session = contender.settings.fence, contender.our_record, contender.session.id
    claim = contender.claim.compared(view, session, contender.lease.asked_s, now)
    claim = claim.begun(view, session, contender.lock.opens_at, ours, now)
    before = contender.lock.view
    ended = GuardEnd.RELEASED if isinstance(before, KeyView) and before.present else GuardEnd.NONE
    tenure = Tenure(
        phase=Phase.ACQUIRING if claim.guard is None else Phase.GUARDING,
        guarded=claim.guard is not None,
        previous=None if fence is None else Previous(ended),
        session=session,
        token=hold.token,
        create_index=hold.create_index,
        lock_index=hold.lock_index,
        contact=contact,
        leader=hold.value,
        slot=hold.slot,
        previous_leader=contender.change.last_leader,
    )
    observation = Observation(view, contact, now, consistent=True, is_stale=False)
    contender = replace(contender, tenure=tenure, claim=claim)
    contender = replace(contender, lease=lease_by(contender, contender.settings))
    contender = observe(contender, observation, now)
    renew = contender.session.renew.schedule_by(contender.renew_after(now, first=True))
    lock = contender.lock.acquired(hold.token, contender.read_after(contact, first=True))
    return replace(contender, session=replace(contender.session, renew=renew), lock=lock)


def observe(contender: Contender, observation: Observation, now: float) -> Contender:
    """Believe the observation from now on, and note its change for ``on_change``."""
    tenure, contends = contender.tenure, contender.settings.contend
    our_session = contender.session.id if contends else None
    contender = take_in(contender, observation, our_session, now)
    lock, claim = contender.lock, contender.claim
    if tenure is not None:
        fenced = contender.settings.fence is not None
        claim = claim.following(observation.view, tenure.session, now, fenced=fenced)
    change = contender.change.observe(observation.view) if lock.is_complete else contender.change
    contender = replace(contender, claim=claim, change=change)
    if contender.settings.kind == "election" or not contends:
        return contender  # Consul itself guards its key, and there is one holder
    tenure = tenure and replace(tenure, holders=observation.view.holders)
    return replace(contender, tenure=tenure, lease=lease_by(contender, contender.settings))


def take_in(contender: Contender, observation: Observation, our_session: str | None, now: float) -> Contender:
    """Let lock and claim know what the observation shows. our_session: see ``Lock.with_observation``."""
    lock = contender.lock.with_observation(observation, our_session, now)
    before, view = contender.lock.view, observation.view
    claim = contender.claim.observe(before, view, our_session, now, is_free=lock.is_free)
    if observation.consistent and not observation.is_stale:
        claim = claim.compared(view, our_session, contender.lease.asked_s, now)
    elif claim.memory.doubts(view):
        lock = lock.read_by(now)
    return replace(contender, lock=lock, claim=claim)


def lease_by(contender: Contender, settings: ItemSettings) -> Lease:
    """Return the lease by these settings.

    A holder of a slot counts on no longer prune delay than ``.lock`` names, because the other contenders wait
    for that one. A contender without a slot writes its own prune delay with the slot that it takes.
    """
    tenure = contender.tenure
    if tenure is None:
        return lease_of(settings)
    leased_s = contender.record_keeper.leased_s(tenure)
    return lease_of(settings, min(settings.lockout_s, contender.lock.lockout_s), leased_s)


def follow_record(contender: Contender, now: float) -> Contender:
    """Let belief count by the tenure record: longer once it says so, shorter before the next one does.

    What is longer counts once it is in the journal as well. See docs/lease.md, "An outage that lasts".
    """
    tenure, lease, claim = contender.tenure, contender.lease, contender.claim
    if tenure is None or not tenure.believes or tenure.phase is Phase.GUARDING:
        return contender
    asked_s = lease.leased_s
    if asked_s == tenure.leased_s == 0.0:
        return contender
    leased_s, said_s = tenure.leased_s, claim.said_s(tenure.session)
    if said_s is not None and said_s < leased_s:
        leased_s = 0.0
    elif asked_s < leased_s and phases.news_is_fresh(tenure, lease, now):
        leased_s = asked_s
    elif asked_s > leased_s and tenure.phase is not Phase.ADOPTING and said_s is not None:
        leased_s = asked_s if said_s >= asked_s else leased_s
    contender = replace(contender, tenure=replace(tenure, leased_s=leased_s))
    return replace(contender, lease=lease_by(contender, contender.settings))


# --- a guard ends -----------------------------------------------------------------------------------


def observe_record(contender: Contender, sent_at: float, now: float) -> Contender:
    """Take in the tenure record as an answer to a request of ``sent_at`` shows it: a guard may end by it."""
    tenure, guard, record = contender.tenure, contender.guard, contender.claim.record
    if tenure is None or guard is None or record is None:
        return contender
    guard = guard.observe(None if record == ABSENT else record, tenure.session, sent_at, now)
    contender = replace(contender, claim=replace(contender.claim, guard=guard))
    if guard.end is GuardEnd.NONE and tenure.hooks.running is None:
        return guard_ended(contender, tenure.contact)
    return contender


def guard_ended(contender: Contender, contact: float) -> Contender:
    """Let on_acquire begin, because Consul has shown our session and our tenure record at this time."""
    tenure, guard = contender.tenure, contender.guard
    assert tenure is not None and guard is not None and guard.end is not None, "the guard lasts"
    previous = None if guard.end is GuardEnd.NONE else guard.previous
    return replace(contender, tenure=tenure.guard_ended(contact, previous))


def confirm_off(contender: Contender) -> Contender:
    """End the guard by the operator's word that the machine of the former holder is off."""
    guard = contender.guard
    if guard is None or guard.end is not None:
        return contender
    return replace(contender, claim=replace(contender.claim, guard=replace(guard, end=GuardEnd.CONFIRMED)))


def recover(contender: Contender) -> Contender:
    """End a stuck tenure, or a tenure record of this machine: an operator says that nothing acts."""
    tenure, stray = contender.tenure, contender.stray
    if stray is not None:
        return replace(contender, claim=replace(contender.claim, disowned=stray.session))
    return replace(contender, tenure=tenure and tenures.recover(tenure))


# --- a session or a tenure ends ---------------------------------------------------------------------


def end_session(contender: Contender, now: float) -> Contender:
    """Give the session up: release what it may hold, then destroy it."""
    return replace(contender, session=contender.session.end(now, final_attempt=contender.final_attempt))


def session_died(contender: Contender, now: float) -> Contender:
    """Go on without the session, which died without a release.

    Consul guards the lock of such a session for its lock-delay, unless a rival holds the lock already.
    """
    tenure = contender.tenure
    rejoin_at = max(contender.rejoin_at, now + sessions.CREATE_SPACING_S)
    contender = replace(contender, session=contender.session.mark_dead(), rejoin_at=rejoin_at)
    if tenure is None:
        return end_session(contender, now)
    tenure = tenure if contender.lock.is_held_by_other(tenure.session) else tenure.lock_delayed()
    return replace(contender, tenure=tenure.with_reason(Reason.SESSION_INVALIDATED))


def leave_record(contender: Contender) -> Contender:
    """Leave to the next process the tenure record that a destroyed session may have left behind."""
    session = contender.session.abandoned(contender.claim.settling or "")
    return replace(contender, session=session, claim=contender.claim.abandoned())


def session_altered(contender: Contender, why: str, now: float) -> Contender:
    """Give up a session that differs from the request, and end its tenure in order.

    The lock-delay of such a session may be shorter than the one in the lease, so this node never holds with
    such a session.
    """
    rejoin_at = max(contender.rejoin_at, now + sessions.ALTERED_RETRY_S)
    contender = replace(contender, altered=why, rejoin_at=rejoin_at)
    if contender.tenure is not None:
        return replace(contender, tenure=contender.tenure.lose(Reason.SESSION_ALTERED, now))
    return end_session(contender, now)


def release_once_recorded(contender: Contender, tenure: Tenure, now: float) -> Contender:
    """Release the lock as soon as the record shows that nothing of the tenure is left to do.

    A release that is applied late must not meet a process that has adopted the tenure after a crash. While
    KILL has not ended a process, an ordered loss keeps the lock, and any other one is not over either, if a
    tenure record, a fence or a watchdog depends on it.
    """
    if tenure.survivors and contender.has_lock and tenure.reason in PLANNED:
        return replace(contender, tenure=tenures.become(tenure, PhaseEnd.OUTLIVED))
    has_record = contender.claim.owes or contender.claim.names(tenure.session)
    if not has_record and contender.settings.fence is None and contender.settings.watchdog is None:
        contender = replace(contender, tenure=replace(tenure, survivors=""))
    elif tenure.survivors:
        return replace(contender, session=contender.session.mark_dead())
    if not contender.record_keeper.has_tenure(tenure.session):
        return _end_tenure(contender, tenure, now)
    if contender.final_attempt and contender.record_keeper.refused is not None:
        # Neither release nor record is possible, so the TTL must end the session.
        return replace(contender, tenure=None, session=contender.session.abandoned(tenure.session))
    return contender


def _end_tenure(contender: Contender, tenure: Tenure, now: float) -> Contender:
    """End a tenure whose hooks are done: its session is to release the lock. Plan when to contend again."""
    own_losses, rejoin_at = min(contender.own_losses, OWN_LOSSES_MAX), contender.rejoin_at
    rests_until = contender.rests_until
    if tenure.held_at is not None and now - tenure.held_at >= STEADY_S:
        own_losses = 0
    if tenure.reason is Reason.STEP_DOWN:
        rests_until = now + contender.rest_s if contender.rest_s else LONG_AGO
    elif tenure.reason in OUR_OWN_MAKING:
        delay_s = min(contender.settings.rejoin_delay_s * 2**own_losses, REJOIN_DELAY_MAX_S)
        own_losses, rejoin_at = own_losses + 1, now + delay_s
    contender = end_session(apply_file_settings(contender, now), now)
    return replace(
        contender,
        tenure=None,
        allowed=False,
        lock=contender.lock.given_up(failed=tenure.reason in OUR_OWN_MAKING),
        claim=contender.claim.given_up(),
        own_losses=own_losses,
        rejoin_at=rejoin_at,
        rests_until=rests_until,
    )


# --- the file, and the operator -----------------------------------------------------------------------


def change_settings(
    contender: Contender, settings: ItemSettings, now: float, *, unchecked: bool
) -> Contender:
    """Go on by these settings of the file: during a tenure once they are on record, otherwise at once.

    ``unchecked``: the check whether the hooks of these settings can start has no result yet.
    """
    next_settings = None if settings == contender.settings else settings
    contender = replace(contender, next_settings=next_settings, retry_settings_at=LONG_AGO)
    if unchecked and settings.contend:
        contender = replace(contender, faults=None)
    return contender if contender.tenure is not None else apply_file_settings(contender, now)


def apply_file_settings(contender: Contender, now: float) -> Contender:
    """Put the settings of the file in force, and on record.

    The caller ensures that nothing that is under way still needs the former settings.
    """
    settings = contender.next_settings
    if settings is None:
        return contender
    lock, tenure = contender.lock.with_settings(settings, now), contender.tenure
    lease = lease_by(contender, settings)
    if tenure is not None and tenure.believes:  # a smaller room needs an earlier read
        lock = lock.read_by(tenure.contact + lease.interval_s)
    health = contender.health
    if not healths.is_same_check(settings, contender.settings):
        health = healths.new_health(settings).after(health)
    return replace(
        contender,
        settings=settings,
        next_settings=None,
        allowed=contender.allowed and settings.manual,
        retry_settings_at=LONG_AGO,
        lock=lock,
        lease=lease,
        watchdog_fault=contender.watchdog_fault if settings.watchdog else "",
        health=health,
        maintenance=contender.maintenance.under(settings, contender.settings),
        record_keeper=replace(contender.record_keeper, outdated=True),
    )


def step_down(contender: Contender, asked: StepDownAsked, now: float) -> Contender:
    """Give up the tenure, and rest after that; change nothing without a tenure that believes and is meant."""
    tenure = contender.tenure
    if tenure is None or not tenure.believes or asked.session not in (None, tenure.session):
        return contender
    session = replace(contender.session, handover_to=asked.handover_to)
    tenure = tenure.lose(Reason.STEP_DOWN, now, within_s=contender.lease.lose_time_s)
    tenure = replace(tenure, note=asked.note)
    return replace(contender, tenure=tenure, rest_s=asked.for_s, session=session)


def resume(contender: Contender, now: float, *, by_name: bool) -> Contender:
    """Contend again at once: end a pause and a rest, and cancel the rest after a tenure that steps down.

    A manual node may try from now on if the operator named it.
    """
    rests, allowed = now < contender.rests_until, contender.allowed or (by_name and contender.settings.manual)
    contender = replace(contender, paused_until=LONG_AGO, stays_until=LONG_AGO, allowed=allowed)
    contender = replace(contender, rest_s=0.0, rests_until=LONG_AGO)
    if not rests or contender.session.stage is not Stage.ABSENT:
        return contender
    return want_session_anew(contender)


def stop(contender: Contender, reason: Reason, now: float) -> Contender:
    """Wind up in order, with this reason for the hooks."""
    tenure = contender.tenure and contender.tenure.lose(reason, now, within_s=contender.lease.lose_time_s)
    return replace(contender, winding_up=True, departing=False, tenure=tenure)


def depart(contender: Contender, now: float, reason: Reason = Reason.CONFIG_CHANGED) -> Contender:
    """Wind up in order while this process goes on, as when the file no longer has this item."""
    contender = replace(contender, next_settings=None)
    return replace(stop(contender, reason, now), departing=True)
