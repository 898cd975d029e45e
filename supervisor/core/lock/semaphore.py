"""How a contender takes and leaves a slot of a semaphore: which request is sent, and when.

A semaphore has at most ``limit`` holders below a prefix, after Consul's guide. Each contender locks a key of
its own, ``<prefix>/<session>``, which lives as long as its session. ``<prefix>/.lock`` names the holders.
``.lock`` is only ever changed by check-and-set, in a transaction that also checks that our own key is alive.
So a write that Consul applies late fails if anything has changed meanwhile.

A contender takes two steps: it stands in line (``JoinSemaphore``), and then takes a slot (``TakeSlot``).
``lock.slots`` computes when a slot is free, ``lock.queue`` how long a later contender leaves the slot to
earlier ones.

*A slot.* The only slot is taken; then its holder o1 leaves, and s is next in line. Each line is a step, as in
the docstring of the core.

    Tick -> CreateSession, WatchSlots(0, consistent)
    CreateSession: Created -> RenewSession s, record session s
    recorded -> -
    RenewSession: SessionAlive -> -
    WatchSlots: held by o1, 1 contenders -> JoinSemaphore s
    JoinSemaphore: in line -> WatchSlots(60)
    WatchSlots: held by o1, 2 contenders -> WatchSlots(60)
    WatchSlots: held by nobody, 1 contenders -> TakeSlot s
    TakeSlot: has a slot, token 71 -> record tenure s
    recorded -> start up#1, WatchSlots(71, consistent), became acquiring
    up ended well -> record holding s, became holding
    recorded -> -
    StepDownAsked -> record losing s, start down#1, became losing
    recorded -> -
    down ended well -> record session s
    recorded -> LeaveSemaphore s, became resting

"""

from itertools import count, islice
from typing import ClassVar, Self

from supervisor.core.frozen import dataclass, replace
from supervisor.core.lock import queue
from supervisor.core.lock.base import WAIT_S, WATCH_S, Observation
from supervisor.core.lock.slots import LOCK, KnownSlots
from supervisor.core.machines.session import Session, Terms
from supervisor.core.outcomes import (
    ContenderKey,
    KeyView,
    LockKey,
    LostRace,
    Outcome,
    SlotsView,
    SlotWritten,
    Unknown,
    View,
)
from supervisor.core.requests import (
    JoinSemaphore,
    LeaveSemaphore,
    Pruned,
    ReadKey,
    ReadSlots,
    Request,
    Rewrite,
    SlotRecord,
    TakeSlot,
    WatchSlots,
)
from supervisor.core.settings import LOCK_SUFFIX, ItemSettings, SemaphoreSettings
from supervisor.core.times import LONG_AGO, NEVER

RACE_S = 0.05  # after a lost check-and-set, doubling
RACE_S_MAX = 2.0
RACES_MAX = 10  # the pause has long been at its maximum
PRUNED_MAX = 61  # a transaction has at most 64 operations


@dataclass(frozen=True, slots=True)
class SemaphoreLock(KnownSlots):
    """The slots of a semaphore, and this contender's attempts to get one."""

    lost_races: int = 0  # races lost in a row
    unsure: bool = False  # an attempt since the view had no answer

    queues: ClassVar[bool] = True

    # --- when an attempt can succeed -----------------------------------------------------------------

    def with_settings(self, settings: ItemSettings, now: float) -> Self:
        """Go on by these settings; a smaller limit may close a slot that was free."""
        assert isinstance(settings, SemaphoreSettings)
        notifies = bool(settings.on_change) or not settings.contend
        slots = replace(self, limit=settings.limit, prune_delay_s=settings.prune_delay_s, notifies=notifies)
        return slots if slots.view is None else slots._with_attempt_time(slots.seen_free_at, now)

    def with_observation(self, observation: Observation, our_session: str | None, now: float) -> Self:
        """Return the slots as the observation shows them, and plan the attempt by them.

        This also serves an observer, because an observer must notice the keys that a list hides.
        """
        session = our_session or ""
        lost_races = self.lost_races if observation.view.find_hold(session) is None else 0
        slots = replace(self._with_view(observation, session, now), unsure=False, lost_races=lost_races)
        if self.view is None or slots._in_line != self._in_line:
            slots = replace(slots, opens_at=NEVER)  # a place in line and a slot are two entries
        return slots._with_attempt_time(observation.true_since, now)

    def _with_attempt_time(self, fresh_at: float, now: float) -> Self:
        view, may_open_at = self.view, self._opens_at(now)
        assert view is not None
        if may_open_at == NEVER:
            return replace(self, seen_free_at=LONG_AGO, opens_at=NEVER)
        opens_at = may_open_at if may_open_at > now else min(self.opens_at, now)
        try_at = max(opens_at + queue.attempt_delay_s(view, self.our_session), self.paused_until)
        return replace(self, seen_free_at=max(fresh_at, self.seen_free_at), opens_at=opens_at, try_at=try_at)

    def _opens_at(self, now: float) -> float:
        """Return when an attempt can first succeed. NEVER: no such time is known."""
        view = self.view
        assert view is not None
        if view.lock is not None and view.slot_record is None:
            # Another program wrote ``.lock``, or damage has made it unreadable. Our write would remove the
            # holders that it named, and they still act.
            return NEVER
        if not self._in_line:
            return now  # a contender can always join the line
        return self._free_from(now)

    # --- attempts ------------------------------------------------------------------------------------

    def attempt_for(self, terms: Terms, session: str, value: bytes, now: float) -> JoinSemaphore | TakeSlot:
        """Return the request that joins the line, with a slot at once when nobody waits, or takes a slot."""
        view, prefix = self.view, _prefix(terms)
        assert view is not None
        index = 0 if view.lock is None else view.lock.modify_index
        base = (terms.item, now, terms.exchange_s, prefix, session)
        if view.alive(session) is not None:
            slot_record = self._with_us(session, now)
            assert len(slot_record.holders) <= self.effective_limit, f"no slot is free for {session}"
            return TakeSlot(*base, slot_record, index, self._pruned_by(slot_record))
        # A prefix without any key is new, unless ``.lock`` was deleted: then its holders may still act.
        deleted = self._missing(LOCK) is not None and self._prunable_at(LOCK) > now
        new = view.lock is None and not view.contenders and not deleted
        taken = self.effective_limit if view.slot_record is None else len(view.named)
        if new or (taken < self.effective_limit and not queue.waiting(view)):
            slot_record = self._with_us(session, now)
            return JoinSemaphore(*base, value, slot_record, index, self._pruned_by(slot_record))
        return JoinSemaphore(*base, value)

    def _with_us(self, session: str, now: float) -> SlotRecord:
        """Return ``.lock`` with us in it, and without the vanished holders whose prune delay is over.

        Only these vanished holders make room. A holder that is cut off and still acts has not been gone for
        that long. The prune delay that we write is the longest of all holders that stay. When one of them
        crashes, its key goes, and ``.lock`` alone tells a contender that starts later how long to wait.
        """
        view = self.view
        assert view is not None
        slot_record, prunable = self._slot_record, self._prunable(view.named)
        surplus = len(view.named) - self.effective_limit + 1
        leaving = [each for each, at in zip(view.named, prunable, strict=True) if at <= now]
        leaves = set(leaving[: max(PRUNED_MAX, surplus)])
        staying = tuple(each for each in view.named if each not in leaves)
        assert len(staying) < self.effective_limit, f"no slot is free at {now}: {slot_record}"
        alive = view.all_alive()
        keys = [alive.get(each) for each in staying]
        delays = [self.prune_delay_s, *(key.prune_delay_s or 0.0 for key in keys if key is not None)]
        if None in keys and slot_record.prune_delay_s is not None:
            delays.append(slot_record.prune_delay_s)  # a vanished holder's own prune delay went with its key
        numbers = {each: number for each, number in view.numbers.items() if each not in leaves}
        # `consul lock` and older releases write no numbers, so their holders may have any. Otherwise a number
        # below the limit is free, because fewer holders stay.
        used, all_known = set(numbers.values()), len(numbers) == len(staying)
        numbers[session] = next(each for each in count() if each not in used) if all_known else None
        slot_record = replace(slot_record, numbers=tuple(numbers.items()))
        limit = self.limit if slot_record.limit is None else slot_record.limit
        return replace(slot_record, limit=limit, holders=(*staying, session), prune_delay_s=max(delays))

    def _pruned_by(self, slot_record: SlotRecord) -> tuple[Pruned, ...]:
        """Return at most PRUNED_MAX holders that this record leaves out, as the view shows their keys."""
        view = self.view
        assert view is not None
        staying, shown = set(slot_record.holders), {key.name: key.session for key in view.contenders}
        pruned = (Pruned(each, shown.get(each)) for each in view.named if each not in staying)
        return tuple(islice(pruned, PRUNED_MAX))

    def view_after_attempt(self, request: Request, outcome: Outcome) -> View | None:
        view = self.view
        if not isinstance(outcome, SlotWritten) or view is None:
            return None
        assert isinstance(request, JoinSemaphore | TakeSlot)
        contenders, lock = view.contenders, view.lock
        if isinstance(request, JoinSemaphore) and outcome.contender is not None:
            at = outcome.contender
            ours = ContenderKey(
                request.session, request.session, request.value, at.create_index, at.lock_index
            )
            contenders = (*(key for key in contenders if key.name != request.session), ours)
        if request.slot_record is not None and outcome.lock is not None:
            lock = LockKey(outcome.lock.create_index, outcome.lock.modify_index, request.slot_record)
        return SlotsView(view.index, lock, contenders)

    def write_failed(self, outcome: Outcome, terms: Terms, now: float) -> Self:
        """Plan the next attempt after one that lost a race, was refused or had no answer.

        A lost race means that our view is old, so the slots are read anew before the next attempt. An attempt
        without an answer may have been applied, so a release must not rely on the view either.
        """
        if not isinstance(outcome, LostRace):
            unsure = isinstance(outcome, Unknown) or (self.unsure and not isinstance(outcome, SlotWritten))
            return replace(self.must_reread(now + terms.retry_s), unsure=unsure)
        pause_s = min(RACE_S * 2**self.lost_races, RACE_S_MAX) * (0.5 + terms.spread)
        lost_races = min(self.lost_races + 1, RACES_MAX)
        slots = replace(self, view=None, opens_at=NEVER, lost_races=lost_races, paused_until=now + pause_s)
        return slots.must_reread(now)

    def release_for(self, terms: Terms, session: Session, value: bytes, now: float) -> LeaveSemaphore | None:
        """Return the request that gives up our slot, if we have one, and our contender key.

        None: a read must come first. An attempt without an answer may have put our name into ``.lock``, and
        so may the process before. A release without this knowledge would leave the name there, and the unused
        slot would stay taken for the prune delay. A process that ends waits for the end of one such read.
        """
        view, ours = self.view, session.id
        base = (terms.item, now, terms.exchange_s, _prefix(terms), ours)
        if (view is None or self.unsure) and not session.unread:
            return None
        if view is None or view.lock is None or ours not in view.named:
            return LeaveSemaphore(*base)
        slot_record, holders = self._slot_record, tuple(each for each in view.named if each != ours)
        limit = self.limit if slot_record.limit is None else slot_record.limit
        numbers = tuple(each for each in slot_record.numbers if each[0] != ours)
        left = replace(slot_record, limit=limit, holders=holders, numbers=numbers)
        return LeaveSemaphore(*base, left, view.lock.modify_index)

    def rewrite_for(self, terms: Terms, session: str, value: bytes, now: float) -> Rewrite:
        key = f"{_prefix(terms)}/{session}"
        return Rewrite(terms.item, now, terms.exchange_s, key, session, value, of_slot=True)

    # --- reads -------------------------------------------------------------------------------------

    def _read_request(self, terms: Terms, now: float) -> ReadSlots:
        has_slot = self.our_session in self._slot_record.holders
        holder = self.our_session if has_slot else None  # a waiter must see all other contenders
        return ReadSlots(terms.item, now, terms.read_s, _prefix(terms), holder)

    def _watch_request(self, terms: Terms, now: float, *, consistent: bool) -> WatchSlots:
        lag_s = queue.read_lag_s(self.view, self.our_session, self.effective_limit)
        return WatchSlots(terms.item, now, WATCH_S, _prefix(terms), self.index, WAIT_S, consistent, lag_s)

    def _details_request(self, terms: Terms, now: float) -> ReadKey | None:
        """Return the request for the next key that may be gone or merely hidden. None: no key is in doubt."""
        name = self._unsure_of()
        if name is None:
            return None
        prefix = _prefix(terms)
        return ReadKey(terms.item, now, terms.exchange_s, f"{prefix}/{name}", prefix)

    def _details_answered(self, terms: Terms, request: Request, outcome: Outcome, now: float) -> Self:
        """Note the result of a read of one key: the key is gone, or the list hides it.

        A contender key without its session counts as gone, because only its session keeps a holder alive for
        the other contenders. The slots are read again after that, so that a holder learns the effect on its
        own slot.
        """
        assert isinstance(request, ReadKey)
        if not isinstance(outcome, KeyView):
            return replace(self, details=self.details.finish(now + terms.retry_s))
        name = request.key.removeprefix(f"{_prefix(terms)}/")
        there = outcome.present if name == LOCK else outcome.session == name
        if name == LOCK and self._missing(LOCK) is None:
            return replace(self, details=self.details.finish())._told_of_lock(outcome, now)
        missing = tuple(
            replace(each, confirmed_gone=not there, unlisted=there) if each.name == name else each
            for each in self.missing
        )
        slots = replace(self, details=self.details.finish(now), missing=missing)
        if self.view is not None:
            slots = slots._with_attempt_time(self.seen_free_at, now)
        return slots.read_by(now)


def _prefix(terms: Terms) -> str:
    return terms.key.removesuffix(LOCK_SUFFIX)
