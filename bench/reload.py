"""Row: a reload of the file, with one of a hundred elections changed.

The first figure is what an operator waits for: from the start of `consul-supervisor reload` to its end.
A child reads the file, and the loop does nothing else while it takes over the settings. So two other
figures show how long a client waits that sends two hundred requests a second, and, from Consul's log,
how late the renewals are, of which some thirty a second are due. All elections must keep their sessions and
locks, without an on_lose.
"""

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.agent_log import LOGGED, Window, late_ms, renewals
from bench.contender import COMMAND, stamping_hooks, supervisor_of, write_config
from bench.figures import Figure, median_and_p95
from bench.lab import ROOT, Lab, Rig, wait_until
from tests.support.consul import Agent, free_ports

ELECTIONS = 100
LIMIT_MS = 500.0
ROUNDS, ROUNDS_QUICK = 15, 3
TTL_S = 10
QUIET_S = TTL_S / 3 + 1.0  # so that each session is renewed in it
SETTLE_S = 0.3  # so that the clients run, and delayed work is done
PATIENCE_S = 60.0
A_SECOND = 200
KEYS = "bench/reload/"
NAME = "many"
ROW = f"reload, 1 of {ELECTIONS} elections changed"
CONFIG = {**LOGGED, "limits": {"http_max_conns_per_client": 2000}}
"""The configuration of an agent that serves that many connections of one address."""

Held = Mapping[str, tuple[str, int]]
"""By key: the session that holds the key, and how often the key has been locked."""


@dataclass(slots=True)
class Reloads:
    """The results of one run of reloads.

    took_ms: the time of each command.
    waited_ms: the longest wait of a client, for each reload.
    windows: the times of the reloads.
    quiet: the times between them.
    """

    took_ms: list[float] = field(default_factory=list)
    waited_ms: list[float] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    quiet: list[Window] = field(default_factory=list)


def measure(lab: Lab) -> list[Figure]:
    """Reload with another changed election each time."""
    lab.say(ROW)
    reloads = Reloads()
    with lab.rig() as rig:
        agent = rig.agent(config=CONFIG)
        (port,) = free_ports(1)
        elections = {f"e{number}": _election(rig, number) for number in range(ELECTIONS)}
        supervisor_of(rig, agent.url, NAME, elections, port=port).start()
        wait_until(lambda: len(rig.stamps.since(0)) == 2 * ELECTIONS, f"{ELECTIONS} elections won")
        held = _held(agent)
        time.sleep(QUIET_S)
        for number in range(lab.samples(ROUNDS, ROUNDS_QUICK)):
            elections[f"e{number}"]["on_lose"][0]["timeout"] = "4s"
            write_config(rig, agent.url, NAME, elections, port=port)
            _reload(rig, port, f"e{number}", reloads)
        lost = sum(held[key] != holder for key, holder in _held(agent).items())
        lost += sum(stamp.what == "lose" for stamp in rig.stamps.since(0))
        times = renewals(agent.log, {session for session, _ in held.values()})
    return _figures(reloads, times, lost)


def _election(rig: Rig, number: int) -> dict[str, Any]:
    return {"key": f"{KEYS}{number}", "session": {"ttl": f"{TTL_S}s"}, **stamping_hooks(rig, NAME)}


def _held(agent: Agent) -> Held:
    held = {entry["Key"]: (entry["Session"], entry["LockIndex"]) for entry in agent.kv_list(KEYS)}
    assert len(held) == ELECTIONS and all(session for session, _ in held.values()), held
    return held


def _reload(rig: Rig, port: int, changed: str, reloads: Reloads) -> None:
    with rig.asker(port, "/leader/e0", A_SECOND) as asker:
        time.sleep(SETTLE_S)
        began_at, began = time.time(), time.monotonic()
        argv = [*COMMAND, "reload", "--socket", rig.control_socket(NAME)]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        reloads.took_ms.append((time.monotonic() - began) * 1e3)
        time.sleep(SETTLE_S)
        reloads.windows.append((began_at, time.time()))
        reloads.waited_ms.append(asker.finish().worst_ms)
    if done.returncode != 0 or done.stdout.split() != [f"{changed}:", "changed"]:
        raise RuntimeError(f"reload ended with {done.returncode}: {done.stdout}{done.stderr}")
    began_at = time.time()
    time.sleep(QUIET_S)
    reloads.quiet.append((began_at, time.time()))


def _figures(reloads: Reloads, times: list[list[float]], lost: int) -> list[Figure]:
    figures = [
        *median_and_p95(ROW, "the command, start to end", reloads.took_ms, "ms", LIMIT_MS),
        Figure(ROW, "elections that lost their session or ran on_lose", lost, "", 0),
        *median_and_p95(ROW, "longest wait for an answer meanwhile", reloads.waited_ms, "ms"),
    ]
    for what, windows in (("meanwhile", reloads.windows), ("else", reloads.quiet)):
        late = late_ms(times, windows)
        figures += [
            *median_and_p95(ROW, f"renewal late by, {what}", late, "ms"),
            Figure(ROW, f"renewal late by, {what}, worst", max(late), "ms"),
        ]
    return figures
