"""Row: hand-over, from the end of the old on_lose to the first instruction of the next on_acquire.

Four kinds of contender share one agent, two or five of each: consul-supervisor, the same with a fence,
`consul lock` (from its child's end to the next child's start) and the floor. In each round every kind hands
over once, in an order that changes from round to round. Then those that left are started again, and all rest.
consul-supervisor hands over after a SIGTERM to the holder, and its on_lose stamps its own end. A table of
segments then shows where the time goes, of traced supervisors and of the floor.
"""

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench import segments
from bench.contender import Contender
from bench.contenders import Maker, consul_lock, consul_supervisor, fenced_supervisor, floor
from bench.figures import Figure, median_and_p95, p95
from bench.lab import Lab, Rig, wait_until
from tests.support.consul import Agent

CANDIDATES = (2, 5)
LIMITS = {"-dev": 1.45, "data directory": 1.2}  # times `consul lock`, of the medians of one run
P95_LIMIT = 1.2
ROUNDS, ROUNDS_QUICK = 50, 6
SETTLE_S = 0.7  # after the last waiter's session exists, so that its watch runs and all else is done
BREATH_S = 0.15  # between two hand-overs of a round
OURS, FENCED, THEIRS, FLOOR = "consul-supervisor", "with a fence", "consul lock", "floor"
Kinds = tuple[tuple[str, str, Maker], ...]
"""The contenders of each kind: the kind, the folder of their key, and their maker."""
KINDS: Kinds = (
    (OURS, "bench/ours", consul_supervisor),
    (FENCED, "bench/fenced", fenced_supervisor),
    (THEIRS, "bench/theirs", consul_lock),
    (FLOOR, "bench/floor", floor),
)


@dataclass(eq=False)
class Side:
    """The contenders of one kind. ``folder`` contains their key, and is part of their sessions' names."""

    kind: str
    folder: str
    contenders: list[Contender]
    holder: Contender
    left: Contender | None = None
    samples_ms: list[float] = field(default_factory=list)


def measure(lab: Lab) -> Iterator[Figure]:
    """Measure on both kinds of agent, one after the other, with few candidates and with more."""
    for agent, persistent in (("-dev", False), ("data directory", True)):
        for candidates in CANDIDATES:
            row = f"hand-over, {agent}, {candidates} candidates"
            lab.say(row)
            samples = hand_overs(lab, persistent=persistent, candidates=candidates)
            yield from _figures(row, samples, LIMITS[agent])
    lab.say(segments.ROW)
    yield from segments.measure(lab)


def hand_overs(
    lab: Lab, *, persistent: bool, candidates: int, kinds: Kinds = KINDS
) -> dict[str, list[float]]:
    """Return the milliseconds of each hand-over, by kind."""
    rounds = lab.samples(ROUNDS, ROUNDS_QUICK)
    with lab.rig() as rig:
        agent = rig.agent(persistent=persistent)
        sides = [_side(rig, agent, *kind, candidates) for kind in kinds]
        for turn in range(rounds):
            _all_wait(agent, sides)
            time.sleep(SETTLE_S)
            for position in range(len(sides)):
                _hand_over(rig, sides[(turn + position) % len(sides)])
                time.sleep(BREATH_S)
            for side in sides:
                assert side.left is not None
                side.left.start()
        return {side.kind: side.samples_ms for side in sides}


def _side(rig: Rig, agent: Agent, kind: str, folder: str, maker: Maker, candidates: int) -> Side:
    short = folder.rpartition("/")[2]
    names = (f"{short}-{number}" for number in range(candidates))
    contenders = [maker(rig, agent.url, folder, name) for name in names]
    first = contenders[0]
    mark = rig.stamps.mark()
    first.start()
    rig.stamps.wait(mark, lambda stamp: stamp.who == first.name)
    for contender in contenders[1:]:
        contender.start()
    return Side(kind, folder, contenders, first)


def _all_wait(agent: Agent, sides: list[Side]) -> None:
    def all_have_sessions() -> bool:
        names = [session["Name"] for session in agent.sessions()]
        return all(sum(side.folder in name for name in names) == len(side.contenders) for side in sides)

    wait_until(all_have_sessions, "a session for each contender")


def _hand_over(rig: Rig, side: Side) -> None:
    old = side.holder
    mark = rig.stamps.mark()
    old.terminate()
    begin = rig.stamps.wait(mark, lambda stamp: stamp.who != old.name and stamp.edge == "begin")
    end = rig.stamps.wait(mark, lambda stamp: stamp.who == old.name and stamp.edge == "end")
    side.samples_ms.append((begin.at_ns - end.at_ns) / 1e6)
    old.wait_gone()
    side.left = old
    side.holder = next(contender for contender in side.contenders if contender.name == begin.who)


def _figures(row: str, samples: dict[str, list[float]], limit: float) -> list[Figure]:
    ours, theirs = samples[OURS], samples[THEIRS]
    figures: list[Figure] = []
    for kind, series in samples.items():
        figures += median_and_p95(row, kind, series, "ms")
    ratio = statistics.median(ours) / statistics.median(theirs)
    return [
        *figures,
        Figure(row, f"{OURS} / {THEIRS}, medians", ratio, "×", limit),
        Figure(row, f"{OURS} / {THEIRS}, p95", p95(ours) / p95(theirs), "×", P95_LIMIT),
    ]
