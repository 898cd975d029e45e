"""What a node writes in the place of a tenure record that it has read, and what a person must put right.

Another node may wait behind such a record, and shoot. So a loser whose session no longer has the key says
that it stops, and a node of which nothing acts ends what its session, machine or journal has left behind.
"""

from supervisor.core.claim.claim import Claim
from supervisor.core.claim.record import ABSENT, LEFT_BEHIND, SAME_TARGET, State, TenureRecord, no_shorter
from supervisor.core.frozen import replace
from supervisor.core.machines.session import Session
from supervisor.core.machines.tenure import Phase, Tenure
from supervisor.core.outcomes import KeyView, View


def others_record(claim: Claim, session: Session, tenure: Tenure | None) -> TenureRecord | None:
    """Return the record of another session that has not ended, on a node of which nothing acts."""
    record = claim.record
    if record is None or record.state is State.ENDED:
        return None
    if tenure is not None and tenure.phase is not Phase.GUARDING:
        return None
    return None if record.session in (session.id, session.abandoned_id, claim.settling) else record


def stray(claim: Claim, view: View | None, other: TenureRecord | None) -> TenureRecord | None:
    """Return the record of a session that holds no more, by which this machine acts in this boot."""
    if other is None or (view is not None and view.has_entry(other.session)):
        return None
    return other if other.place.is_same_boot(claim.here) and not other.place.is_over(claim.here) else None


def correction(
    claim: Claim,
    view: View | None,
    session: Session,
    tenure: Tenure | None,
    ours: TenureRecord | None,
    *,
    looks: bool,
) -> TenureRecord | None:
    """Return what this node must write in the place of the record that it has read. None: nothing.

    ours: the record of our session. looks: a first try or the end waits for a look.
    """
    record, here, guard = claim.record, claim.here, claim.guard
    if record == ABSENT and claim.settling and claim.memory.lost is not None:
        return ours and replace(ours, session=claim.settling, state=State.ENDED)  # somebody may wait for it
    if record is None or record.state is State.ENDED:
        return None
    if (other := others_record(claim, session, tenure)) is not None:
        if other.place.is_over(here) or other.session == claim.disowned:
            return replace(other, state=State.ENDED)
        holds = isinstance(view, KeyView) and view.session == other.session
        known = other.place.machine and here.machine and not other.place.is_same_machine(here)
        is_named = ours is not None and other.target and other.target == ours.target
        if looks and known and not holds and is_named:
            return replace(other, target=None)  # the name means this machine now, so a shot would hit it
        if guard is not None and guard.end is None and guard.waits_behind(other):
            return replace(other, waited_s=guard.noted_s)
        return None
    if claim.settling and record.session == claim.settling:
        return replace(record, state=State.ENDED)
    if tenure is None or tenure.believes or not tenure.began or record.session != tenure.session:
        return None
    # The release of a session that has the key ends the record.
    holds = view is not None and view.has_entry(tenure.session) and not session.dead
    may_say = session.id == tenure.session or record.place.is_same_machine(here)
    if holds or not may_say or record.state is not State.ACTING:
        return None
    stops = replace(record, state=State.STOPPING)
    if ours is None:
        return stops
    # By the hooks in force, which a reload may have made longer than the record could say yet.
    return no_shorter(stops, ours, "lose_time_s", "margin_s")


def fault(item: str, claim: Claim, view: View | None, other: TenureRecord, ours: TenureRecord | None) -> str:
    """Return what a person must put right in the record of another session. Blank: nothing."""
    if (left := stray(claim, view, other)) is not None and left.session != claim.disowned:
        return LEFT_BEHIND.format(item=item)
    if ours is None or other.target is None or ours.node in (None, other.node):
        return ""
    return SAME_TARGET.format(target=other.target, node=other.name) if other.target == ours.target else ""
