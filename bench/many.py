"""Row: a thousand elections in one process, on an agent with its default limits.

The figures: how long until all are won, the resources that the process then takes, how late renewals
are because of the other elections, and how long one election of the thousand takes to go to a second
process that waits for all of them. Beside it stand the resources of `consul lock`, which needs one
process for each lock: a few are measured, and a thousand are calculated from them.
"""

import subprocess
import time
from pathlib import Path
from typing import Any

from bench.agent_log import LOGGED, late_ms, renewals
from bench.contender import Contender
from bench.contenders import COMMAND, EQUAL_TERMS, consul_lock, stamping_hooks, supervisor_of
from bench.figures import Figure, median_and_p95
from bench.lab import ROOT, Lab, Rig, wait_until
from supervisor.core.jitter import TICK_S
from tests.support.consul import Agent

ELECTIONS = 1000
PROCESSES, PROCESSES_QUICK = 50, 10  # of `consul lock`
HANDED_OVER, HANDED_OVER_QUICK = 20, 6
TERMS = {"ttl": "60s", "lock_delay": "60s", "node_checks": ["serfHealth"]}
IDLE_S, IDLE_QUICK_S = 60.0, 20.0
SETTLE_S = 10.0
BREATH_S = 0.5
WON_LIMIT_S = 15.0
MEMORY_LIMIT_MB = 80.0
CPU_LIMIT_PERCENT = 6.0  # of one core
HAND_OVER_LIMIT_MS = 25.0
STOPPED_LIMIT_S = 15.0
LATE_LIMIT_MS = 100.0  # of 60 s of TTL and 20 s between renewals
ROW = f"{ELECTIONS} elections in one process"
FOLDER = "bench/many/"


def measure(lab: Lab) -> list[Figure]:
    """Measure consul-supervisor, then `consul lock`."""
    return [*_ours(lab), *_theirs(lab)]


def _ours(lab: Lab) -> list[Figure]:
    lab.say(ROW)
    with lab.rig() as rig:
        agent = rig.agent(config={**LOGGED, "addresses": {"http": "127.0.0.1 ::1"}})
        holder = supervisor_of(rig, agent.url, "holder", _elections(rig, "holder"))
        began_ns = time.monotonic_ns()
        holder.start()
        wait_until(lambda: _begun(rig) == ELECTIONS, f"{ELECTIONS} elections won")
        won_s = (max(stamp.at_ns for stamp in rig.stamps.since(0)) - began_ns) / 1e9
        time.sleep(SETTLE_S)
        idle_percent, (began_at, _) = _idle(holder, lab)
        memory_mb = _memory_mb(holder)
        connections = _connections(holder)
        sessions = {entry["Session"] for entry in agent.kv_list(FOLDER)}
        # Another address, as on another machine, because Consul limits the connections of each address.
        other = f"http://[::1]:{agent.port}"
        waiter = supervisor_of(rig, other, "waiter", _elections(rig, "waiter"))
        waiter.start()
        wait_until(lambda: len(agent.sessions()) == 2 * ELECTIONS, "both take part in all")
        time.sleep(SETTLE_S)
        waits_percent, (_, ended_at) = _idle(waiter, lab)
        late = late_ms(renewals(agent.log, sessions), [(began_at, ended_at)], tick_s=TICK_S)
        taken = [_handed_over(rig, number) for number in range(lab.samples(HANDED_OVER, HANDED_OVER_QUICK))]
        stopping_at = time.monotonic()
        holder.terminate()
        holder.wait_gone()
        stopped_s = time.monotonic() - stopping_at
    return [
        Figure(ROW, "process start to all won", won_s, "s", WON_LIMIT_S),
        Figure(ROW, "VmRSS", memory_mb, "MB", MEMORY_LIMIT_MB),
        Figure(ROW, "idle CPU, holder of all", idle_percent, "% of a core", CPU_LIMIT_PERCENT),
        Figure(ROW, "idle CPU, waiter for all", waits_percent, "% of a core", CPU_LIMIT_PERCENT),
        Figure(ROW, "connections to Consul", connections, ""),
        *median_and_p95(ROW, "renewal late by", late, "ms"),
        Figure(ROW, "renewal late by, worst", max(late), "ms", LATE_LIMIT_MS),
        *median_and_p95(ROW, "hand-over of one", taken, "ms", HAND_OVER_LIMIT_MS),
        Figure(ROW, "SIGTERM to the end, a second process takes all", stopped_s, "s", STOPPED_LIMIT_S),
    ]


def _elections(rig: Rig, who: str) -> dict[str, Any]:
    """Return the elections, with the default keys in a folder of their own."""
    return {
        f"app-{number:04}": {
            "key": f"{FOLDER}app-{number:04}/leader",
            "session": TERMS,
            **stamping_hooks(rig, f"{who}-{number:04}"),
        }
        for number in range(ELECTIONS)
    }


def _begun(rig: Rig) -> int:
    return sum(stamp.edge == "begin" for stamp in rig.stamps.since(0))


def _idle(process: Contender, lab: Lab) -> tuple[float, tuple[float, float]]:
    """Return the CPU in percent of a core, and the begin and end of its measurement."""
    began_at, cpu_began_s = time.time(), process.cpu_s
    time.sleep(IDLE_QUICK_S if lab.quick else IDLE_S)
    ended_at = time.time()
    return 100 * (process.cpu_s - cpu_began_s) / (ended_at - began_at), (began_at, ended_at)


def _handed_over(rig: Rig, number: int) -> float:
    """Hand one election over. Return the milliseconds from the end of on_lose to the next on_acquire."""
    mark = rig.stamps.mark()
    argv = [*COMMAND, "step-down", f"app-{number:04}", "--socket", rig.control_socket("holder")]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"step-down ended with {done.returncode}: {done.stderr}")
    begin = rig.stamps.wait(mark, lambda stamp: stamp.who == f"waiter-{number:04}")
    end = rig.stamps.wait(mark, lambda stamp: stamp.who == f"holder-{number:04}" and stamp.edge == "end")
    time.sleep(BREATH_S)
    return (begin.at_ns - end.at_ns) / 1e6


def _theirs(lab: Lab) -> list[Figure]:
    count = lab.samples(PROCESSES, PROCESSES_QUICK)
    row = f"{ELECTIONS} `consul lock` processes, reckoned from {count}"
    lab.say(row)
    with lab.rig() as rig:
        agent: Agent = rig.agent(config={"limits": {"http_max_conns_per_client": 2000}})
        began_ns = time.monotonic_ns()
        holders = [
            consul_lock(rig, agent.url, f"{FOLDER}{number}", f"lock-{number}") for number in range(count)
        ]
        for holder in holders:
            holder.start()
        wait_until(lambda: _begun(rig) == count, f"{count} locks taken")
        won_s = (max(stamp.at_ns for stamp in rig.stamps.since(0)) - began_ns) / 1e9
        time.sleep(SETTLE_S)
        began, cpu_began_s = time.monotonic(), sum(holder.cpu_s for holder in holders)
        time.sleep(IDLE_QUICK_S if lab.quick else IDLE_S)
        cpu_s = sum(holder.cpu_s for holder in holders) - cpu_began_s
        idle_percent = 100 * cpu_s / (time.monotonic() - began)
        memory_mb = sum(map(_private_mb, holders))
    times = ELECTIONS / count
    ttl = EQUAL_TERMS["ttl"]
    return [
        Figure(row, "process start to all taken", won_s * times, "s"),
        Figure(row, "memory of their own (Pss)", memory_mb * times, "MB"),
        Figure(row, f"idle CPU, with their TTL of {ttl}", idle_percent * times, "% of a core"),
    ]


def _memory_mb(process: Contender) -> float:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(_mb(line) for line in lines if line.startswith("VmRSS:"))


def _private_mb(process: Contender) -> float:
    """Return the memory of a process, with a proportional share of memory that several processes use."""
    lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    return next(_mb(line) for line in lines if line.startswith("Pss:"))


def _mb(line: str) -> float:
    return int(line.split()[1]) * 1024 / 1e6


def _connections(process: Contender) -> int:
    """Return the number of established TCP connections of a process."""
    folder = Path(f"/proc/{process.pid}/fd")
    sockets = {link.readlink().name for link in folder.iterdir()}
    table = Path(f"/proc/{process.pid}/net/tcp").read_text().splitlines()[1:]
    return sum(f"socket:[{line.split()[9]}]" in sockets for line in table if line.split()[3] == "01")
