"""Row: an operator destroys the holder's session.

The first figure begins just before the destroy is sent and ends at on_lose's first instruction. The
others begin at the end of the lock-delay: one ends at the first instruction of the next leader's
on_acquire, one when a blocking query of the bench shows the key with a session.
"""

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bench.contender import stamping_hooks, supervisor_of
from bench.figures import Figure
from bench.lab import Lab, Rig, wait_until
from tests.support.consul import Agent

LIMIT_MS = 50.0
SUCCESSION_LIMIT_MS = 10.0
LOCK_DELAYS_S = (0, 1, 5)
ROUNDS, ROUNDS_QUICK = 9, 3
SETTLE_S = 0.7  # after both sessions exist
KEY = "bench/reaction"
NAMES = ("left", "right")


@dataclass(slots=True)
class Lateness:
    """The milliseconds of all rounds, one of each kind a round."""

    lost: list[float] = field(default_factory=list)
    acquired: list[float] = field(default_factory=list)
    seen: list[float] = field(default_factory=list)


def measure(lab: Lab) -> Iterator[Figure]:
    """Measure each lock-delay, one after the other."""
    for lock_delay_s in LOCK_DELAYS_S:
        lab.say(f"reaction, lock-delay {lock_delay_s} s")
        late = _rounds(lab, lock_delay_s)
        row = f"reaction, lock-delay {lock_delay_s} s"
        yield from _figures(row, "destroyed → on_lose", late.lost, LIMIT_MS)
        yield from _figures(row, "lock-delay over → on_acquire", late.acquired, SUCCESSION_LIMIT_MS)
        yield from _figures(row, "lock-delay over → Session seen", late.seen, SUCCESSION_LIMIT_MS)


def _figures(row: str, what: str, samples: list[float], limit_ms: float) -> list[Figure]:
    return [
        Figure(row, f"{what}, median of {len(samples)}", statistics.median(samples), "ms", limit_ms),
        Figure(row, f"{what}, worst", max(samples), "ms"),
    ]


def _rounds(lab: Lab, lock_delay_s: int) -> Lateness:
    late = Lateness()
    with lab.rig() as rig:
        agent = rig.agent()
        for name in NAMES:
            election = {**_election(lock_delay_s), **stamping_hooks(rig, name)}
            supervisor_of(rig, agent.url, name, {"bench": election}).start()
        holder = rig.stamps.wait(0, lambda stamp: stamp.what == "acquire").who
        for _ in range(lab.samples(ROUNDS, ROUNDS_QUICK)):
            wait_until(lambda: len(agent.sessions()) == len(NAMES), "a session for each supervisor")
            time.sleep(SETTLE_S)
            holder = _round(rig, agent, lock_delay_s, holder, late)
    return late


def _election(lock_delay_s: int) -> dict[str, Any]:
    """Return an election that accepts overlap, because such a short lock-delay leaves no room."""
    return {
        "key": KEY,
        "session": {"ttl": "10s", "lock_delay": f"{lock_delay_s}s"},
        "accept_overlap": True,
    }


def _round(rig: Rig, agent: Agent, lock_delay_s: int, holder: str, late: Lateness) -> str:
    """Cause one loss, and return the next holder, which may be the former one with a new session."""
    entry = agent.kv_get(KEY)
    assert entry is not None and entry["Session"]
    mark = rig.stamps.mark()
    destroyed_ns = time.monotonic_ns()
    agent.session_destroy(entry["Session"])
    seen_ns = _seen_ns(agent, entry["ModifyIndex"], entry["Session"])
    lost = rig.stamps.wait(mark, lambda stamp: stamp.who == holder and stamp.what == "lose")
    acquired = rig.stamps.wait(mark, lambda stamp: stamp.what == "acquire")
    over_ns = destroyed_ns + lock_delay_s * 1_000_000_000
    late.lost.append((lost.at_ns - destroyed_ns) / 1e6)
    late.acquired.append((acquired.at_ns - over_ns) / 1e6)
    late.seen.append((seen_ns - over_ns) / 1e6)
    return acquired.who


def _seen_ns(agent: Agent, index: int, former: str) -> int:
    """Return when a blocking query first showed another session on the key."""
    while True:
        answer = agent.kv_wait(KEY, index)
        seen_ns = time.monotonic_ns()
        if answer.json()[0].get("Session", former) != former:
            return seen_ns
        index = answer.index
