"""The plays: what is done to the supervisors, and which promises must hold.

A play begins when the expected number of nodes hold and another node waits. It compares its promises
with what happened, and never waits without a limit.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from supervisor.core.settings import ItemSettings, SemaphoreSettings
from supervisor.rehearsal.drill import NODES
from supervisor.rehearsal.drill.agents import ask
from supervisor.rehearsal.drill.backstage import ended, until
from supervisor.rehearsal.drill.bounds import (
    COMMAND_S,
    REST_S,
    STUCK_S,
    hold_s,
    lose_s,
    outage_s,
)
from supervisor.rehearsal.drill.failovers import crash, crash_and_return, destroy, outage, silence
from supervisor.rehearsal.drill.losses import (
    after,
    exclusive,
    in_order,
    lose_time,
    next_holder,
)
from supervisor.rehearsal.drill.promises import ALLOWANCE_S, TOO_BUSY, Played
from supervisor.rehearsal.drill.recorders import FAIL, HANG
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
