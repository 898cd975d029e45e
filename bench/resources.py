"""Row: memory, threads and idle CPU of one process with 1 and with 100 elections.

The kernel counts the threads, every few milliseconds from the start of the process. An executor's
threads would stay after their first use, so none can hide between two looks.
"""

import time
from pathlib import Path

from bench.contender import Contender
from bench.contenders import stamping_hooks, supervisor_of
from bench.figures import Figure
from bench.lab import Lab
from bench.stamps import PATIENCE_S

MANY = 100
MEMORY_LIMIT_MB = 50.0
THREADS_LIMIT = 1
CPU_LIMIT_PERCENT = 1.5  # of one core, with MANY elections
IDLE_S, IDLE_QUICK_S = 60.0, 15.0
SETTLE_S, SETTLE_QUICK_S = 65.0, 3.0  # at a first start, each key is read alone for a minute
LOOK_EVERY_S = 0.005
TTL = "10s"


def measure(lab: Lab) -> list[Figure]:
    """Measure one election, then many."""
    return [*_process(lab, 1), *_process(lab, MANY)]


def _process(lab: Lab, count: int) -> list[Figure]:
    lab.say(f"resources, elections: {count}")
    row = f"resources, {count} {'election' if count == 1 else 'elections'}"
    with lab.rig() as rig:
        agent = rig.agent()
        elections = {
            f"e{number}": {
                "key": f"bench/resources/{number}",
                "session": {"ttl": TTL},
                **stamping_hooks(rig, "many"),
            }
            for number in range(count)
        }
        supervisor = supervisor_of(rig, agent.url, "many", elections)
        began_ns = time.monotonic_ns()
        supervisor.start()
        threads = 0
        while (won := rig.stamps.since(0)) == [] or sum(s.edge == "begin" for s in won) < count:
            threads = max(threads, _threads(supervisor))
            if time.monotonic_ns() - began_ns > PATIENCE_S * 1e9:
                raise TimeoutError(f"not won within {PATIENCE_S:g} s: {count} elections")
            time.sleep(LOOK_EVERY_S)
        all_won_s = (max(stamp.at_ns for stamp in won) - began_ns) / 1e9
        time.sleep(SETTLE_QUICK_S if lab.quick else SETTLE_S)
        cpu_percent, idle_threads = _idle(supervisor, IDLE_QUICK_S if lab.quick else IDLE_S)
        memory = _status(supervisor)
    return [
        Figure(row, "VmRSS", _mb(memory["VmRSS"]), "MB", MEMORY_LIMIT_MB),
        Figure(row, "RssAnon", _mb(memory["RssAnon"]), "MB"),
        Figure(row, "threads, most ever", max(threads, idle_threads), "", THREADS_LIMIT),
        Figure(row, "idle CPU", cpu_percent, "% of a core", CPU_LIMIT_PERCENT if count == MANY else None),
        Figure(row, "process start to all won", all_won_s, "s"),
    ]


def _idle(process: Contender, seconds: float) -> tuple[float, int]:
    """Return the CPU in percent of a core, and the largest number of threads."""
    threads = 0
    began, cpu_began_s = time.monotonic(), process.cpu_s
    while time.monotonic() - began < seconds:
        threads = max(threads, _threads(process))
        time.sleep(0.1)
    return 100 * (process.cpu_s - cpu_began_s) / (time.monotonic() - began), threads


def _status(process: Contender) -> dict[str, str]:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _threads(process: Contender) -> int:
    return int(_status(process)["Threads"])


def _mb(kilobytes: str) -> float:
    return int(kilobytes.removesuffix(" kB")) * 1024 / 1e6
