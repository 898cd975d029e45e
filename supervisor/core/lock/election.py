"""The key of an election: the node whose session holds the key leads.

When Consul refuses an attempt because of a lock-delay, this node tries again when that delay should be
over. The delay is that of the former holder's session, which this node reads once while that session holds.

Where many contenders wait for the key, few try at once (``lock.backoff``). None of them can see why the key
is free. A supervisor keeps its session for ``session.DESTROY_PAUSE_S`` after the release. So where the
former holder was a supervisor, a contender whose backoff exceeds ``BLIND_ATTEMPT_MAX_S`` asks once more for
that session. If the session lives, the key was released, and nothing is in the way. If Consul says that the
session is gone, the contender waits for the lock-delay first. Where the former holder was another program,
its session tells nothing, and no contender relies on it.

The bound: while the key is free, a contender that may try does so at most 0.1 s, or a dozen times what that
answer took, after the answer has come, and at most ``BACKOFF_MAX_S`` after the lock-delay where the answer
says that the session is gone.
"""

from dataclasses import dataclass
from typing import Self

from supervisor.core.actions import Reason
from supervisor.core.frozen import replace
from supervisor.core.lane import LONG_AGO, NEVER
from supervisor.core.lease import RETRY_SPREAD_S
from supervisor.core.lock import backoff
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
from supervisor.core.outcomes import KeyView, LockDelayed, LostRace, Outcome, SessionInfo, View, Won
from supervisor.core.requests import Acquire, ReadKey, ReadSession, Release, Request, Rewrite, WatchKey
from supervisor.core.session import Session, Terms
from supervisor.core.tenure import Tenure

LOCK_DELAY_SLACK_S = 0.002  # Consul's own timer, and the way of the news that the delay began
LOCK_DELAY_RETRY_S = 1.0  # Consul logs a warning for every try that comes too soon
IN_STEP_S = 0.1  # who may try only so long after it became free is not in step with others
LAG_S_MAX = 0.025  # a hand-over is over by then; on_change is so much later
CONFIRM_AFTER_S = 0.035  # a wave after that look, and long before a holder's session ends after its release


@dataclass(frozen=True, slots=True)
class HolderSession:
    """What Consul showed of a holder's session while it held.

    is_supervisor: the session has the name of ours, so another supervisor made it.
    """

    session: str
    lock_delay_s: float
    is_supervisor: bool


@dataclass(frozen=True, slots=True)
class ElectionLock(Lock):
    """The key of an election.

    holder: the session that holds the key, or held it last.
    holder_session: the newest session that Consul has shown more of.
    attempt_probability: how likely this node tries at once for the key that is free again.
    hold_index: the index at which the newest hold began.
    backoff_s: how long this node leaves the free key to others. None: that is not drawn yet.
    """

    view: KeyView | None = None
    holder: str = ""
    holder_session: HolderSession | None = None
    attempt_probability: float = 1.0
    hold_index: int = 0
    backoff_s: float | None = None

    @property
    def is_free(self) -> bool:
        """Whether nobody holds it, as far as is known, and it is no other program's."""
        return self.view is not None and not self.view.session and not self.view.is_foreign

    @property
    def notice(self) -> str:
        """Another program's key is never tried for, so nobody leads until an operator has chosen."""
        if self.view is None or not self.view.is_foreign:
            return ""
        whose = (
            f"the key belongs to another program and is left alone: its flags are {self.view.foreign_flags}"
        )
        return f"{whose}, not a lock's; give the election another key, or delete this one if nobody needs it"

    def with_observation(self, observation: Observation, our_session: str, now: float) -> Self:
        """The key as this news shows it."""
        view = observation.view
        assert isinstance(view, KeyView)
        key = replace(self, view=view)
        if view.is_foreign:
            return key._taken()
        if not view.session and key.free_since != NEVER:
            return replace(key, free_at=max(observation.true_since, key.free_at))
        if not view.session:
            since = observation.true_since if observation.after_index else now
            return replace(key, free_at=observation.true_since, free_since=since, try_at=now)
        if view.session != our_session and self.backoff_s is not None and now < self.try_at:
            key = replace(key, attempt_probability=backoff.decrease(self.attempt_probability))
        known = key.holder_session is not None and key.holder_session.session == view.session
        details = key.details if known or view.session == our_session else key.details.schedule_by(now)
        key = replace(key, holder=view.session, hold_index=view.modify_index, details=details)
        return key._taken()

    def _taken(self) -> Self:
        return replace(self, free_at=LONG_AGO, free_since=NEVER, backoff_s=None)

    def verdict(self, observation: Observation, tenure: Tenure, session: Session) -> Verdict:
        """Whose it is by this news."""
        view, known = observation.view, self.view
        assert isinstance(view, KeyView) and known is not None
        same_key = view.create_index == tenure.create_index
        # A LockIndex that grew tells of another holder in between; a plain PUT sets it to 0.
        relocked = view.lock_index > known.lock_index and view.modify_index > known.modify_index
        if view.session == tenure.session and same_key and not relocked:
            return Ours()
        if session.dead and not view.session:
            return Unsure()  # Consul still guards the lock
        reason = Reason.LOCK_GONE if view.present and same_key else Reason.KEY_DELETED
        return Lost(reason, taken=True)

    def restored_from(self, tenure: Tenure) -> Self:
        """As it was when the tenure began."""
        token, leader = tenure.token, tenure.leader
        view = KeyView(0, tenure.session, leader, tenure.create_index, token, tenure.lock_index)
        return replace(self, view=view)

    def is_held_by_other(self, session: str) -> bool:
        """Whether another session is on it."""
        return self.view is not None and self.view.session not in ("", session)

    # --- when to try ------------------------------------------------------------------------------

    def with_backoff(self, terms: Terms, now: float) -> Self:
        """Once for each time that it is free, when this node may try."""
        if self.backoff_s is not None:
            return self
        if now > self.free_since + IN_STEP_S:
            return replace(self, backoff_s=0.0)
        backoff_s = self._backoff_s(terms)
        key = replace(self, backoff_s=backoff_s, try_at=self.free_since + backoff_s)
        if not key._must_confirm_release:
            return key
        asks_at = max(now, self.free_since + CONFIRM_AFTER_S)
        return replace(
            key, try_at=key._lock_delay_ends_at(terms) + backoff_s, details=key.details.schedule_by(asks_at)
        )

    def _backoff_s(self, terms: Terms) -> float:
        return backoff.backoff_s(
            self.attempt_probability, backoff.hash_to_unit(terms.spread, self.hold_index)
        )

    @property
    def _must_confirm_release(self) -> bool:
        """Whether it does not try for a free key of which it does not know why it is free."""
        patient = self.backoff_s is not None and self.backoff_s > backoff.BLIND_ATTEMPT_MAX_S
        return patient and self.is_free and self._former is not None and self._former.is_supervisor

    @property
    def _former(self) -> HolderSession | None:
        """The session that holds the key, or held it last. None: nothing more is known of that session."""
        known = self.holder_session
        return known if known is not None and known.session == self.holder else None

    def _lock_delay_ends_at(self, terms: Terms) -> float:
        """When the lock-delay should be over; ours counts where the former holder's is not known."""
        former = self._former
        lock_delay_s = terms.settings.lock_delay_s if former is None else former.lock_delay_s
        return self.free_since + lock_delay_s + LOCK_DELAY_SLACK_S

    @property
    def _read_ahead_s(self) -> float:
        """Who leaves it to others need not ask what the watch tells before its turn comes."""
        return 0.0 if self.backoff_s else READ_AHEAD_S

    # --- tries and release ------------------------------------------------------------------------

    def attempt_for(self, terms: Terms, session: str, value: bytes, now: float) -> Acquire:
        """An acquire."""
        return Acquire(terms.item, now, terms.exchange_s, terms.key, session, value)

    def prepared_attempt(self, terms: Terms, session: str, value: bytes, now: float) -> Acquire | None:
        """Always known: the same acquire, whatever the news."""
        return self.attempt_for(terms, session, value, now)

    def view_after_attempt(self, request: Request, outcome: Outcome) -> View | None:
        """What it holds once we have won it."""
        if not isinstance(outcome, Won):
            return None
        assert isinstance(request, Acquire)
        index = outcome.modify_index
        return KeyView(index, request.session, request.value, outcome.create_index, index, outcome.lock_index)

    def attempt_failed(self, outcome: Outcome, terms: Terms, spread: float, now: float) -> Self:
        """By a lock-delay, by a rival, or by nobody knows whom."""
        match outcome:
            case LockDelayed():
                return self._delayed(terms, RETRY_SPREAD_S * spread, now)
            case LostRace():
                lowered = backoff.decrease(self.attempt_probability)
                return replace(self.must_reread(now), attempt_probability=lowered)
            case _:
                return self.must_reread(now + terms.retry_s)

    def _delayed(self, terms: Terms, pause_s: float, now: float) -> Self:
        """Try when it should be over, then about once a second."""
        over_at = self._lock_delay_ends_at(terms) + (self.backoff_s or 0.0)
        return replace(self, try_at=over_at if over_at > now else now + LOCK_DELAY_RETRY_S + pause_s)

    def released(self, *, failed: bool) -> Self:
        """Who has failed with it leaves it to others sooner."""
        key = Lock.released(self, failed=failed)
        return replace(key, attempt_probability=backoff.decrease(self.attempt_probability) if failed else 1.0)

    def release_for(self, terms: Terms, session: Session, value: bytes, now: float) -> Release:
        """The key keeps what stands there."""
        kept = self.view.value if self.view is not None else value
        return Release(terms.item, now, terms.exchange_s, terms.key, session.id, kept)

    def has_entry(self, session: str) -> bool:
        """Whether it leads."""
        return self.view is not None and self.view.session == session

    def rewrite_for(self, terms: Terms, session: str, value: bytes, now: float) -> Rewrite:
        """The key itself."""
        return Rewrite(terms.item, now, terms.exchange_s, terms.key, session, value)

    # --- questions --------------------------------------------------------------------------------

    def _read_request(self, terms: Terms, now: float) -> ReadKey:
        return ReadKey(terms.item, now, terms.exchange_s, terms.key)

    def _watch_request(self, terms: Terms, now: float, *, consistent: bool) -> WatchKey:
        lag_s = 0.0 if consistent or self.is_free else self._lag_s(terms)
        return WatchKey(terms.item, now, WATCH_S, terms.key, self.index, WAIT_S, consistent, lag_s)

    def _lag_s(self, terms: Terms) -> float:
        """Who will leave the free key to others leaves Consul to them, too, and the machine that they may
        share; but looks early enough to know in its turn whether it was taken."""
        return min(LAG_S_MAX, max(0.0, self._backoff_s(terms) - backoff.ROUND_S))

    def _info_request(self, terms: Terms, now: float) -> ReadSession | None:
        session = (
            self.holder if self._must_confirm_release else self.view.session if self.view is not None else ""
        )
        return ReadSession(terms.item, now, terms.exchange_s, session) if session else None

    def _informed(self, terms: Terms, request: Request, outcome: Outcome, now: float) -> Self:
        """The holder's lock-delay; ours where Consul does not show the session."""
        assert isinstance(request, ReadSession)
        if self._must_confirm_release:
            return self._on_former_session_info(request, outcome, now)
        if not isinstance(outcome, SessionInfo):
            return replace(self, details=self.details.finish(now + terms.retry_s))
        delay_s, is_supervisor = outcome.lock_delay_s, outcome.name == terms.settings.name
        if delay_s is None:
            delay_s = terms.settings.lock_delay_s
        return replace(
            self,
            details=self.details.finish(),
            holder_session=HolderSession(request.session, delay_s, is_supervisor),
        )

    def _on_former_session_info(self, request: ReadSession, outcome: Outcome, now: float) -> Self:
        """Only where Consul says that the session is gone is the lock-delay waited for."""
        key = replace(self, details=self.details.finish())
        if isinstance(outcome, SessionInfo) and outcome.lock_delay_s is None:
            return key
        assert self.backoff_s is not None
        wait_s = backoff.last_backoff_s(self.backoff_s, now - request.at)
        return replace(key, try_at=min(self.try_at, now + wait_s))
