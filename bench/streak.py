"""Row: five hundred hand-overs in a row between two supervisors, and whether one of them stalls.

One supervisor steps down and the other takes over. As soon as the first contends again, the other
steps down. A figure begins at the end of the old on_lose and ends at the first instruction of the next
on_acquire. A race that is lost once in a hundred times, or a connection that is missing at that moment,
shows in the worst figure and in no median.
"""

import time

from bench.contender import consul_supervisor
from bench.figures import Figure, median_and_p95
from bench.lab import Lab, Rig, wait_until

HAND_OVERS, HAND_OVERS_QUICK = 500, 20
STALLED_MS = 50.0  # a second attempt of any kind takes 500 ms or more
REST_S = 0.1  # of the former holder, which then contends again
SETTLE_S = 0.5  # so that the former holder has destroyed its session and waits with a new one
ITEM = "bench"  # the name of the election in consul_supervisor


def measure(lab: Lab) -> list[Figure]:
    """Measure on an agent in memory, because its speed makes it likelier that a waiter is not ready yet."""
    count = lab.samples(HAND_OVERS, HAND_OVERS_QUICK)
    row = f"{count} hand-overs in a row"
    lab.say(row)
    with lab.rig() as rig:
        agent = rig.agent()
        names = ("one", "two")
        for name in names:
            consul_supervisor(rig, agent.url, "bench/streak", name).start()
            wait_until(lambda: any(stamp.edge == "begin" for stamp in rig.stamps.since(0)), "a holder")
        taken_ms: list[float] = []
        for number in range(count):
            time.sleep(SETTLE_S)
            wait_until(lambda: len(agent.sessions()) == len(names), "both contend")
            taken_ms.append(_handed_over(rig, names[number % 2], names[(number + 1) % 2]))
    return [
        *median_and_p95(row, "end of on_lose → on_acquire", taken_ms, "ms"),
        Figure(row, "end of on_lose → on_acquire, worst", max(taken_ms), "ms", STALLED_MS),
    ]


def _handed_over(rig: Rig, old: str, new: str) -> float:
    mark = rig.stamps.mark()
    rig.step_down(old, ITEM, REST_S)
    begin = rig.stamps.wait(mark, lambda stamp: stamp.who == new and stamp.edge == "begin")
    end = rig.stamps.wait(mark, lambda stamp: stamp.who == old and stamp.edge == "end")
    return (begin.at_ns - end.at_ns) / 1e6
