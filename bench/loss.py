"""Row: the holder's machine is lost: how soon the next leader acts, and how long the old one acts on.

The machines are network namespaces of a [real cluster](../docs/lease.md): three Consul servers, and two
machines with a client agent each. One machine holds and the other waits. *Killed* means that all processes of
the machine are killed at one moment, *cut off* that the switch drops all packets from and to the machine. One
loss hits seven contenders at once:

- five elections of a supervisor: `defaults`; `defaults-serfhealth`, with `node_checks: [serfHealth]`;
  `quick`, with serfHealth and the default `ttl`; `quickest`, with `ttl: 3s`; and `fenced`, with serfHealth, a
  fence that takes 0.2 s and `after: 2s`. `quick` and `quickest` have `lock_delay: 7s`, `confirm_every: 1s`
  and a `stop_timeout: 500ms`, and count on `leader_change: 3s` and `WatchdogSec=4s`;
- `consul lock` with its defaults;
- keepalived with its defaults, on two nodes of equal priority with `nopreempt`.

Each contender has the same application, which writes the time every 50 ms: as `run`, as the child of
`consul lock`, and as the notify_master script of keepalived. A figure begins at the loss. It ends when the
next leader's application begins to act, or when the application on the lost machine stops. A cut lasts
60 s, so an application that acts until then never noticed the cut. The limit is the failover that `check`
prints, and half a second for the start of the application.

The row machine-loss-gossip has the quicker gossip of docs/safety.md and `after: 0s`, and kills only.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.figures import Figure
from bench.lab import ROOT, CannotMeasure, Lab
from bench.machines import (
    CONTENDERS,
    CUT_OFF,
    KEEPALIVED,
    KILLED,
    LEADER_CHANGE,
    MODULE,
    WATCH_S,
    Sample,
    elections,
)
from tests.system.cluster.election import COMMAND
from tests.system.cluster.network import PROGRAMS, CannotRun, require

SAMPLES, SAMPLES_QUICK = 5, 1  # of each way to lose a machine
GOSSIP = {"probe_interval": "200ms", "probe_timeout": "100ms", "suspicion_mult": 3}
STARTS_S = 0.5  # from holding until the application, which is a Python, acts
WATCHDOG = {"WATCHDOG_USEC": "4000000"}  # WatchdogSec=4s
START_S, LOSS_S = 300.0, WATCH_S + 300.0  # far more than it takes, on any machine
OWN_PROCESSES = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
"""Starts a process whose end, whatever its cause, is the end of all processes below it."""


def measure(lab: Lab) -> list[Figure]:
    """Lose machines, and compare the figures with those that `check` prints."""
    return _measure(lab, (KILLED, CUT_OFF))


def measure_gossip(lab: Lab) -> list[Figure]:
    """Kill machines of a cluster whose gossip is quicker than by default."""
    return _measure(lab, (KILLED,), json.dumps(GOSSIP))


def _measure(lab: Lab, hows: Sequence[str], *gossip: str) -> list[Figure]:
    try:
        require({**PROGRAMS, "keepalived": KEEPALIVED})
    except CannotRun as error:
        raise CannotMeasure(str(error)) from error
    with lab.rig() as rig:
        promised_s = promises(rig.folder)
        samples = _samples(rig.folder / "cluster", len(hows) * lab.samples(SAMPLES, SAMPLES_QUICK), *gossip)
    return [
        figure
        for how in hows
        for contender in CONTENDERS
        for figure in figures_of(
            [sample for sample in samples if (sample.how, sample.contender) == (how, contender)],
            promised_s.get(contender),
        )
    ]


def promises(folder: Path) -> dict[str, float]:
    """Return by election the failover that `check` prints, in seconds. RuntimeError: it prints a warning."""
    file = folder / "check.yaml"
    consul = {"leader_change": LEADER_CHANGE}
    file.write_text(json.dumps({"consul": consul, "elections": elections(lambda name: ["/bin/true"])}))
    argv = [COMMAND, "check", "--json", str(file)]
    said = subprocess.run(argv, capture_output=True, text=True, check=True, env={**os.environ, **WATCHDOG})
    checked = json.loads(said.stdout)
    if warnings := [each for each in checked["warnings"] if "session_ttl_min" not in each["message"]]:
        raise RuntimeError(f"`check` warns: {warnings}")
    return {item["name"]: item["lease"]["failover_s"] for item in checked["items"]}


def _samples(folder: Path, losses: int, *gossip: str) -> list[Sample]:
    argv = ["setpriv", "--pdeathsig", "KILL", *OWN_PROCESSES, sys.executable, "-m", MODULE]
    done = subprocess.run(
        [*argv, str(folder), str(losses), *gossip],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        start_new_session=True,
        timeout=START_S + losses * LOSS_S,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the machines ended with {done.returncode}")
    return [Sample(**sample) for sample in json.loads(done.stdout)]


def figures_of(samples: Sequence[Sample], promised_s: float | None) -> list[Figure]:
    """Return the figures of one contender and one way to lose. ``promised_s`` None: not one of ours."""
    row, contender = samples[0].how, samples[0].contender
    limit_s = None if promised_s is None else promised_s + STARTS_S
    next_s = [sample.next_s for sample in samples]
    what = f"{contender}, loss → next leader acts"
    figures = [
        Figure(row, f"{what}, median of {len(samples)}", statistics.median(next_s), "s", limit_s),
        Figure(row, f"{what}, worst", max(next_s), "s", limit_s),
    ]
    if row == CUT_OFF:
        old_s, both_s = max(each.old_s for each in samples), max(each.both_s for each in samples)
        figures += [
            Figure(row, f"{contender}, loss → old one stops, worst", old_s, "s"),
            Figure(row, f"{contender}, both act, worst", both_s, "s", None if promised_s is None else 0.0),
        ]
    return figures
