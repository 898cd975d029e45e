"""The runs of on_change: one at a time, while the newest state waits.

A run begins when the newest state differs from the one that the hooks have received last. So a watch that
wakes without a change starts nothing, and a leader that came and went while a hook ran is not reported. No
contender waits for on_change.
"""

from supervisor.core.actions import Action, HookContext, KillHook, Reason, Role
from supervisor.core.events import HookEnded
from supervisor.core.frozen import dataclass, replace
from supervisor.core.machines.sequence import Sequence
from supervisor.core.outcomes import KeyView, SlotsView, View
from supervisor.core.settings import Hook, ItemSettings
from supervisor.core.times import LONG_AGO, NEVER


@dataclass(frozen=True, slots=True)
class Change:
    """The runs of on_change, and the state that the next one reports."""

    instance: str  # names this process in the ids of transitions
    notified: View | None = None  # the state that the hooks run for, or last ran for
    previous_leader: bytes | None = None  # the last leader before ``notified``
    newest: View | None = None  # the newest observed state
    context: HookContext | None = None
    begun: tuple[Hook, ...] = ()  # the hooks of the run under way, also when the file changes meanwhile
    hooks: Sequence = Sequence()
    count: int = 0  # numbers the runs in the ids of transitions
    killing: bool = False

    @property
    def deadline(self) -> float:
        return self.hooks.deadline if self.context is not None else NEVER

    @property
    def idle(self) -> bool:
        return self.hooks.running is None

    @property
    def last_leader(self) -> bytes | None:
        """The value of the last leader that the hooks have received."""
        told_leader = self.notified.leader if self.notified is not None else None
        return self.previous_leader if told_leader is None else told_leader

    def observe(self, view: View) -> "Change":
        """Take this as the newest state, unless it does not show the holders."""
        if isinstance(view, SlotsView) and view.lock is not None and view.slot_record is None:
            return self
        if view == self.newest:
            return self  # an equal value is then compared at no cost
        return replace(self, newest=view)

    def ended(self, event: HookEnded) -> "Change":
        if event.started != self.hooks.running:
            return self
        return replace(self, hooks=self.hooks.ended(event.ok))


def advance(
    change: Change, settings: ItemSettings, role: Role, now: float
) -> tuple[Change, tuple[Action, ...]]:
    """Begin the next attempt, or the run for the newest state."""
    if change.context is not None:
        hooks = change.begun
        # A retry that reports an old state is dropped when a newer state waits.
        end_by = LONG_AGO if _has_changed(change) else NEVER
        sequence = change.hooks.settle(hooks, now, end_by=end_by)
        change = replace(change, hooks=sequence)
        if sequence.finished(hooks):
            change = replace(change, context=None, begun=(), hooks=Sequence())
    if change.context is None and _has_changed(change):
        change = _begin_run(change, settings)
    if change.context is None or not change.hooks.due(now):
        return change, ()
    sequence, start = change.hooks.start(change.begun, replace(change.context, role=role))
    return replace(change, hooks=sequence), (start,)


def stop(change: Change) -> tuple[Change, tuple[Action, ...]]:
    """Begin no further attempt, and kill the one that runs."""
    running = change.hooks.running
    if running is None:
        return replace(change, context=None, hooks=Sequence()), ()
    if change.killing:
        return change, ()
    return replace(change, killing=True, context=None), (KillHook(running),)


def _has_changed(change: Change) -> bool:
    if change.newest is None or change.newest is change.notified:
        return False
    return _reason(change.notified, change.newest) is not None


def _reason(told: View | None, newest: View) -> Reason | None:
    if told is None:
        return Reason.INITIAL
    if {each.session for each in told.holders} != {each.session for each in newest.holders}:
        return Reason.LEADER_CHANGED
    return Reason.VALUE_CHANGED if set(told.holders) != set(newest.holders) else None


def _begin_run(change: Change, settings: ItemSettings) -> Change:
    newest = change.newest
    assert newest is not None
    reason = _reason(change.notified, newest)
    assert reason is not None
    previous_leader = change.last_leader
    change = replace(change, notified=newest, previous_leader=previous_leader)
    if not settings.on_change:
        return change
    count = change.count + 1
    context = HookContext(
        event="change",
        name=settings.name,
        key=settings.key,
        reason=reason,
        transition=f"{change.instance}-{settings.name}-change-{count}",
        session=(newest.session if isinstance(newest, KeyView) else None) or "",
        lock_index=newest.lock_index,
        leader=newest.leader,
        previous_leader=previous_leader,
        kind=settings.kind,
        holders=newest.holders if isinstance(newest, SlotsView) else (),
    )
    return replace(change, context=context, begun=settings.on_change, hooks=Sequence(), count=count)
