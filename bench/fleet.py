"""Part of the row load: how far apart the requests of contenders are that began at the same instant.

Twenty supervisors, each with an election of its own, wait for Consul's answer to the creation of their
session, and get all answers at once. In a second run one supervisor has twenty elections. The figure is the
busiest tenth of a second some time later, against the mean tenth. Twenty contenders in step would send twenty
requests within it, and independent contenders some six by chance.
"""

import time

from bench.agent_log import LOGGED, most_within, requests
from bench.contenders import stamping_hooks, supervisor_of
from bench.figures import Figure
from bench.lab import Lab, Rig, wait_until
from tests.support.consul import Agent

COUNT = 20
STRETCH_S = 0.1
AFTER_S, AFTER_QUICK_S = 60.0, 20.0
WINDOW_S, WINDOW_QUICK_S = 60.0, 20.0
ROW = "requests of a fleet"


def measure(lab: Lab) -> list[Figure]:
    """Measure many processes, then one."""
    return [
        *_figures(f"{COUNT} supervisors", _times(lab, one_process=False)),
        *_figures(f"{COUNT} elections of one", _times(lab, one_process=True)),
    ]


def _figures(who: str, times: tuple[list[float], float]) -> list[Figure]:
    done_at, window_s = times
    busiest, mean = most_within(done_at, STRETCH_S), len(done_at) * STRETCH_S / window_s
    return [
        Figure(ROW, f"{who}: mean of {STRETCH_S * 1e3:g} ms", mean, ""),
        Figure(ROW, f"{who}: busiest {STRETCH_S * 1e3:g} ms", busiest, ""),
        Figure(ROW, f"{who}: busiest / mean", busiest / mean, "×"),
    ]


def _times(lab: Lab, *, one_process: bool) -> tuple[list[float], float]:
    """Return when Consul answered requests within the window, and the window's length in seconds.

    A watch counts when it is answered, because its successor is sent at once.
    """
    lab.say(f"{ROW}: {COUNT} of {'one' if one_process else 'many'}")
    after_s, window_s = (AFTER_QUICK_S, WINDOW_QUICK_S) if lab.quick else (AFTER_S, WINDOW_S)
    with lab.rig() as rig:
        agent = rig.agent(config=LOGGED)
        if one_process:
            elections = {f"e{number}": _election(rig, number) for number in range(COUNT)}
            supervisor_of(rig, agent.url, "one", elections).start()
        else:
            _start_many(rig, agent)
        wait_until(lambda: len(rig.stamps.since(0)) == 2 * COUNT, "all elections won")
        time.sleep(after_s)
        begin = time.time()
        time.sleep(window_s)
        log = agent.log
    return [each.done_at for each in requests(log) if begin <= each.done_at <= begin + window_s], window_s


def _start_many(rig: Rig, agent: Agent) -> None:
    """Start all supervisors, and release the answers to their sessions at one instant.

    A supervisor whose request timed out just before gets its session a little later.
    """
    proxy = rig.proxy(agent)
    held = proxy.hold("request", "PUT", "/v1/session/create")
    for number in range(COUNT):
        supervisor_of(rig, proxy.url, f"s{number}", {"bench": _election(rig, number)}).start()
    held.wait_caught(2 * COUNT)
    held.release()


def _election(rig: Rig, number: int) -> dict[str, object]:
    return {"key": f"bench/fleet/{number}", **stamping_hooks(rig, f"e{number}")}
