"""One election: one key, the session we contend with, and our tenure while we hold it.

A step is: look at the lease, take the event into what is known, then begin whatever is due.

    step(election, event, now) -> (election, actions)

Belief ends before any event is looked at, so no event outruns it. What an event means is decided
in ``_take``, what is due in ``_advance``; nothing else begins an exchange or a hook. Silence of
Consul is never news: not of a loss, not of a win.
"""

from dataclasses import dataclass, replace

from supervisor.core import change as changes
from supervisor.core import session as sessions
from supervisor.core import tenure as tenures
from supervisor.core.actions import (
    Acquire,
    Action,
    Became,
    CreateSession,
    DestroySession,
    Finished,
    ReadKey,
    ReadSession,
    Reason,
    Release,
    RenewSession,
    Request,
    Role,
    WatchKey,
)
from supervisor.core.change import Change
from supervisor.core.events import (
    Alive,
    Answered,
    Dead,
    Event,
    HookEnded,
    Ineligible,
    KeyView,
    LockDelayed,
    Outcome,
    Raced,
    RunEnded,
    SessionInfo,
    StopAsked,
    Tick,
    Won,
)
from supervisor.core.lane import NEVER, Lane
from supervisor.core.lease import Lease, lease_of
from supervisor.core.session import Session, Stage, Terms
from supervisor.core.settings import ElectionSettings
from supervisor.core.tenure import OUR_OWN_MAKING, Phase, Tenure

WAIT_S = 30.0  # an abandoned query stays counted by the agent until its wait runs out
WAIT_SLACK_S = 10.0  # Consul answers within wait + wait/16; then the network's and its own delays
RETRY_MIN_S = 0.5  # after no answer: soon enough for the lease, slow enough for a sick agent
RETRY_SPREAD_S = 0.5
FREE_NEWS_S = 1.0  # a try follows an answer younger than this that showed the key free
READ_AHEAD_S = 0.1  # so long before a try that answer is asked for, if there is none
LOCK_DELAY_SLACK_S = 0.002  # Consul's own timer, and the way of the news that the delay began
IDLE_WAKES_MAX = 5  # a watch that wakes without change is re-armed at once so many times
IDLE_PAUSE_S = 1.0
REJOIN_DELAY_MAX_S = 300.0
STEADY_S = 600.0  # after so long as holder the next loss of our own making counts as the first


@dataclass(frozen=True, slots=True)
class Election:
    """``spread`` in [0, 1) is this process's own, so that a fleet does not retry in step.

    ``view``: the newest believed answer about the key. ``free_at``: when it was surely free.
    ``free_since``: when it was first seen free. ``try_at``: no acquire before. ``holder_delay``:
    the lock-delay of the holder's session, as (session, seconds), read while it held.
    """

    settings: ElectionSettings
    lease: Lease
    spread: float
    session: Session
    change: Change
    watch: Lane = Lane(due_at=-NEVER)
    read: Lane = Lane()
    info: Lane = Lane()
    tenure: Tenure | None = None
    view: KeyView | None = None
    index: int = 0
    idle_wakes: int = 0
    free_at: float = -NEVER
    free_since: float = NEVER
    try_at: float = -NEVER
    holder_delay: tuple[str, float] | None = None
    ineligible: bool = False
    silent: bool = False
    own_losses: int = 0
    rejoin_at: float = -NEVER
    role: Role = Role.WAITING
    stopping: bool = False

    @property
    def terms(self) -> Terms:
        """What every exchange of this election has in common."""
        settings = self.settings
        return Terms(settings.name, settings.key, settings.session, self.lease.exchange_s, self.retry_s)

    @property
    def retry_s(self) -> float:
        """The pause after an exchange without an answer."""
        return RETRY_MIN_S + RETRY_SPREAD_S * self.spread

    @property
    def holds(self) -> bool:
        """Whether, as far as this node knows, its session holds the key."""
        return self.tenure is not None and self.tenure.taken_at is None and bool(self.session.id)

    @property
    def deadline(self) -> float:
        """When this election wants a turn at the latest; every step at that time moves it on."""
        if self.role is Role.STOPPED:
            return NEVER
        times = [self.session.deadline, self.read.deadline, self.watch.deadline, self.info.deadline]
        times += [self.change.deadline, _try_deadline(self)]
        if self.tenure is not None:
            times.append(self.tenure.deadline(self.lease))
        return min(times)


def new_election(settings: ElectionSettings, *, spread: float, instance: str) -> Election:
    """An election that has not asked Consul anything yet; its first step is due at once."""
    session = Session().wanted(-NEVER) if settings.contend else Session()
    role = Role.WAITING if settings.contend else Role.OBSERVER
    return Election(settings, lease_of(settings), spread, session, Change(instance), role=role)


def step(election: Election, event: Event, now: float) -> tuple[Election, tuple[Action, ...]]:
    """What this event at this time changes, and what is to be done, in this order."""
    if election.role is Role.STOPPED:
        return election, ()
    election = _expire(election, now)
    election = _take(election, event, now)
    return _advance(election, now)


# --- belief --------------------------------------------------------------------------------------


def _expire(election: Election, now: float) -> Election:
    tenure = election.tenure
    if tenure is None or now < tenure.expires_at(election.lease):
        return election
    return replace(election, tenure=tenure.lose(Reason.LEASE_EXPIRED, now))


# --- what an event means -------------------------------------------------------------------------


def _take(election: Election, event: Event, now: float) -> Election:
    match event:
        case Tick():
            return election
        case Answered(request, outcome):
            return _answered(election, request, outcome, now)
        case HookEnded(started):
            if started.context.event == "change":
                return replace(election, change=election.change.ended(event))
            if election.tenure is None:
                return election
            return replace(election, tenure=tenures.hook_ended(election.tenure, event))
        case RunEnded():
            if election.tenure is None:
                return election
            return replace(election, tenure=tenures.run_ended(election.tenure, event, now))
        case StopAsked(reason):
            tenure = election.tenure
            return replace(election, stopping=True, tenure=tenure and tenure.lose(reason, now))


def _answered(election: Election, request: Request, outcome: Outcome, now: float) -> Election:
    session, terms = election.session, election.terms
    match request:
        case WatchKey() if request == election.watch.pending:
            return _watch_answered(election, request, outcome, now)
        case ReadKey() if request == election.read.pending:
            return _read_answered(election, request, outcome, now)
        case ReadSession() if request == election.info.pending:
            return _info_answered(election, request, outcome, now)
        case RenewSession() if request == session.renew.pending:
            return _renew_answered(election, outcome, now)
        case CreateSession() if request == session.write.pending:
            session = sessions.created(session, terms, outcome, now, _renew_every_s(election))
            ineligible = isinstance(outcome, Ineligible) or (election.ineligible and not session.id)
            return replace(election, session=session, ineligible=ineligible)
        case Acquire() if request == session.write.pending:
            return _acquire_answered(election, request, outcome, now)
        case Release() | DestroySession() if request == session.write.pending:
            return replace(election, session=sessions.written(session, terms, outcome, now))
        case _:
            return election  # it concerns a session that Consul has meanwhile called dead


def _renew_answered(election: Election, outcome: Outcome, now: float) -> Election:
    if isinstance(outcome, Dead):
        return _session_died(election, now)
    alive, old = isinstance(outcome, Alive), election.session.renew.old
    session = sessions.renewed(election.session, election.terms, outcome, now, _renew_every_s(election))
    # After silence the watch may be stuck with an agent that has forgotten it.
    read = election.read.by(now) if alive and election.silent else election.read
    tenure = election.tenure
    if tenure is not None and alive and not old:
        tenure = tenure.because(tenure.reason)
    return replace(election, session=session, read=read, silent=not alive, tenure=tenure)


def _acquire_answered(election: Election, request: Acquire, outcome: Outcome, now: float) -> Election:
    if isinstance(outcome, Dead):
        return _session_died(election, now)
    welcome = election.tenure is None and election.session.stage is Stage.LIVE and not election.session.ending
    session = sessions.written(election.session, election.terms, outcome, now)
    election = replace(election, session=session)
    match outcome:
        case Won(create_index, modify_index, lock_index) if welcome:
            view = KeyView(modify_index, session.id, request.value, create_index, modify_index, lock_index)
            return _begin_tenure(election, view, request.at, now)
        case LockDelayed():
            return replace(election, try_at=_next_try_at(election, now))
        case Raced():
            return replace(election, free_at=-NEVER, read=election.read.by(now))
        case _:
            return replace(election, free_at=-NEVER, read=election.read.by(now + election.retry_s))


def _watch_answered(election: Election, request: WatchKey, outcome: Outcome, now: float) -> Election:
    old = election.watch.old
    if not isinstance(outcome, KeyView):
        return replace(election, watch=election.watch.end(now + election.retry_s), index=0)
    fell = outcome.index < request.index
    changed = election.view is None or replace(outcome, index=0) != replace(election.view, index=0)
    early = now - request.at < request.wait_s
    idle_wakes = min(election.idle_wakes + 1, IDLE_WAKES_MAX + 1) if early and not changed else 0
    pause_s = 0.0 if idle_wakes <= IDLE_WAKES_MAX else IDLE_PAUSE_S
    election = replace(election, watch=election.watch.end(now + pause_s), idle_wakes=idle_wakes)
    if old:
        return election  # the next one asks from the index of our tenure on
    election = replace(election, index=0 if fell else outcome.index)
    if fell and not request.consistent:
        return election  # a server that lags behind; the next one asks anew, consistently
    if changed:
        election = replace(election, read=election.read.aged())
    return _see(election, outcome, request.at, now, fresh_at=now, consistent=request.consistent)


def _read_answered(election: Election, request: ReadKey, outcome: Outcome, now: float) -> Election:
    old = election.read.old
    if not isinstance(outcome, KeyView):
        return replace(election, read=election.read.end(now + election.retry_s))
    election = replace(election, read=election.read.end())
    election = _see(election, outcome, request.at, now, fresh_at=request.at, consistent=True, old=old)
    if election.holds:
        return replace(election, read=election.read.by(request.at + election.lease.interval_s))
    return election


def _info_answered(election: Election, request: ReadSession, outcome: Outcome, now: float) -> Election:
    if not isinstance(outcome, SessionInfo):
        return replace(election, info=election.info.end(now + election.retry_s))
    lock_delay_s = outcome.lock_delay_s
    if lock_delay_s is None:
        lock_delay_s = election.settings.session.lock_delay_s
    return replace(election, info=election.info.end(), holder_delay=(request.session, lock_delay_s))


# --- what is known of the key --------------------------------------------------------------------


def _see(
    election: Election,
    view: KeyView,
    at: float,
    now: float,
    *,
    fresh_at: float,
    consistent: bool,
    old: bool = False,
) -> Election:
    """An answer about the key, asked for at ``at``, that was true at ``fresh_at`` or later."""
    tenure = election.tenure
    if tenure is None:
        return _see_waiting(election, view, at, now, fresh_at=fresh_at, consistent=consistent, old=old)
    if not consistent:
        return election
    if _is_ours(election, tenure, view):
        election = replace(election, tenure=tenure.confirmed(at))
        return election if old else _note(election, view, now, fresh_at)
    if old:
        return election
    election = _note(election, view, now, fresh_at)
    if election.session.id == "" and not view.session:
        return election  # the session is dead, and Consul still guards the lock
    same_key = view.present and view.create_index == tenure.create_index
    guess = Reason.RELEASED_BY_OPERATOR if same_key else Reason.KEY_DELETED
    tenure = tenure.taken(now, view.leader).lose(guess, now, reason_within_s=tenures.REASON_WITHIN_S)
    renew = election.session.renew.aged().by(now) if election.session.id else Lane()
    return replace(election, tenure=tenure, session=replace(election.session, renew=renew))


def _see_waiting(
    election: Election,
    view: KeyView,
    at: float,
    now: float,
    *,
    fresh_at: float,
    consistent: bool,
    old: bool,
) -> Election:
    session = election.session
    if old:
        return replace(election, read=election.read.by(now))
    if not session.id or view.session != session.id:
        return _note(election, view, now, fresh_at)
    if session.stage is not Stage.LIVE or session.ending:
        return election
    if not consistent:
        return replace(election, read=election.read.by(now))
    # An acquire whose answer never came has been applied after all.
    return _begin_tenure(election, view, at, now)


def _is_ours(election: Election, tenure: Tenure, view: KeyView) -> bool:
    """A LockIndex that grew tells of another holder in between; a plain PUT sets it to 0."""
    known = election.view
    assert known is not None
    relocked = view.lock_index > known.lock_index and view.modify_index > known.modify_index
    return view.session == tenure.session and view.create_index == tenure.create_index and not relocked


def _note(election: Election, view: KeyView, now: float, fresh_at: float) -> Election:
    """This is the key from now on: for on_change, and for the next try."""
    election = replace(election, view=view, change=election.change.see(view))
    if not election.settings.contend:
        return election
    if not view.session:
        if election.free_since != NEVER:
            return replace(election, free_at=max(fresh_at, election.free_at))
        return replace(election, free_at=fresh_at, free_since=now, try_at=now)
    info = election.info
    known = election.holder_delay is not None and election.holder_delay[0] == view.session
    if not known and view.session != election.session.id:
        info = info.by(now)
    return replace(election, free_at=-NEVER, free_since=NEVER, info=info)


def _next_try_at(election: Election, now: float) -> float:
    """When the lock-delay that refused us should be over; then about once a second."""
    lock_delay_s = election.settings.session.lock_delay_s
    if election.holder_delay is not None:
        lock_delay_s = election.holder_delay[1]
    over_at = election.free_since + lock_delay_s + LOCK_DELAY_SLACK_S
    return over_at if over_at > now else now + 1.0 + RETRY_SPREAD_S * election.spread


# --- beginning and end of a tenure, of a session -------------------------------------------------


def _begin_tenure(election: Election, view: KeyView, contact: float, now: float) -> Election:
    """Consul itself says that our session holds the key; when that is old news, ask anew."""
    if now >= contact + election.lease.room_s:
        return replace(election, free_at=-NEVER, read=election.read.by(now))
    tenure = Tenure(
        session=view.session,
        token=view.modify_index,
        create_index=view.create_index,
        lock_index=view.lock_index,
        contact=contact,
        leader=view.value,
        previous_leader=election.change.last_leader,
    )
    election = _note(replace(election, tenure=tenure), view, now, now)
    renew = election.session.renew.by(now + _renew_every_s(election))
    return replace(
        election,
        session=replace(election.session, renew=renew),
        index=view.modify_index,
        watch=election.watch.aged(),
        read=election.read.aged().by(contact + election.lease.interval_s),
    )


def _session_died(election: Election, now: float) -> Election:
    """Without a release: unless the key names a rival already, Consul guards it for now."""
    tenure, view = election.tenure, election.view
    if tenure is not None:
        named = view is not None and view.session not in ("", tenure.session)
        tenure = tenure if named else tenure.guarded()
        tenure = tenure.because(Reason.SESSION_INVALIDATED).lose(Reason.SESSION_INVALIDATED, now)
    rejoin_at = max(election.rejoin_at, now + sessions.CREATE_SPACING_S)
    return replace(election, session=Session(), tenure=tenure, rejoin_at=rejoin_at)


def _wind_up(election: Election, tenure: Tenure, now: float) -> Election:
    """The tenure is over and its hooks are done: now the lock may go."""
    own_losses, rejoin_at = election.own_losses, election.rejoin_at
    if tenure.held_at is not None and now - tenure.held_at >= STEADY_S:
        own_losses = 0
    if tenure.reason in OUR_OWN_MAKING:
        delay_s = min(election.settings.rejoin_delay_s * 2**own_losses, REJOIN_DELAY_MAX_S)
        own_losses, rejoin_at = own_losses + 1, now + delay_s
    session = election.session.end(now, last_try=election.stopping)
    read = replace(election.read, due_at=NEVER)
    return replace(
        election, tenure=None, session=session, read=read, own_losses=own_losses, rejoin_at=rejoin_at
    )


# --- what is due ---------------------------------------------------------------------------------


def _advance(election: Election, now: float) -> tuple[Election, tuple[Action, ...]]:
    """Hooks first: whoever waits for Consul anyway can wait for a spawn."""
    actions: list[Action] = []
    for advance in (_advance_tenure, _advance_session, _advance_reads, _advance_change, _advance_role):
        election, begun = advance(election, now)
        actions += begun
    return election, tuple(actions)


_Turn = tuple[Election, tuple[Action, ...]]


def _advance_tenure(election: Election, now: float) -> _Turn:
    if election.tenure is None:
        return election, ()
    tenure, actions = tenures.advance(election.tenure, election.settings, election.lease, now)
    election = replace(election, tenure=tenure)
    if tenure.phase is Phase.LOST:
        election = _wind_up(election, tenure, now)
    return election, actions


def _advance_session(election: Election, now: float) -> _Turn:
    session, terms = election.session, election.terms
    if election.tenure is None:
        if election.stopping:
            session = session.end(now, last_try=True)
        elif election.settings.contend:
            session = session.wanted(max(now, election.rejoin_at))
    value = election.view.value if election.view is not None else election.settings.value
    session, write = sessions.begin_write(session, terms, value, now)
    session, renewal = sessions.begin_renewal(session, terms, now)
    election = replace(election, session=session)
    acquire: Acquire | None = None
    if _may_try(election) and now >= election.try_at and _is_free(election, now):
        settings = election.settings
        acquire = Acquire(settings.name, now, terms.exchange_s, settings.key, session.id, settings.value)
        election = replace(election, session=session.acquire(acquire))
    return election, tuple(request for request in (write, acquire, renewal) if request is not None)


def _advance_reads(election: Election, now: float) -> _Turn:
    settings, exchange_s = election.settings, election.lease.exchange_s
    if election.stopping and election.tenure is None:
        return replace(
            election,
            read=_unwanted(election.read),
            watch=_unwanted(election.watch),
            info=_unwanted(election.info),
        ), ()
    actions: list[Action] = []
    if _wants_news(election, now):
        election = replace(election, read=election.read.by(now))
    if election.read.ready(now):
        read = ReadKey(settings.name, now, exchange_s, settings.key)
        election = replace(election, read=election.read.begin(read))
        actions.append(read)
    if election.watch.ready(now):
        consistent = election.index == 0 or election.tenure is not None
        timeout_s = WAIT_S * 17 / 16 + WAIT_SLACK_S
        watch = WatchKey(settings.name, now, timeout_s, settings.key, election.index, WAIT_S, consistent)
        election = replace(election, watch=election.watch.begin(watch))
        actions.append(watch)
    if election.info.ready(now):
        holder = election.view.session if election.view is not None else ""
        if holder:
            info = ReadSession(settings.name, now, exchange_s, holder)
            election = replace(election, info=election.info.begin(info))
            actions.append(info)
        else:
            election = replace(election, info=_unwanted(election.info))
    return election, tuple(actions)


def _advance_change(election: Election, now: float) -> _Turn:
    if not election.stopping:
        change, actions = changes.advance(election.change, election.settings, now)
    elif _wound_up(election):
        change, actions = changes.stop(election.change)
    else:
        return election, ()
    return replace(election, change=change), actions


def _advance_role(election: Election, now: float) -> _Turn:
    tenure = election.tenure
    finished = election.stopping and _wound_up(election) and election.change.idle
    if finished:
        role = Role.STOPPED
    elif tenure is not None:
        role = _ROLES[tenure.phase]
    elif not election.settings.contend:
        role = Role.OBSERVER
    else:
        role = Role.INELIGIBLE if election.ineligible else Role.WAITING
    if role is election.role:
        return election, ()
    reason = tenure.reason if tenure is not None else ""
    actions: list[Action] = [Became(election.settings.name, role, reason)]
    if finished:
        actions.append(Finished(election.settings.name, clean=tenure is None))
    return replace(election, role=role), tuple(actions)


_ROLES = {
    Phase.ACQUIRING: Role.ACQUIRING,
    Phase.HOLDING: Role.HOLDING,
    Phase.CLEARING: Role.LOSING,
    Phase.LOSING: Role.LOSING,
    Phase.FAILING: Role.LOSING,
    Phase.LOST: Role.LOSING,
    Phase.STUCK: Role.STUCK,
}


def _wound_up(election: Election) -> bool:
    """Nothing is owed to Consul or to a hook of this tenure; stuck: nothing more can be done."""
    if election.tenure is not None:
        return election.tenure.phase is Phase.STUCK
    return election.session.stage is Stage.ABSENT


def _may_try(election: Election) -> bool:
    session, view = election.session, election.view
    ready = session.stage is Stage.LIVE and not session.ending and session.write.pending is None
    free = view is not None and not view.session
    return ready and free and election.tenure is None and not election.stopping


def _is_free(election: Election, at: float) -> bool:
    """Whether the news that the key is free is young enough at that time."""
    return at - election.free_at < FREE_NEWS_S


def _wants_news(election: Election, now: float) -> bool:
    """Whether the next try lacks an answer young enough, and nobody has asked for one."""
    if not _may_try(election) or _read_is_on(election) or now < election.try_at - READ_AHEAD_S:
        return False
    return not _is_free(election, max(now, election.try_at))


def _read_is_on(election: Election) -> bool:
    return election.read.pending is not None or election.read.due_at != NEVER


def _try_deadline(election: Election) -> float:
    if not _may_try(election) or _read_is_on(election):
        return NEVER
    return election.try_at - (0.0 if _is_free(election, election.try_at) else READ_AHEAD_S)


def _renew_every_s(election: Election) -> float:
    ttl_s = election.lease.ttl_s
    if ttl_s is None:
        return sessions.RENEW_WITHOUT_TTL_S
    return ttl_s / 3 if election.tenure is not None else ttl_s / 2


def _unwanted(lane: Lane) -> Lane:
    return replace(lane, due_at=NEVER)
