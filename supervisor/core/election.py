"""One election: one key, the session we contend with, and our tenure while we hold it.

A step is: look at the lease, take the event into what is known, then begin whatever is due.

    step(election, event, now) -> (election, actions)

Belief ends before any event is looked at, so no event outruns it. What an event means is decided
in ``_take``, what is due in ``_advance``; nothing else begins an exchange or a hook. Silence of
Consul is never news: not of a loss, not of a win.
"""

from dataclasses import dataclass, replace

from supervisor.core import change as changes
from supervisor.core import health as healths
from supervisor.core import key as keys
from supervisor.core import memory as memories
from supervisor.core import session as sessions
from supervisor.core import tenure as tenures
from supervisor.core.actions import (
    Acquire,
    Action,
    Became,
    CreateSession,
    DestroySession,
    Finished,
    Memory,
    Prepare,
    ReadKey,
    ReadSession,
    Reason,
    Release,
    Remember,
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
    PauseAsked,
    Raced,
    RecoverAsked,
    Remembered,
    ResumeAsked,
    Resumed,
    RunEnded,
    StopAsked,
    Tick,
    Won,
)
from supervisor.core.health import Health
from supervisor.core.key import Key, News
from supervisor.core.lane import NEVER
from supervisor.core.lease import RETRY_MAX_S, RETRY_MIN_S, Lease, lease_of
from supervisor.core.memory import Ledger
from supervisor.core.session import Session, Stage, Terms
from supervisor.core.settings import ElectionSettings
from supervisor.core.tenure import OUR_OWN_MAKING, Phase, Tenure

RETRY_SPREAD_S = RETRY_MAX_S - RETRY_MIN_S
REJOIN_DELAY_MAX_S = 300.0
OWN_LOSSES_MAX = 16  # the delay has long been at its maximum
STEADY_S = 600.0  # after so long as holder the next loss of our own making counts as the first


NOTHING = Memory()


@dataclass(frozen=True, slots=True)
class Election:
    """``spread`` in [0, 1) is this process's own, so that a fleet does not retry in step.

    ``silent``: the last renewal had no answer. ``own_losses``: losses of our own making in a row;
    no session is wanted before ``rejoin_at``. ``departing``: it winds up while this process goes on.
    ``next_settings``: those of the file, once what was begun by others is adopted or wound up;
    ``offered``: to be put on record with the tenure.
    ``ledger``: what a crash of ours would not forget.
    """

    settings: ElectionSettings
    lease: Lease
    spread: float
    session: Session
    change: Change
    health: Health
    key: Key = Key()
    tenure: Tenure | None = None
    ineligible: bool = False
    silent: bool = False
    own_losses: int = 0
    rejoin_at: float = -NEVER
    role: Role = Role.WAITING
    stopping: bool = False
    departing: bool = False
    next_settings: ElectionSettings | None = None
    offered: bool = False
    paused: bool = False
    ledger: Ledger = Ledger()

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
    def is_fit(self) -> bool:
        """Whether this node may come to hold."""
        return self.health.fit and not self.paused

    @property
    def last_try(self) -> bool:
        """Whether this process ends with this election: then one unanswered try of a write must do."""
        return self.stopping and not self.departing

    @property
    def holds(self) -> bool:
        """Whether, as far as this node knows, its session holds the key."""
        if self.tenure is None or self.session.dead:
            return False
        return self.tenure.taken_at is None and bool(self.session.id)

    @property
    def deadline(self) -> float:
        """When this election wants a turn at the latest; every step at that time moves it on."""
        if self.role is Role.STOPPED:
            return NEVER
        times = [self.session.deadline, self.key.deadline, self.ledger.deadline, self.health.deadline]
        if not self.stopping:
            times.append(self.change.deadline)
        if self.tenure is not None:
            times.append(self.tenure.deadline(self.lease))
        if _may_try(self):
            times.append(self.key.try_deadline())
        return min(times)


def new_election(
    settings: ElectionSettings,
    *,
    spread: float,
    instance: str,
    memory: Memory = NOTHING,
    recorded: ElectionSettings | None = None,
    now: float = 0.0,
) -> Election:
    """An election that has not asked Consul anything yet; its first step is due at once.

    ``memory``: what an earlier process left on record, by which this one goes on. ``recorded``: the
    settings that it was made with; until its tenure is adopted or wound up they are in force.
    """
    session, tenure = memories.session_from(memory, now), memories.tenure_from(memory, now)
    next_settings = None
    if tenure is not None and recorded is not None and recorded != settings:
        settings, next_settings = recorded, settings
    election = Election(
        settings=settings,
        next_settings=next_settings,
        lease=lease_of(settings),
        spread=spread,
        session=session,
        change=Change(instance),
        health=healths.new_health(settings),
        tenure=tenure,
        role=Role.WAITING if settings.contend else Role.OBSERVER,
        paused=memory.paused,
        ledger=Ledger(kept=memory if memory == NOTHING else None),
    )
    if tenure is not None:
        token, indexes = tenure.token, (tenure.create_index, tenure.lock_index)
        view = KeyView(0, tenure.session, tenure.leader, indexes[0], token, indexes[1])
        return replace(election, key=Key(view=view).read_by(now))
    return _want_session(election, -NEVER)


def departing_election(
    settings: ElectionSettings, *, spread: float, instance: str, memory: Memory, now: float
) -> Election:
    """An election that is on record and not in the file as it is now: to be wound up, no more."""
    election = new_election(settings, spread=spread, instance=instance, memory=memory, now=now)
    return replace(_stop(election, Reason.CONFIG_CHANGED, now), departing=True)


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
        case HookEnded():
            return _hook_ended(election, event, now)
        case RunEnded():
            if election.tenure is None:
                return election
            return replace(election, tenure=tenures.run_ended(election.tenure, event, now))
        case Remembered():
            return _remembered(election, event, now)
        case Resumed():
            return _resumed(election, now)
        case StopAsked(reason):
            return _stop(election, reason, now)
        case RecoverAsked():
            return _recover(election)
        case PauseAsked() | ResumeAsked():
            return replace(election, paused=isinstance(event, PauseAsked))


def _hook_ended(election: Election, event: HookEnded, now: float) -> Election:
    check, tenure = election.settings.candidate_check, election.tenure
    match event.started.context.event:
        case "change":
            return replace(election, change=election.change.ended(event))
        case "check":
            if check is None:  # the file has none any more
                return replace(election, health=replace(election.health, running=None))
            health = election.health.ended(event, check)
            if tenure is not None and health.has_fallen(check):
                tenure = tenure.lose(Reason.UNHEALTHY, now)
            return replace(election, health=health, tenure=tenure)
        case _:
            tenure = tenure and tenures.hook_ended(tenure, event)
            return replace(election, tenure=tenure)


def _remembered(election: Election, event: Remembered, now: float) -> Election:
    """A tenure that is on record may begin; one that cannot be recorded is given back at once."""
    if event.remember.settings is election.next_settings:
        return _file_remembered(election, event)
    ledger, tenure = election.ledger.answered(event, now), election.tenure
    if tenure is not None and not tenure.recorded:
        recorded = ledger.has_tenure(tenure.session)
        tenure = replace(tenure, recorded=True) if recorded else tenure.lose(Reason.ACQUIRE_FAILED, now)
    return replace(election, ledger=ledger, tenure=tenure)


def _file_remembered(election: Election, event: Remembered) -> Election:
    """What the file says now is on record with the tenure that is being adopted; or it cannot be, and
    the tenure goes on as it began."""
    if not event.ok:
        return election
    return replace(_follow_file(election), ledger=Ledger(kept=event.remember.memory))


def _resumed(election: Election, now: float) -> Election:
    tenure = election.tenure and election.tenure.resumed(now)
    return replace(
        election, tenure=tenure, key=election.key.resumed(now), session=election.session.doubted(now)
    )


def _stop(election: Election, reason: Reason, now: float) -> Election:
    tenure = election.tenure
    return replace(election, stopping=True, departing=False, tenure=tenure and tenure.lose(reason, now))


def _recover(election: Election) -> Election:
    tenure = election.tenure
    if tenure is None or tenure.phase is not Phase.STUCK:
        return election
    return replace(election, tenure=replace(tenure, phase=Phase.LOST))


def _answered(election: Election, request: Request, outcome: Outcome, now: float) -> Election:
    session, terms = election.session, election.terms
    match request:
        case WatchKey() if request == election.key.watch.pending:
            key, news = keys.watch_answered(election.key, terms, request, outcome, now)
            return _hear(replace(election, key=key), news, now)
        case ReadKey() if request == election.key.read.pending:
            key, news = keys.read_answered(election.key, terms, request, outcome, now)
            election = _hear(replace(election, key=key), news, now)
            if news is None or not election.holds:
                return election
            return replace(election, key=election.key.read_by(request.at + election.lease.interval_s))
        case ReadSession() if request == election.key.info.pending:
            key = keys.info_answered(election.key, terms, request, outcome, now)
            return replace(election, key=key)
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
            return election  # a renewal of a session that is dead or given up meanwhile


def _renew_answered(election: Election, outcome: Outcome, now: float) -> Election:
    alive, old = isinstance(outcome, Alive), election.session.renew.old
    session = sessions.renewed(election.session, election.terms, outcome, now, _renew_every_s(election))
    dead = isinstance(outcome, Dead)
    if dead and not election.holds:
        return _session_died(replace(election, session=session), now)
    # A server that has just restarted leads before it has applied its log, and may call a living
    # session dead: the consistent read decides. And after silence the watch may be stuck with an
    # agent that has forgotten it.
    key = election.key.read_by(now) if dead or (alive and election.silent) else election.key
    tenure = election.tenure
    if tenure is not None and alive and not old:
        tenure = replace(tenure.because(tenure.reason), renewed=True)
    return replace(election, session=session, key=key, silent=not alive, tenure=tenure)


def _acquire_answered(election: Election, request: Acquire, outcome: Outcome, now: float) -> Election:
    welcome = election.tenure is None and election.session.stage is Stage.LIVE and not election.session.ending
    session = sessions.written(election.session, election.terms, outcome, now)
    election = replace(election, session=session)
    match outcome:
        case Dead() if welcome:
            return _session_died(election, now)
        case Won() if welcome and not election.is_fit:
            return _decline(election, now)
        case Won(create_index, modify_index, lock_index) if welcome:
            view = KeyView(modify_index, session.id, request.value, create_index, modify_index, lock_index)
            return _begin_tenure(election, view, request.at, now)
        case LockDelayed():
            pause_s, ours_s = RETRY_SPREAD_S * election.spread, election.settings.session.lock_delay_s
            return replace(election, key=election.key.delayed(ours_s, pause_s, now))
        case Raced():
            return replace(election, key=election.key.doubted(now))
        case _:
            return replace(election, key=election.key.doubted(now + election.retry_s))


# --- what news of the key means ------------------------------------------------------------------


def _hear(election: Election, news: News | None, now: float) -> Election:
    if news is None:
        return election
    if election.tenure is None:
        return _hear_waiting(election, news, now)
    return _hear_holding(election, election.tenure, news, now)


def _hear_holding(election: Election, tenure: Tenure, news: News, now: float) -> Election:
    """Only a consistent answer counts, and only one asked for within this tenure can end it."""
    view = news.view
    if not news.consistent:
        return election
    if _is_ours(election, tenure, view):
        election = replace(election, tenure=tenure.confirmed(news.at))
        return election if news.old else _note(election, news, now)
    if news.old:
        return election
    election = _note(election, news, now)
    if election.session.dead and not view.session:
        return election  # Consul still guards the lock
    same_key = view.present and view.create_index == tenure.create_index
    guess = Reason.RELEASED_BY_OPERATOR if same_key else Reason.KEY_DELETED
    tenure = tenure.taken(now, view.leader).lose(guess, now, reason_within_s=tenures.REASON_WITHIN_S)
    return replace(election, tenure=tenure, session=election.session.doubted(now))


def _hear_waiting(election: Election, news: News, now: float) -> Election:
    session = election.session
    if news.old:
        return replace(election, key=election.key.read_by(now))
    if not session.id or news.view.session != session.id:
        return _note(election, news, now)
    if session.stage is not Stage.LIVE or session.ending:
        return election
    if not election.is_fit:
        return _decline(election, now)
    if not news.consistent:
        return replace(election, key=election.key.read_by(now))
    # An acquire whose answer never came has been applied after all.
    return _begin_tenure(election, news.view, news.at, now)


def _decline(election: Election, now: float) -> Election:
    """Won, but paused or found unfit since the acquire was sent."""
    return replace(election, session=election.session.end(now, last_try=election.last_try))


def _is_ours(election: Election, tenure: Tenure, view: KeyView) -> bool:
    """A LockIndex that grew tells of another holder in between; a plain PUT sets it to 0."""
    known = election.key.view
    assert known is not None
    relocked = view.lock_index > known.lock_index and view.modify_index > known.modify_index
    return view.session == tenure.session and view.create_index == tenure.create_index and not relocked


def _note(election: Election, news: News, now: float) -> Election:
    change = election.change.see(news.view)
    if not election.settings.contend:
        return replace(election, key=replace(election.key, view=news.view), change=change)
    return replace(election, key=keys.note(election.key, news, election.session.id, now), change=change)


# --- beginning and end of a tenure, of a session -------------------------------------------------


def _begin_tenure(election: Election, view: KeyView, contact: float, now: float) -> Election:
    """Consul itself says that our session holds the key; when that is old news, ask anew."""
    if now >= contact + election.lease.room_s:
        return replace(election, key=election.key.doubted(now))
    tenure = Tenure(
        session=view.session,
        token=view.modify_index,
        create_index=view.create_index,
        lock_index=view.lock_index,
        contact=contact,
        leader=view.value,
        previous_leader=election.change.last_leader,
    )
    news = News(view, contact, now, consistent=True, old=False)
    election = _note(replace(election, tenure=tenure), news, now)
    session = replace(election.session, renew=election.session.renew.by(now + _renew_every_s(election)))
    key = election.key.won(view, contact + election.lease.interval_s)
    return replace(election, session=session, key=key)


def _session_died(election: Election, now: float) -> Election:
    """Without a release: unless the key names a rival already, Consul guards it for now."""
    tenure, view = election.tenure, election.key.view
    rejoin_at = max(election.rejoin_at, now + sessions.CREATE_SPACING_S)
    session = election.session.died()
    if tenure is None:
        session = session.end(now, last_try=election.last_try)
        return replace(election, session=session, rejoin_at=rejoin_at)
    named = view is not None and view.session not in ("", tenure.session)
    tenure = tenure if named else tenure.guarded()
    tenure = tenure.because(Reason.SESSION_INVALIDATED)
    return replace(election, session=session, tenure=tenure, rejoin_at=rejoin_at)


def _give_back(election: Election, tenure: Tenure, now: float) -> Election:
    """Not before it is on record that nothing of the tenure is left to do: a release that is applied
    late must not meet a process that has adopted the tenure."""
    if not election.ledger.has_tenure(tenure.session):
        return _wind_up(election, tenure, now)
    if election.last_try and election.ledger.refused is not None:
        # Neither release nor record can be had: the session is left to its TTL.
        return replace(election, tenure=None, session=Session(left=tenure.session))
    return election


def _wind_up(election: Election, tenure: Tenure, now: float) -> Election:
    """The tenure is over and its hooks are done: now the lock may go."""
    own_losses, rejoin_at = min(election.own_losses, OWN_LOSSES_MAX), election.rejoin_at
    if tenure.held_at is not None and now - tenure.held_at >= STEADY_S:
        own_losses = 0
    if tenure.reason in OUR_OWN_MAKING:
        delay_s = min(election.settings.rejoin_delay_s * 2**own_losses, REJOIN_DELAY_MAX_S)
        own_losses, rejoin_at = own_losses + 1, now + delay_s
    session = election.session.end(now, last_try=election.last_try)
    election = _follow_file(election)
    return replace(
        election,
        tenure=None,
        session=session,
        key=election.key.given_up(),
        own_losses=own_losses,
        rejoin_at=rejoin_at,
    )


def _follow_file(election: Election) -> Election:
    """Nothing that was begun by the settings on record goes on by them: those of the file are in force,
    and go on record."""
    settings = election.next_settings
    if settings is None:
        return election
    health = election.health
    if settings.candidate_check != election.settings.candidate_check:
        health = healths.new_health(settings).after(health)
    ledger = replace(election.ledger, outdated=True)
    return replace(
        election,
        settings=settings,
        next_settings=None,
        lease=lease_of(settings),
        health=health,
        ledger=ledger,
    )


# --- what is due ---------------------------------------------------------------------------------


_Turn = tuple[Election, tuple[Action, ...]]


def _advance(election: Election, now: float) -> _Turn:
    """Hooks first: whoever waits for Consul anyway can wait for a spawn. But where a record decides
    what may follow, nothing else begins before it."""
    election, offered = _offer_file(election, now)
    if offered:
        return election, offered
    election, actions = _advance_tenure(election, now)
    awaited = _awaits_record(election)
    first: tuple[Action, ...] = ()
    if awaited or _has_time_for_record(election, now):
        election, first = _advance_memory(election, now)
        actions = (*first, *actions)
    if awaited and first:
        return election, actions
    for advance in _TURNS:
        if not (first and advance is _advance_memory):
            election, begun = advance(election, now)
            actions += begun
    return election, actions


def _offer_file(election: Election, now: float) -> _Turn:
    """A tenure that is about to be adopted goes on by the file as soon as that is on record."""
    tenure, settings = election.tenure, election.next_settings
    if tenure is None or settings is None or election.offered:
        return election, ()
    leases = (election.lease, lease_of(settings))
    if not all(tenures.is_adopted(tenure, lease, now) for lease in leases):
        return election, ()
    return replace(election, offered=True), (Remember(settings.name, _truth(election), settings),)


def _awaits_record(election: Election) -> bool:
    tenure = election.tenure
    if tenure is None:
        return False
    return tenure.phase is Phase.LOST or (tenure.believes and not tenure.recorded)


def _has_time_for_record(election: Election, now: float) -> bool:
    """A loss that Consul still guards is on record before on_lose begins: after a crash it would be
    adopted with the application down. Any other loss no process would adopt, and on_lose hurries."""
    tenure = election.tenure
    if tenure is None or tenure.believes:
        return False
    return election.holds and now < tenure.contact + election.lease.room_s


def _advance_tenure(election: Election, now: float) -> _Turn:
    tenure = election.tenure
    if tenure is None:
        return election, ()
    tenure, actions = tenures.advance(tenure, election.settings, election.lease, now)
    election = replace(election, tenure=tenure)
    if tenure.phase is Phase.LOST:
        return _give_back(election, tenure, now), actions
    if actions and tenure.phase is Phase.LOSING and election.holds:
        terms = election.terms
        release = Release(
            terms.election, now, terms.exchange_s, terms.key, tenure.session, _kept_value(election)
        )
        actions = (*actions, Prepare(release))
    return election, actions


def _advance_session(election: Election, now: float) -> _Turn:
    session, terms = election.session, election.terms
    if election.tenure is None:
        if election.stopping:
            session = session.end(now, last_try=election.last_try)
            if election.departing and session.is_surely_over(terms, now):
                session = Session(left=session.id)
            election = replace(election, session=session)
        else:
            election = _want_session(election, now)
        session = election.session
    session, write = sessions.begin_write(session, terms, _kept_value(election), now)
    session, renewal = sessions.begin_renewal(session, terms, now)
    election = replace(election, session=session)
    acquire: Acquire | None = None
    key = election.key
    if _may_try(election) and now >= key.try_at and key.is_surely_free(now):
        acquire = _acquire(election, now)
        election = replace(election, session=session.acquire(acquire))
    return election, tuple(request for request in (write, acquire, renewal) if request is not None)


def _advance_key(election: Election, now: float) -> _Turn:
    if election.stopping and election.tenure is None:
        return replace(election, key=election.key.quiet()), ()
    key = election.key
    if _may_try(election) and key.lacks_news(now):
        key = key.read_by(now)
    key, begun = keys.begin_questions(key, election.terms, now, holding=election.tenure is not None)
    election, session = replace(election, key=key), election.session
    idle = session.stage is Stage.LIVE and session.write.pending is None
    if election.tenure is not None or not idle:
        return election, begun
    # Anew with each watch, for what is ready does not stay so for ever.
    if session.prepared and not any(isinstance(request, WatchKey) for request in begun):
        return election, begun
    election = replace(election, session=replace(session, prepared=True))
    return election, (*begun, Prepare(_acquire(election, now)))


def _advance_change(election: Election, now: float) -> _Turn:
    if not election.stopping:
        change, actions = changes.advance(election.change, election.settings, now)
    elif _wound_up(election):
        change, actions = changes.stop(election.change)
    else:
        return election, ()
    return replace(election, change=change), actions


def _advance_health(election: Election, now: float) -> _Turn:
    if election.stopping:
        health, actions = healths.stop(election.health)
    else:
        health, actions = healths.advance(election.health, election.settings, election.change.instance, now)
    return replace(election, health=health), actions


def _advance_memory(election: Election, now: float) -> _Turn:
    """Last of what matters: where a rival may soon hold, no record delays on_lose."""
    ledger, begun = memories.advance(election.ledger, _truth(election), election.settings, now)
    return replace(election, ledger=ledger), begun


def _want_session(election: Election, at: float) -> Election:
    if not election.settings.contend or election.paused:
        return election
    return replace(election, session=election.session.wanted(max(at, election.rejoin_at)))


def _advance_role(election: Election, now: float) -> _Turn:
    tenure = election.tenure
    idle = election.change.idle and election.health.idle
    finished = election.stopping and _wound_up(election) and idle and _may_be_forgotten(election)
    if finished:
        role = Role.STOPPED
    elif tenure is not None:
        role = _ROLES[tenure.phase]
    elif not election.settings.contend:
        role = Role.OBSERVER
    elif election.paused:
        role = Role.PAUSED
    else:
        fit = election.health.fit and not election.ineligible
        role = Role.WAITING if fit else Role.INELIGIBLE
    if role is election.role:
        return election, ()
    reason = tenure.reason if tenure is not None else ""
    actions: list[Action] = [Became(election.settings.name, role, reason)]
    if finished:
        actions.append(Finished(election.settings.name, clean=tenure is None))
    return replace(election, role=role), tuple(actions)


_TURNS = (
    _advance_session,
    _advance_key,
    _advance_change,
    _advance_health,
    _advance_memory,
    _advance_role,
)
_ROLES = {
    Phase.ADOPTING: Role.ACQUIRING,
    Phase.ACQUIRING: Role.ACQUIRING,
    Phase.HOLDING: Role.HOLDING,
    Phase.CLEARING: Role.LOSING,
    Phase.LOSING: Role.LOSING,
    Phase.FAILING: Role.LOSING,
    Phase.LOST: Role.LOSING,
    Phase.STUCK: Role.STUCK,
}


def _wound_up(election: Election) -> bool:
    """Nothing is owed to Consul or to a hook of this tenure; stuck: nothing more can be done, but to
    keep the lock while this process goes on."""
    if election.tenure is not None:
        return election.tenure.phase is Phase.STUCK and not election.departing
    return election.session.stage is Stage.ABSENT


def _may_be_forgotten(election: Election) -> bool:
    """While this process goes on, a successor begins only when nothing is on record any more."""
    return election.last_try or election.ledger.kept == _truth(election)


def _truth(election: Election) -> Memory:
    """What would have to be on record now."""
    return memories.truth_of(election.session, election.tenure, election.settings, paused=election.paused)


def _acquire(election: Election, now: float) -> Acquire:
    terms, value = election.terms, election.settings.value
    return Acquire(terms.election, now, terms.exchange_s, terms.key, election.session.id, value)


def _kept_value(election: Election) -> bytes:
    """What a release leaves in the key: what stands there."""
    view = election.key.view
    return view.value if view is not None else election.settings.value


def _may_try(election: Election) -> bool:
    session = election.session
    ready = session.stage is Stage.LIVE and not session.ending and session.write.pending is None
    ready = ready and election.is_fit
    ready = ready and election.ledger.has_session(session.id)
    return ready and election.key.is_free and election.tenure is None and not election.stopping


def _renew_every_s(election: Election) -> float:
    ttl_s = election.lease.ttl_s
    if ttl_s is None:
        return sessions.RENEW_WITHOUT_TTL_S
    return ttl_s / 3 if election.tenure is not None else ttl_s / 2
