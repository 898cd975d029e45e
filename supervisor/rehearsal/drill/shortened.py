"""An item with shorter durations, and a list of what was changed.

One rule holds for every file. The times that only make an operator wait are divided: ttl, lock_delay or
prune_delay, acquire_delay and rejoin_delay. The times of hooks and of ``run`` are divided only where
recorders stand in their place, because a real hook needs its real time. The lock-delay always leaves
``lose_time``, the margin and ROOM_S, so that the code that computes the real lease also computes the lease
of the drill.

A rehearsal switches no machine off, so nothing of the command, webhook or target of ``fence`` is left.
"""

from dataclasses import replace

from supervisor.config.formats.durations import format_duration
from supervisor.config.lease_checks import SAYS_S
from supervisor.core.lease import sufficient_lockout_s
from supervisor.core.settings import (
    Command,
    ElectionSettings,
    Fence,
    Hook,
    ItemSettings,
    SemaphoreSettings,
)
from supervisor.rehearsal.devagent.sessions import SERF_HEALTH
from supervisor.rehearsal.drill.recorders import with_hooks

TTL_MIN_S = 1.0  # the embedded agent allows no less
ROOM_S = 3.0  # a busy machine must not lose a lease for want of time
HOOK_MIN_S = 0.5  # a recorder takes milliseconds, except on a busy machine
KILL_MIN_S = 0.1
DELAY_MIN_S = 0.1  # as the schema has it for rejoin_delay
NO_CALL = Command(("false",), kill_after_s=KILL_MIN_S)  # in the place of a real fence
LIMIT_MAX = 2  # of three nodes one has to wait, or nobody could take over


class _Divider:
    """Divides durations, and notes each that changes."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self.changes: list[str] = []

    def divide(self, what: str, given_s: float, min_s: float) -> float:
        """Return the divided duration, which is at least ``min_s`` and at most the given duration."""
        used_s = min(given_s, max(given_s / self._speed, min_s))
        if used_s != given_s:
            self.changes.append(f"{what} {format_duration(given_s)} to {format_duration(used_s)}")
        return used_s


def shorten(item: ItemSettings, speed: float, *, real: bool) -> tuple[ItemSettings, tuple[str, ...]]:
    """Return the item with durations divided by ``speed``, and a text for each change.

    No duration gets below its smallest value.

    A rehearsal has no device: it feeds no watchdog, and its fence is always one of recorders.
    real: whether the hooks of the file run. Their times are then those of the file.
    """
    divider = _Divider(speed)
    if not item.contend:
        return item, ()
    session = item.session
    if session.ttl_s is not None:
        session = replace(session, ttl_s=divider.divide("ttl", session.ttl_s, TTL_MIN_S))
    rejoin_s = divider.divide("rejoin_delay", item.rejoin_delay_s, DELAY_MIN_S)
    fence = None if item.fence is None else _harmless(item.fence, divider)
    short = replace(item, session=session, rejoin_delay_s=rejoin_s, watchdog=None, fence=fence)
    if isinstance(short, ElectionSettings):
        delay_s = divider.divide("acquire_delay", short.acquire_delay_s, 0.0)
        short = replace(short, acquire_delay_s=delay_s)
    if not real:
        short = _with_short_hooks(short, divider)
    short = _with_short_outage(_with_short_lockout(short, divider), divider)
    short = _fitted(short, divider.changes)
    return short, tuple(divider.changes)


def _harmless(fence: Fence, divider: _Divider) -> Fence:
    """Return the fence with shorter times, without what it calls and how it names this machine."""
    # A holder that lives needs as long as ever to say that it stops.
    after_s = divider.divide("fence after", fence.after_s, min(fence.after_s, SAYS_S))
    hook = _hook(replace(fence.hook, call=NO_CALL), divider)
    return replace(fence, hook=hook, others=(), target=None, after_s=after_s)


def _with_short_hooks(item: ItemSettings, divider: _Divider) -> ItemSettings:
    item = with_hooks(item, lambda hook, place: _hook(hook, divider))
    run, check = item.run, item.candidate_check
    if run is not None:
        stop_s = divider.divide("run stop_timeout", run.stop_timeout_s, HOOK_MIN_S)
        run = replace(run, stop_timeout_s=stop_s)
    if check is not None:
        interval_s = divider.divide("candidate_check interval", check.interval_s, HOOK_MIN_S)
        check = replace(check, interval_s=interval_s)
    return replace(item, run=run, candidate_check=check)


def _hook(hook: Hook, divider: _Divider) -> Hook:
    call = hook.call
    timeout_s = divider.divide(f"{hook.name} timeout", hook.timeout_s, HOOK_MIN_S)
    if isinstance(call, Command):
        kill_s = divider.divide(f"{hook.name} kill_after", call.kill_after_s, KILL_MIN_S)
        call = replace(call, kill_after_s=kill_s)
    delay_s = hook.retry_delay_s
    if hook.retries:
        delay_s = divider.divide(f"{hook.name} retry_delay", delay_s, DELAY_MIN_S)
    return replace(hook, call=call, timeout_s=timeout_s, retry_delay_s=delay_s)


def _with_short_lockout(item: ItemSettings, divider: _Divider) -> ItemSettings:
    """Divide the lock-delay or the prune delay, as far as the lease allows."""
    sufficient_s = sufficient_lockout_s(item, ROOM_S)
    given_s = item.lockout_s
    lockout_s = given_s if sufficient_s is None else divider.divide(item.lockout_name, given_s, sufficient_s)
    if isinstance(item, SemaphoreSettings):
        return replace(item, prune_delay_s=lockout_s)
    return replace(item, session=replace(item.session, lock_delay_s=lockout_s))


def _with_short_outage(item: ItemSettings, divider: _Divider) -> ItemSettings:
    """Divide the outage, which stays as long as the lock-delay, so that without it the lock would be lost."""
    if item.fence is None or item.fence.outage_s is None:
        return item
    outage_s = divider.divide("fence outage", item.fence.outage_s, item.lockout_s)
    return replace(item, fence=replace(item.fence, outage_s=outage_s))


def _fitted(item: ItemSettings, changes: list[str]) -> ItemSettings:
    """Return the item without checks that the embedded agent lacks, and with a limit below three."""
    session = item.session
    if isinstance(item, SemaphoreSettings) and item.limit > LIMIT_MAX:
        changes.append(f"limit {item.limit} to {LIMIT_MAX}, so that one of three nodes waits")
        item = replace(item, limit=LIMIT_MAX)
    left_out = [name for name in session.node_checks if name != SERF_HEALTH] + list(session.service_checks)
    if left_out:
        changes.append(f"without the checks {', '.join(left_out)}, which the embedded agent does not have")
    kept = tuple(name for name in session.node_checks if name == SERF_HEALTH)
    return replace(item, session=replace(session, node_checks=kept, service_checks=()))
