"""The state of one item of the file, as this node takes part in it: an election or a semaphore.

A contender has a lock (what this node knows of Consul), the session that it contends with, a tenure while it
holds, and the lanes beside them. The two kinds of item differ in their lock alone. This module reads a
contender and never changes one. It computes when the contender needs a step, whether it may act or try, and
its role. ``creation.py`` makes contenders, ``lifecycle.py`` changes them.
"""

from collections.abc import Callable, Mapping

from supervisor.core.actions import Fault, Record, Role
from supervisor.core.beside.candidate_check import Health
from supervisor.core.beside.maintenance import Maintenance
from supervisor.core.beside.on_change import Change
from supervisor.core.beside.service import Service
from supervisor.core.beside.throttle import Throttle
from supervisor.core.claim import correction as corrections
from supervisor.core.claim.claim import Claim, Standing
from supervisor.core.claim.guard import Guard
from supervisor.core.claim.record import TenureRecord
from supervisor.core.frozen import dataclass, replace
from supervisor.core.jitter import align_to_series, align_to_tick, first_interval_s, next_interval_s
from supervisor.core.lease import EXCLUSIVE_DELAY_S, RETRY_MIN_S, RETRY_SPREAD_S, TRIES_PER_TTL, Lease
from supervisor.core.lock.base import IDLE_PAUSE_S, WATCH_S, Lock
from supervisor.core.machines import session as sessions
from supervisor.core.machines.record import RecordKeeper, record_of
from supervisor.core.machines.session import Session, Stage, Terms
from supervisor.core.machines.tenure import Phase, Tenure
from supervisor.core.requests import Acquire
from supervisor.core.settings import ItemSettings, SessionSettings
from supervisor.core.times import LONG_AGO, NEVER
from supervisor.core.watchdog import Device


@dataclass(frozen=True, slots=True)
class Contender:
    """One item of the file, as this process takes part in it."""

    settings: ItemSettings
    lease: Lease
    # spread, read_offset: those of ``Wanted``, so that neither a fleet nor one process sends its requests at
    # one time.
    spread: float
    session: Session
    change: Change
    health: Health
    lock: Lock
    tenure: Tenure | None = None
    ineligible: bool = False  # a check that the session is bound to is critical
    renewal_failed: bool = False  # the last renewal did not show the session alive
    altered: str = ""  # how the last session differed from the request. Blank: not at all
    own_losses: int = 0  # losses of our own making in a row
    # No session is wanted before this time, because of losses, or so that sessions are not made in a tight
    # loop.
    rejoin_at: float = LONG_AGO
    winding_up: bool = False  # the contender ends in order: on_lose, release, destroy
    departing: bool = False  # the contender winds up because of a reload, and this process goes on
    # The settings of the file that are to replace ``settings``. During a tenure they go on record first.
    next_settings: ItemSettings | None = None
    retry_settings_at: float = LONG_AGO  # ``next_settings`` go on record with the tenure not before this time
    rest_s: float = 0.0  # the rest that follows this tenure, because the contender steps down
    rests_until: float = LONG_AGO  # no session is wanted before this time. LONG_AGO: there is no rest
    paused_until: float = LONG_AGO  # Unix time, for the shell. NEVER: until resume. LONG_AGO: no pause
    stays_until: float = LONG_AGO  # the end of what undrain leaves of the pause. LONG_AGO: it leaves nothing
    # An order for the whole fleet withholds the tries. None: not known yet, so nothing is tried meanwhile.
    withheld: bool | None = False
    allowed: bool = False  # an operator lets this node try once more, although its file says that it must not
    record_keeper: RecordKeeper = RecordKeeper()  # the newest record of this contender in the journal
    told_notice: str = ""  # the notice that was reported last
    told_role: tuple[Role, str] = (Role.WAITING, "")  # the role and the reason of the newest ``RoleChanged``
    faults: tuple[Fault, ...] | None = ()  # the hooks that cannot start. None: not checked yet
    told_faults: tuple[Fault, ...] = ()  # the faults that were reported last
    read_offset: float | None = None
    throttle: Throttle = Throttle()  # the refusals by Consul's rate limits: how long requests wait
    maintenance: Maintenance = Maintenance()  # Consul's maintenance mode, which candidate_check may respect
    service: Service = Service()  # the known state of the service that names this node while it holds
    claim: Claim = Claim()  # the tenure record of the key, and what is settling to it
    watchdog_fault: str = ""  # why the watchdog could not be used when it was tried last. Blank: it could

    @property
    def role(self) -> Role:
        """The role of this node in the item now, as status and log name it.

        The role follows from the contender's parts: from the end of its work, from the phase of its tenure,
        or without a tenure from the reason for which it does not contend. No field stores the role, so the
        role cannot contradict the parts. ``told_role`` has the role that the newest ``RoleChanged`` named,
        because each change is reported once, and a loss not before its reason is known.
        """
        if has_finished(self):
            return Role.STOPPED
        if self.tenure is not None:
            return Role.HOLDING if self.acts_on_record else ROLE_OF_PHASE[self.tenure.phase]
        return next(role for role, applies in ROLES_WITHOUT_TENURE if applies(self))

    @property
    def record(self) -> Record:
        # A debt is on record before the deed, and in the claim with the deed.
        owes = self.claim.owes or (self.session.stage is Stage.LIVE and self.claim.goes_over(self.lock.view))
        pauses, settling = (self.paused_until, self.stays_until), self.claim.settling
        return record_of(self.session, self.tenure, self.settings, *pauses, owes=owes, settling=settling)

    @property
    def paused(self) -> bool:
        return self.paused_until != LONG_AGO

    @property
    def drained(self) -> bool:
        return self.paused_until > self.stays_until

    @property
    def guard(self) -> Guard | None:
        """The guard that keeps this node from acting, until Consul has confirmed its end."""
        tenure = self.tenure
        return self.claim.guard if tenure is not None and tenure.phase is Phase.GUARDING else None

    @property
    def guard_is_over(self) -> bool:
        """Whether the guard has ended, so that the tenure record is to name this session."""
        ended = self.guard is not None and self.guard.end is not None
        return ended and self.tenure is not None and self.tenure.hooks.running is None

    @property
    def reason(self) -> str:
        """The reason of the tenure as status and log name it, or whom it waits for. Blank: there is none."""
        if self.guard is not None:
            return self.guard.waits_for
        return "" if self.tenure is None else str(self.tenure.reason)

    @property
    def our_record(self) -> TenureRecord | None:
        """The tenure record of our session. None: the file has no fence, so there is none."""
        return self.claim.ours(self.settings, self.lease, self.session, self.tenure)

    @property
    def asked_session(self) -> SessionSettings:
        """The session as this node requests it. An exclusive guard keeps rivals out in place of Consul."""
        session, fence = self.settings.session, self.settings.fence
        if fence is None or not fence.exclusive:
            return session
        return replace(session, lock_delay_s=EXCLUSIVE_DELAY_S)

    @property
    def terms(self) -> Terms:
        settings, urgent_s, spread = self.settings, self.urgent_retry_s, self.spread
        session, exchange_s = self.asked_session, self.lease.exchange_s
        is_urgent = self.tenure is not None or self.session.stage is Stage.RELEASING
        retry_s = urgent_s if is_urgent else self.patient_retry_s
        read_s = min(exchange_s, self.lease.interval_s)
        figures = (exchange_s, retry_s, urgent_s, spread, read_s, self.tenure is not None)
        return Terms(settings.name, settings.key, session, *figures)

    @property
    def patient_retry_s(self) -> float:
        """The pause after an unanswered request on which no lock depends: it grows while limits apply."""
        return self.urgent_retry_s + self.throttle.pause_s(self.spread)

    @property
    def urgent_retry_s(self) -> float:
        """The pause after an unanswered renewal, holder's read or release, even while rate limits apply."""
        return 0.0 if self.throttle.drops == 1 else RETRY_MIN_S + RETRY_SPREAD_S * self.spread

    @property
    def renew_within_s(self) -> float:
        ttl_s = self.lease.ttl_s
        if ttl_s is None:
            return sessions.RENEW_WITHOUT_TTL_S
        return ttl_s / TRIES_PER_TTL if self.tenure is not None else ttl_s / 2

    def renew_after(self, at: float, *, first: bool = False) -> float:
        """Return when to renew a session that was created, acquired with or renewed at this time.

        Where one query reads the keys of several elections, a holder renews beside it, unless it would renew
        much more often than needed.
        """
        every_s, reads_s = self.renew_within_s, self.lease.interval_s
        due_at = at + (first_interval_s if first else next_interval_s)(every_s, self.spread)
        if self.read_offset is None:
            return due_at
        some_reads_s = align_to_series(every_s, reads_s, 0.0)
        if self.tenure is not None and some_reads_s >= next_interval_s(every_s, 1.0):
            return align_to_series(at + every_s, reads_s, self.read_offset)
        return align_to_tick(due_at, every_s)

    def read_after(self, contact: float, *, first: bool = False) -> float:
        """Return when a holder whose newest contact is this one reads again.

        A holder reads one interval after its contact. Where one query reads the keys of several elections, a
        holder reads when the next such query is due, if that is sooner.
        """
        interval_s = self.lease.interval_s
        if self.read_offset is None:
            return contact + (first_interval_s if first else next_interval_s)(interval_s, self.spread)
        return align_to_series(contact + interval_s, interval_s, self.read_offset)

    @property
    def is_fit(self) -> bool:
        """Whether this node is able to hold. A node that could not run on_lose must not take over.

        Hooks that are not checked yet count as able to start, and ``may_try`` waits for the check.
        """
        if self.watchdog_fault and self.settings.watchdog is not None and self.settings.watchdog.required:
            return False
        return self.health.fit and self.maintenance.is_fit and not self.faults

    def must_hear_of(self, path: str, device: Device) -> bool:
        """Return whether this is the item's watchdog, with another fault than the one that the item knows."""
        watchdog = self.settings.watchdog
        return watchdog is not None and watchdog.device == path and self.watchdog_fault != device.why_not

    @property
    def may_come_to_hold(self) -> bool:
        """Whether a node without a tenure is to have a session, at once or after its delay or its rest."""
        may = self.settings.contend and self.is_fit and not self.paused and not self.winding_up
        return may and not self.withheld

    @property
    def rests(self) -> bool:
        """Whether no session is wanted for a time, because of a step-down."""
        return self.rests_until != LONG_AGO

    @property
    def final_attempt(self) -> bool:
        """Whether this process ends with this contender, so that it sends each last write only once."""
        return self.winding_up and not self.departing

    @property
    def has_lock(self) -> bool:
        """Whether, as far as this node knows, its session holds. That is also true while it loses."""
        if self.tenure is None or self.session.dead:
            return False
        return self.tenure.taken_at is None and bool(self.session.id)

    @property
    def may_have_lock(self) -> bool:
        """Whether this node holds or loses, or tries to acquire now."""
        return self.tenure is not None or isinstance(self.session.write.pending, Acquire)

    def may_act(self, now: float) -> bool:
        """Return whether this node may act as holder now: on_acquire is done, and the lease is valid.

        It says nothing of the next moment: the lease may end before the caller has acted by the answer. Only
        a hook or ``run`` is stopped in time, and only a resource that checks the fencing token refuses.
        """
        tenure = self.tenure
        return tenure is not None and self.acts and now < tenure.expires_at(self.lease)

    @property
    def acts(self) -> bool:
        """Whether the application acts, as long as belief lasts."""
        tenure = self.tenure
        return tenure is not None and (tenure.phase is Phase.HOLDING or self.acts_on_record)

    @property
    def acts_on_record(self) -> bool:
        """Whether the application of an earlier process acts on while Consul may be silent, by `outage`.

        A run child ended with that process, and with ``on_adopt: acquire`` the application is begun again.
        """
        tenure, settings = self.tenure, self.settings
        if tenure is None or tenure.phase is not Phase.ADOPTING or not tenure.acquire_done:
            return False
        return self.lease.outlasts and settings.run is None and settings.on_adopt == "none"

    def rides_out(self, now: float) -> bool:
        """Return whether this node holds on in a silence of Consul, because of `outage`."""
        tenure, lease = self.tenure, self.lease
        if tenure is None or not tenure.believes or not lease.outlasts:
            return False
        return now - tenure.contact > lease.fresh_s

    @property
    def shown_s(self) -> float:
        """How long the newest view of the lock may be shown as true.

        A rival of a dead holder may hold after twice the TTL and the lock-delay. While Consul answers, the
        next answer of the watch comes sooner than that, or within ``WATCH_S``.
        """
        delay_s = max(self.lease.lockout_s, self.lock.holder_delay_s or 0.0)
        return max(2 * (self.lease.ttl_s or 0.0) + delay_s, WATCH_S + IDLE_PAUSE_S)

    @property
    def may_try(self) -> bool:
        """Whether this node may attempt to take the free lock once its observation is young enough."""
        session = self.session
        if self.tenure is not None or self.winding_up or not self.lock.is_free:
            return False
        if self.withheld is not False or self._must_look_first:
            return False
        if self.correction is not None or self.claim.memory.doubts(self.lock.view):
            return False  # else this node would wait for what it is about to write
        if self.settings.manual and not self.allowed and not self.lock.is_handed_to(session.id):
            return False
        ready = session.may_write and session.verified and self.faults is not None
        # The first try waits for the record of the session. A try over a tenure record waits until the record
        # says so, because a process that starts after a crash then keeps the key's flags in its release.
        return ready and self.record_keeper.has_session(session.id, owes=self.claim.goes_over(self.lock.view))

    @property
    def takes_hints(self) -> bool:
        """Whether this node asks any server about the key, beside the leading one."""
        if self.settings.fence is None or self.lock.view is None:
            return False
        waits = self.session.stage is Stage.LIVE and not self.session.ending
        return waits if self.tenure is None else self.tenure.believes

    @property
    def _must_look_first(self) -> bool:
        return self.settings.fence is not None and self.claim.standing is Standing.UNSEEN

    @property
    def first_try_awaits_look(self) -> bool:
        """Whether nothing but a look at the tenure record is wanting before the first try of the session."""
        session = self.session
        return self._must_look_first and self.tenure is None and session.verified and session.may_write

    @property
    def others_record(self) -> TenureRecord | None:
        return corrections.others_record(self.claim, self.session, self.tenure)

    @property
    def stray(self) -> TenureRecord | None:
        return corrections.stray(self.claim, self.lock.view, self.others_record)

    @property
    def correction(self) -> TenureRecord | None:
        """What this node must write in the place of the tenure record that it has read. None: nothing."""
        if self.claim.record is None:
            return None
        looks, ours = self.first_try_awaits_look or self.claim.settles, self.our_record
        return corrections.correction(
            self.claim, self.lock.view, self.session, self.tenure, ours, looks=looks
        )

    @property
    def record_fault(self) -> str:
        """What a person must put right in the tenure record of another session. Blank: nothing."""
        other, name = self.others_record, self.settings.name
        if other is None:
            return ""
        return corrections.fault(name, self.claim, self.lock.view, other, self.our_record)

    @property
    def rewrite_due_at(self) -> float:
        """When the key that our session holds gets the value of the file, or its tenure record.

        NEVER: it has both.
        """
        session, tenure = self.session, self.tenure
        if not session.may_write or not self.lock.has_entry(session.id):
            return NEVER
        if tenure is not None and tenure.phase is Phase.GUARDING:
            return session.retry_at if self.guard_is_over else NEVER
        if tenure is not None and tenure.phase not in (Phase.ACQUIRING, Phase.HOLDING):
            return NEVER
        if self.settings.fence is not None and not self.record_keeper.has_session(session.id, owes=True):
            return NEVER  # a debt is on record before the deed
        if self.claim.owes and self.claim.record is None:
            return NEVER  # the tenure record is read first: it is written over by its index, or kept
        due_at = session.rewrite_due_at(self.settings.value)
        if due_at != NEVER or tenure is None:
            return due_at
        if self.claim.lacks(self.lock.view, session.id, self.our_record):
            return session.retry_at
        return tenure.repair_at if tenure.overwritten else NEVER

    @property
    def deadline(self) -> float:
        """When this contender needs a step at the latest; a step at that time moves the deadline on."""
        if has_finished(self):
            return NEVER
        return min(self.work_deadline, self.session.renew.deadline, self.lock.read.deadline)

    @property
    def work_deadline(self) -> float:
        """The deadline of all but the next renewal and the next read, which nothing else waits for."""
        session, lock, keeper, health = self.session, self.lock, self.record_keeper, self.health
        times = [session.write.deadline, self.rewrite_due_at, lock.watch.deadline, lock.details.deadline]
        times.append(self.claim.lane.deadline)
        if self.takes_hints:
            times.append(lock.hint.deadline)
        times += (self.maintenance.read.deadline, health.deadline, keeper.due_at)
        if self.rests:
            times.append(self.rests_until)
        if not self.winding_up:
            times.append(self.change.deadline)
        if self.tenure is None:
            times.append(self.lock.try_deadline() if self.may_try else NEVER)
        else:
            times.append(self.tenure.deadline(self.lease))
        if self.guard is not None:
            times.append(self.guard.deadline(self.settings.fence))
        if self.tenure is None or self.tenure.phase is not Phase.ADOPTING or self.acts_on_record:
            times.append(self.service.exchange.deadline)
        return min(times)


# --- the role of this node -----------------------------------------------------------------------

ROLE_OF_PHASE: Mapping[Phase, Role] = {
    Phase.ADOPTING: Role.ACQUIRING,
    Phase.GUARDING: Role.ACQUIRING,
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
    (Role.PAUSED, lambda contender: contender.paused or contender.withheld is True),
    (Role.INELIGIBLE, lambda contender: contender.ineligible or not contender.is_fit),
    (Role.RESTING, lambda contender: contender.rests),
    (Role.WAITING, lambda contender: True),
)
"""The first role whose condition is true is the contender's."""


def has_finished(contender: Contender) -> bool:
    """Return whether the contender has wound up: nothing runs, and nothing is left to do."""
    if not contender.winding_up or not has_let_go(contender):
        return False
    # A successor in this process waits until nothing is left on record.
    is_forgotten = contender.final_attempt or contender.record_keeper.kept == contender.record
    return contender.change.idle and contender.health.idle and is_forgotten


def has_let_go(contender: Contender) -> bool:
    """Return whether the contender owes nothing more to Consul or to a hook of its tenure.

    One that is stuck, or waits for the end of a process, can do nothing more, and goes on with this process.
    """
    if (tenure := contender.tenure) is not None:
        waits = tenure.phase is Phase.LOST and bool(tenure.survivors)
        return (waits or tenure.phase is Phase.STUCK) and not contender.departing
    return contender.session.stage is Stage.ABSENT and not contender.claim.settles
