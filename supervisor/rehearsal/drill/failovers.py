"""The plays in which a holder is lost: a crash, a silence of Consul, the end of its session."""

import asyncio
import time

from supervisor.config.formats.durations import format_duration
from supervisor.core.settings import SemaphoreSettings
from supervisor.rehearsal.drill.backstage import until
from supervisor.rehearsal.drill.bounds import (
    COMMAND_S,
    WITHOUT_TTL_S,
    failover_s,
    fence_s,
    free_s,
    guard_s,
    hold_s,
    lose_s,
    outage_s,
)
from supervisor.rehearsal.drill.losses import (
    after,
    elapsed_s,
    lose_time,
    next_holder,
    spare,
    succeeded,
)
from supervisor.rehearsal.drill.promises import ALLOWANCE_S
from supervisor.rehearsal.drill.recorders import FAIL, FENCE
from supervisor.rehearsal.drill.stage import DrillCluster
from supervisor.rehearsal.drill.tenures import ObservedTenure


async def crash_and_return(stage: DrillCluster) -> None:
    tenure, at = stage.holding[0], time.monotonic()
    losing = len(tenure.of("on_lose"))
    stage.mark(tenure.node, "its supervisor is killed with -9")
    stage.kill(tenure.node, with_hooks=False)
    killed_at = time.monotonic()
    stage.start(tenure.node)

    def is_adopted() -> bool:
        return stage.renewed.get(tenure.session, 0.0) > killed_at and tenure.holds

    await until(lambda: is_adopted() or tenure.session not in stage.sessions, hold_s(stage.item))
    if tenure.session not in stage.sessions:
        await until(lambda: tenure.has_lost, hold_s(stage.item) + lose_s(stage.item))
        text = "not in time: its session had ended, and on_lose ran"
        stage.judge("a supervisor that is back in time adopts", "or on_lose runs", text, tenure.has_lost)
    else:
        back_s = stage.renewed.get(tenure.session, killed_at) - at
        found = f"yes, {format_duration(back_s)} after the crash" if is_adopted() else "no"
        stage.judge("its session is adopted", "yes", found, is_adopted())
        stage.yes("no hook of on_lose runs", len(tenure.of("on_lose")) == losing)
        stage.yes("no other node acquires", not stage.since(at))


async def crash(stage: DrillCluster, cue: str | None = None) -> None:
    """Kill the holder with all its processes, as the crash of its machine does, and start it again later.

    cue: what fence does, while Consul notices the crash at once. Blank: it works. None: it works, too, but
    Consul notices the crash by the TTL.
    """
    tenure, at = stage.holding[0], time.monotonic()
    stage.mark(tenure.node, "crashes: its supervisor and its hooks are killed with -9")
    stage.kill(tenure.node, with_hooks=True)
    await (_failed_over(stage, tenure, at) if cue is None else _lost(stage, tenure, at, cue))
    stage.start(tenure.node)
    if stage.item.on_lose:
        await until(lambda: tenure.has_lost, hold_s(stage.item) + lose_s(stage.item))
        succeeded(stage, tenure)


async def _failed_over(stage: DrillCluster, tenure: ObservedTenure, at: float) -> None:
    failover = 2 * (stage.lease.ttl_s or 0.0) + free_s(stage.item) + guard_s(stage.item)
    if stage.lease.ttl_s is None:
        await asyncio.sleep(WITHOUT_TTL_S)
        stage.yes("nobody takes over without a TTL", not stage.since(at))
        at = time.monotonic()
        stage.mark("", "an operator destroys the session")
        await stage.destroy(tenure.session)
    following = await next_holder(stage, at, failover_s(stage.item))
    stage.at_most("another node is holder (failover)", failover, after(at, following))


async def _lost(stage: DrillCluster, tenure: ObservedTenure, at: float, cue: str) -> None:
    key_s = free_s(stage.item)
    if cue:
        stage.cue(FENCE, cue)
    stage.mark("", "Consul notices that the machine is lost")
    await stage.destroy(tenure.session)
    await until(lambda: stage.guard is not None, key_s + 2 * ALLOWANCE_S)
    stage.at_most("another node has the key (lock-delay in Consul)", key_s, after(at, stage.guard))
    if stage.guard is not None:
        await _waited(stage, stage.guard, tenure.node, cue)
    stage.clear(FENCE)
    told = ", ".join(sorted({attempt.reason for attempt in stage.fences}))
    stage.judge("fence is to switch off", tenure.node, told or "nobody", told == tenure.node)


async def _waited(stage: DrillCluster, guard: ObservedTenure, lost: str, cue: str) -> None:
    at, lockout_s = guard.since, stage.lease.asked_s
    named = "tenure record" if outage_s(stage.item) else "lock_delay"
    if cue and stage.lease.wait_s is None:
        await _nobody_acts(stage, at, guard_s(stage.item))
        stage.command("confirm-off", stage.item.name, "--machine", lost, node=guard.node)
        confirmed = await next_holder(stage, at, COMMAND_S)
        stage.yes("it acts once an operator confirms", confirmed is not None)
        return
    waited_s = after(at, await next_holder(stage, at, guard_s(stage.item) + 2 * ALLOWANCE_S))
    if cue:
        stage.at_least(f"it does not act before the lease is over ({named})", lockout_s, waited_s)
        stage.at_most(f"it acts when the lease is over ({named})", lockout_s, waited_s)
    else:
        stage.yes("fence succeeds", any(attempt.succeeded for attempt in stage.fences))
        stage.at_most("it acts behind fence (after + timeout)", fence_s(stage.item), waited_s)


async def _nobody_acts(stage: DrillCluster, at: float, within_s: float) -> None:
    """Judge the promise that no time ends the wait for a fence that is required."""
    following = await next_holder(stage, at, within_s + ALLOWANCE_S)
    stage.yes("nobody acts before fence succeeds (required)", following is None)


async def silence(stage: DrillCluster) -> None:
    """Let Consul be silent for the holder alone, for longer than its belief lasts, while its fence fails."""
    tenure, at = stage.holding[0], time.monotonic()
    stage.cue(FENCE, FAIL)
    stage.mark(tenure.node, "gets no answer from Consul any more")
    stage.agents[tenure.node].freeze()
    lease, lasts_s = stage.lease, outage_s(stage.item)
    by = "outage + 2 x interval" if lasts_s else "room"
    try:
        await until(lambda: tenure.lost_at is not None, lease.belief_s + lose_s(stage.item) + 2 * ALLOWANCE_S)
        if stage.item.on_lose or stage.item.run:
            began_s, ended_s = elapsed_s(at, tenure.lost_from), elapsed_s(at, tenure.lost_at)
            if lasts_s:
                stage.at_least("losing does not begin before (outage)", lasts_s, began_s)
            stage.at_most(f"losing begins ({by})", lease.belief_s, began_s)
            stage.at_most(f"losing has ended ({by} + lose_time)", lease.belief_s + lease.lose_time_s, ended_s)
        if lease.wait_s is None:
            await _nobody_acts(stage, at, failover_s(stage.item))
        else:
            await _failed_over(stage, tenure, at)
            spare(stage, tenure, next(iter(stage.since(at)), None))
        succeeded(stage, tenure)
    finally:
        stage.clear(FENCE)
        stage.agents[tenure.node].thaw()
        stage.mark(tenure.node, "gets answers from Consul again")


async def outage(stage: DrillCluster) -> None:
    """Let Consul be silent for every node, and without a leading server, for as long as the file says."""
    tenure, at, sessions = stage.holding[0], time.monotonic(), stage.agent.model.store.sessions

    def has_lost() -> bool:
        for session in sessions.sorted():
            sessions.renew(session, time.monotonic())  # a new leading server starts each TTL anew
        return not tenure.holds

    stage.mark("", "Consul answers no node any more")
    for agent in stage.agents.values():
        agent.freeze()
    await until(has_lost, outage_s(stage.item))
    for agent in stage.agents.values():
        agent.thaw()
    stage.mark("", "Consul answers again")
    await until(lambda: not tenure.holds, 2 * stage.lease.interval_s + ALLOWANCE_S)
    hooks = [one for each in stage.tenures for one in each.attempts if one.began_at > at] + stage.fences
    stage.judge("hooks that run (outage)", "0", str(len(hooks)), not hooks)
    stage.yes("it holds by the same session, so by the same token", tenure.holds)
    stage.yes("no other node acquires", not stage.since(at) and stage.guard is None)


async def destroy(stage: DrillCluster) -> None:
    tenure, at = stage.holding[0], time.monotonic()
    stage.mark("", f"an operator destroys the session of {tenure.node}")
    await stage.destroy(tenure.session)
    following = await next_holder(stage, at, failover_s(stage.item))
    lose_time(stage, tenure, at)
    taken_s, lockout_s = after(at, following), stage.item.lockout_s
    longest_s = lockout_s + stage.lease.acquire_delay_s
    if stage.item.fence is not None:
        said_s = max(free_s(stage.item), stage.lease.lose_time_s)
        stage.at_most("another node is holder, after on_lose (lock-delay in Consul)", said_s, taken_s)
        stage.yes("fence leaves the holder alone, which lives", not stage.fences)
    elif isinstance(stage.item, SemaphoreSettings):
        # A live holder gives its slot back once on_lose has ended, which may be earlier.
        stage.at_most(f"another node is holder ({stage.item.lockout_name})", longest_s, taken_s)
    else:
        stage.at_least(f"no other node is holder ({stage.item.lockout_name})", lockout_s, taken_s)
        stage.at_most("another node is holder", longest_s, taken_s)
        spare(stage, tenure, following)
    succeeded(stage, tenure)
