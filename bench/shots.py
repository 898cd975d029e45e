"""Row: a machine that led forty elections is lost: how often three survivors shoot it, how soon all act.

The machines are network namespaces of a [real cluster](../docs/lease.md): three Consul servers, and four
machines with a client agent each. One leads forty elections with a fence, and holds two slots. All its
processes are killed at one moment. The device takes 0.5 s and four sessions at a time; it refuses a fifth. A
figure begins at the loss, and ends when the application of the first or of the last election acts elsewhere.
With `fleet` the survivors note their shots in Consul, and without it each one shoots for itself. *Quick* has
the quicker gossip of docs/safety.md.
"""

import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.figures import Figure
from bench.lab import CannotMeasure, Lab
from bench.loss import GOSSIP
from supervisor.adapters.runtime.clock import boottime
from tests.support.supervisor import until
from tests.system.cluster import election
from tests.system.cluster.cluster import Cluster
from tests.system.cluster.network import PROGRAMS, CannotRun, require
from tests.system.cluster.supervised import Supervised

SAMPLES, SAMPLES_QUICK = 3, 1
MANY, LOST, SURVIVORS = 40, "d", ("a", "b", "c")
SLOTS = ("slots", "further-slots")
SESSIONS_MAX = 4
# Takes one of the device's sessions, and fails where there is none.
DEVICE = f"""
exec 9>>device; flock 9; echo begin >&9
[ $(($(grep -c begin device) - $(grep -c end device))) -le {SESSIONS_MAX} ] || {{ echo refused >&9; exit 1; }}
flock -u 9; sleep 0.5; flock 9; echo end >&9
"""
ACTS = 'read -r at _ </proc/uptime; echo "$at $CONSUL_SUPERVISOR_NAME $NODE" >>acts'
WITHIN_S = 120.0


def measure(lab: Lab) -> list[Figure]:
    """Lose the machine a few times, with and without a fleet and with each gossip."""
    try:
        require(PROGRAMS)
    except CannotRun as error:
        raise CannotMeasure(str(error)) from error
    ways = (
        (name, gossip, fleet) for name, gossip in (("", None), (", quick", GOSSIP)) for fleet in (True, False)
    )
    found = []
    for name, gossip, fleet in ways:
        samples = []
        for number in range(lab.samples(SAMPLES, SAMPLES_QUICK)):
            with lab.rig() as rig:
                samples.append(_sample(rig.folder / f"{number}", gossip, fleet))
        row = f"{'fleet' if fleet else 'no fleet'}{name}"
        first, spread, runs, refused = (list(column) for column in zip(*samples, strict=True))
        found += [
            Figure(row, f"loss → first acts, median of {len(samples)}", statistics.median(first), "s"),
            Figure(row, "first → last of forty acts, worst", max(spread), "s", 1.0),
            Figure(row, "runs of the fence, most", max(runs), "", 1.0 if fleet else float(len(SURVIVORS))),
            Figure(row, "sessions that the device refused, most", max(refused), "", 0.0),
        ]
    return found


def _sample(folder: Path, gossip: Mapping[str, object] | None, fleet: bool) -> tuple[float, float, int, int]:
    """Return when the first election acted elsewhere, and how much later the last; runs, and refused ones."""
    folder.mkdir(parents=True)
    with Cluster(folder, gossip, (*SURVIVORS, LOST)) as cluster:
        for node in (LOST, *SURVIVORS):
            cluster.supervise(_supervisor(cluster, node, fleet))
            if node == LOST:
                until(
                    lambda: len(_lines(folder, "acts")) == MANY + len(SLOTS), "one node leads all", WITHIN_S
                )
        until(lambda: len(cluster.server.session_names()) >= 4 * MANY, "all contend", WITHIN_S)
        time.sleep(3.0)
        lost_at = boottime()
        cluster.network.machines[LOST].power_off()
        until(lambda: len(_acting(folder)) == MANY, "all act elsewhere", WITHIN_S)
        times = sorted(_acting(folder).values())
        device = _lines(folder, "device")
        return times[0] - lost_at, times[-1] - times[0], device.count("begin"), device.count("refused")


def _has_acts(folder: Path) -> bool:
    return len(_lines(folder, "acts")) == MANY + len(SLOTS)


def _lines(folder: Path, name: str) -> list[str]:
    file = folder / name
    return file.read_text().splitlines() if file.exists() else []


def _acting(folder: Path) -> dict[str, float]:
    """Return when each election has acted elsewhere first."""
    lines = [line.split() for line in _lines(folder, "acts")]
    return {name: float(at) for at, name, node in reversed(lines) if node != LOST and name not in SLOTS}


def _supervisor(cluster: Cluster, node: str, fleet: bool) -> Supervised:
    hook: dict[str, Any] = {"cwd": str(cluster.folder), "env": {"NODE": node}}
    fence = {**hook, "shell": DEVICE, "timeout": "10s", "target": node, "after": "1s", "exclusive": True}
    session = {"node_checks": ["serfHealth"]}
    acts = {"session": session, "on_acquire": [{**hook, "shell": ACTS}]}
    elections = {f"e{number:02}": {**acts, "fence": fence} for number in range(MANY)}
    more: dict[str, Any] = {"semaphores": {name: {"limit": 2, **acts} for name in SLOTS}}
    more |= {"fleet": {}} if fleet else {}
    return election.supervisor(cluster, node, elections, cluster.folder, more)
