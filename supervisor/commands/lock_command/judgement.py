"""When ``lock`` gives up before its command has begun, and why. Pure functions.

A daemon goes on trying, because an operator corrects a fault while it runs. A command reports the fault.
"""

from supervisor.config.formats.json_values import holder_name
from supervisor.core.contender.state import Contender
from supervisor.core.events import Answered
from supervisor.core.outcomes import (
    Denied,
    KeyView,
    LockDelayed,
    LostRace,
    Outcome,
    Refused,
    SessionAltered,
    SlotsView,
    Unknown,
)
from supervisor.core.requests import ReadSession
from supervisor.core.settings import SemaphoreSettings
from supervisor.errors import CommandError, NotPossible, OperatorError, PeerError


class NotAcquired(NotPossible):
    """Other sessions hold the lock."""


def fault(contender: Contender, answered: Answered) -> OperatorError | None:
    """Return why the lock cannot be had: a missing right, a refused session, or a key of another program."""
    key, outcome, notice = contender.settings.key, answered.outcome, contender.lock.notice
    if isinstance(outcome, SessionAltered) or (isinstance(outcome, Refused) and not outcome.may_pass):
        return OperatorError(f"cannot lock {key}: {outcome.why}")
    if isinstance(outcome, Denied) and not isinstance(answered.request, ReadSession):
        return OperatorError(f"cannot lock {key}: {outcome.why}")
    return OperatorError(f"cannot lock {key}: {notice}") if belongs_to_another_program(contender) else None


def belongs_to_another_program(contender: Contender) -> bool:
    """Return whether the key, or the record of the slots, is not that of a lock."""
    view = contender.lock.view
    if isinstance(view, KeyView):
        return view.is_foreign or view.was_never_locked
    return isinstance(view, SlotsView) and view.lock is not None and view.lock.slot_record is None


def why_not_now(contender: Contender, outcome: Outcome, now: float) -> CommandError | None:
    """Return why an attempt without any waiting has failed. None: it has not failed yet."""
    if why := hindrance(outcome):
        return hindered(contender, why)
    lock = contender.lock
    is_refused = isinstance(outcome, LockDelayed | LostRace) and contender.settings.kind == "election"
    is_taken = lock.view is not None and (not lock.is_free or now < lock.opens_at)
    return not_acquired(contender) if is_refused or is_taken else None


def hindrance(outcome: Outcome) -> str:
    """Return why this answer lets nobody tell yet whether the lock can be had. Blank: it does."""
    if isinstance(outcome, Unknown):
        return f"no answer from Consul: {outcome.why}"
    return f"no session yet: {outcome.why}" if isinstance(outcome, Refused) else ""


def hindered(contender: Contender, why: str) -> PeerError:
    return PeerError(f"cannot lock {contender.settings.key}: {why}")


def not_acquired(contender: Contender) -> NotAcquired:
    return NotAcquired(f"cannot lock {contender.settings.key}: {_whose(contender)}")


def _whose(contender: Contender) -> str:
    view, settings = contender.lock.view, contender.settings
    if isinstance(settings, SemaphoreSettings):
        slot_record = view.slot_record if isinstance(view, SlotsView) else None
        taken, limit = (0, None) if slot_record is None else (len(slot_record.holders), slot_record.limit)
        return f"{taken} slots are taken, the limit is {min(settings.limit, limit or settings.limit)}"
    if not isinstance(view, KeyView) or not view.session:
        return "Consul still keeps it locked after the loss of a holder (lock-delay)"
    node = holder_name(view.value)
    return f"{node or 'a node'} holds it with session {view.session}"
