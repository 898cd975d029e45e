"""Row: two hundred contenders wait for one key, and its holder steps down or loses its session.

Each hand-over has two figures. The time is from the end of the old holder's on_lose to the first
instruction of the next on_acquire. Beside it stands the time of a lone contender, which has a key of its
own on the same agent and is measured in turn with the herd. The writes are counted from before the step
down until nothing is written any more: three are necessary (release, acquire, destroy), and each lost
race is one more. The members of a herd must lose some races before they leave the key to each other, so
other hand-overs come before those that are measured. The first of these, where all try, has a row.

Then the holder's session is destroyed: the key is free, but Consul guards it for the lock-delay. Consul
logs a warning for each attempt in that time, so its log has their number: one for each contender.

The contenders share processes, twenty-five each, and this machine with Consul (``bench.crowd``).
"""

import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.contender import stamping_hooks, write_config
from bench.figures import Figure, median_and_p95
from bench.lab import Lab, Rig, wait_until
from bench.writes import CONFIG, at_rest
from tests.support.consul import Agent

WAITING = 200
WRITES_LIMIT = 8.0  # three necessary writes and five lost races, for a herd of any size
LATER_LIMIT_MS = 20.0  # than a lone contender
WARNINGS_LIMIT = WAITING + 1.0  # one for each contender, because none can see why the key is free
WARM_UP = 10  # hand-overs, because each halves the number of attempts
ROUNDS, ROUNDS_QUICK = 20, 5
ENDS, ENDS_QUICK = 3, 1
LOCK_DELAY_S = 5
TERMS = {"ttl": "30s", "lock_delay": f"{LOCK_DELAY_S}s", "node_checks": ["serfHealth"]}
A_PROCESS = 25
REST_S = 2.0  # of the former holder, so that its next session is none of the counted writes
NAME = "bench"
WARNING = "due to lock-delay"  # in Consul's log


@dataclass(eq=False)
class Side:
    """The contenders for one key, and the costs of their hand-overs."""

    key: str
    contenders: list[str]
    holder: str = ""
    times_ms: list[float] = field(default_factory=list)
    writes: list[float] = field(default_factory=list)


@dataclass(slots=True)
class End:
    """The effects of one destroyed session.

    warnings: the warnings of Consul.
    late_ms: the time from the end of the lock-delay to the next on_acquire.
    """

    warnings: int
    late_ms: float


def measure(lab: Lab) -> list[Figure]:
    """Measure a herd and a lone contender on one agent."""
    lab.say(f"herd: {WAITING} wait for one key")
    with lab.rig() as rig:
        agent = rig.agent(config=CONFIG)
        lone, herd = _side(rig, agent, "lone", 1), _side(rig, agent, "herd", WAITING)
        sides = [lone, herd]
        for _ in range(WARM_UP):
            _hand_over(rig, agent, herd, sides)
        first, herd.times_ms, herd.writes = herd.writes[0], [], []
        for turn in range(lab.samples(ROUNDS, ROUNDS_QUICK)):
            for side in sides if turn % 2 else reversed(sides):
                _hand_over(rig, agent, side, sides)
        ends = [_end(rig, agent, herd, sides) for _ in range(lab.samples(ENDS, ENDS_QUICK))]
    return _figures(lone, herd, first, ends)


def _side(rig: Rig, agent: Agent, name: str, waiting: int) -> Side:
    """Start a holder and ``waiting`` other contenders for one key."""
    side = Side(f"bench/{name}", [f"{name}-{number}" for number in range(1 + waiting)])
    for begin in range(0, len(side.contenders), A_PROCESS):
        who = side.contenders[begin : begin + A_PROCESS]
        _crowd(rig, agent, side.key, who)
        count = begin + len(who)
        wait_until(lambda count=count: _sessions(agent, side.key) == count, f"{count} sessions")  # type: ignore[misc]
    side.holder = rig.stamps.wait(0, lambda stamp: stamp.who in side.contenders).who
    return side


def _crowd(rig: Rig, agent: Agent, key: str, names: Sequence[str]) -> None:
    """Start one process of these contenders."""
    paths = []
    for who in names:
        election = {"key": key, "session": {**TERMS, "name": key}, "accept_overlap": True}
        control_socket = Path(rig.control_socket(who))
        control_socket.parent.mkdir()
        places = {"state_dir": str(control_socket.parent), "control_socket": str(control_socket)}
        items = {NAME: {**election, **stamping_hooks(rig, who)}}
        paths.append(str(write_config(rig, agent.url, who, items, places=places)))
    rig.contender(f"crowd-{names[0]}", [sys.executable, "-m", "bench.crowd", *paths]).start()


def _sessions(agent: Agent, key: str) -> int:
    return sum(session["Name"] == key for session in agent.sessions())


def _rest(agent: Agent, sides: list[Side]) -> int:
    """Wait until all contenders have sessions and the writes have ended. Return the writes so far."""
    for side in sides:
        count = len(side.contenders)
        wait_until(lambda: _sessions(agent, side.key) == count, f"{count} sessions for {side.key}")  # noqa: B023
    return at_rest(agent)


def _hand_over(rig: Rig, agent: Agent, side: Side, sides: list[Side]) -> None:
    """Let the holder step down, and count. It contends again after the counting."""
    before = _rest(agent, sides)
    name, mark = side.holder, rig.stamps.mark()
    rig.step_down(name, NAME, REST_S)
    end = rig.stamps.wait(mark, lambda stamp: stamp.who == name and stamp.edge == "end")
    begin = rig.stamps.wait(mark, lambda stamp: stamp.who != name and stamp.edge == "begin")
    side.times_ms.append((begin.at_ns - end.at_ns) / 1e6)
    side.writes.append(at_rest(agent) - before)
    side.holder = begin.who


def _end(rig: Rig, agent: Agent, side: Side, sides: list[Side]) -> End:
    """Destroy the holder's session. The next holder may be the same contender with a new session."""
    _rest(agent, sides)
    entry = agent.kv_get(side.key)
    assert entry is not None and entry["Session"]
    warned, mark = agent.log.count(WARNING), rig.stamps.mark()
    destroyed_ns = time.monotonic_ns()
    agent.session_destroy(entry["Session"])
    begin = rig.stamps.wait(mark, lambda stamp: stamp.what == "acquire")
    side.holder = begin.who
    _rest(agent, sides)
    late_ms = (begin.at_ns - destroyed_ns) / 1e6 - LOCK_DELAY_S * 1000
    return End(agent.log.count(WARNING) - warned, late_ms)


def _figures(lone: Side, herd: Side, first: float, ends: list[End]) -> list[Figure]:
    row = f"herd, {WAITING} waiting"
    later_ms = statistics.median(herd.times_ms) - statistics.median(lone.times_ms)
    warnings = statistics.median(end.warnings for end in ends)
    return [
        *median_and_p95(row, "writes for a hand-over", herd.writes, "", WRITES_LIMIT),
        Figure(row, "writes for the first hand-over", first, ""),
        *median_and_p95(row, "a lone contender: end of on_lose → on_acquire", lone.times_ms, "ms"),
        *median_and_p95(row, "end of on_lose → on_acquire", herd.times_ms, "ms"),
        Figure(row, "later than a lone contender, medians", later_ms, "ms", LATER_LIMIT_MS),
        Figure(
            row,
            f"session destroyed: warnings of Consul's, median of {len(ends)}",
            warnings,
            "",
            WARNINGS_LIMIT,
        ),
        Figure(row, "lock-delay over → on_acquire, worst", max(end.late_ms for end in ends), "ms"),
    ]
