"""How late renewals of sessions are, as Consul's own log tells: when each of them reached it.

The agent's log says to the microsecond when a request was done, and how long that took. A renewal
is due a fixed time after the one before.
"""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import pairwise

LOGGED: Mapping[str, object] = {"log_level": "debug", "log_json": True}
"""What the agent's configuration needs."""
_RENEW = "/v1/session/renew/"
_UNITS_S = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_LATENCY = re.compile(r"([0-9.]+)(ns|µs|ms|s)")

Window = tuple[float, float]
"""From when to when, of the wall clock."""


def renewals(log: str, sessions: Collection[str]) -> list[list[float]]:
    """When renewals of each of these sessions reached Consul, by the wall clock, in order."""
    found: dict[str, list[float]] = defaultdict(list)
    for line in log.splitlines():
        if _RENEW in line:
            told = json.loads(line)
            session = told["url"].removeprefix(_RENEW).partition("?")[0]
            if session in sessions:
                done_at = datetime.fromisoformat(told["@timestamp"]).timestamp()
                found[session].append(done_at - _seconds(told["latency"]))
    return [sorted(times) for times in found.values()]


def late_ms(times: Sequence[Sequence[float]], every_s: float, windows: Sequence[Window]) -> list[float]:
    """By how much the renewals in these windows came later than ``every_s`` after the one before."""
    return [
        (after - before - every_s) * 1e3
        for series in times
        for before, after in pairwise(series)
        if any(begin <= after <= end for begin, end in windows)
    ]


def _seconds(latency: str) -> float:
    """Of Go's text, such as 299.47µs; an exchange with us ends within seconds."""
    found = _LATENCY.fullmatch(latency)
    if found is None:
        raise RuntimeError(f"no duration of an exchange: {latency}")
    return float(found[1]) * _UNITS_S[found[2]]
