"""The attempts of candidate_check: a command shows whether this node is fit to lead.

A node is unfit until the check has succeeded ``rise`` times in a row, and again after ``fall`` failures in a
row. An adopted tenure ends after ``fall`` failures, and not because this process has no result yet. A node
without a check is fit. The reducer and the scheduler decide what a contender does when it is unfit.
"""

from supervisor.core.actions import Action, HookContext, KillHook, Reason, Role, StartHook
from supervisor.core.events import HookEnded
from supervisor.core.frozen import dataclass, replace
from supervisor.core.outcomes import SlotsView, View
from supervisor.core.settings import CandidateCheck, ItemSettings
from supervisor.core.times import LONG_AGO, NEVER


@dataclass(frozen=True, slots=True)
class Health:
    """The results of the check so far, and the check that runs."""

    fit: bool
    passes: int = 0  # successes in a row, counted up to ``rise``
    fails: int = 0  # failures in a row, counted up to ``fall``
    running: StartHook | None = None
    killing: bool = False
    due_at: float = LONG_AGO

    @property
    def deadline(self) -> float:
        return NEVER if self.running is not None else self.due_at

    @property
    def idle(self) -> bool:
        return self.running is None

    def after(self, former: "Health") -> "Health":
        """Return the health for this check, which begins when the running check of ``former`` has ended."""
        due_at = self.due_at if NEVER in (self.due_at, former.due_at) else former.due_at
        return replace(self, running=former.running, killing=former.killing, due_at=due_at)

    def has_fallen(self, check: CandidateCheck | None) -> bool:
        """Return whether the check has failed ``fall`` times in a row, so that a holder must step down."""
        return check is not None and self.fails >= check.fall

    def ended(self, event: HookEnded, check: CandidateCheck) -> "Health":
        if event.started != self.running:
            return self
        if check.hook is None or event.started.hook.call != check.hook.call:
            return replace(self, running=None)  # the settings have changed since this check began
        if event.ok:
            passes = min(self.passes + 1, check.rise)
            fit = self.fit or passes >= check.rise
            return replace(self, running=None, passes=passes, fails=0, fit=fit)
        fails = min(self.fails + 1, check.fall)
        fit = self.fit and fails < check.fall
        return replace(self, running=None, passes=0, fails=fails, fit=fit)


def is_same_check(settings: ItemSettings, former: ItemSettings) -> bool:
    """Return whether both settings run the same check, so that its results go on counting."""
    check, before = settings.candidate_check, former.candidate_check
    if check is None or before is None:
        return check is before
    if check.hook is None or before.hook is None:
        return check.hook is before.hook
    return check.hook.call == before.hook.call


def new_health(settings: ItemSettings) -> Health:
    """Return the health of a process that has not run any check yet."""
    return Health(fit=True, due_at=NEVER) if settings.check_hook is None else Health(fit=False)


def advance(
    health: Health, settings: ItemSettings, seen: View | None, instance: str, role: Role, now: float
) -> tuple[Health, tuple[Action, ...]]:
    """Begin the next check if it is due: one interval after the last one began, and not before its end.

    seen: the newest observation, which shows the check the current holder. None: there is none yet.
    """
    check = settings.candidate_check
    if check is None or check.hook is None or health.running is not None or now < health.due_at:
        return health, ()
    context = HookContext(
        event="check",
        name=settings.name,
        key=settings.key,
        reason=Reason.SCHEDULED,
        transition=f"{instance}-{settings.name}-check",
        leader=None if seen is None else seen.leader,
        kind=settings.kind,
        holders=seen.holders if isinstance(seen, SlotsView) else (),
        role=role,
    )
    start = StartHook(check.hook, 1, context)
    return replace(health, running=start, due_at=now + check.interval_s), (start,)


def stop(health: Health) -> tuple[Health, tuple[Action, ...]]:
    """Begin no further check, and kill the one that runs."""
    health = replace(health, due_at=NEVER)
    if health.running is None or health.killing:
        return health, ()
    return replace(health, killing=True), (KillHook(health.running),)
