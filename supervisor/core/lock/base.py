"""The lock that a contender wants, as far as this node knows it: one key, or a slot below a prefix.

A lock knows which answer counts, when to read again, and from when on a contender may attempt to take it. Its
kind (``lock.election``, ``lock.semaphore``) chooses the requests that read, take and release the lock. A lock
never decides when a tenure begins or a belief ends. It turns an answer into an ``Observation``, and computes
for the reducer the ``Verdict`` of an observation on a tenure.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from supervisor.core.actions import Reason
from supervisor.core.frozen import dataclass, replace
from supervisor.core.lock.hint import Hint
from supervisor.core.machines.lane import Lane
from supervisor.core.machines.session import Session, Terms
from supervisor.core.machines.tenure import Tenure
from supervisor.core.outcomes import Outcome, View
from supervisor.core.requests import HintKey, Request, Rewrite, Watch
from supervisor.core.settings import ItemSettings
from supervisor.core.times import LONG_AGO, NEVER

WAIT_S = 25.0  # an abandoned query stays counted by the agent until its wait runs out
WAIT_JITTER = 16  # Consul waits for up to a sixteenth longer
ANSWER_S_MAX = WAIT_S * (1 + 1 / WAIT_JITTER)  # less than 30 s, at which one version closes the connection
WAIT_SLACK_S = 10.0  # on top of the longest answer, for delays of Consul and of the network
WATCH_S = ANSWER_S_MAX + WAIT_SLACK_S
FREE_NEWS_S = 1.0  # an attempt follows an answer younger than this that showed the lock free
READ_AHEAD_S = 0.1  # how long before an attempt that answer is requested, if there is none
IDLE_WAKES_MAX = 5  # how many times in a row a watch that wakes without change is sent again at once
IDLE_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class Observation:
    """An answer of Consul about the lock."""

    view: View
    sent_at: float  # when the request was sent; a lease counts from this time
    true_since: float  # the answer was true at this time or later; no lease counts from it
    consistent: bool  # the leader of the servers has answered, so the answer may begin or end a tenure
    is_stale: bool  # sent before the present view: such an answer confirms, and never contradicts
    after_index: int = 0  # the watch waited for the first change after this index. 0: the answer came at once


@dataclass(frozen=True, slots=True)
class Ours:
    """A verdict: the observation confirms our tenure."""


@dataclass(frozen=True, slots=True)
class Unsure:
    """A verdict: the observation neither confirms nor ends our tenure."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A verdict: the lock is no longer ours, so belief ends."""

    reason: Reason
    taken: bool  # a rival may hold from now on. False: Consul's delay still keeps rivals out


Verdict = Ours | Unsure | Lost


@dataclass(frozen=True, slots=True)
class Lock(ABC):
    """The known state of one lock, and the lanes that read it."""

    watch: Lane = Lane(due_at=LONG_AGO)
    read: Lane = Lane()
    details: Lane = Lane()
    hint: Hint = Hint()
    holder_seen_at: float = LONG_AGO  # since when this node has seen its present holder
    view: View | None = None  # the newest answer that is believed
    index: int = 0  # the index from which the next watch waits. 0: the next watch reads at once
    idle_wakes: int = 0  # how many times in a row the watch woke without a change
    seen_free_at: float = LONG_AGO  # when the lock was surely free
    opens_at: float = NEVER  # from when on, past or future, an attempt can succeed. NEVER: held, or not known
    try_at: float = LONG_AGO  # no attempt before this time
    read_ahead_s: float = READ_AHEAD_S  # how long before an attempt a missing observation is requested
    paused_until: float = LONG_AGO  # no write at all before this time, after a race that was lost

    queues: ClassVar[bool] = False
    """Whether contenders stand in line, so that a contender that does not act delays the ones behind it."""

    # --- the parts that a kind defines -------------------------------------------------------------

    @abstractmethod
    def with_settings(self, settings: ItemSettings, now: float) -> Self:
        """Go on by these settings, which also count for a lock that is free already."""

    def beside(self, held: int, our_session: str) -> Self:
        """Return the lock of a node that holds so many other locks."""
        return self

    @abstractmethod
    def with_observation(self, observation: Observation, our_session: str | None, now: float) -> Self:
        """Return the lock as the observation shows it, and plan the attempt accordingly.

        our_session: the session of this contender. Blank: it has none now. None: this node never contends.
        """

    @abstractmethod
    def verdict(self, observation: Observation, tenure: Tenure, session: Session) -> Verdict:
        """Return the meaning of a consistent observation for the tenure."""

    @abstractmethod
    def attempt_for(self, terms: Terms, session: str, value: bytes, now: float) -> Request:
        """Return the attempt that is due: an acquire, or one of the two steps to a slot."""

    @abstractmethod
    def view_after_attempt(self, request: Request, outcome: Outcome) -> View | None:
        """Return the view after an attempt that Consul has carried out; None when it has not."""

    @abstractmethod
    def write_failed(self, outcome: Outcome, terms: Terms, now: float) -> Self:
        """Return the lock after an attempt or a release that failed or has no answer, and plan the next."""

    @abstractmethod
    def release_for(self, terms: Terms, session: Session, value: bytes, now: float) -> Request | None:
        """Return the request that gives up all that the session may hold; None: a read must come first.

        value: the value for a key that was never seen.
        """

    @abstractmethod
    def rewrite_for(self, terms: Terms, session: str, value: bytes, now: float) -> Rewrite:
        """Return the request that gives the session's key another value."""

    def is_handed_to(self, session: str) -> bool:
        """Return whether the former holder has handed the free lock over to this session."""
        return False

    def given_up(self, *, failed: bool) -> Self:
        """Return the lock as no longer ours: the holder's regular reads end.

        failed: the tenure ended by our own making.
        """
        return replace(self, read=replace(self.read, due_at=NEVER))

    @abstractmethod
    def _read_request(self, terms: Terms, now: float) -> Request:
        """Return the consistent read of the whole lock."""

    @abstractmethod
    def _watch_request(self, terms: Terms, now: float, *, consistent: bool) -> Request:
        """Return the blocking query that wakes with the next change."""

    @abstractmethod
    def _details_request(self, terms: Terms, now: float) -> Request | None:
        """Return the request for a detail that neither watch nor read shows; None when none is needed."""

    @abstractmethod
    def _details_answered(self, terms: Terms, request: Request, outcome: Outcome, now: float) -> Self:
        """Return the lock with the answer to the request for a detail."""

    def rewritten(self, request: Rewrite) -> Self:
        """Return the lock with what this request has written beside the value."""
        return self

    def restored_from(self, tenure: Tenure) -> Self:
        """Return the lock as it was when the tenure on record began, as far as the record tells."""
        return self

    @property
    def is_as_decided(self) -> bool:
        """Whether the settings name this state of the lock, or none, as that to try for."""
        return True

    @property
    def lockout_s(self) -> float:
        """How long the other contenders surely wait for us when we vanish. NEVER: as long as in our file."""
        return NEVER

    @property
    def is_complete(self) -> bool:
        """Whether the view shows everything, so that on_change may report it."""
        return True

    @property
    def holder_delay_s(self) -> float | None:
        """The lock-delay of the session that holds, or held last; None where this node does not know it."""
        return None

    @property
    def notice(self) -> str:
        """The message about the lock that an operator should read; blank when all is well."""
        return ""

    # --- the part that both kinds share ------------------------------------------------------------

    @property
    def is_free(self) -> bool:
        """Whether an attempt can succeed, now or at a known time."""
        return self.opens_at != NEVER

    def has_entry(self, session: str) -> bool:
        """Return whether this session holds a key in Consul; a place in line counts."""
        return self.view is not None and self.view.has_entry(session)

    def is_held_by_other(self, session: str) -> bool:
        """Return whether a rival may already hold the lock that this session held."""
        return self.view is not None and self.view.excludes(session)

    def with_unwanted_win(self, view: View) -> Self:
        """Return the lock after an attempt that succeeded too late; a release gives back the lock."""
        return replace(self, view=view)

    def is_surely_free(self, at: float) -> bool:
        """Return whether the observation of the free lock is young enough at that time."""
        return at - self.seen_free_at < FREE_NEWS_S

    def try_deadline(self) -> float:
        """Return when the attempt is due, or the read that must come first. NEVER: that read is under way."""
        if self._read_is_on:
            return NEVER
        return self.try_at - (0.0 if self.is_surely_free(self.try_at) else self.read_ahead_s)

    def lacks_observation(self, now: float) -> bool:
        """Return whether the next attempt lacks a young answer that is not requested yet."""
        if self._read_is_on or now < self.try_at - self.read_ahead_s:
            return False
        return not self.is_surely_free(max(now, self.try_at))

    @property
    def _read_is_on(self) -> bool:
        return self.read.pending is not None or self.read.due_at != NEVER

    def read_by(self, at: float) -> Self:
        """Plan a consistent read at ``at`` or earlier."""
        return replace(self, read=self.read.schedule_by(at))

    def must_reread(self, read_at: float) -> Self:
        """Return the lock as no longer surely free, with a read at ``read_at`` before the next attempt."""
        return replace(self, seen_free_at=LONG_AGO, read=self.read.schedule_by(read_at))

    def stalled(self, now: float) -> Self:
        """Return the lock after a standstill of this process, when the watch may show an old state."""
        details = self.details.mark_stale()
        return replace(self.must_reread(now), watch=self.watch.mark_stale(), details=details)

    def doubt_watch(self) -> Self:
        """Return the lock whose watch, if one is under way, no longer contradicts what a read shows."""
        return replace(self, watch=self.watch.mark_stale())

    def silenced(self) -> Self:
        lanes = (replace(lane, due_at=NEVER) for lane in (self.watch, self.read, self.details))
        watch, read, details = lanes
        return replace(self, watch=watch, read=read, details=details)

    def acquired(self, index: int, read_at: float) -> Self:
        """Return the lock as ours from this index on.

        The requests under way were sent before that. A waiter's pause between two watches ends with the first
        read of the holder.
        """
        watch = self.watch if self.watch.pending is not None else self.watch.schedule_by(read_at)
        read = self.read.mark_stale().schedule_at(read_at)
        return replace(self, index=index, watch=watch.mark_stale(), read=read)

    # --- answers ----------------------------------------------------------------------------------

    def has_asked(self, request: Request) -> bool:
        return request in (self.watch.pending, self.read.pending, self.details.pending)

    def answered(
        self, terms: Terms, request: Request, outcome: Outcome, now: float
    ) -> tuple[Self, Observation | None]:
        """Process the end of an exchange; return the observation as well, unless there is none."""
        if request == self.watch.pending:
            return self._watch_answered(terms, request, outcome, now)
        if request == self.details.pending:
            return self._details_answered(terms, request, outcome, now), None
        stale = self.read.stale
        if not isinstance(outcome, View):
            return replace(self, read=self.read.finish(now + terms.retry_s)), None
        observation = Observation(outcome, request.at, request.at, consistent=True, is_stale=stale)
        return replace(self, read=self.read.finish()), observation

    def _watch_answered(
        self, terms: Terms, request: Request, outcome: Outcome, now: float
    ) -> tuple[Self, Observation | None]:
        assert isinstance(request, Watch)
        stale = self.watch.stale
        if not isinstance(outcome, View):
            return replace(self, watch=self.watch.finish(now + terms.retry_s), index=0), None
        # An index may go backwards, and a watch may wake without a change, because of a neighbour of the key:
        # developer.hashicorp.com/consul/api-docs/features/blocking, "Implementation Details".
        known = self.view.index if request.lag_s and self.view is not None else 0
        fell = outcome.index < max(request.index, known)  # ``known`` may be that of a later read
        changed = self.view is None or replace(outcome, index=0) != replace(self.view, index=0)
        early = now - request.at < request.wait_s
        idle_wakes = min(self.idle_wakes + 1, IDLE_WAKES_MAX + 1) if early and not changed else 0
        pause_s = 0.0 if idle_wakes <= IDLE_WAKES_MAX else IDLE_PAUSE_S
        lock = replace(self, watch=self.watch.finish(now + pause_s), idle_wakes=idle_wakes)
        if stale:
            return lock, None  # reads confirm; the next watch waits from the index of our tenure
        lock = replace(lock, index=0 if fell else outcome.index)
        if fell and not request.consistent:
            return lock, None  # a server that lags behind; the next watch reads at once, consistently
        if changed:
            lock = replace(lock, read=lock.read.mark_stale())
        sent_at, true_since = request.at, now - request.lag_s
        return lock, Observation(
            outcome, sent_at, true_since, request.consistent, is_stale=False, after_index=request.index
        )

    # --- reads -------------------------------------------------------------------------------------

    def with_hint(self, terms: Terms, now: float) -> tuple[Self, tuple[Request, ...]]:
        """Ask for the next hint if it is due, and begin the read for which the newest one asks.

        A read that was under way before that hangs, and its answer changes nothing. The watch hangs, too. It
        is not given up, because the agent would go on counting it. That of a waiter contradicts nothing then.
        """
        hint, request = self.hint.advance(terms, self.view, now)
        lock = replace(self, hint=hint)
        if hint.read_before != self.hint.read_before:
            lock = replace(lock if terms.holds else lock.doubt_watch(), read=Lane(due_at=now))
        return lock, () if request is None else (request,)

    def hinted(self, request: HintKey, outcome: Outcome, now: float, retry_s: float) -> Self:
        if request != self.hint.lane.pending:
            return self
        return replace(self, hint=self.hint.answered(request, outcome, self.view, now, retry_s))

    def due_requests(self, terms: Terms, now: float, *, holding: bool) -> tuple[Self, tuple[Request, ...]]:
        """Begin the reads that are due; a holder's watch is consistent, and so is one that reads at once."""
        lock, begun = self, list[Request]()
        if lock.read.ready(now):
            read = lock._read_request(terms, now)
            lock = replace(lock, read=lock.read.begin(read))
            begun.append(read)
        if lock.watch.ready(now):
            watch = lock._watch_request(terms, now, consistent=holding or lock.index == 0)
            lock = replace(lock, watch=lock.watch.begin(watch))
            begun.append(watch)
        if lock.details.ready(now):
            details = lock._details_request(terms, now)
            lane = replace(lock.details, due_at=NEVER) if details is None else lock.details.begin(details)
            lock = replace(lock, details=lane)
            begun += [] if details is None else [details]
        return lock, tuple(begun)
