"""Row: after a loss, how long after the end of the lock-delay the next leader acts, beside `consul lock`.

Pairs of each kind share one agent, on equal terms (TTL 15 s, lock-delay 15 s). Each pair's holder
loses in one of two ways: an operator destroys its session, or it is killed and its session expires.
Consul guards the key from the moment when it ends the session: at the latest when it answers the
destroy; for an expiry, when its log has the line. A figure begins when the lock-delay after that moment
is over, and ends at the first instruction of the next on_acquire, or of the next child of `consul lock`.

After a destroy consul-supervisor contends again; `consul lock` ends.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.agent_log import LOGGED, expiries
from bench.contender import Contender, Maker, consul_lock, consul_supervisor
from bench.figures import Figure, median_and_p95
from bench.lab import Lab, Rig, wait_until
from tests.support.consul import Agent

LIMIT_MS = 10.0
LOCK_DELAY_S = 15.0
PAIRS, PAIRS_QUICK = 5, 2
ROUNDS_DESTROYED, ROUNDS_EXPIRED = 4, 2
SETTLE_S = 2.0  # after the last session exists
BREATH_S = 0.5  # between two losses, so that no take-over meets another
OURS, THEIRS = "consul-supervisor", "consul lock"
KINDS: tuple[tuple[str, str, Maker], ...] = (
    (OURS, "bench/ours", consul_supervisor),
    (THEIRS, "bench/theirs", consul_lock),
)
ACTS = ("acquire", "child")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two contenders for one key. ``session``: the session of the holder."""

    kind: str
    holder: Contender
    waiter: Contender
    session: str


Lose = Callable[[Agent, list[Pair]], dict[str, int]]
"""Ends the holders' sessions, and returns by session when Consul ended it, in ns of CLOCK_MONOTONIC."""


def measure(lab: Lab) -> Iterator[Figure]:
    """Measure both ways, each with an equal number of pairs of each kind at one time."""
    yield from _figures(lab, "session destroyed", _destroy, lab.samples(ROUNDS_DESTROYED, 1))
    yield from _figures(lab, "session expired", _let_expire, lab.samples(ROUNDS_EXPIRED, 1))


def _figures(lab: Lab, how: str, lose: Lose, rounds: int) -> list[Figure]:
    lab.say(f"take-over, {how}")
    late_ms: dict[str, list[float]] = {kind: [] for kind, _, _ in KINDS}
    for _ in range(rounds):
        for kind, late in _round(lab, lose):
            late_ms[kind].append(late)
    row, what = f"take-over, {how}", "lock-delay over → next leader"
    return [
        *median_and_p95(row, f"{what}, {OURS}", late_ms[OURS], "ms", LIMIT_MS),
        *median_and_p95(row, f"{what}, {THEIRS}", late_ms[THEIRS], "ms"),
    ]


def _round(lab: Lab, lose: Lose) -> list[tuple[str, float]]:
    """Return for each pair its kind, and by how many milliseconds its next leader was late."""
    with lab.rig() as rig:
        agent = rig.agent(config=LOGGED)
        count = lab.samples(PAIRS, PAIRS_QUICK)
        pairs = [_pair(rig, agent, kind, number) for number in range(count) for kind in KINDS]
        wait_until(lambda: len(agent.sessions()) == 2 * len(pairs), "a session for each contender")
        time.sleep(SETTLE_S)
        mark = rig.stamps.mark()
        ended_ns = lose(agent, pairs)
        time.sleep(LOCK_DELAY_S)
        return [(pair.kind, _late_ms(rig, mark, pair, ended_ns[pair.session])) for pair in pairs]


def _pair(rig: Rig, agent: Agent, side: tuple[str, str, Maker], number: int) -> Pair:
    kind, folder, maker = side
    folder = f"{folder}/{number}"
    name = folder.replace("/", "-")
    holder, waiter = (maker(rig, agent.url, folder, f"{name}-{which}") for which in ("holder", "waiter"))
    holder.start()
    rig.stamps.wait(0, lambda stamp: stamp.who == holder.name)
    waiter.start()
    entry = agent.kv_get(f"{folder}/.lock")
    assert entry is not None and entry["Session"]
    return Pair(kind, holder, waiter, entry["Session"])


def _destroy(agent: Agent, pairs: list[Pair]) -> dict[str, int]:
    ended_ns: dict[str, int] = {}
    for pair in pairs:
        agent.session_destroy(pair.session)
        ended_ns[pair.session] = time.monotonic_ns()
        time.sleep(BREATH_S)
    return ended_ns


def _let_expire(agent: Agent, pairs: list[Pair]) -> dict[str, int]:
    """Kill the holders, and wait until Consul has ended each session twice its TTL after its last renewal."""
    for pair in pairs:
        os.kill(pair.holder.pid, signal.SIGKILL)
        time.sleep(BREATH_S)
    wait_until(lambda: all(pair.session in expiries(agent.log) for pair in pairs), "all have expired")
    to_monotonic_ns = time.monotonic_ns() - time.time_ns()
    return {session: int(at * 1e9) + to_monotonic_ns for session, at in expiries(agent.log).items()}


def _late_ms(rig: Rig, mark: int, pair: Pair, ended_ns: int) -> float:
    names = (pair.holder.name, pair.waiter.name)
    begun = rig.stamps.wait(
        mark, lambda stamp: stamp.who in names and stamp.what in ACTS and stamp.edge == "begin"
    )
    return (begun.at_ns - ended_ns) / 1e6 - LOCK_DELAY_S * 1e3
