"""The record of one contender, and how a process that starts goes on with it.

The record follows from the session and the tenure, and is written anew whenever it would change. Three things
wait for it: the first acquire of a session, the first hook of a tenure, and the release after the last hook.
So do another file's settings, and the next contender of the same key. on_lose does not: while belief would
still last the record of the loss is written first, but on_lose begins also if that fails. A record that could
not be written is tried again.
"""

from math import inf, nextafter

from supervisor.core.actions import Point, Reason, Record, WriteRecord
from supervisor.core.events import RecordWritten
from supervisor.core.frozen import dataclass, replace
from supervisor.core.machines.lane import Lane
from supervisor.core.machines.session import Session, Stage
from supervisor.core.machines.tenure import Phase, Tenure
from supervisor.core.settings import ItemSettings
from supervisor.core.times import LONG_AGO, NEVER

RECORD_RETRY_S = 1.0  # a full disk: soon enough after it has room, rare enough for the log


@dataclass(frozen=True, slots=True)
class RecordKeeper:
    """The record in the journal, and the record that could not be written."""

    kept: Record | None = None  # the record in the journal. None: this process has not written it yet
    outdated: bool = False  # the record was written with settings that are no longer in force
    refused: Record | None = None  # the record that could not be written, to be tried again at ``due_at``
    due_at: float = NEVER  # NEVER: no record was refused
    found_s: float = 0.0  # ``leased_s`` of the record with which this process began

    def has_session(self, session: str, *, owes: bool = False) -> bool:
        return self.kept is not None and self.kept.session == session and (self.kept.owes or not owes)

    def has_tenure(self, session: str) -> bool:
        return self.has_session(session) and self.kept is not None and self.kept.step in _BEGUN

    def leased_s(self, tenure: Tenure) -> float:
        """Return how far the belief of this tenure counts by its tenure record: see ``Tenure``."""
        if not tenure.recorded:
            return tenure.leased_s  # nothing of it has begun
        return min(tenure.leased_s, self.in_journal_s)

    @property
    def in_journal_s(self) -> float:
        """What the journal says of ``leased_s``."""
        return self.found_s if self.kept is None else self.kept.leased_s

    def answered(self, event: RecordWritten, now: float) -> "RecordKeeper":
        if event.ok:
            return RecordKeeper(kept=event.write.record)
        return replace(self, refused=event.write.record, due_at=now + RECORD_RETRY_S)


_BEGUN = (Point.TENURE, Point.HOLDING, Point.LOSING, Point.STUCK)


def advance(
    record_keeper: RecordKeeper, truth: Record, settings: ItemSettings, now: float
) -> tuple[RecordKeeper, tuple[WriteRecord, ...]]:
    """Return what to write, unless the journal has the truth. What it refused waits, in the same step."""
    kept, refused = record_keeper.kept, record_keeper.refused
    if truth == kept and not record_keeper.outdated:
        return replace(record_keeper, refused=None, due_at=NEVER), ()
    same = refused is not None and (refused.step, refused.session) == (truth.step, truth.session)
    waits = same and now < record_keeper.due_at
    return record_keeper, () if waits else (WriteRecord(settings.name, truth, settings),)


def record_of(
    session: Session,
    tenure: Tenure | None,
    settings: ItemSettings,
    paused_until: float,
    stays_until: float,
    *,
    owes: bool,
    settling: str | None,
) -> Record:
    """Return the record that a process which starts now would need. owes, settling: those of the claim.

    Of a tenure that has only guarded, nothing acts, so its session alone is on record.
    """
    # An acquire may have been applied that no process lives to see answered.
    owes, delay_s = owes or settings.fence is not None, session.asked_delay_s
    if delay_s == settings.session.lock_delay_s:
        delay_s = None
    pause = _pause(paused_until, stays_until)
    if tenure is None or tenure.is_idle:
        left = session.id or settling or session.abandoned_id
        if not left:
            return pause
        return replace(
            pause,
            step=Point.SESSION,
            key=settings.key,
            session=left,
            owes=owes,
            asked_delay_s=delay_s,
        )
    return replace(
        pause,
        step=_step_of(tenure),
        key=settings.key,
        session=tenure.session,
        token=tenure.token,
        create_index=tenure.create_index,
        lock_index=tenure.lock_index,
        contact=tenure.contact,
        taken_at=tenure.taken_at,
        leader=tenure.leader,
        previous_leader=tenure.previous_leader,
        reason=tenure.reason,
        foreign=tenure.session != session.id,
        note=tenure.note,
        slot=tenure.slot,
        owes=owes,
        asked_delay_s=delay_s,
        leased_s=tenure.leased_s,
        stopped_at=None if tenure.stopped_at == NEVER else tenure.stopped_at,
    )


def _pause(paused_until: float, stays_until: float) -> Record:
    return Record(
        paused=paused_until != LONG_AGO,
        pause_ends_at=paused_until if LONG_AGO < paused_until < NEVER else None,
        stays_until=None if stays_until == LONG_AGO else 0.0 if stays_until == NEVER else stays_until,
    )


def paused_until(record: Record) -> float:
    """Return the Unix time until which the record has a pause. NEVER: until resume. LONG_AGO: it has none."""
    if not record.paused:
        return LONG_AGO
    return NEVER if record.pause_ends_at is None else record.pause_ends_at


_STEPS = {
    Phase.ADOPTING: Point.TENURE,
    Phase.ACQUIRING: Point.TENURE,
    Phase.HOLDING: Point.HOLDING,
    Phase.STOPPING: Point.LOSING,
    Phase.LOSING: Point.LOSING,
    Phase.LAST_RESORT: Point.LOSING,
    Phase.LOST: Point.LOSING,  # a process of it still exists
    Phase.STUCK: Point.STUCK,
}


def _step_of(tenure: Tenure) -> Point:
    if tenure.phase is Phase.ADOPTING and tenure.acquire_done:
        return Point.HOLDING
    return _STEPS[tenure.phase]


# --- a process that starts -----------------------------------------------------------------------


def goes_on_with(in_force: ItemSettings, settings: ItemSettings) -> bool:
    """Return whether a tenure by the settings in force may go on by those of the file.

    It may not if the new settings count on a longer lock-delay or prune delay than the rivals know.
    """
    same_lock = (settings.kind, settings.key) == (in_force.kind, in_force.key)
    same_session = settings.session == in_force.session and settings.lockout_s <= in_force.lockout_s
    return settings.contend and same_lock and same_session


def is_adoptable(record: Record, recorded: ItemSettings, settings: ItemSettings) -> bool:
    """Return whether an item, as the file has it now, may go on with this record."""
    return record.step is Point.NONE or goes_on_with(recorded, settings)


def session_from(record: Record, recorded: ItemSettings | None, now: float) -> Session:
    """Return the session on record; a session without a tenure ends.

    Where the settings on record name another value than the record itself, the process that crashed may have
    written either of them, so the value is written again.
    """
    if record.step is Point.NONE or record.foreign:
        return Session()
    session = Session(
        Stage.LIVE, record.session, renew=Lane(due_at=now), tried=True, last_value=record.leader
    )
    delay_s = record.asked_delay_s
    if delay_s is None and recorded is not None:
        delay_s = recorded.session.lock_delay_s
    session = replace(session, asked_delay_s=delay_s)
    if recorded is not None and recorded.value != record.leader:
        session = replace(session, rewrite_at=now)
    return session.end(now, final_attempt=False) if record.step is Point.SESSION else session


def tenure_from(record: Record, now: float) -> Tenure | None:
    """Return the tenure on record, which is to be adopted, has on_lose to run from the start, or is stuck."""
    if record.step in (Point.NONE, Point.SESSION):
        return None
    phase, reason = Phase.ADOPTING, Reason.ADOPTED
    if record.step is Point.STUCK and not record.foreign:
        phase, reason = Phase.STUCK, record.reason
    elif record.step is Point.LOSING:
        phase, reason = Phase.LOSING, record.reason
    elif record.foreign:
        phase, reason = Phase.LOSING, Reason.CRASHED
    return Tenure(
        session=record.session,
        token=record.token,
        create_index=record.create_index,
        lock_index=record.lock_index,
        contact=now if record.foreign else record.contact,
        leader=record.leader,
        previous_leader=record.previous_leader,
        phase=phase,
        began=True,
        reason=reason,
        taken_at=now if record.foreign else record.taken_at,
        recorded=True,
        fresh_since=max(now, nextafter(record.contact, inf)),  # a record confirms nothing
        acquire_done=record.step is Point.HOLDING,
        note=record.note,
        slot=record.slot,
        leased_s=0.0 if record.foreign else record.leased_s,
        stopped_at=NEVER if record.stopped_at is None or record.foreign else record.stopped_at,
    )
