"""The number of writes to Consul, as the agent itself counts them.

These are all writes that the agent applied or refused for any client, without renewals. A proxy before each
contender would add to the measured time.
"""

import re
import time

from bench.lab import wait_until
from tests.support.consul import Agent

REST_S = 0.7  # without a write, after which all watches run again
CONFIG = {
    "limits": {"http_max_conns_per_client": 2000},  # each contender has up to four, and the default is 200
    "telemetry": {"prometheus_retention_time": "24h"},
}
"""The configuration of an agent that serves that many connections of one address and counts writes."""
_WRITES = re.compile(r"^consul_(?:kvs|txn|session)_apply_count (\d+)$", re.MULTILINE)


def at_rest(agent: Agent) -> int:
    """Wait until the writes have ended for REST_S, and return their number so far."""
    seen = [(written(agent), time.monotonic())]

    def rests() -> bool:
        count, now = written(agent), time.monotonic()
        if count != seen[-1][0]:
            seen.append((count, now))
        return now - seen[-1][1] >= REST_S

    wait_until(rests, f"no write for {REST_S:g} s")
    return seen[-1][0]


def written(agent: Agent) -> int:
    """Return the number of writes by clients so far: of keys, transactions and sessions."""
    answer = agent.call("GET", "/agent/metrics?format=prometheus")
    return sum(int(count) for count in _WRITES.findall(answer.text))
