"""The times of requests and of expired sessions, from Consul's own log.

The agent's log has the end of each request to the microsecond, and its duration. So no proxy has to stand
between a process and Consul. All times are of the wall clock.
"""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

LOGGED: Mapping[str, object] = {"log_level": "debug", "log_json": True}
"""The part of the agent's configuration that this module needs."""
_RENEW = "/v1/session/renew/"
_REQUEST, _EXPIRED = '"url":"', "Session TTL expired"
_ANSWERED = '"latency":"'
_UNITS_S = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_LATENCY = re.compile(r"(?:([0-9]+)m)?([0-9.]+)(ns|µs|ms|s)")

Window = tuple[float, float]
"""A begin and an end."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``at``: when it reached Consul. ``done_at``: when Consul answered it."""

    url: str
    at: float
    done_at: float


def requests(log: str) -> Iterator[Request]:
    """Yield all answered requests, in the order of their answers."""
    for line in log.splitlines():
        if _REQUEST in line and _ANSWERED in line:  # the line of a failed request has no latency
            told = json.loads(line)
            done_at = _time(told)
            yield Request(told["url"], done_at - _seconds(told["latency"]), done_at)


def renewals(log: str, sessions: Collection[str]) -> list[list[float]]:
    """Return, for each of these sessions, when its renewals reached Consul, in order."""
    found: dict[str, list[float]] = defaultdict(list)
    for request in requests(log):
        session = request.url.removeprefix(_RENEW).partition("?")[0]
        if session in sessions:
            found[session].append(request.at)
    return [sorted(times) for times in found.values()]


def late_ms(
    times: Sequence[Sequence[float]], windows: Sequence[Window], *, tick_s: float = 0.0
) -> list[float]:
    """Return by how many milliseconds renewals in these windows were later than the pace of their session.

    The pace of a session is the lowest decile of the times between its renewals, because the shortest time
    follows a renewal that was late itself. The first two renewals are left out, because the time between
    them is shorter. ``tick_s``: the tick of a process that renews on ticks, by which its times may differ.
    """
    late: list[float] = []
    for series in times:
        gaps = [(after, after - before) for before, after in pairwise(series[1:])]
        ordered_s = sorted(gap_s for _, gap_s in gaps)
        late += [
            max(0.0, gap_s - ordered_s[len(ordered_s) // 10] - tick_s) * 1e3
            for after, gap_s in gaps
            if any(begin <= after <= end for begin, end in windows)
        ]
    return late


def most_within(times: Collection[float], seconds: float) -> int:
    """Return the largest number of times within any stretch of ``seconds``."""
    ordered = sorted(times)
    most = first = 0
    for last, at in enumerate(ordered):
        while at - ordered[first] > seconds:
            first += 1
        most = max(most, last - first + 1)
    return most


def _time(told: Mapping[str, str]) -> float:
    return datetime.fromisoformat(told["@timestamp"]).timestamp()


def _seconds(latency: str) -> float:
    """Return the seconds of a duration as Go writes it, such as 299.47µs or 5m1.2s."""
    found = _LATENCY.fullmatch(latency)
    if found is None:
        raise RuntimeError(f"no duration of an exchange: {latency}")
    return 60 * int(found[1] or 0) + float(found[2]) * _UNITS_S[found[3]]
