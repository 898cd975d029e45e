"""One Consul session, which serves one tenure: its writes only go forward.

``TRANSITIONS`` draws its stages. A session acquires while it is LIVE and verified, any number of times, and
in no other stage.

Consul may apply a write seconds after its client gave up on it. So an acquire is never sent after a
release or a destroy. A release and a destroy are repeated until they are answered, except at the final
attempt of a process that ends. The destroy closes the session's life, because no late acquire survives it.
A session never steps backwards.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from supervisor.core.frozen import dataclass, replace
from supervisor.core.machines.lane import Lane
from supervisor.core.machines.machine import next_state
from supervisor.core.outcomes import (
    Created,
    Done,
    Ineligible,
    LostRace,
    Outcome,
    Refused,
    SessionAlive,
    SessionAltered,
    SessionGone,
    Unknown,
)
from supervisor.core.requests import (
    Acquire,
    CreateSession,
    DestroySession,
    JoinSemaphore,
    RenewSession,
    Request,
    Rewrite,
    TakeSlot,
)
from supervisor.core.settings import SessionSettings
from supervisor.core.times import LONG_AGO, NEVER

ATTEMPT_QUIET_S = 0.05  # usually Consul answers an attempt sooner
DESTROY_PAUSE_S = 0.05  # a destroy right behind the release slows the next holder's acquire by 1 ms
CREATE_REFUSED_RETRY_S = 5.0  # a check that is not registered yet may be soon; a wrong TTL will not
ALTERED_RETRY_S = 2.0  # three requests each time: few enough for Consul, and soon after the proxy is repaired
CREATE_WITHOUT_TTL_RETRY_S = 10.0
CREATE_SPACING_S = 1.0  # sessions that die at once (a flapping check) are not made in a tight loop
RENEW_WITHOUT_TTL_S = 10.0  # only to learn that the session is dead


class Stage(StrEnum):
    """The progress of a session."""

    ABSENT = "absent"
    CREATING = "creating"
    LIVE = "live"
    RELEASING = "releasing"
    DESTROYING = "destroying"


class StageEnd(StrEnum):
    """The cause that ends a stage."""

    CREATE_SENT = "the create is sent"
    CREATED = "Consul has created it"
    NOT_CREATED = "the create was refused or has no answer"
    NEVER_TRIED = "it is given up, and has never tried for a lock"
    GIVEN_UP = "it is given up"
    RELEASE_OVER = "the release is over"
    DESTROY_OVER = "the destroy is over"
    ABANDONED = "it is left to its TTL"  # it has expired, or this process can neither record nor release


TRANSITIONS: Mapping[Stage, Mapping[StageEnd, Stage]] = {
    Stage.ABSENT: {StageEnd.CREATE_SENT: Stage.CREATING},
    Stage.CREATING: {
        StageEnd.CREATED: Stage.LIVE,
        StageEnd.NOT_CREATED: Stage.ABSENT,
        StageEnd.ABANDONED: Stage.ABSENT,
    },
    Stage.LIVE: {
        StageEnd.GIVEN_UP: Stage.RELEASING,
        StageEnd.NEVER_TRIED: Stage.DESTROYING,
        StageEnd.ABANDONED: Stage.ABSENT,
    },
    Stage.RELEASING: {
        StageEnd.RELEASE_OVER: Stage.DESTROYING,
        StageEnd.ABANDONED: Stage.ABSENT,
    },
    Stage.DESTROYING: {
        StageEnd.DESTROY_OVER: Stage.ABSENT,
        StageEnd.ABANDONED: Stage.ABSENT,
    },
}


@dataclass(frozen=True, slots=True)
class Terms:
    """The figures that all exchanges of one contender share."""

    item: str
    key: str
    settings: SessionSettings
    exchange_s: float
    retry_s: float  # the pause after a request without an answer: the urgent one while a lock depends on it
    urgent_retry_s: float  # the pause after a renewal without an answer, which rate limits never prolong
    spread: float  # the contender's own number in [0, 1)
    read_s: float  # how long a read of the lock may take, so that silence delays no later one
    holds: bool  # there is a tenure, which depends on renewals and reads


@dataclass(frozen=True, slots=True)
class Session:
    """One session, and the lanes of its writes and renewals."""

    stage: Stage = Stage.ABSENT
    id: str = ""
    write: Lane = Lane()
    renew: Lane = Lane()
    # A renewal has shown that Consul has the session as it was requested. The session does not try for the
    # lock before that. So its first renewal follows the create at once, while this node waits anyway.
    verified: bool = False
    tried: bool = False  # an acquire was sent, so the session holds the key, or may still come to hold it
    last_value: bytes | None = None  # what the session gave the key last, by its acquire or since
    # When the key gets its value once more, because the last rewrite has no answer. NEVER: it has an answer.
    rewrite_at: float = NEVER
    prepared: bool = False  # the next acquire has been made ready to be sent
    # Consul reported that the session does not exist. The session is destroyed nevertheless, because a server
    # that has just restarted may report this of a living one.
    dead: bool = False
    # The session is given up. A create or a write that is under way is awaited first.
    ending: bool = False
    ending_since: float = NEVER  # when the session was given up
    final_attempt: bool = (
        False  # this process ends, so each last write is sent once, with or without an answer
    )
    # The read that the last release waits for has no answer. Nothing more is awaited before a final attempt.
    unread: bool = False
    abandoned_id: str | None = None  # what a final attempt left behind, for the next process to end
    handover_to: str | None = None  # the session to which the release hands the lock over. None: to any
    node: str | None = None  # the node that Consul has it for. None: not known yet
    asked_delay_s: float | None = None  # the lock-delay that it was created with. None: that of its settings

    def plan_create(self, at: float) -> "Session":
        """Plan to create a session at that time; change nothing when there is one."""
        if self.stage is not Stage.ABSENT or self.write.due_at != NEVER:
            return self
        return replace(self, write=self.write.schedule_at(at))

    def cancel_create(self) -> "Session":
        """Cancel the plan to create a session, and forget the result of the last create."""
        assert self.stage is Stage.ABSENT, f"a session is {self.stage}"
        return replace(NO_SESSION, abandoned_id=self.abandoned_id)

    def abandoned(self, abandoned_id: str) -> "Session":
        """Send nothing more: the next process, or Consul, ends the session ``abandoned_id``."""
        if self.stage is Stage.ABSENT:
            return replace(NO_SESSION, abandoned_id=abandoned_id)
        return become(self, StageEnd.ABANDONED, abandoned_id=abandoned_id)

    def end(self, now: float, *, final_attempt: bool) -> "Session":
        """Give the session up: release what it may hold, then destroy it."""
        if self.stage is Stage.ABSENT:
            return self.cancel_create()
        since = min(self.ending_since, now)
        ended = replace(
            self, ending=True, ending_since=since, final_attempt=self.final_attempt or final_attempt
        )
        return _toward_end(ended, now) if self.stage is Stage.LIVE else ended

    def may_be_abandoned_at(self, terms: "Terms") -> float:
        """Return when Consul has ended the session that was given up, although no destroy was answered.

        TTL and lock-delay are over by then, so Consul guards its key no longer.
        """
        ttl_s = terms.settings.ttl_s
        return NEVER if ttl_s is None else self.ending_since + 2 * ttl_s + terms.settings.lock_delay_s

    def mark_dead(self) -> "Session":
        """Note that Consul has no such session, and renew it no more."""
        return replace(self, dead=True, renew=Lane())

    def verify_soon(self, now: float) -> "Session":
        """Renew the session now; the answer to a renewal under way counts as stale."""
        if self.dead or self.stage is not Stage.LIVE:
            return self
        return replace(self, renew=self.renew.mark_stale().schedule_by(now))

    @property
    def may_write(self) -> bool:
        """Whether the session may send an attempt or a rewrite now."""
        return self.stage is Stage.LIVE and not self.ending and self.write.pending is None

    @property
    def quiet_until(self) -> float:
        """Until when the lock is not read, because a young attempt has no answer. LONG_AGO: there is none.

        An attempt that succeeds changes the lock. So a watch beside it would wake before the answer, and this
        node would read the lock once more before it begins the tenure.
        """
        attempt = self.write.pending
        if not isinstance(attempt, Acquire | JoinSemaphore | TakeSlot):
            return LONG_AGO
        return attempt.at + ATTEMPT_QUIET_S

    def attempt(self, request: Request) -> "Session":
        """Note that an attempt to take the lock is under way."""
        assert self.stage is Stage.LIVE and not self.ending, f"a try while {self.stage}: {request}"
        assert self.verified, f"a try with a session that nobody has looked at: {request}"
        last_value = request.value if isinstance(request, Acquire | JoinSemaphore) else self.last_value
        write = self.write.begin(request)
        return replace(self, write=write, tried=True, prepared=False, last_value=last_value)

    def rewrite(self, request: Rewrite) -> "Session":
        assert self.stage is Stage.LIVE and not self.ending, f"a rewrite while {self.stage}: {request}"
        return replace(self, write=self.write.begin(request))

    def rewritten(self, request: Rewrite, outcome: Outcome, now: float, retry_s: float) -> "Session":
        """Note the new value; without a success, plan the rewrite again."""
        if isinstance(outcome, Done):
            return replace(self, last_value=request.value, rewrite_at=NEVER)
        return replace(self, rewrite_at=now + retry_s)

    @property
    def retry_at(self) -> float:
        """From when on a write that is due may be sent, after one that failed."""
        return LONG_AGO if self.rewrite_at == NEVER else self.rewrite_at

    def rewrite_due_at(self, value: bytes) -> float:
        """Return when the key gets this value. NEVER: it has it, or the session gave no key a value."""
        if self.last_value in (None, value):
            return self.rewrite_at
        return self.retry_at

    def release(self, request: Request) -> "Session":
        assert self.stage is Stage.RELEASING, f"a release while {self.stage}: {request}"
        return replace(self, write=self.write.begin(request))

    def await_read(self) -> "Session":
        """Let the release wait for a read that shows which keys to give up."""
        return replace(self, write=self.write.schedule_at(NEVER))

    @property
    def awaits_observation(self) -> bool:
        """Whether a release waits for a read that shows which keys to give up. An empty lane means that."""
        return self.stage is Stage.RELEASING and self.write == Lane()


NO_SESSION = Session()


def become(session: Session, cause: StageEnd, **changes: Any) -> Session:
    """Return the session in the stage that follows for this cause, with these changes of other fields.

    An ABSENT session keeps nothing of the one before except ``changes``. No other line of the core sets the
    stage of a session, except where a process that starts goes on with the session on record.
    """
    stage = next_state(TRANSITIONS, session.stage, cause)
    return replace(NO_SESSION if stage is Stage.ABSENT else session, stage=stage, **changes)


def begin_write(session: Session, terms: Terms, now: float) -> tuple[Session, Request]:
    match session.stage:
        case Stage.ABSENT:
            create = CreateSession(terms.item, now, terms.exchange_s, terms.settings)
            delay_s, write = terms.settings.lock_delay_s, session.write.begin(create)
            return become(session, StageEnd.CREATE_SENT, write=write, asked_delay_s=delay_s), create
        case Stage.DESTROYING:
            destroy = DestroySession(terms.item, now, terms.exchange_s, session.id)
            return replace(session, write=session.write.begin(destroy)), destroy
        case Stage.CREATING | Stage.LIVE | Stage.RELEASING:
            raise AssertionError(f"a write is due while {session.stage}")


def begin_renewal(session: Session, terms: Terms, now: float) -> tuple[Session, Request]:
    asked, delay_s = terms.settings, session.asked_delay_s
    if delay_s is not None and delay_s != asked.lock_delay_s:  # the file has changed since it was created
        asked = replace(asked, lock_delay_s=delay_s)
    renewal = RenewSession(terms.item, now, terms.exchange_s, session.id, asked, terms.holds)
    return replace(session, renew=session.renew.begin(renewal)), renewal


def created(session: Session, terms: Terms, outcome: Outcome, now: float) -> Session:
    """Process the answer to a create, which names only the session's ID."""
    if isinstance(outcome, Created):
        write, renew = session.write.finish(), Lane(due_at=now)
        live = become(session, StageEnd.CREATED, id=outcome.session, write=write, renew=renew)
        return _toward_end(live, now) if session.ending else live
    if session.ending:
        return become(session, StageEnd.NOT_CREATED)
    pauses_s = {Refused: CREATE_REFUSED_RETRY_S, Ineligible: CREATE_SPACING_S}
    pause_s = pauses_s.get(type(outcome), terms.retry_s)
    if terms.settings.ttl_s is None and isinstance(outcome, Unknown):
        # Consul may have created the session, and no TTL will ever end it.
        pause_s = max(CREATE_WITHOUT_TTL_RETRY_S, terms.retry_s)
    return become(session, StageEnd.NOT_CREATED, write=Lane(due_at=now + pause_s))


def renewed(session: Session, terms: Terms, outcome: Outcome, now: float, renew_at: float) -> Session:
    """Process the answer to a renewal; the reducer judges the death of a session."""
    assert session.renew.pending is not None
    due_at = renew_at if isinstance(outcome, SessionAlive | SessionAltered) else now + terms.urgent_retry_s
    verified = session.verified or isinstance(outcome, SessionAlive)
    node = outcome.node if isinstance(outcome, SessionAlive) else session.node
    return replace(session, renew=session.renew.finish(max(due_at, now)), verified=verified, node=node)


def written(session: Session, terms: Terms, outcome: Outcome, now: float) -> Session:
    """Process the answer to an attempt, a rewrite, a release or a destroy; the reducer judges an attempt."""
    answered = isinstance(outcome, Done | SessionGone | Refused)  # a refused write stays refused
    # The pause is 0 only after the first write that Consul has dropped (``Throttle.drops``). That write is
    # repeated at once, also at the final attempt.
    is_last = session.final_attempt and terms.urgent_retry_s > 0.0
    session = replace(session, write=session.write.finish())
    match session.stage:
        case Stage.LIVE:
            return _toward_end(session, now) if session.ending else session
        case Stage.RELEASING if isinstance(outcome, LostRace):
            return session  # another write came first, so the release waits for a read
        case Stage.RELEASING if answered or is_last:
            due_at = now + DESTROY_PAUSE_S if answered else now
            return _destroying(session, StageEnd.RELEASE_OVER, due_at)
        case Stage.DESTROYING if answered or is_last:
            return become(session, StageEnd.DESTROY_OVER, abandoned_id=None if answered else session.id)
        case _:
            return replace(session, write=session.write.schedule_at(now + terms.retry_s))


def _toward_end(session: Session, now: float) -> Session:
    """Begin to end a LIVE session, once the write that is under way has ended."""
    if session.write.pending is not None:
        return session
    if not session.tried:
        return _destroying(session, StageEnd.NEVER_TRIED, now)
    return become(session, StageEnd.GIVEN_UP, write=session.write.schedule_at(now), renew=Lane())


def _destroying(session: Session, cause: StageEnd, due_at: float) -> Session:
    return become(session, cause, write=session.write.schedule_by(due_at), renew=Lane())
