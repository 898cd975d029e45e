"""Row: how much is done for each thing that happens, counted and not timed, so that no machine disturbs it.

The counts have no limits, but show what grows. A limit has the own CPU time of one hand-over, of both nodes.
Two supervisors contend for one key. They run with a profile hook that counts every call of a function,
Python's and C's, and once more with a C library beneath them that counts every allocation. Each hand-over
has three stretches that somebody waits for: from the end of on_lose to the release on the socket, from the
wake of the next holder's watch to the acquire on the socket, and from the answer to the acquire to the start
of on_acquire. At rest there are three exchanges: a renewal, a read of the holder, and a watch that wakes
without a change. All that follows from an exchange counts, until the loop waits again.
"""

import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.contender import EQUAL_TERMS, stamping_hooks, write_config
from bench.figures import Figure
from bench.lab import Lab, Rig, shared_library, wait_until
from tests.support.consul import Agent

KEY = "bench/calls/leader"
NAME = "bench"
NODES = ("one", "other")
HAND_OVERS, HAND_OVERS_QUICK = 6, 3  # the first of them warms both up
AT_REST_S, AT_REST_QUICK_S = 70.0, 40.0  # two watches come to their end, or one
SETTLE_S = 1.5
STEP_DOWN_S = 0.5
RELEASED = "on_lose ends → release written"
ACQUIRED = "watch wakes → acquire written"
SPAWNED = "acquire answered → hook spawned"
STRETCHES = (RELEASED, ACQUIRED, SPAWNED)
OWN_CPU_LIMIT_US = 2500.0  # of the three stretches together
RENEWAL, READ, WATCH = "one renewal at rest", "one read of a holder at rest", "one watch without news"
ANSWERS = {RENEWAL: "/v1/session/renew/", READ: f"/v1/kv/{KEY}?consistent", WATCH: f"/v1/kv/{KEY}?index="}


@dataclass(frozen=True, slots=True)
class Marker:
    """One line of a trace: see ``bench.counted``."""

    kind: str
    detail: str
    count: int


def measure(lab: Lab) -> Iterator[Figure]:
    """Measure calls, allocations and own CPU time."""
    for what in ("calls", "allocations"):
        lab.say(f"calls: {what}")
        for stretch, counts in _counted(lab, what).items():
            if not counts:
                raise RuntimeError(f"nothing was counted for “{stretch}”")
            row, median = "calls" if what == "calls" else "calls, allocations", statistics.median(counts)
            yield Figure(row, f"{stretch}, median of {len(counts)}", median, what)
    yield from _own_cpu(lab)


def _own_cpu(lab: Lab) -> list[Figure]:
    lab.say("calls: cpu")
    row, counted = "calls, own CPU", _counted(lab, "cpu")
    medians = {stretch: statistics.median(counts) / 1000 for stretch, counts in counted.items() if counts}
    total = sum(medians[stretch] for stretch in STRETCHES)
    return [
        *(Figure(row, f"{stretch}, median", median, "µs") for stretch, median in medians.items()),
        Figure(row, "one hand-over, both nodes", total, "µs", OWN_CPU_LIMIT_US),
    ]


def _counted(lab: Lab, what: str) -> dict[str, list[int]]:
    environ = {}
    if what == "allocations":
        environ = {"LD_PRELOAD": str(shared_library(lab.folder, "allocations")), "PYTHONMALLOC": "malloc"}
    with lab.rig() as rig:
        agent = rig.agent()
        for node in NODES:
            _start(rig, agent, node, what, environ)
        for turn in range(lab.samples(HAND_OVERS, HAND_OVERS_QUICK)):
            time.sleep(SETTLE_S)
            _hand_over(rig, agent, NODES[turn % 2])
        time.sleep(AT_REST_QUICK_S if lab.quick else AT_REST_S)
        traces = [_trace(rig, node) for node in NODES]
    found: dict[str, list[int]] = {}
    for stretch in STRETCHES:
        found[stretch] = [count for trace in traces for count in _stretches(trace, stretch)[1:]]
    for exchange, target in ANSWERS.items():
        found[exchange] = [count for trace in traces for count in _exchanges(trace, target)]
    return found


def _start(rig: Rig, agent: Agent, node: str, what: str, environ: Mapping[str, str]) -> None:
    """Start a supervisor that counts, and wait for its session."""
    session = {**EQUAL_TERMS, "name": KEY}
    item = {"key": KEY, "session": session, **stamping_hooks(rig, node)}
    path = write_config(rig, agent.url, node, {NAME: item})
    argv = [
        sys.executable,
        "-m",
        "bench.counted",
        str(rig.folder / f"{node}.trace"),
        what,
        "run",
        str(path),
    ]
    before = len(agent.sessions())
    rig.contender(node, argv, environ).start()
    wait_until(lambda: len(agent.sessions()) == before + 1, f"a session of {node}")
    if not before:
        rig.stamps.wait(0, lambda stamp: stamp.who == node)


def _hand_over(rig: Rig, agent: Agent, node: str) -> None:
    """Let this node, which holds, step down, and wait until both take part again."""
    mark = rig.stamps.mark()
    rig.step_down(node, NAME, STEP_DOWN_S)
    rig.stamps.wait(mark, lambda stamp: stamp.who != node and stamp.what == "acquire")
    wait_until(lambda: len(agent.sessions()) == len(NODES), "both sessions")


def _trace(rig: Rig, node: str) -> list[Marker]:
    lines = (rig.folder / f"{node}.trace").read_text().splitlines()
    return [Marker(*json.loads(line)) for line in lines]


# --- what a trace shows ---------------------------------------------------------------------------


def _stretches(trace: Sequence[Marker], stretch: str) -> list[int]:
    """Return the count of each such stretch of a hand-over in the trace."""
    counts = []
    for place, marker in enumerate(trace):
        begin = _begin_of(trace[:place], marker, stretch)
        if begin is not None:
            counts.append(marker.count - begin.count)
    return counts


def _begin_of(before: Sequence[Marker], end: Marker, stretch: str) -> Marker | None:
    """Return the marker at which the stretch that this marker ends began; None: it ends none."""
    if not before:
        return None
    begin = before[-1]  # nothing else happens in between, because one event leads to the other in one step
    ends = f"{begin.kind} → {end.kind}"
    if stretch == RELEASED and ends == "reaped → send" and "?release=" in end.detail:
        return begin
    if stretch == ACQUIRED and ends == "answer → send" and "?index=" in begin.detail and "/txn" in end.detail:
        return begin
    if stretch == SPAWNED and ends == "answer → spawn" and "/v1/txn" in begin.detail:
        return begin
    return None


def _exchanges(trace: Sequence[Marker], target: str) -> list[int]:
    """Return the count of each exchange at rest: of the wake that sent it and of the one that answered it."""
    sent: dict[str, int] = {}
    counts = []
    for window in _windows(trace):
        kinds = [marker.kind for marker in window[1:-1]]
        count = window[-1].count - window[0].count
        details = " ".join(marker.detail for marker in window)
        if kinds == ["send"] and target in details:
            sent[target] = count
        elif kinds == ["answer"] and target in details and target in sent:
            counts.append(sent.pop(target) + count)
        elif kinds in (["answer", "send"], ["send", "answer"]) and details.count(target) == 2:
            counts.append(count)  # a watch that is followed by the next one, or a quick answer
    return counts


def _windows(trace: Sequence[Marker]) -> list[Sequence[Marker]]:
    """Return the parts of the trace from a wake to the next rest."""
    windows, begin = [], 0
    for place, marker in enumerate(trace):
        if marker.kind == "wake":
            begin = place
        elif marker.kind == "rest" and trace[begin].kind == "wake":
            windows.append(trace[begin : place + 1])
    return windows
