"""Row: from the start of a process to the first instruction of its on_acquire, the key being free."""

import time

from bench.contender import Maker, consul_lock, consul_supervisor
from bench.figures import Figure, median_and_p95
from bench.lab import Lab

ROUNDS, ROUNDS_QUICK = 10, 3
BREATH_S = 0.3  # for the one that left to be gone altogether
KINDS: tuple[tuple[str, Maker], ...] = (
    ("consul-supervisor", consul_supervisor),
    ("consul lock", consul_lock),
)


def measure(lab: Lab) -> list[Figure]:
    """Ours and `consul lock`, in turn, on one agent."""
    lab.say("start")
    samples: dict[str, list[float]] = {kind: [] for kind, _ in KINDS}
    with lab.scene() as scene:
        agent = scene.agent()
        contenders = [
            (kind, maker(scene, agent.url, f"bench/{kind[-4:]}", kind[-4:])) for kind, maker in KINDS
        ]
        for _ in range(lab.samples(ROUNDS, ROUNDS_QUICK)):
            for kind, contender in contenders:
                mark = scene.stamps.mark()
                began_ns = time.monotonic_ns()
                contender.start()
                begin = scene.stamps.wait(mark, lambda stamp: stamp.edge == "begin")
                samples[kind].append((begin.at_ns - began_ns) / 1e6)
                contender.terminate()
                contender.wait_gone()
                time.sleep(BREATH_S)
    return [
        figure
        for kind, series in samples.items()
        for figure in median_and_p95("start", f"process start → {_what(kind)}, {kind}", series, "ms")
    ]


def _what(kind: str) -> str:
    return "child" if kind == "consul lock" else "on_acquire"
