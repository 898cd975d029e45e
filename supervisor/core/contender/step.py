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
from supervisor.core.contender.reducer import apply_event
from supervisor.core.contender.scheduler import Begun, begin_due, begin_record
from supervisor.core.contender.state import Contender, has_finished
from supervisor.core.events import Answered, Event, RecordWritten
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
    contender = _expire(contender, now)
    before, contender = contender, apply_event(contender, event, now)
    if isinstance(event, Answered) and _only_confirms(before, contender, now):
        yield begin_record(contender, now)
        return
    if isinstance(event, RecordWritten) and event.ok and _only_notes_contact(before):
        yield contender, ()  # the step that wrote the record has begun all that is due
        return
    yield from begin_due(contender, now)


def _only_confirms(before: Contender, after: Contender, now: float) -> bool:
    """Return whether an answer has changed only its lane and the contact, so that at most a record is due.

    Everything that was due before the answer has begun. So something is due now only because another part has
    changed, or because of a time, which the deadline names. A new contact lets nothing begin in a tenure that
    holds, except the settings of the file and a check of its service.
    """
    tenure, then = after.tenure, before.tenure
    if after.winding_up or after.service.of:
        return False
    if tenure is not None and then is not None:
        if tenure.phase is not Phase.HOLDING or after.next_settings:
            return False
        tenure = replace(tenure, contact=then.contact)
    session = replace(after.session, renew=before.session.renew)
    lock = replace(after.lock, read=before.lock.read)
    return replace(after, tenure=tenure, session=session, lock=lock) == before and after.deadline > now


def _only_notes_contact(contender: Contender) -> bool:
    """Return whether nothing waited for the record just written: the tenure holds, and was on record."""
    tenure = contender.tenure
    if tenure is None or tenure.phase is not Phase.HOLDING or contender.winding_up:
        return False
    return tenure.recorded and contender.next_settings is None


def _expire(contender: Contender, now: float) -> Contender:
    """End the belief of a holder whose lease is over, and a rest whose time has come."""
    if contender.rests and contender.rests_until <= now:
        contender = replace(contender, rests_until=LONG_AGO)
    tenure = contender.tenure
    if tenure is None or now < tenure.expires_at(contender.lease):
        return contender
    return replace(contender, tenure=tenure.lose(Reason.LEASE_EXPIRED, now))
