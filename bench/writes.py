"""What was written to Consul, as the agent itself counts it; renewals are not among that.

All that it applied, or refused to apply, for any client: a proxy before each contender would take the
time that is to be measured.
"""

import re
import time

from bench.lab import wait_until
from tests.support.consul import Agent

REST_S = 0.7  # nothing was written for so long: then all watches are on again, too
CONFIG = {
    "limits": {"http_max_conns_per_client": 2000},  # each contender has up to four, and the default is 200
    "telemetry": {"prometheus_retention_time": "24h"},
}
"""Of an agent that serves so many clients of one address, and counts what it applies."""
_WRITES = re.compile(r"^consul_(?:kvs|txn|session)_apply_count (\d+)$", re.MULTILINE)


def at_rest(agent: Agent) -> int:
    """What was written so far, once nothing more is."""
    seen = [(written(agent), time.monotonic())]

    def rests() -> bool:
        count, now = written(agent), time.monotonic()
        if count != seen[-1][0]:
            seen.append((count, now))
        return now - seen[-1][1] >= REST_S

    wait_until(rests, f"no write for {REST_S:g} s")
    return seen[-1][0]


def written(agent: Agent) -> int:
    """All writes that the agent has been asked for by clients: of keys, transactions and sessions."""
    answer = agent.call("GET", "/agent/metrics?format=prometheus")
    return sum(int(count) for count in _WRITES.findall(answer.text))
