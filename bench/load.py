"""Row: what one election asks of Consul while nothing happens, for a holder and for a waiter.

Each process speaks through a proxy of its own, which counts its requests. `consul lock` is counted
the same way; ours once on its terms (TTL 15 s) and once with our own defaults.
"""

import time

from bench.contender import (
    Contender,
    Maker,
    consul_lock,
    consul_supervisor,
    stamping_hooks,
    supervisor_of,
)
from bench.figures import Figure
from bench.lab import Lab, Scene, wait_until
from tests.support.consul import Agent
from tests.support.proxy import Proxy

WINDOW_S, WINDOW_QUICK_S = 60.0, 30.0  # not below the longest wait, 30 s
SETTLE_S = 3.0
ROW = "requests at rest"


def measure(lab: Lab) -> list[Figure]:
    """All of them at the same time."""
    lab.say("requests at rest")
    window_s = WINDOW_QUICK_S if lab.quick else WINDOW_S
    kinds: tuple[tuple[str, Maker], ...] = (
        ("consul-supervisor, ttl 15s", consul_supervisor),
        ("consul-supervisor, defaults", _with_defaults),
        ("consul lock", consul_lock),
    )
    with lab.scene() as scene:
        agent = scene.agent()
        counted: dict[str, Proxy] = {}
        for number, (kind, maker) in enumerate(kinds):
            folder = f"bench/load/{number}"
            counted[f"{kind}, holder"] = _started(scene, agent, maker, folder, f"holder-{number}")
            scene.stamps.wait(0, lambda stamp, who=f"holder-{number}": stamp.who == who)  # type: ignore[misc]
            counted[f"{kind}, waiter"] = _started(scene, agent, maker, folder, f"waiter-{number}")
        wait_until(lambda: len(agent.sessions()) == len(counted), "a session for each contender")
        time.sleep(SETTLE_S)
        before = {what: len(proxy.exchanges) for what, proxy in counted.items()}
        time.sleep(window_s)
        return [
            Figure(ROW, what, (len(proxy.exchanges) - before[what]) * 60 / window_s, "a minute")
            for what, proxy in counted.items()
        ]


def _started(scene: Scene, agent: Agent, maker: Maker, folder: str, name: str) -> Proxy:
    proxy = scene.proxy(agent)
    maker(scene, proxy.url, folder, name).start()
    return proxy


def _with_defaults(scene: Scene, url: str, folder: str, name: str) -> Contender:
    election = {"key": f"{folder}/.lock", **stamping_hooks(scene, name)}
    return supervisor_of(scene, url, name, {"bench": election})
