"""The segments of a hand-over: where its time goes, in supervisors and in the floor, by markers and stamps.

Two traced supervisors, two programs of the floor and two `consul lock` hand over in turn. Of `consul lock`
only the whole can be seen from outside. A trace adds some 0.3 ms to a hand-over. With BENCH_BEFORE=FOLDER,
two supervisors of that checkout take their turn as well, so that one run shows a change.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Iterable

from bench.contender import Contender
from bench.contenders import EQUAL_TERMS, consul_lock, floor, stamping_hooks, write_config
from bench.figures import Figure
from bench.lab import ROOT, Lab, Rig

ROW = "hand-over, segments"
ROUNDS, ROUNDS_QUICK = 30, 4
SETTLE_S = 1.2  # until the one that is started again waits, and all else is done
OURS, BEFORE, FLOOR, THEIRS = "consul-supervisor", "before", "floor", "consul lock"
Marks = list[tuple[str, str, int]]
"""Kind, detail and time of each marker of one contender."""


def measure(lab: Lab) -> list[Figure]:
    """Return the median of each segment, in microseconds."""
    found: dict[tuple[str, str], list[float]] = {}
    with lab.rig() as rig:
        url = rig.agent().url
        sides: dict[str, list[Contender]] = {
            OURS: [_traced(rig, url, f"ours-{number}") for number in range(2)],
            **_before(rig, url),
            FLOOR: [floor(rig, url, "bench/floor", f"floor-{number}") for number in range(2)],
            THEIRS: [consul_lock(rig, url, "bench/theirs", f"theirs-{number}") for number in range(2)],
        }
        for old, new in sides.values():
            mark = rig.stamps.mark()
            old.start()
            rig.stamps.wait(mark, lambda stamp, name=old.name: stamp.who == name)  # type: ignore[misc]
            new.start()
        for _ in range(lab.samples(ROUNDS, ROUNDS_QUICK)):
            time.sleep(SETTLE_S)
            for kind, pair in sides.items():
                for what, took_us in _hand_over(rig, kind, *pair):
                    found.setdefault((kind, what), []).append(took_us)
                pair.reverse()
                pair[1].start()
    return [
        Figure(ROW, f"{kind}: {what}, median of {len(samples)}", statistics.median(samples), "µs")
        for kind in sides
        for what, _, _ in _SPANS[kind]
        if (samples := found.get((kind, what)))
    ]


def _before(rig: Rig, url: str) -> dict[str, list[Contender]]:
    """Return two supervisors of the checkout that BENCH_BEFORE names, if it names one."""
    checkout = os.environ.get("BENCH_BEFORE")
    if checkout is None:
        return {}
    return {BEFORE: [_traced(rig, url, f"before-{number}", "before", checkout) for number in range(2)]}


def _traced(rig: Rig, url: str, name: str, side: str = "ours", checkout: str = str(ROOT)) -> Contender:
    session = {**EQUAL_TERMS, "name": f"bench/{side}"}
    item = {"key": f"bench/{side}/.lock", "session": session, **stamping_hooks(rig, name)}
    path = write_config(rig, url, name, {"bench": item})
    trace = str(rig.folder / f"{name}.trace")
    argv = [sys.executable, "-P", str(ROOT / "bench" / "timed.py"), trace, "run", str(path)]
    return rig.contender(name, argv, {"PYTHONPATH": checkout})


def _hand_over(rig: Rig, kind: str, old: Contender, new: Contender) -> Iterable[tuple[str, float]]:
    """Let the holder hand over, and return the segments that can be seen."""
    mark = rig.stamps.mark()
    old.terminate()
    begin_ns = rig.stamps.wait(mark, lambda stamp: stamp.who == new.name and stamp.edge == "begin").at_ns
    end_ns = rig.stamps.wait(mark, lambda stamp: stamp.who == old.name and stamp.edge == "end").at_ns
    old.wait_gone()
    time.sleep(SETTLE_S)  # both have written what they noted
    marks = [[each for each in _marks(rig, one.name) if end_ns <= each[2] <= begin_ns] for one in (old, new)]
    times = {"end": end_ns, "begin": begin_ns, **_times(*marks)}
    return [
        (what, (times[to] - times[of]) / 1000) for what, of, to in _SPANS[kind] if of in times and to in times
    ]


_SPANS = {
    OURS: (
        ("on_lose ends → end noticed", "end", "reaped"),
        ("end noticed → release written", "reaped", "release"),
        ("release written → watch wakes", "release", "woken"),
        ("watch wakes → acquire written", "woken", "acquire"),
        ("acquire written → answer", "acquire", "won"),
        ("answer → hook spawned", "won", "spawn"),
        ("hook spawned → it begins", "spawn", "begin"),
        ("the whole", "end", "begin"),
    ),
    FLOOR: (
        ("on_lose ends → end noticed", "end", "reaped"),
        ("end noticed → watch wakes", "reaped", "woken"),
        ("watch wakes → answer", "woken", "won"),
        ("answer → hook begins", "won", "begin"),
        ("the whole", "end", "begin"),
    ),
    THEIRS: (("the whole", "end", "begin"),),
}
_SPANS[BEFORE] = _SPANS[OURS]
"""The segments in their order. The floor sees less of itself, so some of its segments span two of ours."""


def _times(old: Marks, new: Marks) -> dict[str, int]:
    """Return the time of each end of a segment, by its name, from the markers within one hand-over."""
    wanted = {
        "reaped": (old, "reaped", ""),
        "release": (old, "send", "?release="),
        "woken": (new, "answer", "?index="),
        "acquire": (new, "send", "/txn"),
        "won": (new, "answer", "/txn"),
        "spawn": (new, "spawn", ""),
    }
    found = {}
    for name, (marks, kind, detail) in wanted.items():
        for marker, said, at_ns in marks:
            if (marker == kind and detail in said) or marker == name:
                found[name] = at_ns
                break
    return found


def _marks(rig: Rig, name: str) -> Marks:
    """Return the markers of a supervisor from its trace, those of the floor from its output."""
    trace, log = rig.folder / f"{name}.trace", rig.folder / f"{name}.log"
    if trace.exists():
        return [(kind, detail, at_ns) for kind, detail, at_ns in map(json.loads, trace.open())]
    words = [line.split() for line in log.read_text().splitlines()]
    return [(line[0], "", int(line[1])) for line in words if len(line) == 2 and line[1].isdigit()]
