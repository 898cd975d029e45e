"""Row: this process's CPU time for one HTTP exchange with a Consul agent over loopback."""

import asyncio
import time

import requests

from bench.figures import Figure
from bench.lab import Lab
from supervisor.core.settings import Tls
from supervisor.transport import Endpoint, Transport

ROW = "exchange"
COUNT, COUNT_QUICK = 2000, 300
TIMEOUT_S = 5.0


def measure(lab: Lab) -> list[Figure]:
    """Measure over a connection that is kept alive, and over a new connection each time."""
    lab.say("exchange")
    with lab.rig() as rig:
        url = rig.agent().url
        count = lab.samples(COUNT, COUNT_QUICK)
        return [
            Figure(ROW, "CPU, kept connection", asyncio.run(_cpu_us(url, count, fresh=False)), "µs"),
            Figure(ROW, "CPU, new connection", asyncio.run(_cpu_us(url, count, fresh=True)), "µs"),
        ]


async def _cpu_us(url: str, count: int, *, fresh: bool) -> float:
    request = requests.Request("GET", f"{url}/v1/status/leader").prepare()
    transport = Transport(Endpoint.of(url, Tls()))
    try:
        await transport.exchange(request, timeout_s=TIMEOUT_S, fresh=fresh)
        began_s = time.process_time()
        for _ in range(count):
            await transport.exchange(request, timeout_s=TIMEOUT_S, fresh=fresh)
        return (time.process_time() - began_s) / count * 1e6
    finally:
        await transport.close()
