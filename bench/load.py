"""Row: how many requests one election sends to Consul at rest, for a holder and for a waiter.

Each process has a proxy of its own, which counts its requests and its consistent reads. For a consistent
read the leading server asks its followers. `consul lock` is counted in the same way;
consul-supervisor once on its terms (TTL 15 s, lock-delay 15 s) and once with its own defaults.

`consul lock` believes that it holds until an answer contradicts. A supervisor believes that for `room`
after its last consistent read, so it has to read meanwhile. Its limit is therefore the sum of what its
lease needs (a renewal each third of the TTL, a read each interval, a watch each 25 s) and a tenth for
the jitter. The limit of a waiter is the number of requests of `consul lock`.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import fleet
from bench.contender import Contender
from bench.contenders import Maker, consul_lock, consul_supervisor, stamping_hooks, supervisor_of
from bench.figures import Figure
from bench.lab import Lab, Rig, wait_until
from supervisor.config import load
from supervisor.core.jitter import JITTER_MAX
from supervisor.core.lease import lease_of
from supervisor.core.lock.base import WAIT_S
from tests.support.consul import Agent
from tests.support.proxy import Exchange, Proxy

LIMIT = 1.0
WINDOW_S, WINDOW_QUICK_S = 120.0, 30.0  # at least the longest wait of a watch, 30 s
SETTLE_S = 3.0
ROW = "requests at rest"
OURS, DEFAULTS, THEIRS = "consul-supervisor, ttl 15s", "consul-supervisor, defaults", "consul lock"
HOLDER, WAITER = "holder", "waiter"


@dataclass(frozen=True, slots=True)
class Rate:
    """The requests of one process, a minute."""

    all: float
    consistent: float


def measure(lab: Lab) -> Iterator[Figure]:
    """Measure a holder and a waiter of each kind at rest, all at one time, and then fleets."""
    lab.say("requests at rest")
    yield from _figures(*_rates(lab))
    yield from fleet.measure(lab)


def _rates(lab: Lab) -> tuple[dict[tuple[str, str], Rate], float]:
    """Return the rates by kind and role, and the rate by lease for a holder of the first kind."""
    makers: dict[str, Maker] = {OURS: consul_supervisor, DEFAULTS: _with_defaults, THEIRS: consul_lock}
    with lab.rig() as rig:
        agent = rig.agent()
        counted: dict[tuple[str, str], Proxy] = {}
        for number, (kind, maker) in enumerate(makers.items()):
            folder = f"bench/load/{number}"
            counted[kind, HOLDER] = _started(rig, agent, maker, folder, f"holder-{number}")
            rig.stamps.wait(0, lambda stamp, who=f"holder-{number}": stamp.who == who)  # type: ignore[misc]
            counted[kind, WAITER] = _started(rig, agent, maker, folder, f"waiter-{number}")
        wait_until(lambda: len(agent.sessions()) == len(counted), "a session for each contender")
        time.sleep(SETTLE_S)
        window_s = WINDOW_QUICK_S if lab.quick else WINDOW_S
        before = {who: len(proxy.exchanges) for who, proxy in counted.items()}
        time.sleep(window_s)
        rates = {who: _rate(proxy.exchanges[before[who] :], window_s) for who, proxy in counted.items()}
        return rates, _by_lease(rig.folder / "holder-0.yaml")


def _by_lease(path: Path) -> float:
    """Return the requests a minute of a holder with this file, by its lease."""
    lease = lease_of(load(path, {}, "bench").items[0])
    assert lease.ttl_s is not None
    return 60 * (3 / lease.ttl_s + 1 / lease.interval_s + 1 / WAIT_S) / (1 - JITTER_MAX)


def _rate(exchanges: list[Exchange], window_s: float) -> Rate:
    consistent = sum(each.method == "GET" and "consistent" in each.target for each in exchanges)
    return Rate(len(exchanges) * 60 / window_s, consistent * 60 / window_s)


def _figures(rates: dict[tuple[str, str], Rate], by_lease: float) -> list[Figure]:
    figures: list[Figure] = []
    for (kind, role), rate in rates.items():
        figures += [
            Figure(ROW, f"{kind}, {role}", rate.all, "a minute"),
            Figure(ROW, f"{kind}, {role}: consistent reads", rate.consistent, "a minute"),
        ]
    for role, limit in ((HOLDER, None), (WAITER, LIMIT)):
        ratio = rates[OURS, role].all / rates[THEIRS, role].all
        figures.append(Figure(ROW, f"{OURS} / {THEIRS}, {role}", ratio, "×", limit))
    within = rates[OURS, HOLDER].all / by_lease
    return [*figures, Figure(ROW, f"{OURS} / what its lease says, {HOLDER}", within, "×", LIMIT)]


def _started(rig: Rig, agent: Agent, maker: Maker, folder: str, name: str) -> Proxy:
    proxy = rig.proxy(agent)
    maker(rig, proxy.url, folder, name).start()
    return proxy


def _with_defaults(rig: Rig, url: str, folder: str, name: str) -> Contender:
    election = {"key": f"{folder}/.lock", **stamping_hooks(rig, name)}
    return supervisor_of(rig, url, name, {"bench": election})
