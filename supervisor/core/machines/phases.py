"""The work of each phase of a tenure: which hook or child begins or is killed, and which phase follows.

``advance`` calls the handler of the tenure's phase again and again, until a phase has to wait for something.
A handler looks at the tenure and the clock, and never at an event. It starts on_acquire and the run child
only while the contact is fresh and the tenure is on record; on_lose waits for neither.
"""

from supervisor.core.actions import Action, Arm, HookContext, KillHook, Previous, Reason, StartRun, StopRun
from supervisor.core.frozen import replace
from supervisor.core.lease import Lease
from supervisor.core.machines import tenure as tenures
from supervisor.core.machines.sequence import Sequence
from supervisor.core.machines.tenure import BELIEVING, Phase, PhaseEnd, Tenure
from supervisor.core.settings import ItemSettings
from supervisor.core.times import NEVER

Advanced = tuple[Tenure, tuple[Action, ...]]


def advance(tenure: Tenure, settings: ItemSettings, lease: Lease, now: float) -> Advanced:
    """Begin what is due now, and pass through the phases that have nothing to wait for."""
    actions: list[Action] = []
    while (work := _WORK.get(before := tenure.phase)) is not None:
        tenure, begun = work(tenure, settings, lease, now)
        actions += begun
        if tenure.phase is before:
            break
    return tenure, tuple(actions)


def _acquiring(tenure: Tenure, settings: ItemSettings, lease: Lease, now: float) -> Advanced:
    sequence = tenure.hooks.settle(settings.on_acquire, now, stop_at_failure=True)
    tenure = replace(tenure, hooks=sequence)
    if sequence.running is not None:
        return tenure, ()
    if sequence.failed and settings.acquire_failure == "release":
        return tenure.lose(Reason.ACQUIRE_FAILED, now), ()
    if not tenure.recorded or not news_is_fresh(tenure, lease, now):
        return tenure, ()
    if (arm := _arm(tenure, settings, lease)) is not None:
        return tenure, (arm,)
    if not sequence.finished(settings.on_acquire):
        if not sequence.due(now):
            return tenure, ()
        return _start(replace(tenure, began=True, began_before=tenure.began), settings, lease)
    return _become_holding(tenure, settings, lease, now)


def may_adopt(tenure: Tenure, lease: Lease, now: float) -> bool:
    """Return whether Consul has renewed the session, and has freshly confirmed that this node holds."""
    return tenure.phase is Phase.ADOPTING and tenure.renewed and news_is_fresh(tenure, lease, now)


def goes_on(tenure: Tenure, lease: Lease, now: float) -> bool:
    """Return whether the tenure holds by a contact so young that a new lease may count from it."""
    return tenure.phase is Phase.HOLDING and news_is_fresh(tenure, lease, now)


def _adopting(tenure: Tenure, settings: ItemSettings, lease: Lease, now: float) -> Advanced:
    if not may_adopt(tenure, lease, now):
        return tenure, ()
    adopted = replace(tenure, reason=Reason.ADOPTED)
    if tenure.acquire_done and settings.on_adopt == "none":
        if settings.run is not None and (arm := _arm(tenure, settings, lease)) is not None:
            return tenure, (arm,)
        return _become_holding(adopted, settings, lease, now)
    return tenures.become(adopted, PhaseEnd.ON_ACQUIRE_DUE), ()


def _arm(tenure: Tenure, settings: ItemSettings, lease: Lease) -> Arm | None:
    """Return what starts the watchdog before on_acquire or the run child begin; its answer comes first."""
    if settings.watchdog is None or tenure.arm_answered:
        return None
    return Arm(settings.name, settings.watchdog, tenure.reset_by(lease))


def _become_holding(tenure: Tenure, settings: ItemSettings, lease: Lease, now: float) -> Advanced:
    over = PhaseEnd.ON_ACQUIRE_OVER
    holding = tenures.become(tenure, over, began=True, began_before=tenure.began, held_at=now)
    if settings.run is None:
        return holding, ()
    context = replace(_context(tenure, settings, lease), transition=f"{tenure.session}-run")
    run = StartRun(settings.run, context, _begin_by(tenure, lease))
    return replace(holding, run=run), (run,)


def news_is_fresh(tenure: Tenure, lease: Lease, now: float) -> bool:
    """Return whether the newest contact is young enough to begin something that acts."""
    return tenure.contact >= tenure.fresh_since and now - tenure.contact <= lease.fresh_s


def _begin_by(tenure: Tenure, lease: Lease) -> float:
    """Return until when the newest contact is fresh."""
    return tenure.contact + lease.fresh_s


def _stopping(tenure: Tenure, settings: ItemSettings, lease: Lease, now: float) -> Advanced:
    waits = tenure.hooks.running is not None or tenure.run is not None
    if waits and tenure.killing:
        return tenure, ()
    if tenure.hooks.running is not None:
        return replace(tenure, killing=True), (KillHook(tenure.hooks.running),)
    if tenure.run is not None:
        return replace(tenure, killing=True), (StopRun(tenure.run),)
    if not tenure.began:
        return tenures.become(tenure, PhaseEnd.NOTHING_BEGAN, hooks=Sequence()), ()
    if now < min(tenure.reason_deadline, tenure.contact + lease.room_s):
        return tenure, ()
    return tenures.become(tenure, PhaseEnd.ALL_STOPPED, hooks=Sequence()), ()


def _losing(tenure: Tenure, settings: ItemSettings, lease: Lease, now: float) -> Advanced:
    """Run on_lose, or on_lose_failure as the last resort; a retry leaves time for all that may follow.

    Only retries may use the margin, up to the moment when a rival may hold.
    """
    hooks, after_s = settings.on_lose_failure, 0.0
    if tenure.phase is Phase.LOSING:
        hooks, after_s = settings.on_lose, sum(hook.attempt_s for hook in settings.on_lose_failure)
    sequence = tenure.hooks.settle(hooks, now, end_by=tenure.rival_at(lease) - after_s)
    tenure = replace(tenure, hooks=sequence)
    if not sequence.finished(hooks):
        return _start(tenure, settings, lease) if sequence.due(now) else (tenure, ())
    if not sequence.failed:
        return tenures.become(tenure, PhaseEnd.HOOKS_DONE), ()
    if tenure.phase is Phase.LOSING and not settings.on_lose_failure:
        return tenures.become(tenure, PhaseEnd.NO_LAST_RESORT), ()
    return tenures.become(tenure, PhaseEnd.HOOK_FAILED, hooks=Sequence()), ()


_WORK = {
    Phase.ADOPTING: _adopting,
    Phase.ACQUIRING: _acquiring,
    Phase.STOPPING: _stopping,
    Phase.LOSING: _losing,
    Phase.LAST_RESORT: _losing,
}
"""The work of each phase that has any."""


def start_fence(tenure: Tenure, settings: ItemSettings, lease: Lease, previous: Previous) -> Advanced:
    """Start the fence, which gets the facts about the former holder."""
    assert settings.fence is not None and tenure.phase is Phase.GUARDING, "nobody guards"
    context = replace(_context(tenure, settings, lease), previous=previous)
    begin_by = _begin_by(tenure, lease)
    sequence, start = tenure.hooks.start(settings.fence.methods, context, begin_by=begin_by)
    return replace(tenure, hooks=sequence), (start,)


def _start(tenure: Tenure, settings: ItemSettings, lease: Lease) -> Advanced:
    hooks = {
        Phase.ACQUIRING: settings.on_acquire,
        Phase.LOSING: settings.on_lose,
        Phase.LAST_RESORT: settings.on_lose_failure,
    }[tenure.phase]
    begin_by = _begin_by(tenure, lease) if tenure.believes else NEVER
    sequence, start = tenure.hooks.start(hooks, _context(tenure, settings, lease), begin_by=begin_by)
    return replace(tenure, hooks=sequence), (start,)


def transition_of(tenure: Tenure) -> str:
    """Return the transition id that the hooks of this phase of the tenure receive."""
    if tenure.phase is Phase.GUARDING:
        event = "fence"
    elif tenure.phase in BELIEVING:
        event = "adopt" if tenure.reason is Reason.ADOPTED else "acquire"
    else:
        event = "lose-failure" if tenure.phase in (Phase.LAST_RESORT, Phase.STUCK) else "lose"
    return f"{tenure.session}-{event}"


def _event_of(tenure: Tenure) -> str:
    if tenure.phase is Phase.GUARDING:
        return "fence"
    if tenure.believes:
        return "acquire"
    return "lose" if tenure.phase is Phase.LOSING else "lose-failure"


def _context(tenure: Tenure, settings: ItemSettings, lease: Lease) -> HookContext:
    acquiring, of_many = tenure.phase in BELIEVING, settings.kind == "semaphore"
    event = _event_of(tenure)
    return HookContext(
        event=event,
        name=settings.name,
        key=settings.key,
        reason=Reason.LOSE_FAILED if event == "lose-failure" else tenure.reason,
        transition=transition_of(tenure),
        session=tenure.session,
        lock_index=tenure.lock_index,
        fencing_token=tenure.token,
        leader=None if of_many else tenure.leader if acquiring else tenure.next_leader,
        previous_leader=None if of_many else tenure.previous_leader if acquiring else tenure.leader,
        rival_at=None if acquiring else tenure.rival_at(lease),
        kind=settings.kind,
        holders=tenure.holders,
        slot=tenure.slot,
        note=tenure.note,
        previous=tenure.previous,
    )
