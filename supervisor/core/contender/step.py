"""The one way into the core: an event and the time go in, and a new state and actions come out.

    step(contender, event, now) -> (contender, actions)

A step has three parts. It ends a belief or a rest whose time is over, applies the event to the contender, and
begins everything that is due. Belief ends before the event is looked at, so no event can prolong it.
Silence of Consul shows neither a loss nor a win.

``decide`` is the step in portions. The shell carries out the actions of a portion before the next portion is
decided, because a release, an acquire or a hook comes first in a step, and another node or an application
waits for that action.
"""

from collections.abc import Iterator

from supervisor.core.actions import Action, Reason
from supervisor.core.contender.lifecycle import follow_record
from supervisor.core.contender.reducer import apply_event
from supervisor.core.contender.scheduler import Begun, advance_record, begin_due, begin_exchanges
from supervisor.core.contender.state import Contender, has_finished
from supervisor.core.events import Answered, Event, RecordWritten, Tick
from supervisor.core.frozen import replace
from supervisor.core.machines.tenure import Phase
from supervisor.core.times import LONG_AGO


def step(contender: Contender, event: Event, now: float) -> tuple[Contender, tuple[Action, ...]]:
    """Return the contender after this event at this time, and the actions to carry out, in order."""
    portions = tuple(decide(contender, event, now))
    return portions[-1][0], tuple(action for _, begun in portions for action in begun)


def decide(contender: Contender, event: Event, now: float) -> Iterator[Begun]:
    """Yield the contender after each portion of the step, with the actions of that portion, in order.

    The contender of the last portion is the contender after the step.
    """
    if has_finished(contender):
        yield contender, ()
        return
    if isinstance(event, Tick) and _is_settled(contender) and contender.work_deadline > now:
        yield begin_exchanges(contender, now)
        return
    contender = _expire(contender, now)
    before, contender = contender, follow_record(apply_event(contender, event, now), now)
    match event:
        case Answered() if _only_confirms(before, contender, now):
            yield (contender, ()) if contender.tenure is before.tenure else advance_record(contender, now)
        case RecordWritten(ok=True) if _waits_for_no_record(before, contender, now):
            yield contender, ()  # the step that wrote the record has begun all that is due
        case _:
            yield from begin_due(contender, now)


def _is_settled(contender: Contender) -> bool:
    """Return whether a contact alone makes nothing due, so that only a change or a deadline does."""
    if contender.winding_up or contender.service.of:
        return False
    tenure = contender.tenure
    return tenure is None or (tenure.phase is Phase.HOLDING and contender.next_settings is None)


def _waits_for_no_record(before: Contender, after: Contender, now: float) -> bool:
    recorded = before.tenure is not None and before.tenure.recorded
    return recorded and _is_settled(before) and after.rewrite_due_at > now


def _only_confirms(before: Contender, after: Contender, now: float) -> bool:
    """Return whether an answer has changed only its lane and the contact, so that at most a record is due."""
    if not _is_settled(after) or after.deadline <= now:
        return False
    tenure, session, lock = before.tenure, before.session, before.lock
    if tenure is not None and after.tenure is not None:
        tenure = replace(tenure, contact=after.tenure.contact)
    session, lock = replace(session, renew=after.session.renew), replace(lock, read=after.lock.read)
    return replace(before, tenure=tenure, session=session, lock=lock) == after


def _expire(contender: Contender, now: float) -> Contender:
    """End the belief of a holder whose lease is over, and a rest whose time has come."""
    if contender.rests and contender.rests_until <= now:
        contender = replace(contender, rests_until=LONG_AGO)
    tenure = contender.tenure
    if tenure is None or now < tenure.expires_at(contender.lease):
        return contender
    return replace(contender, tenure=tenure.lose(Reason.LEASE_EXPIRED, now))
