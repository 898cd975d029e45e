"""What Consul's own log tells: which requests were done when, and when a session's TTL ran out.

The agent's log says to the microsecond when a request was done, and how long that took. So nothing
has to stand between who asks and Consul. All times are of the wall clock.
"""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

LOGGED: Mapping[str, object] = {"log_level": "debug", "log_json": True}
"""What the agent's configuration needs."""
_RENEW = "/v1/session/renew/"
_REQUEST, _EXPIRED = '"url":"', "Session TTL expired"
_ANSWERED = '"latency":"'
_UNITS_S = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_LATENCY = re.compile(r"(?:([0-9]+)m)?([0-9.]+)(ns|µs|ms|s)")

Window = tuple[float, float]
"""From when to when."""


@dataclass(frozen=True, slots=True)
class Request:
    """``at``: when it reached Consul; ``done_at``: when it was answered."""

    url: str
    at: float
    done_at: float


def requests(log: str) -> Iterator[Request]:
    """All that were answered, in the order of that."""
    for line in log.splitlines():
        if _REQUEST in line and _ANSWERED in line:  # one that failed is told without how long it took
            told = json.loads(line)
            done_at = _time(told)
            yield Request(told["url"], done_at - _seconds(told["latency"]), done_at)


def renewals(log: str, sessions: Collection[str]) -> list[list[float]]:
    """When renewals of each of these sessions reached Consul, in order."""
    found: dict[str, list[float]] = defaultdict(list)
    for request in requests(log):
        session = request.url.removeprefix(_RENEW).partition("?")[0]
        if session in sessions:
            found[session].append(request.at)
    return [sorted(times) for times in found.values()]


def expiries(log: str) -> dict[str, float]:
    """When each session whose TTL ran out was ended for that."""
    told = (json.loads(line) for line in log.splitlines() if _EXPIRED in line)
    return {each["session"]: _time(each) for each in told}


def late_ms(
    times: Sequence[Sequence[float]], windows: Sequence[Window], *, tick_s: float = 0.0
) -> list[float]:
    """By how much the renewals in these windows came later than the pace of their session says.

    Each session has a pace of its own. A tenth of the times between two is shorter than what is taken
    for it here: the very shortest follows one that was late itself. The first two renewals are left out,
    for they are nearer to each other. ``tick_s``: of a process that renews on ticks; its times differ by
    as much.
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
    """The most of them in any stretch of so many seconds."""
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
    """Of Go's text, such as 299.47µs or 5m1.2s."""
    found = _LATENCY.fullmatch(latency)
    if found is None:
        raise RuntimeError(f"no duration of an exchange: {latency}")
    return 60 * int(found[1] or 0) + float(found[2]) * _UNITS_S[found[3]]
