"""One key, as an election contends for it: whoever's session holds it leads.

Refused by the lock-delay, it tries when that should be over: the delay is that of the former
holder's session, read once while it held.

Where many wait for it few try (``lock.backoff``). None of them can see why the key is free. A contender
of ours keeps its session for ``session.DESTROY_PAUSE_S`` after the release. So where the former holder
was one, who would wait for more than ``GUESS_S`` asks once more for that session: where it lives on
the key was released, and nothing is in the way; where Consul says that it is gone, the lock-delay is
waited out first. Where the former holder was something else, its session tells nothing, and nobody
relies on it. The bound: while it is free, whoever may try does so at most 0.1 s, or a dozen times what
that answer took, after it has come; and where it says that the session is gone, ``WAIT_S_MAX`` after the
lock-delay.
"""

from dataclasses import dataclass
from typing import Self

from supervisor.core.actions import (
    Acquire,
    ReadKey,
    ReadSession,
    Reason,
    Release,
    Request,
    Rewrite,
    WatchKey,
)
from supervisor.core.events import KeyView, LockDelayed, LostRace, Outcome, SessionInfo, View, Won
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
from supervisor.core.session import Session, Terms
from supervisor.core.tenure import Tenure

LOCK_DELAY_SLACK_S = 0.002  # Consul's own timer, and the way of the news that the delay began
LOCK_DELAY_RETRY_S = 1.0  # Consul logs a warning for every try that comes too soon
IN_STEP_S = 0.1  # who may try only so long after it became free is not in step with others
LAG_S_MAX = 0.025  # a hand-over is over by then; on_change is so much later
ASK_S = 0.035  # a wave after that look, and long before a holder's session ends after its release


@dataclass(frozen=True, slots=True)
class HolderSession:
    """What Consul showed of a holder's session while it held. ``kin``: its name is that of ours, so that
    it is one of ours, too."""

    session: str
    lock_delay_s: float
    kin: bool


@dataclass(frozen=True, slots=True)
class ElectionLock(Lock):
    """``holder``: the session that holds it, or held it last; ``seen``: the newest one of which more is
    known. ``eagerness``: how likely it is to try at once when the hold that began at the index
    ``hold_index`` is over; ``patience_s``: how long it leaves the free key to others, None: not drawn yet.
    """

    view: KeyView | None = None
    holder: str = ""
    seen: HolderSession | None = None
    eagerness: float = 1.0
    hold_index: int = 0
    patience_s: float | None = None

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

    def noted(self, observation: Observation, our_session: str, now: float) -> Self:
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
        if view.session != our_session and self.patience_s is not None and now < self.try_at:
            key = replace(key, eagerness=backoff.less(self.eagerness))
        known = key.seen is not None and key.seen.session == view.session
        info = key.info if known or view.session == our_session else key.info.by(now)
        key = replace(key, holder=view.session, hold_index=view.modify_index, info=info)
        return key._taken()

    def _taken(self) -> Self:
        return replace(self, free_at=LONG_AGO, free_since=NEVER, patience_s=None)

    def judged(self, observation: Observation, tenure: Tenure, session: Session) -> Verdict:
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

    def recalled(self, tenure: Tenure) -> Self:
        """As it was when the tenure began."""
        token, leader = tenure.token, tenure.leader
        view = KeyView(0, tenure.session, leader, tenure.create_index, token, tenure.lock_index)
        return replace(self, view=view)

    def names_another(self, session: str) -> bool:
        """Whether another session is on it."""
        return self.view is not None and self.view.session not in ("", session)

    # --- when to try ------------------------------------------------------------------------------

    def drawn(self, terms: Terms, now: float) -> Self:
        """Once for each time that it is free, when this node may try."""
        if self.patience_s is not None:
            return self
        if now > self.free_since + IN_STEP_S:
            return replace(self, patience_s=0.0)
        patience_s = self._patience_s(terms)
        key = replace(self, patience_s=patience_s, try_at=self.free_since + patience_s)
        if not key._is_shy:
            return key
        asks_at = max(now, self.free_since + ASK_S)
        return replace(key, try_at=key._over_at(terms) + patience_s, info=key.info.by(asks_at))

    def _patience_s(self, terms: Terms) -> float:
        return backoff.patience_s(self.eagerness, backoff.draw(terms.spread, self.hold_index))

    @property
    def _is_shy(self) -> bool:
        """Whether it does not try for a free key of which it does not know why it is free."""
        patient = self.patience_s is not None and self.patience_s > backoff.GUESS_S
        return patient and self.is_free and self._former is not None and self._former.kin

    @property
    def _former(self) -> HolderSession | None:
        """Who holds it, or held it last, if more is known of it."""
        return self.seen if self.seen is not None and self.seen.session == self.holder else None

    def _over_at(self, terms: Terms) -> float:
        """When the lock-delay should be over; ours counts where the former holder's is not known."""
        former = self._former
        lock_delay_s = terms.settings.lock_delay_s if former is None else former.lock_delay_s
        return self.free_since + lock_delay_s + LOCK_DELAY_SLACK_S

    @property
    def _read_ahead_s(self) -> float:
        """Who leaves it to others need not ask what the watch tells before its turn comes."""
        return 0.0 if self.patience_s else READ_AHEAD_S

    # --- tries and release ------------------------------------------------------------------------

    def try_for(self, terms: Terms, session: str, value: bytes, now: float) -> Acquire:
        """An acquire."""
        return Acquire(terms.item, now, terms.exchange_s, terms.key, session, value)

    def ready_try(self, terms: Terms, session: str, value: bytes, now: float) -> Acquire | None:
        """Always known: the same acquire, whatever the news."""
        return self.try_for(terms, session, value, now)

    def tried(self, request: Request, outcome: Outcome) -> View | None:
        """What it holds once we have won it."""
        if not isinstance(outcome, Won):
            return None
        assert isinstance(request, Acquire)
        index = outcome.modify_index
        return KeyView(index, request.session, request.value, outcome.create_index, index, outcome.lock_index)

    def refused(self, outcome: Outcome, terms: Terms, spread: float, now: float) -> Self:
        """By a lock-delay, by a rival, or by nobody knows whom."""
        match outcome:
            case LockDelayed():
                return self._delayed(terms, RETRY_SPREAD_S * spread, now)
            case LostRace():
                return replace(self.doubted(now), eagerness=backoff.less(self.eagerness))
            case _:
                return self.doubted(now + terms.retry_s)

    def _delayed(self, terms: Terms, pause_s: float, now: float) -> Self:
        """Try when it should be over, then about once a second."""
        over_at = self._over_at(terms) + (self.patience_s or 0.0)
        return replace(self, try_at=over_at if over_at > now else now + LOCK_DELAY_RETRY_S + pause_s)

    def given_up(self, *, failed: bool) -> Self:
        """Who has failed with it leaves it to others sooner."""
        key = Lock.given_up(self, failed=failed)
        return replace(key, eagerness=backoff.less(self.eagerness) if failed else 1.0)

    def release_for(self, terms: Terms, session: Session, value: bytes, now: float) -> Release:
        """The key keeps what stands there."""
        kept = self.view.value if self.view is not None else value
        return Release(terms.item, now, terms.exchange_s, terms.key, session.id, kept)

    def has_key(self, session: str) -> bool:
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
        return min(LAG_S_MAX, max(0.0, self._patience_s(terms) - backoff.WAVE_S))

    def _info_request(self, terms: Terms, now: float) -> ReadSession | None:
        session = self.holder if self._is_shy else self.view.session if self.view is not None else ""
        return ReadSession(terms.item, now, terms.exchange_s, session) if session else None

    def _informed(self, terms: Terms, request: Request, outcome: Outcome, now: float) -> Self:
        """The holder's lock-delay; ours where Consul does not show the session."""
        assert isinstance(request, ReadSession)
        if self._is_shy:
            return self._told_why(request, outcome, now)
        if not isinstance(outcome, SessionInfo):
            return replace(self, info=self.info.end(now + terms.retry_s))
        delay_s, kin = outcome.lock_delay_s, outcome.name == terms.settings.name
        if delay_s is None:
            delay_s = terms.settings.lock_delay_s
        return replace(self, info=self.info.end(), seen=HolderSession(request.session, delay_s, kin))

    def _told_why(self, request: ReadSession, outcome: Outcome, now: float) -> Self:
        """Only where Consul says that the session is gone is the lock-delay waited for."""
        key = replace(self, info=self.info.end())
        if isinstance(outcome, SessionInfo) and outcome.lock_delay_s is None:
            return key
        assert self.patience_s is not None
        wait_s = backoff.last_wait_s(self.patience_s, now - request.at)
        return replace(key, try_at=min(self.try_at, now + wait_s))
