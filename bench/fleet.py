"""Of the row load: how far the requests of contenders are apart that began at the same instant.

Twenty supervisors, each with an election of its own, wait for Consul's answer to the creation of
their session, and get it all at once; and one supervisor has twenty elections. What counts is the
busiest tenth of a second, a while later, against the mean of one. Twenty in step would be busy with
twenty requests at once; requests that know nothing of each other are, by chance, with some six.
"""

import time

from bench.agent_log import LOGGED, most_within, requests
from bench.contender import stamping_hooks, supervisor_of
from bench.figures import Figure
from bench.lab import Lab, Scene, wait_until
from tests.support.consul import Agent

COUNT = 20
STRETCH_S = 0.1
AFTER_S, AFTER_QUICK_S = 60.0, 20.0
WINDOW_S, WINDOW_QUICK_S = 60.0, 20.0
ROW = "requests of a fleet"


def measure(lab: Lab) -> list[Figure]:
    """Many processes, then one."""
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
    """When requests were done within the window, and how long that was: a watch is on again at once."""
    lab.say(f"{ROW}: {COUNT} of {'one' if one_process else 'many'}")
    after_s, window_s = (AFTER_QUICK_S, WINDOW_QUICK_S) if lab.quick else (AFTER_S, WINDOW_S)
    with lab.scene() as scene:
        agent = scene.agent(config=LOGGED)
        if one_process:
            elections = {f"e{number}": _election(scene, number) for number in range(COUNT)}
            supervisor_of(scene, agent.url, "one", elections).start()
        else:
            _start_many(scene, agent)
        wait_until(lambda: len(scene.stamps.since(0)) == 2 * COUNT, "all elections won")
        time.sleep(after_s)
        begin = time.time()
        time.sleep(window_s)
        log = agent.log
    return [each.done_at for each in requests(log) if begin <= each.done_at <= begin + window_s], window_s


def _start_many(scene: Scene, agent: Agent) -> None:
    """All have their session at the same instant, but who has just given up to ask anew."""
    proxy = scene.proxy(agent)
    held = proxy.hold("request", "PUT", "/v1/session/create")
    for number in range(COUNT):
        supervisor_of(scene, proxy.url, f"s{number}", {"bench": _election(scene, number)}).start()
    held.wait_caught(2 * COUNT)
    held.release()


def _election(scene: Scene, number: int) -> dict[str, object]:
    return {"key": f"bench/fleet/{number}", **stamping_hooks(scene, f"e{number}")}
