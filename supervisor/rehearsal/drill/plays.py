"""The plays: what is done to the supervisors, and which promises must hold.

A play begins when the expected number of nodes hold and another node waits. It compares its promises
with what happened, and never waits without a limit.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from supervisor.config.formats.durations import format_duration
from supervisor.core.settings import ItemSettings, SemaphoreSettings
from supervisor.rehearsal.drill import NODES
from supervisor.rehearsal.drill.agents import ask
from supervisor.rehearsal.drill.backstage import ended, until
from supervisor.rehearsal.drill.bounds import (
    COMMAND_S,
    REST_S,
    STUCK_S,
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
    exclusive,
    in_order,
    lose_time,
    next_holder,
    spare,
    succeeded,
)
from supervisor.rehearsal.drill.promises import ALLOWANCE_S, TOO_BUSY, Played
from supervisor.rehearsal.drill.recorders import FAIL, FENCE, HANG
from supervisor.rehearsal.drill.stage import DrillCluster
from supervisor.rehearsal.drill.tenures import ObservedTenure

REST = f"{REST_S:g}s"


@dataclass(frozen=True, slots=True)
class Play:
    """One play."""

    name: str  # its name in JSON
    title: str  # its title in the text
    act: Callable[[DrillCluster], Awaitable[None]]  # plays it, and judges its promises
    needs: str = ""  # the hooks without which the play does not suit an item
    breaks: Callable[[ItemSettings], bool] = lambda item: False  # whether it spoils the stage

    def skipped(self, item: ItemSettings) -> str:
        """Return why the play does not suit an item. Blank: it does."""
        return f"the item has no {self.needs}" if self.needs and not getattr(item, self.needs) else ""


async def perform(play: Play, stage: DrillCluster) -> Played:
    try:
        is_ready = play.act is start or not stage.item.contend or await settle(stage)
        stage.begin()
        if is_ready:
            await play.act(stage)
        else:
            _not_settled(stage)
    except TimeoutError:
        return Played(play.name, play.title, skipped=TOO_BUSY)
    if is_ready and stage.item.contend:
        exclusive(stage)
    return Played(play.name, play.title, tuple(stage.promises), tuple(stage.lines))


# --- a stage that is ready -----------------------------------------------------------------------


async def start(stage: DrillCluster) -> None:
    began_at = time.monotonic()
    for node in NODES:
        stage.start(node)
    is_held = await settle(stage)
    what = "nodes that hold" if isinstance(stage.item, SemaphoreSettings) else "a node holds"
    if not is_held:
        _not_settled(stage)
    else:
        last_at = max(tenure.since for tenure in stage.holding)
        stage.judge(what, str(stage.limit), f"{len(stage.holding)} after {last_at - began_at:.2f}s", True)


def _not_settled(stage: DrillCluster) -> None:
    why = stage.why_none() or next(filter(None, map(stage.last_problem, NODES)), "")
    promised = f"{stage.limit} and {len(NODES) - stage.limit}"
    found = f"{len(stage.holding)} and {len(stage.candidates)}"
    stage.judge("nodes that hold, and that wait", promised, f"{found}; {why}".rstrip("; "), kept=False)


async def settle(stage: DrillCluster) -> bool:
    """Start what does not run; return whether all come in time. Raises TimeoutError: one has not started."""
    for node in NODES:
        if node not in stage.running:
            stage.start(node)
    waiting = len(NODES) - stage.limit

    def is_ready() -> bool:
        return len(stage.holding) == stage.limit and len(stage.candidates) >= waiting

    ready = await until(is_ready, hold_s(stage.item) + lose_s(stage.item) + stage.item.rejoin_delay_s)
    if not ready and set(stage.running) - stage.answered.keys():
        raise TimeoutError
    return ready


# --- hand-overs ----------------------------------------------------------------------------------


async def planned_stop(stage: DrillCluster) -> None:
    tenure, at = stage.holding[0], time.monotonic()
    code = await stage.stop(tenure.node)
    await _handed_over(stage, tenure, at)
    stage.judge("exit code of the supervisor", "0", str(code), code == 0)


async def step_down(stage: DrillCluster) -> None:
    """Hand over to a named candidate, or in a semaphore to any."""
    tenure, named = stage.holding[0], stage.candidates[0]
    is_election = not isinstance(stage.item, SemaphoreSettings)
    to = ["--to", named] if is_election else []
    child = stage.command("step-down", stage.item.name, *to, "--for", REST, node=tenure.node)
    await until(lambda: tenure.lost_from is not None or not tenure.is_held, COMMAND_S)
    at = tenure.lost_from or tenure.freed_at or time.monotonic()
    await _handed_over(stage, tenure, at)
    code = await ended(child, COMMAND_S)
    stage.judge("exit code of step-down", "0", str(code), code == 0)
    if is_election:
        following = next(iter(stage.since(at)), None)
        found = "nobody" if following is None else following.node
        stage.judge("the next holder", named, found, found == named)


async def _handed_over(stage: DrillCluster, tenure: ObservedTenure, at: float) -> None:
    limit_s = stage.lease.lose_time_s + stage.lease.acquire_delay_s
    within_s = limit_s + lose_s(stage.item) + 2 * ALLOWANCE_S
    await until(lambda: bool(stage.since(at)) or tenure.is_stuck, within_s)
    following = await next_holder(stage, at, 0.0 if tenure.is_stuck else ALLOWANCE_S)
    in_order(stage, tenure)
    lose_time(stage, tenure, at)
    terms = "lose_time + acquire_delay" if stage.lease.acquire_delay_s else "lose_time"
    stage.at_most(f"another node is holder ({terms})", limit_s, after(at, following))


# --- crashes -------------------------------------------------------------------------------------


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


# --- hooks that do not work ----------------------------------------------------------------------


async def failing_on_acquire(stage: DrillCluster) -> None:
    first, at, place = stage.holding[0], time.monotonic(), "on_acquire[0]"
    stage.cue(place, FAIL)
    stage.mark("", "the next on_acquire will fail")
    stage.command("step-down", stage.item.name, "--for", REST, node=first.node)
    attempts = stage.item.on_acquire[0].retries + 1

    def failed() -> ObservedTenure | None:
        found = (each for each in stage.since(at) if _failures(each, place) >= attempts)
        return next(found, None)

    try:
        await until(
            lambda: failed() is not None or first.is_stuck, hold_s(stage.item) + lose_s(stage.item) + REST_S
        )
        victim = failed()
        stage.yes("on_acquire fails on one node", victim is not None, "no node acquired")
        if victim is None:
            return
        if stage.item.acquire_failure == "keep":
            await asyncio.sleep(STUCK_S)
            stage.yes("it goes on holding (acquire_failure: keep)", victim.is_held)
            return
        await until(lambda: not victim.is_held, lose_s(stage.item) + ALLOWANCE_S)
        freed_at = victim.freed_at
    finally:
        stage.clear(place)
    stage.yes("it releases", freed_at is not None)
    in_order(stage, victim)
    within_s = hold_s(stage.item) + stage.item.rejoin_delay_s + REST_S
    await until(lambda: len(stage.holding) == stage.limit, within_s)
    stage.yes("a node holds afterwards", len(stage.holding) == stage.limit)


def _failures(tenure: ObservedTenure, place: str) -> int:
    return sum(one.place == place and one.has_failed for one in tenure.attempts)


async def hanging_on_lose(stage: DrillCluster) -> None:
    """Let on_lose hang on the holder, in spite of TERM."""
    tenure, at = stage.holding[0], time.monotonic()
    place, hook = "on_lose[0]", stage.item.on_lose[0]
    stage.cue(place, HANG)
    stage.mark("", "the next on_lose will hang, and ignore TERM")
    stage.command("step-down", stage.item.name, "--for", REST, node=tenure.node)
    try:
        await until(
            lambda: tenure.is_stuck or not tenure.is_held, COMMAND_S + lose_s(stage.item) + 2 * ALLOWANCE_S
        )
    finally:
        stage.clear(place)
    taken = [
        one.ended_at - one.began_at for one in tenure.of("on_lose") if one.ended_at and one.place == place
    ]
    stage.at_most("on_lose[0] is killed (timeout + kill_after)", hook.attempt_s, max(taken, default=None))
    if not stage.item.on_lose_failure:
        await asyncio.sleep(STUCK_S)
        stage.yes("it keeps the lock, stuck", tenure.is_held)
        stage.command("recover", stage.item.name, node=tenure.node)
    await until(lambda: not tenure.is_held, COMMAND_S + lose_s(stage.item))
    if stage.item.on_lose_failure:
        stage.yes("on_lose_failure runs", bool(tenure.of("on_lose_failure")))
    stage.yes("it releases afterwards", not tenure.is_held)
    following = await next_holder(stage, at, hold_s(stage.item) + REST_S)
    stage.yes("a node holds afterwards", following is not None)


# --- observers -----------------------------------------------------------------------------------


async def observe(stage: DrillCluster) -> None:
    """Let another program take the key, and look on."""
    for node in NODES:
        stage.start(node)
    await until(lambda: all(stage.answered.get(node) for node in NODES), hold_s(stage.item))
    made = await ask(stage.agent, "PUT", "/v1/session/create", {"Name": "another program", "TTL": "60s"})
    session = made["ID"] if isinstance(made, dict) else ""
    if not isinstance(stage.item, SemaphoreSettings):
        at = time.monotonic()
        stage.mark("", "another program takes the key")
        await ask(stage.agent, "PUT", f"/v1/kv/{stage.item.key}?acquire={session}", b"another program")
        if stage.item.on_change:

            def has_run() -> bool:
                began = {change.node for change in stage.changes if change.began_at > at}
                return began == set(NODES)

            stage.yes("on_change runs on each node", await until(has_run, hold_s(stage.item)))
    stage.yes("no observer has a session", list(stage.sessions) == [session])
    stage.yes("no observer holds", not stage.tenures)


# --- the table -----------------------------------------------------------------------------------


CONTENDER = (
    Play("start", "start of three supervisors", start),
    Play("stop", "planned stop of the holder", planned_stop),
    Play("step-down", "step-down of the holder", step_down),
    Play("crash-and-return", "crash of the supervisor, and its return", crash_and_return),
    Play("crash", "crash of the machine", crash),
    Play("silence", "Consul silent for the holder", silence),
    Play("destroy", "destroy of the session by an operator", destroy),
    Play(
        "failing-on-acquire",
        "on_acquire fails",
        failing_on_acquire,
        "on_acquire",
        lambda item: item.acquire_failure == "keep",
    ),
    Play("hanging-on-lose", "on_lose hangs", hanging_on_lose, "on_lose"),
)
FENCED = (
    Play("lost-fenced", "loss of the machine, and fence works", partial(crash, cue="")),
    Play("lost-fence-fails", "loss of the machine, and fence fails", partial(crash, cue=FAIL)),
    Play("lost-fence-hangs", "loss of the machine, and fence hangs", partial(crash, cue=HANG)),
)
LASTING = (Play("outage", "Consul silent for all nodes", outage),)
OBSERVER = (Play("observe", "an observer looks on", observe),)


def plays_of(item: ItemSettings) -> tuple[Play, ...]:
    if not item.contend:
        return OBSERVER
    fenced = () if item.fence is None else FENCED
    return CONTENDER + fenced + (LASTING if outage_s(item) else ())
