"""One item of the file, as this node takes part in it: an election or a semaphore.

A contender has a lock (what this node knows of Consul), the session that it contends with, a tenure
while it holds, and the lanes beside them. The two kinds of item differ in their lock alone. This module
says how a tenure and a session begin and end; ``core.reducer`` says what an event means, and
``core.scheduler`` what is due.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from supervisor.core import candidate_check as healths
from supervisor.core import record as records
from supervisor.core import session as sessions
from supervisor.core.actions import EMPTY_RECORD, Fault, Reason, Record, Role, Step
from supervisor.core.candidate_check import Health
from supervisor.core.frozen import replace
from supervisor.core.jitter import align_to_tick, first_interval_s, next_interval_s
from supervisor.core.lane import LONG_AGO, NEVER
from supervisor.core.lease import RETRY_MIN_S, RETRY_SPREAD_S, Lease, lease_of
from supervisor.core.lock.base import Lock, Observation
from supervisor.core.lock.election import ElectionLock
from supervisor.core.lock.semaphore import SemaphoreLock
from supervisor.core.on_change import Change
from supervisor.core.outcomes import View
from supervisor.core.record import RecordKeeper
from supervisor.core.session import Session, Stage, Terms
from supervisor.core.settings import ItemSettings, SemaphoreSettings, Wanted
from supervisor.core.tenure import OUR_OWN_MAKING, Phase, Tenure
from supervisor.core.throttle import Throttle

REJOIN_DELAY_MAX_S = 300.0
OWN_LOSSES_MAX = 16  # the delay has long been at its maximum
STEADY_S = 600.0  # after so long as holder the next loss of our own making counts as the first


@dataclass(frozen=True, slots=True)
class Contender:
    """One item of the file as this process takes part in it.

    spread, read_offset: those of ``Wanted``, so that neither a fleet nor one process asks in step.
    ineligible: a check that the session is bound to is critical.
    renewal_unanswered: the last renewal had no answer.
    altered: how the last session differed from the one that was asked for. Blank: it did not.
    own_losses: losses of our own making in a row.
    rejoin_at: no session is wanted before this time, because of losses, or so that sessions are not made in a
        tight loop.
    winding_up: the contender ends in order: on_lose, release, destroy.
    departing: the contender winds up, while this process goes on.
    next_settings: the settings of the file, while a tenure that others began is not adopted or wound up yet.
    retry_settings_at: ``next_settings`` go on record with the tenure not before this time.
    rest_s: the rest that follows this tenure, because the contender steps down.
    rests_until: no session is wanted before this time. LONG_AGO: there is no rest.
    record_keeper: what a crash of ours would not forget.
    last_notice: what the operator was told last.
    reported: the role and the reason that the newest ``RoleChanged`` has named.
    faults: the hooks that cannot start on this machine. None: nobody knows yet.
    told_faults: the faults that the operator was told last.
    throttle: how far Consul's rate limits hold this contender off.
    """

    settings: ItemSettings
    lease: Lease
    spread: float
    session: Session
    change: Change
    health: Health
    lock: Lock
    tenure: Tenure | None = None
    ineligible: bool = False
    renewal_unanswered: bool = False
    altered: str = ""
    own_losses: int = 0
    rejoin_at: float = LONG_AGO
    winding_up: bool = False
    departing: bool = False
    next_settings: ItemSettings | None = None
    retry_settings_at: float = LONG_AGO
    rest_s: float = 0.0
    rests_until: float = LONG_AGO
    paused: bool = False
    record_keeper: RecordKeeper = RecordKeeper()
    last_notice: str = ""
    reported: tuple[Role, str] = (Role.WAITING, "")
    faults: tuple[Fault, ...] | None = ()
    told_faults: tuple[Fault, ...] = ()
    read_offset: float | None = None
    throttle: Throttle = Throttle()

    @property
    def role(self) -> Role:
        """What this node is in the item now: see ``role_of``."""
        return role_of(self)

    @property
    def terms(self) -> Terms:
        """What every exchange of this contender has in common."""
        settings = self.settings
        exchange_s = self.lease.exchange_s
        urgent_s, hurries = self.urgent_retry_s, self.session.stage is Stage.RELEASING
        retry_s = urgent_s if hurries or self.tenure is not None else self.retry_s
        session, spread = settings.session, self.spread
        return Terms(settings.name, settings.key, session, exchange_s, retry_s, urgent_s, spread)

    @property
    def retry_s(self) -> float:
        """The pause after an exchange without an answer: longer while Consul takes no more requests."""
        return self.urgent_retry_s + self.throttle.pause_s(self.spread)

    @property
    def urgent_retry_s(self) -> float:
        """The same for what keeps or gives back the lock: no rate limit makes it longer."""
        return RETRY_MIN_S + RETRY_SPREAD_S * self.spread

    @property
    def renew_within_s(self) -> float:
        """The longest time from one renewal to the next."""
        ttl_s = self.lease.ttl_s
        if ttl_s is None:
            return sessions.RENEW_WITHOUT_TTL_S
        return ttl_s / 3 if self.tenure is not None else ttl_s / 2

    def renew_after(self, at: float, *, first: bool = False) -> float:
        """When a session is renewed that was made, won with or renewed at this time."""
        every_s = self.renew_within_s
        due_at = at + (first_interval_s if first else next_interval_s)(every_s, self.spread)
        return due_at if self.read_offset is None else align_to_tick(due_at, every_s)

    def read_after(self, contact: float, *, first: bool = False) -> float:
        """When a holder reads that had news of this time: after an interval, or where others' questions
        are asked together with its own, when the next of theirs is due."""
        interval_s = self.lease.interval_s
        if self.read_offset is None:
            return contact + (first_interval_s if first else next_interval_s)(interval_s, self.spread)
        parts = math.floor(contact / interval_s - self.read_offset) + 1
        together_at = (parts + self.read_offset) * interval_s
        return together_at if contact < together_at <= contact + interval_s else contact + interval_s

    @property
    def is_fit(self) -> bool:
        """Whether this node may come to hold. A node that could not run on_lose must not take over."""
        return self.health.fit and not self.paused and not self.faults

    @property
    def final_attempt(self) -> bool:
        """Whether this process ends with this contender: then one unanswered try of a write must do."""
        return self.winding_up and not self.departing

    @property
    def has_lock(self) -> bool:
        """Whether, as far as this node knows, its session holds."""
        if self.tenure is None or self.session.dead:
            return False
        return self.tenure.taken_at is None and bool(self.session.id)

    def may_act(self, now: float) -> bool:
        """Return whether this node may act as holder now: on_acquire is done, and the lease is valid."""
        tenure = self.tenure
        return tenure is not None and tenure.phase is Phase.HOLDING and now < tenure.expires_at(self.lease)

    @property
    def may_try(self) -> bool:
        """Whether this node may try for what is free, as soon as its news of that is young enough."""
        session = self.session
        ready = session.stage is Stage.LIVE and not session.ending and session.write.pending is None
        ready = ready and session.verified and self.is_fit and self.faults is not None
        ready = ready and self.record_keeper.has_session(session.id)
        return ready and self.lock.is_free and self.tenure is None and not self.winding_up

    @property
    def has_stale_value(self) -> bool:
        """Whether what our session holds has another value than the file says, or may have."""
        session, tenure = self.session, self.tenure
        live = session.stage is Stage.LIVE and not session.ending and session.write.pending is None
        if not live or not session.is_value_stale(self.settings.value) or not self.lock.has_entry(session.id):
            return False
        return tenure is None or tenure.phase in (Phase.ACQUIRING, Phase.HOLDING)

    @property
    def deadline(self) -> float:
        """When this contender wants a turn at the latest; every step at that time moves it on."""
        if has_finished(self):
            return NEVER
        times = [self.session.deadline, self.lock.deadline, self.record_keeper.deadline, self.health.deadline]
        if self.rests_until != LONG_AGO:
            times.append(self.rests_until)
        if not self.winding_up:
            times.append(self.change.deadline)
        if self.tenure is not None:
            times.append(self.tenure.deadline(self.lease))
        if self.may_try:
            times.append(self.lock.try_deadline())
        if self.has_stale_value:
            times.append(self.session.rewrite_at)
        return min(times)


def new_contender(
    settings: ItemSettings,
    *,
    spread: float,
    instance: str,
    record: Record = EMPTY_RECORD,
    recorded: ItemSettings | None = None,
    now: float = 0.0,
) -> Contender:
    """A contender that has not asked Consul anything yet; its first step is due at once.

    ``record``: what an earlier process left on record, by which this one goes on. ``recorded``: the
    settings that it was made with; until its tenure is adopted or wound up they are in force.
    """
    tenure = records.tenure_from(record, now)
    next_settings = None
    if tenure is not None and recorded is not None and recorded != settings:
        settings, next_settings = recorded, settings
    contender = Contender(
        settings=settings,
        next_settings=next_settings,
        lease=lease_of(settings),
        spread=spread,
        session=records.session_from(record, recorded, now),
        change=Change(instance),
        health=healths.new_health(settings),
        lock=_lock_of(settings),
        tenure=tenure,
        reported=(Role.WAITING if settings.contend else Role.OBSERVER, ""),
        paused=record.paused,
        record_keeper=RecordKeeper(kept=record if record == EMPTY_RECORD else None),
    )
    if tenure is not None:
        return replace(contender, lock=contender.lock.restored_from(tenure).read_by(now))
    return want_session(contender, LONG_AGO)


def contender_of(
    wanted: Wanted,
    *,
    instance: str,
    now: float,
    record: Record = EMPTY_RECORD,
    recorded: ItemSettings | None = None,
) -> Contender:
    """The same, as one of many: what it goes on with is not delayed."""
    contender = new_contender(
        wanted.settings, spread=wanted.spread, instance=instance, record=record, recorded=recorded, now=now
    )
    faults = None if wanted.unchecked and wanted.settings.contend else ()
    contender = replace(contender, read_offset=wanted.read_offset, faults=faults)
    if not wanted.delay_s or record.step is not Step.NONE:
        return contender
    return asks_anew(replace(contender, rejoin_at=now + wanted.delay_s))


def inherits(heir: Contender, *, paused: bool, rejoin_at: float, rests_until: float) -> Contender:
    """An heir that has not begun keeps to what was said of the item before it: its pause and its rest."""
    return asks_anew(replace(heir, paused=paused, rejoin_at=rejoin_at, rests_until=rests_until))


def asks_anew(contender: Contender) -> Contender:
    """Forget when a session was to be created: that follows from the contender as it is now."""
    return want_session(replace(contender, session=contender.session.not_wanted()), LONG_AGO)


def _lock_of(settings: ItemSettings) -> Lock:
    return (
        SemaphoreLock().follows(settings, LONG_AGO)
        if isinstance(settings, SemaphoreSettings)
        else ElectionLock()
    )


def departing_contender(
    settings: ItemSettings, *, spread: float, instance: str, record: Record, now: float
) -> Contender:
    """A contender that is on record and not in the file as it is now: to be wound up, no more."""
    return depart(new_contender(settings, spread=spread, instance=instance, record=record, now=now), now)


def stop(contender: Contender, reason: Reason, now: float) -> Contender:
    """Wind up, in order."""
    tenure = contender.tenure
    return replace(contender, winding_up=True, departing=False, tenure=tenure and tenure.lose(reason, now))


def change_settings(
    contender: Contender, settings: ItemSettings, now: float, *, unchecked: bool
) -> Contender:
    """The file has others for it, by which it can go on: at once, unless a tenure has begun by those in
    force. ``unchecked``: whether their hooks can start is not known yet."""
    next_settings = None if settings == contender.settings else settings
    contender = replace(contender, next_settings=next_settings, retry_settings_at=LONG_AGO)
    if unchecked and settings.contend:
        contender = replace(contender, faults=None)
    return contender if contender.tenure is not None else apply_file_settings(contender, now)


def depart(contender: Contender, now: float) -> Contender:
    """Wind up, in order, while this process goes on, and then be gone."""
    contender = replace(contender, next_settings=None)
    return replace(stop(contender, Reason.CONFIG_CHANGED, now), departing=True)


def step_down(contender: Contender, for_s: float, now: float) -> Contender:
    """Give up what is held, and rest after that."""
    tenure = contender.tenure
    if tenure is None or not tenure.believes:
        return contender
    return replace(contender, tenure=tenure.lose(Reason.STEP_DOWN, now), rest_s=for_s)


def resume(contender: Contender, now: float) -> Contender:
    """Contend again, at once: a rest ends here, or does not follow a tenure that steps down."""
    rests = now < contender.rests_until
    contender = replace(contender, paused=False, rest_s=0.0, rests_until=LONG_AGO)
    if not rests or contender.session.stage is not Stage.ABSENT:
        return contender
    return asks_anew(contender)


def want_session(contender: Contender, at: float) -> Contender:
    """A session is to be created at that time, unless this node does not contend now."""
    if not contender.settings.contend or contender.paused:
        return contender
    wanted_at = max(at, contender.rejoin_at, contender.rests_until)
    return replace(contender, session=contender.session.wanted(wanted_at))


def lease_by(contender: Contender, settings: ItemSettings) -> Lease:
    """The lease by these settings. A holder counts on no more than others are told of it; who has no
    slot yet tells them anew with the one that it takes."""
    lock = contender.lock
    if contender.tenure is None or not isinstance(lock, SemaphoreLock):
        return lease_of(settings)
    return lease_of(settings, min(settings.guard_s, lock.guard_s))


def observe(contender: Contender, observation: Observation, now: float) -> Contender:
    """This is how it is from now on; ``on_change`` may have to be told."""
    lock, tenure, contends = contender.lock, contender.tenure, contender.settings.contend
    lock = (
        lock.with_observation(observation, contender.session.id, now)
        if contends
        else lock.with_observation_as_observer(observation, now)
    )
    change = contender.change.observe(observation.view) if lock.is_complete else contender.change
    contender = replace(contender, lock=lock, change=change)
    if not isinstance(lock, SemaphoreLock) or not contends:
        return contender
    tenure = tenure and replace(tenure, holders=observation.view.holders)
    return replace(contender, tenure=tenure, lease=lease_by(contender, contender.settings))


def begin_tenure(contender: Contender, view: View, contact: float, now: float) -> Contender:
    """Consul itself says that our session holds; when that is old news, ask anew."""
    if now >= contact + contender.lease.room_s:
        return replace(contender, lock=contender.lock.must_reread(now + contender.retry_s))
    hold = view.hold_of(contender.session.id)
    assert hold is not None, f"{view} does not show {contender.session.id} as holder"
    tenure = Tenure(
        session=contender.session.id,
        token=hold.token,
        create_index=hold.create_index,
        lock_index=hold.lock_index,
        contact=contact,
        leader=hold.value,
        previous_leader=contender.change.last_leader,
    )
    observation = Observation(view, contact, now, consistent=True, is_stale=False)
    contender = observe(replace(contender, tenure=tenure), observation, now)
    renew = contender.session.renew.schedule_by(contender.renew_after(now, first=True))
    lock = contender.lock.acquired(hold.token, contender.read_after(contact, first=True))
    return replace(contender, session=replace(contender.session, renew=renew), lock=lock)


def session_died(contender: Contender, now: float) -> Contender:
    """Without a release: unless a rival is named already, Consul guards the lock for now."""
    tenure = contender.tenure
    rejoin_at = max(contender.rejoin_at, now + sessions.CREATE_SPACING_S)
    session = contender.session.died()
    if tenure is None:
        session = session.end(now, final_attempt=contender.final_attempt)
        return replace(contender, session=session, rejoin_at=rejoin_at)
    tenure = tenure if contender.lock.is_held_by_other(tenure.session) else tenure.still_guarded()
    tenure = tenure.with_reason(Reason.SESSION_INVALIDATED)
    return replace(contender, session=session, tenure=tenure, rejoin_at=rejoin_at)


def session_altered(contender: Contender, why: str, now: float) -> Contender:
    """Consul has another session than was asked for, so its lock-delay may be shorter than the lease counts
    on: this node never holds with it, and a tenure that already has it is given up in order, at once."""
    rejoin_at = max(contender.rejoin_at, now + sessions.ALTERED_RETRY_S)
    contender = replace(contender, altered=why, rejoin_at=rejoin_at)
    if contender.tenure is not None:
        return replace(contender, tenure=contender.tenure.lose(Reason.SESSION_ALTERED, now))
    return replace(contender, session=contender.session.end(now, final_attempt=contender.final_attempt))


def release_once_recorded(contender: Contender, tenure: Tenure, now: float) -> Contender:
    """Not before it is on record that nothing of the tenure is left to do: a release that is applied
    late must not meet a process that has adopted the tenure."""
    if not contender.record_keeper.has_tenure(tenure.session):
        return _wind_up(contender, tenure, now)
    if contender.final_attempt and contender.record_keeper.refused is not None:
        # Neither release nor record can be had: the session is left to its TTL.
        return replace(contender, tenure=None, session=contender.session.abandoned(tenure.session))
    return contender


def _wind_up(contender: Contender, tenure: Tenure, now: float) -> Contender:
    """The tenure is over and its hooks are done: now the lock may go."""
    own_losses, rejoin_at = min(contender.own_losses, OWN_LOSSES_MAX), contender.rejoin_at
    rests_until = contender.rests_until
    if tenure.held_at is not None and now - tenure.held_at >= STEADY_S:
        own_losses = 0
    if tenure.reason is Reason.STEP_DOWN:
        rests_until = now + contender.rest_s if contender.rest_s else LONG_AGO
    elif tenure.reason in OUR_OWN_MAKING:
        delay_s = min(contender.settings.rejoin_delay_s * 2**own_losses, REJOIN_DELAY_MAX_S)
        own_losses, rejoin_at = own_losses + 1, now + delay_s
    contender = apply_file_settings(contender, now)
    return replace(
        contender,
        tenure=None,
        session=contender.session.end(now, final_attempt=contender.final_attempt),
        lock=contender.lock.released(failed=tenure.reason in OUR_OWN_MAKING),
        own_losses=own_losses,
        rejoin_at=rejoin_at,
        rests_until=rests_until,
    )


def apply_file_settings(contender: Contender, now: float) -> Contender:
    """Nothing that was begun by the settings on record goes on by them: those of the file are in force,
    and go on record."""
    settings = contender.next_settings
    if settings is None:
        return contender
    lock, tenure = contender.lock, contender.tenure
    if isinstance(lock, SemaphoreLock) and isinstance(settings, SemaphoreSettings):
        lock = lock.follows(settings, now)
    lease = lease_by(contender, settings)
    if tenure is not None and tenure.believes:  # a smaller room wants news sooner
        lock = lock.read_by(tenure.contact + lease.interval_s)
    health = contender.health
    if not healths.is_same_check(settings, contender.settings):
        health = healths.new_health(settings).after(health)
    return replace(
        contender,
        settings=settings,
        next_settings=None,
        retry_settings_at=LONG_AGO,
        lock=lock,
        lease=lease,
        health=health,
        record_keeper=replace(contender.record_keeper, outdated=True),
    )


def release_unwanted(contender: Contender, now: float) -> Contender:
    """Won, but paused or found unfit since the try was sent; or shown as the holder without any try."""
    session = contender.session
    unfit_in_line = contender.lock.queues and session.verified and session.tried
    assert not unfit_in_line, "a contender that may not hold has left the line at once"
    return replace(contender, session=contender.session.end(now, final_attempt=contender.final_attempt))


# --- what this node is in the item ---------------------------------------------------------------

ROLE_OF_PHASE: Mapping[Phase, Role] = {
    Phase.ADOPTING: Role.ACQUIRING,
    Phase.ACQUIRING: Role.ACQUIRING,
    Phase.HOLDING: Role.HOLDING,
    Phase.STOPPING: Role.LOSING,
    Phase.LOSING: Role.LOSING,
    Phase.LAST_RESORT: Role.LOSING,
    Phase.LOST: Role.LOSING,
    Phase.STUCK: Role.STUCK,
}
ROLES_WITHOUT_TENURE: tuple[tuple[Role, Callable[[Contender], bool]], ...] = (
    (Role.OBSERVER, lambda contender: not contender.settings.contend),
    (Role.PAUSED, lambda contender: contender.paused),
    (Role.INELIGIBLE, lambda contender: not _is_eligible(contender)),
    (Role.RESTING, lambda contender: contender.rests_until != LONG_AGO),
    (Role.WAITING, lambda contender: True),
)
"""The first role whose condition is true is the contender's."""


def role_of(contender: Contender) -> Role:
    """Return what this node is in the item now, as status and log name it.

    The role follows from the contender's parts: from the end of its work, from the phase of its tenure, or
    without a tenure from what keeps it from contending. No field stores the role, so the role cannot
    contradict the parts. ``Contender.reported`` remembers which role the newest ``RoleChanged`` has named,
    because each change is reported once, and a loss not before its reason is known.
    """
    if has_finished(contender):
        return Role.STOPPED
    if contender.tenure is not None:
        return ROLE_OF_PHASE[contender.tenure.phase]
    return next(role for role, applies in ROLES_WITHOUT_TENURE if applies(contender))


def has_finished(contender: Contender) -> bool:
    """Return whether the contender has wound up: nothing runs, and nothing is left to be done."""
    if not contender.winding_up or not has_let_go(contender):
        return False
    return contender.change.idle and contender.health.idle and _may_be_forgotten(contender)


def has_let_go(contender: Contender) -> bool:
    """Return whether the contender owes nothing more to Consul or to a hook of its tenure.

    A stuck contender can do nothing more. It keeps the lock while this process goes on.
    """
    if contender.tenure is not None:
        return contender.tenure.phase is Phase.STUCK and not contender.departing
    return contender.session.stage is Stage.ABSENT


def record_of(contender: Contender) -> Record:
    """Return what would have to be on record now."""
    settings, paused = contender.settings, contender.paused
    return records.record_of(contender.session, contender.tenure, settings, paused=paused)


def _may_be_forgotten(contender: Contender) -> bool:
    """Return whether nothing is left on record; a successor in this process waits for that."""
    return contender.final_attempt or contender.record_keeper.kept == record_of(contender)


def _is_eligible(contender: Contender) -> bool:
    return contender.health.fit and not contender.ineligible and not contender.faults
