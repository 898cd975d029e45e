"""What is on record of one contender, and what a process that starts makes of a record.

The truth to be kept follows from the session and the tenure; whenever it has changed it is written
anew. Three things wait for a record: the first acquire of a session, the first hook of a tenure, and
the release after its last. Nothing else does, on_lose least of all: a record that cannot be written
is tried again.
"""

from dataclasses import dataclass
from math import inf, nextafter

from supervisor.core.actions import Memory, Reason, Remember, Step
from supervisor.core.events import Remembered
from supervisor.core.frozen import replace
from supervisor.core.lane import NEVER, Lane
from supervisor.core.session import Session, Stage
from supervisor.core.settings import ItemSettings
from supervisor.core.tenure import Phase, Tenure

REFUSED_RETRY_S = 1.0  # a full disk: soon enough after it has room, rare enough for the log


@dataclass(frozen=True, slots=True)
class Ledger:
    """``kept``: what is on record; None: not written by this process yet. ``outdated``: with settings
    that are no longer in force. ``refused``: what could not be written, to be tried again at
    ``due_at``."""

    kept: Memory | None = None
    outdated: bool = False
    refused: Memory | None = None
    due_at: float = NEVER

    @property
    def deadline(self) -> float:
        """When the record that was refused wants another turn."""
        return self.due_at

    def has_session(self, session: str) -> bool:
        """Whether a crash of ours would not forget this session."""
        return self.kept is not None and self.kept.session == session

    def has_tenure(self, session: str) -> bool:
        """Whether a crash of ours would not forget the tenure of this session."""
        return self.has_session(session) and self.kept is not None and self.kept.step in _BEGUN

    def settled(self, truth: Memory) -> "Ledger":
        """Nothing is to be tried again once what is on record is the truth."""
        return Ledger(kept=self.kept) if self._says(truth) else self

    def _says(self, truth: Memory) -> bool:
        return truth == self.kept and not self.outdated

    def wants(self, truth: Memory, now: float) -> bool:
        """Whether this is to be written now."""
        if self._says(truth):
            return False
        same = self.refused is not None and (self.refused.step, self.refused.session) == (
            truth.step,
            truth.session,
        )
        return not same or now >= self.due_at

    def answered(self, event: Remembered, now: float) -> "Ledger":
        """It was written, or not."""
        if event.ok:
            return Ledger(kept=event.remember.memory)
        return replace(self, refused=event.remember.memory, due_at=now + REFUSED_RETRY_S)


_BEGUN = (Step.TENURE, Step.HOLDING, Step.LOSING, Step.STUCK)


def advance(
    ledger: Ledger, truth: Memory, settings: ItemSettings, now: float
) -> tuple[Ledger, tuple[Remember, ...]]:
    """The record to be written now, if there is one."""
    ledger = ledger.settled(truth)
    return ledger, (Remember(settings.name, truth, settings),) if ledger.wants(truth, now) else ()


def truth_of(session: Session, tenure: Tenure | None, settings: ItemSettings, *, paused: bool) -> Memory:
    """What a process that starts now would have to know."""
    if tenure is None or tenure.phase is Phase.LOST:
        owed = session.id or session.left
        step = Step.SESSION if owed else Step.NONE
        return Memory(step, settings.key if owed else "", owed, paused=paused)
    return Memory(
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
        paused=paused,
        foreign=tenure.session != session.id,
    )


_STEPS = {
    Phase.ADOPTING: Step.TENURE,
    Phase.ACQUIRING: Step.TENURE,
    Phase.HOLDING: Step.HOLDING,
    Phase.CLEARING: Step.LOSING,
    Phase.LOSING: Step.LOSING,
    Phase.FAILING: Step.LOSING,
    Phase.STUCK: Step.STUCK,
}


def _step_of(tenure: Tenure) -> Step:
    if tenure.phase is Phase.ADOPTING and tenure.acquired:
        return Step.HOLDING
    return _STEPS[tenure.phase]


# --- a process that starts -----------------------------------------------------------------------


def goes_on_with(in_force: ItemSettings, settings: ItemSettings) -> bool:
    """Whether what is held by the settings in force may be held by those of the file. What others were
    told when we came, how long they are to wait for us, must not be less than what we count on from
    now."""
    same_lock = (settings.kind, settings.key) == (in_force.kind, in_force.key)
    same_session = settings.session == in_force.session and settings.guard_s <= in_force.guard_s
    return settings.contend and same_lock and same_session


def is_adoptable(memory: Memory, recorded: ItemSettings, settings: ItemSettings) -> bool:
    """Whether an item as the file has it now may go on with this record."""
    return memory.step is Step.NONE or goes_on_with(recorded, settings)


def session_from(memory: Memory, recorded: ItemSettings | None, now: float) -> Session:
    """The session on record; one without a tenure has nothing to do but to end. Where the settings on
    record have another value than it was known to have written, it may have written that, too."""
    if memory.step is Step.NONE or memory.foreign:
        return Session()
    session = Session(Stage.LIVE, memory.session, renew=Lane(due_at=now), tried=True, wrote=memory.leader)
    if recorded is not None and recorded.value != memory.leader:
        session = replace(session, rewrite_at=now)
    return session.end(now, last_try=False) if memory.step is Step.SESSION else session


def tenure_from(memory: Memory, now: float) -> Tenure | None:
    """The tenure on record: to be adopted, or with its on_lose from the start, or stuck."""
    if memory.step in (Step.NONE, Step.SESSION):
        return None
    phase, reason = Phase.ADOPTING, Reason.ADOPTED
    if memory.step is Step.STUCK and not memory.foreign:
        phase, reason = Phase.STUCK, memory.reason
    elif memory.step is Step.LOSING:
        phase, reason = Phase.LOSING, memory.reason
    elif memory.foreign:
        phase, reason = Phase.LOSING, Reason.CRASHED
    return Tenure(
        session=memory.session,
        token=memory.token,
        create_index=memory.create_index,
        lock_index=memory.lock_index,
        contact=now if memory.foreign else memory.contact,
        leader=memory.leader,
        previous_leader=memory.previous_leader,
        phase=phase,
        began=True,
        reason=reason,
        taken_at=now if memory.foreign else memory.taken_at,
        recorded=True,
        fresh_from=max(now, nextafter(memory.contact, inf)),  # what is on record confirms nothing
        acquired=memory.step is Step.HOLDING,
    )
