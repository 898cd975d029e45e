"""Row: service, from `holding` to the name of the new holder in DNS, and how long nobody was named.

Two supervisors step down from an election in turn, each through a client agent of its own. The row asks the
server's DNS all the time, and counts answers with two names. Fewer hand-overs, because each takes seconds,
follow with the recipe without `service`: an HTTP check of each agent, as examples/consul-service/namenode.hcl
has it.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path

from bench.figures import Figure, median_and_p95
from bench.lab import Lab, wait_until
from tests.support.consul import Agent, free_ports
from tests.support.dns import addresses
from tests.support.supervisor import Supervisor

WITH, WITHOUT = "`service`", "without `service`"
HAND_OVERS = {WITH: 100, WITHOUT: 10}
HAND_OVERS_QUICK = 4
LIMIT_MS = 100.0  # from `holding` to the name, the median
NODES = {"a": "10.0.0.1", "b": "10.0.0.2"}
LOOK_EVERY_S = 0.005
REST_S = 0.2
SETTLE_S = 0.5  # after the rest, so that the waiter has a session and watches the key


def measure(lab: Lab) -> Iterator[Figure]:
    """Measure both ways of naming the holder."""
    for kind in (WITH, WITHOUT):
        lab.say(f"service, {kind}")
        named_ms, gap_ms, doubled = _hand_overs(lab, kind)
        row, limit = "service", LIMIT_MS if kind == WITH else None
        yield from median_and_p95(row, f"{kind}, from holding to the name", named_ms, "ms", limit)
        yield from median_and_p95(row, f"{kind}, nobody is named", gap_ms, "ms")
        yield Figure(row, f"{kind}, answers with two names", float(doubled), "", 0.0)


def _hand_overs(lab: Lab, kind: str) -> tuple[list[float], list[float], int]:
    """Return the milliseconds to each name, those of each gap, and how often two were named."""
    dns = free_ports(1)[0]
    with lab.rig() as rig, ExitStack() as stack:
        server = rig.agent(persistent=True, config={"ports": {"dns": dns}})
        pool = stack.enter_context(ThreadPoolExecutor(1))  # looks go on while a node steps down
        nodes = {name: _node(stack, rig.folder, server, name, kind) for name in NODES}
        named_ms, gaps_ms, doubled = [], [], 0
        wait_until(lambda: len(_named(dns)) == 1, "a first name")
        for _ in range(lab.samples(HAND_OVERS[kind], HAND_OVERS_QUICK)):
            (former,) = _named(dns)
            holder = next(name for name, address in NODES.items() if address == former)
            other = next(name for name in NODES if name != holder)
            time.sleep(SETTLE_S)
            mark = len(nodes[other].lines("role", role="holding"))
            rested = len(nodes[holder].lines("role", role="waiting"))
            stepped_down = pool.submit(rig.step_down, holder, "bench", REST_S)
            gone_at = named_at = 0.0
            while not named_at:
                names, now = _named(dns), time.time()
                doubled += len(names) > 1
                if former not in names and not gone_at:
                    gone_at = now
                if NODES[other] in names and former not in names:
                    named_at = now
                time.sleep(LOOK_EVERY_S)
            stepped_down.result()
            line = nodes[other].lines("role", role="holding")[mark]
            named_ms.append((named_at - datetime.fromisoformat(line["time"]).timestamp()) * 1000)
            gaps_ms.append((named_at - gone_at) * 1000)
            wait_until(partial(_waits, nodes[holder], rested + 1), f"{holder} waits again")
        return named_ms, gaps_ms, doubled


def _waits(node: Supervisor, times: int) -> bool:
    return len(node.lines("role", role="waiting")) >= times


def _named(dns: int) -> list[str]:
    return addresses(dns, "bench-leader.service.consul")


def _node(stack: ExitStack, folder: Path, server: Agent, name: str, kind: str) -> Supervisor:
    """Start a supervisor and its client agent."""
    agent = stack.enter_context(Agent(folder / f"agent-{name}", servers=server))
    service = {"name": "bench-leader", "port": 5432, "address": NODES[name]}
    item: dict[str, object] = {"on_lose": [{"exec": ["/bin/true"]}]}
    config: dict[str, object] = {"consul": {"address": agent.url}, "log": {"format": "json"}}
    if kind == WITH:
        item["service"] = service
    else:
        (port,) = free_ports(1)
        config["http"] = {"listen": f"127.0.0.1:{port}"}
        check = {"HTTP": f"http://127.0.0.1:{port}/leader/bench", "Interval": "1s", "Timeout": "400ms"}
        recipe = {
            "Name": "bench-leader",
            "Address": NODES[name],
            "Check": {**check, "SuccessBeforePassing": 3},
        }
        assert agent.call("PUT", "/agent/service/register", recipe).status == 200
    supervisor = Supervisor(folder / f"{name}.own", {**config, "elections": {"bench": item}})
    stack.callback(supervisor.close)
    supervisor.start()
    return supervisor
