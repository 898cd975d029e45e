"""The known state of a semaphore's slots: their holders, which keys are missing, and when a slot is free.

Two facts make this hard. Slots have no lock-delay in Consul, so the contenders themselves keep the slot of a
vanished holder taken for the prune delay. And an answer may leave keys out, because the token may not read
all keys. So a key that an answer should show and does not is *missing* at first, and *gone* only when a read
of that one key confirms this. A missing key never frees a slot, and a gone key does after the prune delay.
"""

from collections.abc import Iterable, Iterator
from typing import Self

from supervisor.core.actions import Reason
from supervisor.core.frozen import dataclass, replace
from supervisor.core.lock.base import Lock, Lost, Observation, Ours, Unsure, Verdict
from supervisor.core.machines.session import Session
from supervisor.core.machines.tenure import Tenure
from supervisor.core.outcomes import KeyView, SlotsView
from supervisor.core.requests import SlotRecord
from supervisor.core.settings import LOCK_SUFFIX
from supervisor.core.times import NEVER

LOCK = LOCK_SUFFIX.removeprefix("/")


@dataclass(frozen=True, slots=True)
class Missing:
    """A key that an answer should show and does not: a holder's, or ``.lock``."""

    name: str
    since: float  # when the key was first missing
    confirmed_gone: bool = False  # a read of the key itself has shown that it does not exist
    unlisted: bool = False  # a read of the key itself has shown it, so the list leaves it out


@dataclass(frozen=True, slots=True)
class KnownSlots(Lock):
    """The slots of a semaphore as this contender knows them."""

    view: SlotsView | None = None
    limit: int = 1
    prune_delay_s: float = 30.0
    our_session: str = ""  # the session of this contender
    missing: tuple[Missing, ...] = ()  # the keys that the view should show and does not
    longest_s: float = 0.0  # the longest prune delay that any contender key has named
    notifies: bool = False  # on_change, or the status of an observer, reports the holders
    confirmed_unused: bool = False  # a read of ``.lock`` itself has shown that there is none

    # --- for the operator and the rest of the core ---------------------------------------------------

    @property
    def effective_limit(self) -> int:
        """The smaller of the limits in our file and in Consul, because no attempt may exceed either."""
        said = self._slot_record.limit
        return self.limit if said is None else min(self.limit, said)

    @property
    def lockout_s(self) -> float:
        """How long the other contenders surely wait for us when we vanish.

        The shorter of the prune delays in ``.lock`` and in our file counts, because a contender that has
        never seen our key knows only the one in ``.lock``.
        """
        said_s = self._slot_record.prune_delay_s
        return self.prune_delay_s if said_s is None else min(self.prune_delay_s, said_s)

    @property
    def notice(self) -> str:
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
        if view.lock is not None and view.lock.slot_record is None:
            return f"{LOCK} is no semaphore's and is left alone: {view.lock.why}"
        if self._slot_record.limit not in (None, self.limit):
            limits = f"limit is {self.limit} here and {self._slot_record.limit} in Consul"
            return f"{limits}: the smaller counts; `limit`, or Limit in {LOCK}, changes that in Consul"
        return ""

    @property
    def is_complete(self) -> bool:
        """Whether each missing key has been confirmed as gone by a read of the key itself."""
        return not self._may_hide_all and all(each.confirmed_gone for each in self.missing)

    def verdict(self, observation: Observation, tenure: Tenure, session: Session) -> Verdict:
        """Return whether we still have our slot, as this observation shows.

        Each loss needs a proof: ``.lock`` without our name, or a read that shows that a key is gone. A list
        may leave our key out because of an ACL. A change of an ACL hides keys from all nodes at once, and
        holders that believed such a list would all give up together.
        """
        view, ours = observation.view, tenure.session
        assert isinstance(view, SlotsView)
        hold = view.find_hold(ours)
        if hold is not None and hold.create_index == tenure.create_index:
            return Ours()
        if view.lock is None:
            # Waiters also see that the record is gone, and wait for the prune delay before they make a new
            # one.
            return Lost(Reason.SLOT_REMOVED, taken=False) if self._is_gone(LOCK) else Unsure()
        if view.slot_record is None:
            return Unsure()  # the damaged record names no holder, and no contender takes a slot by it
        if ours not in view.named:
            return Lost(Reason.SLOT_REMOVED, taken=True)  # nothing keeps a waiter from our slot any more
        if hold is not None or self._is_gone(ours):
            # Our key was deleted, or deleted and made again. ``.lock`` still names us, so waiters leave our
            # slot alone for the prune delay.
            return Lost(Reason.KEY_DELETED, taken=False)
        return Unsure()

    # --- for ``lock.semaphore`` ----------------------------------------------------------------------

    @property
    def _slot_record(self) -> SlotRecord:
        """The content of ``.lock``, as far as it is known."""
        return (self.view.slot_record if self.view is not None else None) or SlotRecord()

    @property
    def _in_line(self) -> bool:
        return self.has_entry(self.our_session)

    def _with_view(self, observation: Observation, our_session: str, now: float) -> Self:
        """Believe the observation, and note which keys are missing."""
        view = observation.view
        assert isinstance(view, SlotsView)
        # The key of a holder ends with its session, and so does the prune delay in the key. The longest delay
        # ever seen is remembered, so that a holder that crashes gets at least the time that its lease counts
        # on.
        said_s = (key.prune_delay_s or 0.0 for key in view.contenders)
        longest_s = max(self.longest_s, *said_s, 0.0)
        confirmed_unused = self.confirmed_unused and view.lock is None
        slots = replace(
            self, view=view, our_session=our_session, longest_s=longest_s, confirmed_unused=confirmed_unused
        )
        before = None if self.view is None else self.view.index
        return slots._with_missing_keys(
            now,
            self._names_missing_from(view),
            unbroken=before in (view.index, observation.after_index),
            changed=before != view.index,
        )

    # --- the keys that are missing -------------------------------------------------------------------

    def _missing(self, name: str) -> Missing | None:
        return next((each for each in self.missing if each.name == name), None)

    def _is_gone(self, name: str) -> bool:
        missing = self._missing(name)
        return missing is not None and missing.confirmed_gone

    @property
    def _may_hide_all(self) -> bool:
        """Whether the list may be empty because it is denied, which looks like an unused prefix."""
        return self.view is None or not (self.view.lock or self.confirmed_unused or self.missing)

    def _names_missing_from(self, view: SlotsView) -> tuple[str, ...]:
        """Return the names of the keys that this view should show and does not.

        A ``.lock`` that vanished counts as missing in three cases, because its holders may still act, and a
        contender that made a new one at once would let in ``limit`` more. First: contenders are left, so
        holders may be among them. Second: Consul reports that it left something out, which may be ``.lock``.
        Third: no key is left at all, and this contender has seen holders before.
        """
        if view.lock is None:
            seen_holders = bool(self._slot_record.holders) or self._missing(LOCK) is not None
            return (LOCK,) if view.contenders or view.filtered or seen_holders else ()
        alive = view.all_alive()
        return tuple(session for session in view.named if session not in alive)

    def _with_missing_keys(
        self, now: float, names: tuple[str, ...], *, unbroken: bool, changed: bool
    ) -> Self:
        """Note since when each key has been missing, and plan a read of each key that may be gone or hidden.

        ``unbroken``: no change has passed unseen since the view before. ``changed``: the view is a new one.
        """
        # A key that was only hidden may have gone since, so each change makes a new read necessary.
        kept = (each for each in self.missing if not (each.unlisted and changed))
        # A session that is gone never comes back, so its time runs on. ``.lock`` may have been there again
        # unseen, with holders that still act, so their time begins now.
        known = {each.name: each for each in kept if unbroken or each.name != LOCK}
        missing = tuple(known.get(name) or Missing(name, now) for name in names)
        slots = replace(self, missing=missing)
        return slots if slots._unsure_of() is None else replace(slots, details=self.details.schedule_by(now))

    def _unsure_of(self) -> str | None:
        """Return the next key to read, which may be gone or merely hidden; None when no key is in doubt.

        Without a view no key is known to be hidden, and the next view decides again.
        """
        unsure = (each.name for each in self.missing if not each.confirmed_gone and not each.unlisted)
        asks_for_lock = self.notifies and self.view is not None and self._may_hide_all
        return next(unsure, LOCK if asks_for_lock else None)

    def _told_of_lock(self, lock: KeyView, now: float) -> Self:
        """Note that the prefix is not in use yet, or that the list hides ``.lock``.

        A list that is older than this answer hides nothing, because ``.lock`` may have been made in between.
        """
        if self.view is None or not self._may_hide_all:
            return replace(self, details=self.details.schedule_by(now))  # another key may be missing
        hides = lock.present and lock.modify_index <= self.view.index
        missing = (Missing(LOCK, now, unlisted=True),) if hides else ()
        return replace(self, confirmed_unused=not lock.present, missing=missing).read_by(now)

    # --- when a slot is free -------------------------------------------------------------------------

    def _free_from(self, now: float) -> float:
        """Return from when on a contender in line may take a slot. NEVER: no such time is known."""
        view = self.view
        assert view is not None
        if view.slot_record is None:
            # ``.lock`` was deleted while its holders may act. All slots stay taken for the time for which a
            # holder that vanished just before would keep its own.
            return self._prunable_at(LOCK)
        surplus = len(view.named) - self.effective_limit + 1
        if surplus <= 0:
            return now
        # One free slot is enough. It is free when the last of ``surplus`` vanished holders may be pruned. A
        # holder that lives, or is only missing, keeps its slot.
        times = sorted(self._prunable(view.named))
        return times[surplus - 1] if surplus <= len(times) else NEVER

    def _prunable_at(self, name: str) -> float:
        """Return from when on the slot of this holder is free. NEVER: the holder is not known to be gone."""
        return next(self._prunable((name,)))

    def _prunable(self, names: Iterable[str]) -> Iterator[float]:
        """Yield ``_prunable_at`` of each name in one pass, because a power cut leaves thousands of names.

        A holder whose machine is cut off acts until its lease ends, and that lease counts on the prune delay
        from its newest contact. No other node sees that contact. But the key was still there then, so the key
        is first missing later, and the slot is free no earlier than the lease ends. The longest delay that
        any key has named counts, because the vanished holder's own went with its key.
        """
        delay_s = max(self.prune_delay_s, self._slot_record.prune_delay_s or 0.0, self.longest_s)
        confirmed_gone = {each.name: each.since + delay_s for each in self.missing if each.confirmed_gone}
        return (confirmed_gone.get(name, NEVER) for name in names)
