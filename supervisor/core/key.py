"""One key, as an election contends for it: whoever's session holds it leads.

Refused by the lock-delay, it tries when that should be over: the delay is that of the former
holder's session, read once while it held.
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
from supervisor.core.claim import WAIT_S, WATCH_S, Claim, Lost, News, Standing
from supervisor.core.events import KeyView, LockDelayed, Outcome, Raced, SessionInfo, View, Won
from supervisor.core.lane import NEVER
from supervisor.core.lease import RETRY_SPREAD_S
from supervisor.core.session import Session, Terms
from supervisor.core.tenure import Tenure
from supervisor.core.values import replace

LOCK_DELAY_SLACK_S = 0.002  # Consul's own timer, and the way of the news that the delay began
LOCK_DELAY_RETRY_S = 1.0  # Consul logs a warning for every try that comes too soon


@dataclass(frozen=True, slots=True)
class Key(Claim):
    """``holder``: the session that holds it, or held it last. ``holder_delay``: the lock-delay of
    the holder's session, as (session, seconds), read while it held.
    """

    view: KeyView | None = None
    holder: str = ""
    holder_delay: tuple[str, float] | None = None

    @property
    def is_free(self) -> bool:
        """Whether nobody holds it, as far as is known."""
        return self.view is not None and not self.view.session

    def noted(self, news: News, our_session: str, now: float) -> Self:
        """The key as this news shows it."""
        view = news.view
        assert isinstance(view, KeyView)
        key = replace(self, view=view)
        if not view.session and key.free_since != NEVER:
            return replace(key, free_at=max(news.fresh_at, key.free_at))
        if not view.session:
            return replace(key, free_at=news.fresh_at, free_since=now, try_at=now)
        known = key.holder_delay is not None and key.holder_delay[0] == view.session
        info = key.info if known or view.session == our_session else key.info.by(now)
        return replace(key, holder=view.session, free_at=-NEVER, free_since=NEVER, info=info)

    def judged(self, news: News, tenure: Tenure, session: Session) -> Standing | Lost:
        """Whose it is by this news."""
        view, known = news.view, self.view
        assert isinstance(view, KeyView) and known is not None
        same_key = view.create_index == tenure.create_index
        # A LockIndex that grew tells of another holder in between; a plain PUT sets it to 0.
        relocked = view.lock_index > known.lock_index and view.modify_index > known.modify_index
        if view.session == tenure.session and same_key and not relocked:
            return Standing.OURS
        if session.dead and not view.session:
            return Standing.UNSURE  # Consul still guards the lock
        guess = Reason.RELEASED_BY_OPERATOR if view.present and same_key else Reason.KEY_DELETED
        return Lost(guess, taken=True)

    def recalled(self, tenure: Tenure) -> Self:
        """As it was when the tenure began."""
        token, leader = tenure.token, tenure.leader
        view = KeyView(0, tenure.session, leader, tenure.create_index, token, tenure.lock_index)
        return replace(self, view=view)

    def names_another(self, session: str) -> bool:
        """Whether another session is on it."""
        return self.view is not None and self.view.session not in ("", session)

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
                return self._delayed(terms.settings.lock_delay_s, RETRY_SPREAD_S * spread, now)
            case Raced():
                return self.doubted(now)
            case _:
                return self.doubted(now + terms.retry_s)

    def _delayed(self, default_s: float, pause_s: float, now: float) -> Self:
        """Try when it should be over, then about once a second; ``default_s``: where the former
        holder's lock-delay is not known."""
        lock_delay_s = default_s
        if self.holder_delay is not None and self.holder_delay[0] == self.holder:
            lock_delay_s = self.holder_delay[1]
        over_at = self.free_since + lock_delay_s + LOCK_DELAY_SLACK_S
        return replace(self, try_at=over_at if over_at > now else now + LOCK_DELAY_RETRY_S + pause_s)

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
        return WatchKey(terms.item, now, WATCH_S, terms.key, self.index, WAIT_S, consistent)

    def _info_request(self, terms: Terms, now: float) -> ReadSession | None:
        if self.view is None or not self.view.session:
            return None
        return ReadSession(terms.item, now, terms.exchange_s, self.view.session)

    def _informed(self, terms: Terms, request: Request, outcome: Outcome, now: float) -> Self:
        """The holder's lock-delay; ours where Consul does not show the session."""
        assert isinstance(request, ReadSession)
        if not isinstance(outcome, SessionInfo):
            return replace(self, info=self.info.end(now + terms.retry_s))
        delay_s = outcome.lock_delay_s
        if delay_s is None:
            delay_s = terms.settings.lock_delay_s
        return replace(self, info=self.info.end(), holder_delay=(request.session, delay_s))
