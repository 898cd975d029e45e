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
from supervisor.core.claim.record import ABSENT, TenureRecord, merge
from supervisor.core.frozen import dataclass, replace
from supervisor.core.lease import RETRY_SPREAD_S
from supervisor.core.lock import backoff, handover
from supervisor.core.lock.base import (
    IDLE_PAUSE_S,
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
from supervisor.core.machines.lane import Lane
from supervisor.core.machines.session import Session, Terms
from supervisor.core.machines.tenure import Tenure
from supervisor.core.outcomes import (
    Denied,
    Done,
    KeyView,
    LockDelayed,
    LostRace,
    Outcome,
    RecordExists,
    SessionInfo,
    TenureShown,
    View,
    Won,
)
from supervisor.core.requests import (
    Acquire,
    MarkTenure,
    ReadKey,
    ReadSession,
    Release,
    Request,
    Rewrite,
    WatchKey,
    WatchTenure,
)
from supervisor.core.settings import ElectionSettings, ItemSettings
from supervisor.core.times import LONG_AGO, NEVER

LOCK_DELAY_SLACK_S = 0.002  # for Consul's own timer, and for the time until waiters see the lock free
LOCK_DELAY_RETRY_S = 1.0  # Consul logs a warning for every attempt that comes too soon
VALUE_BYTES_MAX = 262_144  # what a transaction carries for certain, encoded (agent/txn_endpoint.go)
LOOK_PAUSE_S = 0.25  # who takes the free key reads the record anyway; far less than a fence leaves to a loser
GUARD_LOOK_S = 5.0  # a record that the holder writes behind its guard leaves the key as it is
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
    has_fence: bool = False  # by the file
    record_exists: bool = False  # an acquire was refused because of a record that the flags do not tell of
    # Our session, while it holds and the tenure record is watched. None: the record is not watched.
    watches_record_of: str | None = None
    record_index: int = 0  # the index from which that watch waits. 0: it is answered at once
    mark_index: int = 0  # the ModifyIndex of the tenure record. 0: not known

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
        key = replace(key, busy_delay_s=settings.busy_delay_s, has_fence=settings.fence is not None)
        key = replace(key, only_index=settings.only_index)
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
        key = self if our_session and view.session == our_session else self._looking(view, now)
        if our_session is None:
            return replace(key, view=view)
        if view.is_foreign or (self.only_locks and view.was_never_locked):
            return replace(key, view=view)._taken()
        if view.session is None:
            return key._free(observation, view, our_session, now)
        key = replace(key, view=view, refusals=0)
        if view.session != our_session and self.is_free and now < self.try_at:
            key = replace(key, attempt_probability=backoff.decrease(self.attempt_probability))
        known = key.holder_session is not None and key.holder_session.session == view.session
        if view.session != our_session and not known and not key.watches_record_of:
            key = replace(key, details=key.details.schedule_by(now))
        seen_at = self.holder_seen_at if self.view and self.view.session == view.session else now
        return replace(
            key, holder=view.session, hold_index=view.modify_index, holder_seen_at=seen_at
        )._taken()

    def _looking(self, view: KeyView, now: float) -> Self:
        """Return the key whose tenure record is read once after each change, by a node that does not hold."""
        changed = self.view is None or view.modify_index != self.view.modify_index
        if not view.has_record_flags or not changed or self.watches_record_of:
            return self
        details = self.details.mark_stale().schedule_by(now + LOOK_PAUSE_S)
        return replace(self, tenure_record=None, details=details)

    def following(self, session: str, now: float) -> Self:
        """Return the key whose tenure record is watched from now on, if this holder has or is to have one."""
        marked = self.view is not None and (self.view.has_record_flags or self.has_fence)
        if not marked or self.watches_record_of == session or not self.has_entry(session):
            return self
        return self.followed(session, now)

    def followed(self, session: str, now: float) -> Self:
        return replace(self, watches_record_of=session, details=self._kept_look.schedule_by(now))

    @property
    def _kept_look(self) -> Lane:
        """The empty lane of the record, but for a look that is under way: two never go side by side."""
        return self.details.mark_stale() if self._is_looking else Lane()

    @property
    def _is_looking(self) -> bool:
        return isinstance(self.details.pending, WatchTenure) and not self.details.pending.index

    def look_again(self, now: float) -> Self:
        pending = self.details.pending
        if isinstance(pending, MarkTenure) or self._is_looking:
            return self  # it is under way
        if pending is None and not self.record_index and self.details.due_at != NEVER:
            return self  # it waits for its time, after one without an answer
        return replace(self, details=Lane(due_at=now), record_index=0)

    def marking(self, terms: Terms, record: TenureRecord, now: float) -> tuple[Self, MarkTenure | None]:
        """Begin to write the record in the place of the one that was read, whose watch is given up."""
        if isinstance(self.details.pending, MarkTenure) or not self.mark_index:
            return self, None
        mark = MarkTenure(terms.item, now, terms.exchange_s, terms.key, record, self.mark_index)
        return replace(self, details=Lane().begin(mark)), mark

    def _free(self, observation: Observation, view: KeyView, our_session: str, now: float) -> Self:
        """Return the key as free; where it has just become free, plan the attempt.

        A contender leaves a key that is handed over to its target. The target itself does not wait.
        """
        if self.is_free:
            return replace(self, view=view, seen_free_at=max(observation.true_since, self.seen_free_at))
        since = observation.true_since if observation.after_index else now
        target = handover.hinted_session(view.value)
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
        return replace(self, seen_free_at=LONG_AGO, opens_at=NEVER, record_exists=False)

    def is_handed_to(self, session: str) -> bool:
        return self.view is not None and handover.hinted_session(self.view.value) == session

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
        # Whoever acquires over our tenure record waits until our lease is over.
        return Lost(reason, taken=not (view.has_record_flags and self.tenure_record_names(tenure.session)))

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
        """Return the acquire: with our tenure record where there is none, else over that of another session.

        The key's flags tell of a record. A key that is still held is expected to be released in order.
        """
        view, claim, over = self.view, terms.claim, self.tries_over_record
        index = 0 if view is None else view.modify_index
        request = Acquire(
            terms.item, now, terms.exchange_s, terms.key, session, value, index, over_record=over
        )
        return request if claim is None or over else replace(request, claim=claim)

    @property
    def is_as_decided(self) -> bool:
        index, view = self.only_index, self.view
        return index is None or (view is not None and view.modify_index == index)

    @property
    def tries_over_record(self) -> bool:
        view = self.view
        return self.record_exists or (view is not None and view.has_record_flags and not view.session)

    def view_after_attempt(self, request: Request, outcome: Outcome) -> View | None:
        if not isinstance(outcome, Won):
            return None
        assert isinstance(request, Acquire)
        index, has_record_flags = outcome.modify_index, request.over_record or request.claim is not None
        indexes = (outcome.create_index, index, outcome.lock_index)
        return KeyView(index, request.session, request.value, *indexes, has_record_flags=has_record_flags)

    def won(self, request: Request, outcome: Outcome) -> Self:
        """Return the key with the tenure record that the acquire has written, if it has."""
        if not isinstance(request, Acquire) or not isinstance(outcome, Won) or request.claim is None:
            return self
        return self.with_tenure_record(request.claim, outcome.modify_index)

    def with_tenure_record(self, record: TenureRecord, index: int = 0) -> Self:
        """Return the key with the tenure record that we have written.

        index: its ModifyIndex. 0: not known, so the record is read at once, because a watch on it may have
        told of this write already, and then waits for the next one.
        """
        details = self.details.mark_stale() if index or self._is_looking else Lane(due_at=LONG_AGO)
        return replace(self, tenure_record=record, mark_index=index, record_index=index, details=details)

    def looked(self, request: MarkTenure | WatchTenure, outcome: Outcome) -> Self:
        """Return the key with the tenure record that its session has read or written without a lock."""
        if isinstance(outcome, TenureShown):
            return replace(self, tenure_record=outcome.record or ABSENT, mark_index=outcome.modify_index)
        if isinstance(outcome, Done) and isinstance(request, MarkTenure):
            return replace(self, tenure_record=request.record, mark_index=0)
        return self

    def write_failed(self, outcome: Outcome, terms: Terms, now: float) -> Self:
        """Plan the next attempt after one that a lock-delay refused, a rival won or Consul did not answer."""
        match outcome:
            case LockDelayed():
                return self._delayed(terms, RETRY_SPREAD_S * terms.spread, now)
            case RecordExists():
                return replace(self.must_reread(now), record_exists=True)
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
        if self.watches_record_of:  # what it says is kept, because the release that follows depends on it
            key = replace(key, watches_record_of=None, record_index=0, details=self._kept_look)
        return replace(key, attempt_probability=backoff.decrease(self.attempt_probability) if failed else 1.0)

    def release_for(self, terms: Terms, session: Session, value: bytes, now: float) -> Release | None:
        """Return the release, which leaves the value of the key as it is, or the hint of a hand-over.

        An older hint in the key has had its effect, so our own value replaces it. The release also leaves the
        flags as they are, because they tell of the tenure record of another session: a process that goes on
        with a session on record reads them first.
        """
        ours, unread = self.tenure_record_names(session.id), self.view is None or not self.view.index
        if session.owes and unread and not ours and not session.unread:
            return None
        kept = self.view.value if self.view is not None else value
        if session.handover_to:
            kept = handover.hint_for(session.handover_to)
        elif handover.hinted_session(kept):
            kept = value
        marked = session.owes if self.view is None or unread else self.view.has_record_flags
        over = not ours and (marked or (session.over_record and not self.has_entry(session.id)))
        release = Release(terms.item, now, terms.exchange_s, terms.key, session.id, kept)
        if ours and len(kept) > VALUE_BYTES_MAX:
            release = replace(release, value=b"")  # a transaction limits it, and nobody leads by it any more
        return replace(release, ends_record=ours, over_record=over)

    def rewrite_for(self, terms: Terms, session: str, value: bytes, now: float) -> Rewrite:
        """Return the request for this value, and for the tenure record of a node that keeps one.

        A record never shrinks while its tenure lasts, and keeps its target.
        """
        rewrite = Rewrite(terms.item, now, terms.exchange_s, terms.key, session, value)
        kept, claim = self.tenure_record if self.tenure_record_names(session) else None, terms.claim
        if kept is not None and claim is not None:
            claim = merge(kept, claim)
        if claim is None and kept is None:
            return replace(rewrite, ends_record=self.view is not None and self.view.has_record_flags)
        return replace(rewrite, claim=claim or kept)

    def rewritten(self, request: Rewrite) -> Self:
        """Return the key with the flags and the tenure record that this request has written."""
        if request.claim is None and not request.ends_record:
            return self
        view = self.view and replace(self.view, has_record_flags=request.claim is not None)
        return replace(self.with_tenure_record(request.claim or ABSENT), view=view)

    def lacks_tenure_record(self, session: str, claim: TenureRecord | None) -> bool:
        """Return whether a holder must write its tenure record, or the flags that tell of it."""
        if self.tenure_record is None or self.view is None:
            return False
        if claim is None:  # the file has no fence any more, and the tenure keeps what it began with
            return self.tenure_record_names(session) and not self.view.has_record_flags
        if not self.tenure_record_names(session) or not self.view.has_record_flags:
            return True
        return merge(self.tenure_record, claim) != self.tenure_record

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

    def _details_request(self, terms: Terms, now: float) -> ReadSession | WatchTenure | None:
        if self.watches_record_of and self.record_index:
            return WatchTenure(terms.item, now, WATCH_S, terms.key, self.record_index, WAIT_S)
        look = WatchTenure(terms.item, now, terms.exchange_s, terms.key)
        if self.watches_record_of:
            return look
        session = None if self.view is None else self.view.session
        if session is not None and (self.holder_session is None or self.holder_session.session != session):
            return ReadSession(terms.item, now, terms.exchange_s, session)
        return look if self._must_look else None

    @property
    def _must_look(self) -> bool:
        """Tell whether this node does not know the record, or the holder waits behind that of another."""
        if self.view is None or not self.view.has_record_flags:
            return False
        record, holder = self.tenure_record, self.view.session
        return record is None or (bool(holder) and record.session != holder)

    def _details_answered(self, terms: Terms, request: Request, outcome: Outcome, now: float) -> Self:
        """Note the holder's lock-delay, or assume our own where Consul does not show the session."""
        if isinstance(request, MarkTenure):
            return self._marked(terms, request, outcome, now)
        if isinstance(request, WatchTenure):
            return self._record_answered(terms, outcome, now)
        assert isinstance(request, ReadSession)
        if not isinstance(outcome, SessionInfo):
            return replace(self, details=self.details.finish(now + terms.retry_s))
        delay_s = outcome.lock_delay_s
        known = HolderSession(request.session, terms.settings.lock_delay_s if delay_s is None else delay_s)
        details = self.details.finish(now if self._must_look else NEVER)
        return replace(self, details=details, holder_session=known)

    def _marked(self, terms: Terms, request: MarkTenure, outcome: Outcome, now: float) -> Self:
        """Note that the record is written. Where it may have changed meanwhile, it is read anew."""
        if isinstance(outcome, Done):
            return self.with_tenure_record(request.record)
        details = self.details.finish(now if isinstance(outcome, LostRace) else now + terms.retry_s)
        if isinstance(outcome, Denied) and not self.watches_record_of:
            details = Lane()  # until the key changes
        known = self.tenure_record if self.watches_record_of else None
        return replace(self, tenure_record=known, mark_index=0, record_index=0, details=details)

    def _record_answered(self, terms: Terms, outcome: Outcome, now: float) -> Self:
        """Note the tenure record, and watch it on. A record that cannot be read is read again."""
        stale = self.details.stale
        if isinstance(outcome, Denied) and not self.watches_record_of:
            return replace(self, details=Lane())  # until the key changes
        if not isinstance(outcome, TenureShown):
            return replace(self, details=self.details.finish(now + terms.retry_s), record_index=0)
        key = replace(self, details=self.details.finish(now))
        if stale:
            return replace(key, record_index=0)
        key = replace(key, tenure_record=outcome.record or ABSENT, mark_index=outcome.modify_index)
        if not self.watches_record_of:
            return replace(key, details=Lane(due_at=now + GUARD_LOOK_S if key._must_look else NEVER))
        fell = outcome.index < self.record_index
        pause_s = IDLE_PAUSE_S if outcome.index == self.record_index else 0.0  # it has waited for nothing
        details = key.details.schedule_at(now + pause_s)
        return replace(key, details=details, record_index=0 if fell else outcome.index)
