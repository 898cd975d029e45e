"""The way from a loss to the first act of the next application, by the logs of the machines that are left.

Each step is the first line of its kind after the loss, on any of these machines. A step is whose hands the
time before it was in: Consul's own (gossip, its servers, the end of the session), ours, the waiting that the
file asks for (``after``, from the moment at which the key is free), the device's, or the application's.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

CONSUL, OURS, AFTER, DEVICE, START = "Consul", "ours", "after", "the device", "the application"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:?\d\d)")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the way. at_s: seconds after the loss. whose: who had the time since the step before."""

    name: str
    at_s: float
    whose: str


CONSULS = {
    "failed": "EventMemberFailed",
    "leader": "cluster leadership acquired",
    "end": "marking health critical",
}
"""The lines of Consul: gossip has given the member up, another server leads, the sessions of the node end."""


def way(logs: Sequence[str], lost_at: float, acts_at: float) -> list[Step]:
    """Return the steps that the logs show, in the order of time."""
    found: dict[str, float] = {}
    for log in logs:
        for line in log.splitlines():
            at, name = _read(line)
            if name and lost_at < at <= acts_at and at < found.get(name, acts_at + 1):
                found[name] = at
    steps = sorted((at - lost_at, name) for name, at in found.items())
    steps.append((acts_at - lost_at, "acts"))
    return [Step(name, at_s, WHOSE[name]) for at_s, name in steps]


WHOSE = {
    "failed": CONSUL,
    "leader": CONSUL,
    "end": CONSUL,
    "acquire": OURS,
    "won": AFTER,
    "fence": AFTER,
    "off": DEVICE,
    "start": OURS,
    "acts": START,
}


def shares(steps: Sequence[Step]) -> dict[str, float]:
    """Return how many seconds each had of the way."""
    shares: dict[str, float] = dict.fromkeys((CONSUL, OURS, AFTER, DEVICE, START), 0.0)
    before_s = 0.0
    for step in steps:
        shares[step.whose] += step.at_s - before_s
        before_s = step.at_s
    return shares


def _read(line: str) -> tuple[float, str]:
    """Return the time of the line, and the step that it shows. Blank: none."""
    if line.startswith("{"):
        said = json.loads(line)
        return _at(said["time"]), _of_supervisor(said)
    stamp = TIME.search(line)
    name = next((name for name, words in CONSULS.items() if words in line), "")
    return (_at(stamp[0]) if stamp else 0.0), name


def _at(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def _of_supervisor(said: dict[str, str]) -> str:
    match said:
        case {"event": "request", "kind": "acquire"}:
            return "acquire"
        case {"event": "role", "role": "acquiring", "reason": reason} if reason:
            return "won"
        case {"event": "hook-started", "event_kind": "fence"}:
            return "fence"
        case {"event": "hook-succeeded", "event_kind": "fence"}:
            return "off"
        case {"event": "hook-started", "event_kind": "acquire"}:
            return "start"
    return ""
