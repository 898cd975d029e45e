"""The slots of a semaphore: at most ``limit`` holders below a prefix, after Consul's guide.

Whoever contends locks a key of its own, ``<prefix>/<session>``: it lives as long as its session.
``<prefix>/.lock`` names the holders, and is only ever changed by check-and-set, in a transaction
that also checks that our own key is alive. Slots have no lock-delay in Consul. So the slot of a
holder that vanished without leaving stays taken for the prune delay after that was first seen, and
a ``.lock`` that vanished beside contenders is as good as full for as long: that is what a holder's
lease counts on. An answer that shows less than there is (an ACL) must never free a slot, so what is
missing counts as gone only when a read of that one key has said so.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from supervisor.core.actions import Reason
from supervisor.core.frozen import replace
from supervisor.core.lane import LONG_AGO, NEVER
from supervisor.core.lock.base import WAIT_S, WATCH_S, Lock, Lost, Observation, Ours, Unsure, Verdict
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
    ReadKey,
    ReadSlots,
    Request,
    Rewrite,
    Roster,
    TakeSlot,
    WatchSlots,
)
from supervisor.core.session import Session, Terms
from supervisor.core.settings import LOCK_SUFFIX, SemaphoreSettings
from supervisor.core.tenure import Tenure

LOCK = LOCK_SUFFIX.removeprefix("/")
RANK_S = 0.2  # who is next in line has this much time before the one behind it tries
QUEUE_DELAY_MAX_S = 2.0  # one at the head that does not act delays the rest by no more
READ_LAG_PER_RANK_S = 0.02  # a tenth of RANK_S: who tries so much later may look a little later, too
READ_LAG_MAX_S = 0.5
RACE_S = 0.05  # after a lost check-and-set, doubling
RACE_S_MAX = 2.0
RACES_MAX = 10  # the pause has long been at its maximum


@dataclass(frozen=True, slots=True)
class Missing:
    """A key that an answer should show and does not: a holder's, or ``.lock``.

    since: when the key was first missing.
    confirmed_gone: a read of the key itself has said that it does not exist.
    unlisted: a read of the key itself has shown it, so the list leaves it out.
    """

    name: str
    since: float
    confirmed_gone: bool = False
    unlisted: bool = False


@dataclass(frozen=True, slots=True)
class SemaphoreLock(Lock):
    """The slots of a semaphore.

    our_session: the session of this contender.
    missing: the keys that the view should show and does not.
    longest_s: the longest prune delay that any body has told of.
    opens_at: when an attempt can first succeed. NEVER: that is not known.
    lost_races: races lost in a row.
    unsure: an attempt since the view had no answer.
    notifies: on_change, or the status of an observer, is told who holds.
    confirmed_unused: a read of ``.lock`` itself has said that there is none.
    """

    view: SlotsView | None = None
    limit: int = 1
    prune_delay_s: float = 30.0
    our_session: str = ""
    missing: tuple[Missing, ...] = ()
    longest_s: float = 0.0
    opens_at: float = NEVER
    lost_races: int = 0
    unsure: bool = False
    notifies: bool = False
    confirmed_unused: bool = False

    queues: ClassVar[bool] = True

    def follows(self, settings: SemaphoreSettings, now: float) -> Self:
        """By these settings from now on: a slot that was free may be none any more."""
        notifies = bool(settings.on_change) or not settings.contend
        slots = replace(self, limit=settings.limit, prune_delay_s=settings.prune_delay_s, notifies=notifies)
        return slots if slots.view is None else slots._with_attempt_time(slots.free_at, now)

    # --- what is known ----------------------------------------------------------------------------

    @property
    def is_free(self) -> bool:
        """Whether there is a moment from which on a try can succeed."""
        return self.opens_at != NEVER

    @property
    def effective_limit(self) -> int:
        """The smaller of our file's and Consul's."""
        said = None if self._roster is None else self._roster.limit
        return self.limit if said is None else min(self.limit, said)

    @property
    def guard_s(self) -> float:
        """How long others surely wait: what Consul's record says counts where it is less than ours."""
        said_s = None if self._roster is None else self._roster.prune_delay_s
        return self.prune_delay_s if said_s is None else min(self.prune_delay_s, said_s)

    @property
    def notice(self) -> str:
        """What an operator should know; blank when all is well."""
        view = self.view
        if view is None:
            return ""
        if view.hides and not self.is_complete:
            return (
                "Consul leaves out of the list below the prefix what the token may not read: let it read all"
            )
        if any(missing.unlisted for missing in self.missing):
            names = ", ".join(missing.name for missing in self.missing if missing.unlisted)
            return f"the list below the prefix does not show {names}: may the token read all of it?"
        if view.lock is not None and view.lock.roster is None:
            return f"{LOCK} is no semaphore's and is left alone: {view.lock.why}"
        if view.roster is not None and view.roster.limit not in (None, self.limit):
            limits = f"limit is {self.limit} in the file and {view.roster.limit} in Consul"
            return f"{limits}: the smaller counts"
        return ""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing that a read of the key itself has not called gone."""
        return not self._may_hide_all and all(each.confirmed_gone for each in self.missing)

    @property
    def _may_hide_all(self) -> bool:
        """What a denied list shows is as empty as a prefix that nobody uses yet."""
        return self.view is None or not (self.view.lock or self.confirmed_unused or self.missing)

    def with_observation(self, observation: Observation, our_session: str, now: float) -> Self:
        """The slots as this news shows them."""
        view = observation.view
        assert isinstance(view, SlotsView)
        said_s = (key.prune_delay_s or 0.0 for key in view.contenders)
        longest_s = max(self.longest_s, *said_s, 0.0)
        confirmed_unused = self.confirmed_unused and view.lock is None
        slots = replace(
            self,
            view=view,
            our_session=our_session,
            longest_s=longest_s,
            unsure=False,
            confirmed_unused=confirmed_unused,
        )
        if self.view is None or slots._in_line != self._in_line:
            slots = replace(slots, free_since=NEVER)  # a place in line, and then a slot, are two things
        before = None if self.view is None else self.view.index
        slots = slots._with_missing_keys(
            now,
            self._names_missing_from(view),
            unbroken=before in (view.index, observation.after_index),
            changed=before != view.index,
        )
        return slots._with_attempt_time(observation.true_since, now)

    def with_observation_as_observer(self, observation: Observation, now: float) -> Self:
        """Who never tries is told of holders, too, and a list that hides some is none to tell of."""
        return self.with_observation(observation, "", now)

    @property
    def _roster(self) -> Roster | None:
        return None if self.view is None else self.view.roster

    def _missing(self, name: str) -> Missing | None:
        return next((each for each in self.missing if each.name == name), None)

    @property
    def _in_line(self) -> bool:
        return self.view is not None and self.view.alive(self.our_session) is not None

    def _with_missing_keys(
        self, now: float, names: tuple[str, ...], *, unbroken: bool, changed: bool
    ) -> Self:
        """A session that is gone never comes back, but ``.lock`` may have been there again, and others
        may have taken slots, unless every change was seen. What was only hidden may have gone since."""
        kept = (each for each in self.missing if not (each.unlisted and changed))
        known = {each.name: each for each in kept if unbroken or each.name != LOCK}
        missing = tuple(known.get(name) or Missing(name, now) for name in names)
        slots = replace(self, missing=missing)
        return slots if slots._unsure_of() is None else replace(slots, details=self.details.schedule_by(now))

    def _names_missing_from(self, view: SlotsView) -> tuple[str, ...]:
        """Where nothing is left at all, who has seen holders knows that they may still act; and who is told
        that something was left out, that it may be the record."""
        if view.lock is None:
            return (LOCK,) if view.contenders or view.filtered or self._has_seen_holders else ()
        named, alive = () if view.roster is None else view.roster.holders, view.all_alive()
        return tuple(session for session in named if session not in alive)

    @property
    def _has_seen_holders(self) -> bool:
        named = self._roster is not None and bool(self._roster.holders)
        return named or self._missing(LOCK) is not None

    def _with_attempt_time(self, fresh_at: float, now: float) -> Self:
        opens_at = self._opens_at(now)
        if opens_at == NEVER:
            return replace(self, opens_at=opens_at, free_at=LONG_AGO, free_since=NEVER)
        free_since = opens_at if opens_at > now else min(self.free_since, now)
        try_at = max(free_since + self._queue_delay_s(), self.not_before)
        return replace(
            self,
            opens_at=opens_at,
            free_at=max(fresh_at, self.free_at),
            free_since=free_since,
            try_at=try_at,
        )

    def _opens_at(self, now: float) -> float:
        """NEVER: not as far as is known."""
        view = self.view
        assert view is not None
        if view.lock is not None and view.roster is None:
            return NEVER
        if not self._in_line:
            return now  # to stand in line is always possible
        if view.roster is None:
            return self._prunable_at(LOCK)
        surplus = len(view.roster.holders) - self.effective_limit + 1
        if surplus <= 0:
            return now
        times = sorted(self._prunable(view.roster.holders))
        return times[surplus - 1] if surplus <= len(times) else NEVER

    def _prunable_at(self, name: str) -> float:
        """From when on the slot of this holder is free, if it has vanished."""
        return next(self._prunable((name,)))

    def _prunable(self, names: Iterable[str]) -> Iterator[float]:
        """The same of many, in their order: a site that has lost its power leaves thousands of them."""
        roster = self._roster
        said_s = 0.0 if roster is None or roster.prune_delay_s is None else roster.prune_delay_s
        delay_s = max(self.prune_delay_s, said_s, self.longest_s)
        confirmed_gone = {each.name: each.since + delay_s for each in self.missing if each.confirmed_gone}
        return (confirmed_gone.get(name, NEVER) for name in names)

    def _queue_delay_s(self) -> float:
        return min(self._rank() * RANK_S, QUEUE_DELAY_MAX_S)

    def _lag_s(self) -> float:
        """No lag for whoever may be next, though all slots get free at once. Those behind leave Consul, and
        the machine that they may share, to them."""
        if self._roster is None or not self._in_line:
            return 0.0
        rank = self._rank()
        return 0.0 if rank < self.effective_limit else min(rank * READ_LAG_PER_RANK_S, READ_LAG_MAX_S)

    def _rank(self) -> int:
        """How many stand before us; 0 for who is not in line yet, and only wants to be."""
        waiting = self._waiting()
        ours = next((key for key in waiting if key.name == self.our_session), None)
        return 0 if ours is None else sum(key.create_index < ours.create_index for key in waiting)

    def _waiting(self) -> tuple[ContenderKey, ...]:
        view = self.view
        assert view is not None
        holders = frozenset(() if view.roster is None else view.roster.holders)
        return tuple(key for key in view.contenders if key.is_alive and key.name not in holders)

    def verdict(self, observation: Observation, tenure: Tenure, session: Session) -> Verdict:
        """Whether we still have a slot by this news."""
        view, ours = observation.view, tenure.session
        assert isinstance(view, SlotsView)
        hold = view.hold_of(ours)
        if hold is not None and hold.create_index == tenure.create_index:
            return Ours()
        if view.lock is None:
            return Lost(Reason.SLOT_REMOVED, taken=False) if self._is_gone(LOCK) else Unsure()
        if view.roster is None:
            return Unsure()
        if ours not in view.roster.holders:
            return Lost(Reason.SLOT_REMOVED, taken=True)
        if hold is not None or self._is_gone(ours):
            return Lost(Reason.KEY_DELETED, taken=False)
        return Unsure()

    def _is_gone(self, name: str) -> bool:
        missing = self._missing(name)
        return missing is not None and missing.confirmed_gone

    def is_held_by_other(self, session: str) -> bool:
        """Whether our slot has been taken out of the record."""
        return self._roster is not None and session not in self._roster.holders

    # --- tries and release ------------------------------------------------------------------------

    def attempt_for(self, terms: Terms, session: str, value: bytes, now: float) -> JoinSemaphore | TakeSlot:
        """In line first, at once with a slot when nobody waits; then a slot."""
        view, prefix = self.view, _prefix(terms)
        assert view is not None
        index = 0 if view.lock is None else view.lock.modify_index
        base = (terms.item, now, terms.exchange_s, prefix, session)
        if view.alive(session) is not None:
            roster = self._with_us(session, now)
            assert len(roster.holders) <= self.effective_limit, f"no slot is free for {session}: {roster}"
            return TakeSlot(*base, roster, index)
        deleted = self._missing(LOCK) is not None and self._prunable_at(LOCK) > now
        new = view.lock is None and not view.contenders and not deleted
        taken = self.effective_limit if view.roster is None else len(view.roster.holders)
        if new or (taken < self.effective_limit and not self._waiting()):
            return JoinSemaphore(*base, value, self._with_us(session, now), index)
        return JoinSemaphore(*base, value)

    def _with_us(self, session: str, now: float) -> Roster:
        """The record with us in it, and without those whose time is over."""
        view = self.view
        assert view is not None
        roster = view.roster or Roster()
        leaving = zip(roster.holders, self._prunable(roster.holders), strict=True)
        staying = tuple(each for each, at in leaving if at > now)
        assert len(staying) < self.effective_limit, f"no slot is free at {now}: {roster}"
        alive = view.all_alive()
        keys = [alive.get(each) for each in staying]
        delays = [self.prune_delay_s, *(key.prune_delay_s or 0.0 for key in keys if key is not None)]
        if None in keys and roster.prune_delay_s is not None:
            delays.append(roster.prune_delay_s)  # of one that vanished: its body is gone
        limit = self.limit if roster.limit is None else roster.limit
        return replace(roster, limit=limit, holders=(*staying, session), prune_delay_s=max(delays))

    def view_after_attempt(self, request: Request, outcome: Outcome) -> View | None:
        """The slots with what the transaction wrote."""
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
        if request.roster is not None and outcome.lock is not None:
            lock = LockKey(outcome.lock.create_index, outcome.lock.modify_index, request.roster)
        return SlotsView(view.index, lock, contenders)

    def with_unwanted_win(self, view: View) -> Self:
        """The slots as this shows them."""
        assert isinstance(view, SlotsView)
        return replace(self, view=view, unsure=False)

    def attempt_failed(self, outcome: Outcome, terms: Terms, spread: float, now: float) -> Self:
        """By somebody else's write, or by nobody knows whom: what we know is wrong, or may be."""
        if not isinstance(outcome, LostRace):
            unsure = self.unsure or isinstance(outcome, Unknown)
            return replace(self.must_reread(now + terms.retry_s), unsure=unsure)
        pause_s = min(RACE_S * 2**self.lost_races, RACE_S_MAX) * (0.5 + spread)
        lost_races = min(self.lost_races + 1, RACES_MAX)
        slots = replace(self, view=None, opens_at=NEVER, lost_races=lost_races, not_before=now + pause_s)
        return slots.must_reread(now)

    def acquired(self, index: int, read_at: float) -> Self:
        """Ours from that index on: what is under way was asked for before that."""
        return Lock.acquired(replace(self, lost_races=0), index, read_at)

    def release_for(self, terms: Terms, session: Session, value: bytes, now: float) -> LeaveSemaphore | None:
        """Our slot, if we have one, and our contender key; where nothing is known, not before it is."""
        view, ours = self.view, session.id
        base = (terms.item, now, terms.exchange_s, _prefix(terms), ours)
        if (view is None or self.unsure) and not session.final_attempt:
            return None
        if view is None or view.lock is None or view.roster is None or ours not in view.roster.holders:
            return LeaveSemaphore(*base)
        holders = tuple(each for each in view.roster.holders if each != ours)
        limit = self.limit if view.roster.limit is None else view.roster.limit
        return LeaveSemaphore(
            *base, replace(view.roster, limit=limit, holders=holders), view.lock.modify_index
        )

    def has_entry(self, session: str) -> bool:
        """Whether it stands in line or has a slot."""
        return self.view is not None and self.view.alive(session) is not None

    def rewrite_for(self, terms: Terms, session: str, value: bytes, now: float) -> Rewrite:
        """Our contender key."""
        key = f"{_prefix(terms)}/{session}"
        return Rewrite(terms.item, now, terms.exchange_s, key, session, value, of_slot=True)

    # --- questions --------------------------------------------------------------------------------

    def _read_request(self, terms: Terms, now: float) -> ReadSlots:
        has_slot = self._roster is not None and self.our_session in self._roster.holders
        holder = self.our_session if has_slot else ""
        return ReadSlots(terms.item, now, terms.exchange_s, _prefix(terms), holder)

    def _watch_request(self, terms: Terms, now: float, *, consistent: bool) -> WatchSlots:
        lag_s = self._lag_s()
        return WatchSlots(terms.item, now, WATCH_S, _prefix(terms), self.index, WAIT_S, consistent, lag_s)

    def _info_request(self, terms: Terms, now: float) -> ReadKey | None:
        """The next key of which it is not sure that it is gone."""
        name = self._unsure_of()
        if name is None:
            return None
        prefix = _prefix(terms)
        return ReadKey(terms.item, now, terms.exchange_s, f"{prefix}/{name}", prefix)

    def _unsure_of(self) -> str | None:
        unsure = (each.name for each in self.missing if not each.confirmed_gone and not each.unlisted)
        return next(unsure, LOCK if self.notifies and self._may_hide_all else None)

    def _informed(self, terms: Terms, request: Request, outcome: Outcome, now: float) -> Self:
        """A contender key without its session is as good as gone. For what we hold it is asked anew."""
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
            slots = slots._with_attempt_time(self.free_at, now)
        return slots.read_by(now)

    def _told_of_lock(self, lock: KeyView, now: float) -> Self:
        """Nobody uses the prefix yet; or the list hides it, unless that is older than this answer."""
        if self.view is None or not self._may_hide_all:
            return replace(
                self, details=self.details.schedule_by(now)
            )  # something else may be missing by now
        hides = lock.present and lock.modify_index <= self.view.index
        missing = (Missing(LOCK, now, unlisted=True),) if hides else ()
        return replace(self, confirmed_unused=not lock.present, missing=missing).read_by(now)


def _prefix(terms: Terms) -> str:
    return terms.key.removesuffix(LOCK_SUFFIX)
