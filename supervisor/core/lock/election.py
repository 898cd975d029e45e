"""The key of an election: the node whose session holds the key leads.

No contender can see why a key is free, so each contender tries. When Consul refuses an attempt because of a
lock-delay, the contender tries again when that delay should be over. The contender knows the length of the
delay, because it reads each holder's session once while that session holds the key.

Where many contenders wait for the key, few of them try at the same moment (``lock.backoff``).

A node that is not preferred leaves a free key to other nodes for its ``acquire_delay``. With a ``busy_delay``
that grows with each other lock that this node holds, so nodes with fewer locks are first. A part of one
``busy_delay`` is drawn, so nodes with equally many locks try for different keys. A holder may hand the key
over to a node that an operator has named (``lock.handover``). Then the other nodes leave the key to it.

The bound: a contender that may try does so at most ``BACKOFF_MAX_S + acquire_delay + held * busy_delay``
after the key has become free. If Consul refuses that attempt because of a lock-delay, the contender tries
again at most that long after the delay's end. A hand-over to another node adds ``HANDOVER_S`` to the first of
these times.
"""

from typing import Self

from supervisor.core.actions import Reason
from supervisor.core.frozen import dataclass, replace
from supervisor.core.lease import RETRY_SPREAD_S
from supervisor.core.lock import backoff, handover
from supervisor.core.lock.base import (
    READ_AHEAD_S,
    WAIT_S,
    WATCH_S,
    Lock,
    Lost,
    Observation,
    Ours,
    Unsure,
    Verdict,
)
from supervisor.core.machines.session import Session, Terms
from supervisor.core.machines.tenure import Tenure
from supervisor.core.outcomes import (
    KeyView,
    LockDelayed,
    LostRace,
    Outcome,
    RecordExists,
    SessionInfo,
    View,
    Won,
)
from supervisor.core.requests import (
    Acquire,
    ReadKey,
    ReadSession,
    Release,
    Request,
    Rewrite,
    WatchKey,
)
from supervisor.core.settings import ElectionSettings, ItemSettings
from supervisor.core.times import LONG_AGO, NEVER

LOCK_DELAY_SLACK_S = 0.002  # for Consul's own timer, and for the time until waiters see the lock free
LOCK_DELAY_RETRY_S = 1.0  # Consul logs a warning for every attempt that comes too soon
LAG_S_MAX = 0.025  # a hand-over takes less; on_change runs later by this much


@dataclass(frozen=True, slots=True)
class HolderSession:
    """A holder's session as Consul showed it while it held the key."""

    session: str
    lock_delay_s: float


@dataclass(frozen=True, slots=True)
class ElectionLock(Lock):
    """The key of an election."""

    spread: float = 0.0  # the contender's own number in [0, 1)
    view: KeyView | None = None
    holder: str | None = None  # the session that holds the key, or the last one that held it
    holder_session: HolderSession | None = None  # of the newest holder whose lock-delay was requested
    attempt_probability: float = 1.0  # how likely this node tries at once when the key is free again
    hold_index: int = 0  # the index at which the newest hold began
    acquire_delay_s: float = 0.0  # how long each free key is left to other contenders, by the file
    busy_delay_s: float = 0.0  # how much longer for each other lock that this node holds, by the file
    held: int = 0  # how many of them it holds
    only_locks: bool = False  # that of ``ElectionSettings``
    only_index: int | None = None  # likewise
    # How long this node leaves the free key to other contenders before it tries. The sum contains
    # ``leaves_s``, but not the time for which a key that is handed over is left to its target.
    backoff_s: float = 0.0
    opened_unseen: bool = False  # the key was free already when this node saw it first
    refusals: int = 0  # attempts in a row that Consul refused without showing a holder; 2 stands for more

    @property
    def holder_delay_s(self) -> float | None:
        known = self.holder_session
        return known.lock_delay_s if known is not None and known.session == self.holder else None

    @property
    def notice(self) -> str:
        """A warning about a key that no contender can take, because of its content or of false answers."""
        if self.refusals > 1:
            return "Consul shows the key as free and refuses the lock: does a proxy answer in its place?"
        if self.view is None:
            return ""
        if self.view.was_never_locked:  # no log shows the value, because it may be a secret
            what = f"the key has a value of {len(self.view.value)} bytes, and was never locked"
            remedy = "use another key, or delete this one"
            return f"{what}: another program may need it, and a lock writes over it; {remedy}"
        if not self.view.is_foreign:
            return ""
        whose = (
            f"the key belongs to another program and is left alone: its flags are {self.view.foreign_flags}"
        )
        return f"{whose}, not a lock's; use another key, or delete this one if no program needs it"

    def with_settings(self, settings: ItemSettings, now: float) -> Self:
        """Go on by these settings; a new acquire_delay also counts for a key that is already free."""
        assert isinstance(settings, ElectionSettings)
        key = replace(self, acquire_delay_s=settings.acquire_delay_s, only_locks=settings.only_locks)
        key = replace(key, busy_delay_s=settings.busy_delay_s, only_index=settings.only_index)
        return key._later_by(key.leaves_s - self.leaves_s)

    def beside(self, held: int, our_session: str) -> Self:
        """Return the key of a node that holds so many other locks, which also counts for a free key."""
        if not self.busy_delay_s or held == self.held:
            return self
        key = replace(self, held=held)
        return key if self.is_handed_to(our_session) else key._later_by(key.leaves_s - self.leaves_s)

    def _later_by(self, more_s: float) -> Self:
        if not self.is_free:
            return self
        return replace(self, backoff_s=max(0.0, self.backoff_s + more_s), try_at=self.try_at + more_s)

    @property
    def leaves_s(self) -> float:
        """How long this node leaves a free key to other nodes, by the file and by what it holds."""
        if not self.busy_delay_s or not self.held:
            return self.acquire_delay_s
        drawn = backoff.hash_to_unit(self.spread, self.hold_index)
        return self.acquire_delay_s + self.busy_delay_s * (self.held - drawn)

    def with_observation(self, observation: Observation, our_session: str | None, now: float) -> Self:
        """Return the key as the observation shows it; where the key is free, plan when to try for it."""
        view = observation.view
        assert isinstance(view, KeyView)
        if view == self.view:
            view = self.view  # so that nothing has changed when an answer only confirms
        if our_session is None:
            return replace(self, view=view)
        if view.is_foreign or (self.only_locks and view.was_never_locked):
            return replace(self, view=view)._taken()
        if view.session is None:
            return self._free(observation, view, our_session, now)
        key = replace(self, view=view, refusals=0)
        if view.session != our_session and self.is_free and now < self.try_at:
            key = replace(key, attempt_probability=backoff.decrease(self.attempt_probability))
        known = key.holder_session is not None and key.holder_session.session == view.session
        if view.session != our_session and not known:
            key = replace(key, details=key.details.schedule_by(now))
        seen_at = self.holder_seen_at if self.view and self.view.session == view.session else now
        return replace(
            key, holder=view.session, hold_index=view.modify_index, holder_seen_at=seen_at
        )._taken()

    def _free(self, observation: Observation, view: KeyView, our_session: str, now: float) -> Self:
        """Return the key as free; where it has just become free, plan the attempt.

        A contender leaves a key that is handed over to its target. The target itself does not wait.
        """
        if self.is_free:
            return replace(self, view=view, seen_free_at=max(observation.true_since, self.seen_free_at))
        since = observation.true_since if observation.after_index else now
        target = handover.named_session(view.value)
        is_target = target == our_session
        drawn_s = self._next_backoff_s
        backoff_s = 0.0 if is_target else drawn_s + self.leaves_s
        handover_s = handover.HANDOVER_S if target and not is_target else 0.0
        return replace(
            self,
            view=view,
            seen_free_at=observation.true_since,
            opens_at=since,
            opened_unseen=self.view is None or self.view.session is None,
            backoff_s=backoff_s,
            try_at=since + backoff_s + handover_s,
            read_ahead_s=0.0 if drawn_s else READ_AHEAD_S,
        )

    def _taken(self) -> Self:
        return replace(self, seen_free_at=LONG_AGO, opens_at=NEVER)

    def is_handed_to(self, session: str) -> bool:
        return self.view is not None and handover.named_session(self.view.value) == session

    @property
    def _next_backoff_s(self) -> float:
        """How long this node will leave the key to other nodes when the newest hold has ended."""
        return backoff.backoff_s(self.attempt_probability, backoff.hash_to_unit(self.spread, self.hold_index))

    def verdict(self, observation: Observation, tenure: Tenure, session: Session) -> Verdict:
        view, known = observation.view, self.view
        assert isinstance(view, KeyView) and known is not None
        same_key = view.create_index == tenure.create_index
        # A LockIndex that grew shows that another session held in between. A plain PUT sets it to 0.
        relocked = view.lock_index > known.lock_index and view.modify_index > known.modify_index
        if view.session == tenure.session and same_key and not relocked:
            return Ours()
        if session.dead and not view.session:
            return Unsure()  # Consul still guards the lock
        reason = Reason.LOCK_GONE if view.present and same_key else Reason.KEY_DELETED
        return Lost(reason, taken=True)

    def restored_from(self, tenure: Tenure) -> Self:
        token, leader = tenure.token, tenure.leader
        view = KeyView(0, tenure.session, leader, tenure.create_index, token, tenure.lock_index)
        return replace(self, view=view)

    # --- attempts and release ---------------------------------------------------------------------

    def _lock_delay_ends_at(self, terms: Terms) -> float:
        """Return when the lock-delay should be over; our own length is assumed for an unknown one.

        A node that has not seen its begin, because it started since, knows nothing: it tries.
        """
        if self.opened_unseen:
            return LONG_AGO
        known_s = self.holder_delay_s
        delay_s = terms.settings.lock_delay_s if known_s is None else known_s
        return self.opens_at + delay_s + LOCK_DELAY_SLACK_S

    def attempt_for(self, terms: Terms, session: str, value: bytes, now: float) -> Acquire:
        index = 0 if self.view is None else self.view.modify_index
        return Acquire(terms.item, now, terms.exchange_s, terms.key, session, value, index)

    @property
    def is_as_decided(self) -> bool:
        index, view = self.only_index, self.view
        return index is None or (view is not None and view.modify_index == index)

    def view_after_attempt(self, request: Request, outcome: Outcome) -> View | None:
        if not isinstance(outcome, Won):
            return None
        assert isinstance(request, Acquire)
        index = outcome.modify_index
        indexes = (outcome.create_index, index, outcome.lock_index)
        return KeyView(
            index,
            request.session,
            request.value,
            *indexes,
            has_record_flags=request.over_record or request.record is not None,
            is_long=request.is_long,
        )

    def write_failed(self, outcome: Outcome, terms: Terms, now: float) -> Self:
        """Plan the next attempt after one that a lock-delay refused, a rival won or Consul did not answer."""
        match outcome:
            case LockDelayed():
                return self._delayed(terms, RETRY_SPREAD_S * terms.spread, now)
            case RecordExists():
                return self.must_reread(now)
            case LostRace():
                lowered = backoff.decrease(self.attempt_probability)
                return replace(self._refused(now), attempt_probability=lowered)
            case _:
                return self.must_reread(now + terms.retry_s)

    def _delayed(self, terms: Terms, pause_s: float, now: float) -> Self:
        """Plan an attempt for when the lock-delay should be over, and then about one a second.

        Consul looks at the lock-delay before it looks for the holder (agent/consul/kvs_endpoint.go,
        kvsPreApply), and a server that restarts counts each delay in its log anew.
        """
        over_at = self._lock_delay_ends_at(terms) + self.backoff_s
        return replace(self, try_at=over_at if over_at > now else now + LOCK_DELAY_RETRY_S + pause_s)

    def _refused(self, now: float) -> Self:
        """Plan the read after a lost race: at once after the first, after a pause from the second on.

        Consul shows a rival after a lost race. Where it goes on to show the key as free, something hides its
        answers, and an attempt at each of them would be a hot loop of writes.
        """
        pause_s = LOCK_DELAY_RETRY_S if self.refusals else 0.0
        lock = replace(self.must_reread(now + pause_s), refusals=min(self.refusals + 1, 2))
        return replace(lock, try_at=max(self.try_at, now + pause_s))

    def given_up(self, *, failed: bool) -> Self:
        """Return the key with a lower attempt probability when the tenure failed, and with 1 otherwise."""
        key = Lock.given_up(self, failed=failed)
        return replace(key, attempt_probability=backoff.decrease(self.attempt_probability) if failed else 1.0)

    def release_for(self, terms: Terms, session: Session, value: bytes, now: float) -> Release:
        """Return the release, which leaves the value of the key as it is, or names a successor.

        A successor that the key names already has come and gone, so our own value replaces it.
        """
        kept = self.view.value if self.view is not None else value
        if session.handover_to:
            kept = handover.naming(session.handover_to)
        elif handover.named_session(kept):
            kept = value
        return Release(terms.item, now, terms.exchange_s, terms.key, session.id, kept)

    def rewrite_for(self, terms: Terms, session: str, value: bytes, now: float) -> Rewrite:
        return Rewrite(terms.item, now, terms.exchange_s, terms.key, session, value)

    def rewritten(self, request: Rewrite) -> Self:
        """Return the key with the flags that this request has written."""
        if self.view is None or (request.record is None and not request.ends_record):
            return self
        has_record = request.record is not None
        return replace(self, view=replace(self.view, has_record_flags=has_record, is_long=request.is_long))

    # --- reads -------------------------------------------------------------------------------------

    def _read_request(self, terms: Terms, now: float) -> ReadKey:
        return ReadKey(terms.item, now, terms.read_s, terms.key, holds=terms.holds)

    def _watch_request(self, terms: Terms, now: float, *, consistent: bool) -> WatchKey:
        lag_s = 0.0 if consistent or self.is_free else self._lag_s
        return WatchKey(terms.item, now, WATCH_S, terms.key, self.index, WAIT_S, consistent, lag_s)

    @property
    def _lag_s(self) -> float:
        """How much later than other nodes this node may learn that the key is free.

        A contender that will leave the key to other nodes does not load Consul, or a machine that it shares
        with them, while they try. It still learns of the free key early enough to see before its own attempt
        whether another contender has taken the key.
        """
        return min(LAG_S_MAX, max(0.0, self._next_backoff_s - backoff.ROUND_S))

    def _details_request(self, terms: Terms, now: float) -> ReadSession | None:
        session = None if self.view is None else self.view.session
        if session is None or (self.holder_session is not None and self.holder_session.session == session):
            return None
        return ReadSession(terms.item, now, terms.exchange_s, session)

    def _details_answered(self, terms: Terms, request: Request, outcome: Outcome, now: float) -> Self:
        """Note the holder's lock-delay, or assume our own where Consul does not show the session."""
        assert isinstance(request, ReadSession)
        if not isinstance(outcome, SessionInfo):
            return replace(self, details=self.details.finish(now + terms.retry_s))
        delay_s = outcome.lock_delay_s
        known = HolderSession(request.session, terms.settings.lock_delay_s if delay_s is None else delay_s)
        return replace(self, details=self.details.finish(), holder_session=known)
