"""Decides whether the command of ``lock --every`` is due. Nothing here reads a clock.

The value of the key says when the command started last. How long ago that was, no machine can tell from it,
because the clock of the other one may be hours off. So each machine counts from the moment at which it first
saw this start, on CLOCK_BOOTTIME, which nobody sets. It notes that moment in the value, because each ``lock``
is a process of its own, under the id of its boot. The start is older than that, so the command runs at most
once in a period. A machine that has not seen the start notes that it has now, and a period later it is due.

For a machine that has not seen it, the wall clock decides when the start is so old that no two clocks should
differ by as much. Else the command would never run again where each machine lives for less than a period.
"""

import json
from collections.abc import Mapping
from math import isfinite

from supervisor.config.formats.durations import format_duration
from supervisor.core.frozen import dataclass

# How much earlier a start may come, because cron itself is late at times.
SLACK_SHARE, SLACK_S_MAX = 1 / 20, 5.0
CLOCKS_OFF_S = 86_400.0  # no two clocks differ by more, unless one was never set
NEVER_SET_S = 1_577_836_800.0  # 2020: a wall clock that shows less was never set
SEEN_MAX = 64  # machines that note a start; the value stays below 4 KiB
VALUE_BYTES_MAX = 65_536  # what is longer is no value of ours


@dataclass(frozen=True, slots=True)
class Start:
    """The newest start of the command, as the key's value has it."""

    at_s: float  # by the wall clock of the machine that ran it
    # When each machine saw it first, on its own CLOCK_BOOTTIME, by the id of its boot.
    seen: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Judged:
    """The decision whether the command is due."""

    value: bytes | None  # the value to acquire the key with. None: there is nothing to note
    why_not: str  # why the command is not due. Blank: it is


class Period:
    """The period of one command, as one process on the machine with this boot id sees it."""

    def __init__(self, every_s: float, boot: str, node: str) -> None:
        self._every_s, self._boot, self._node = every_s, boot, node
        self._first: dict[float, float] = {}  # when this process saw each start first

    def sees(self, value: bytes, now: float) -> None:
        """Note that the key has this value now, whoever holds it."""
        if (start := _start_in(value)) is not None:
            self._first.setdefault(start.at_s, now)

    def judge(self, value: bytes, now: float, wall_s: float) -> Judged:
        """Decide at this time, on CLOCK_BOOTTIME and on the wall clock."""
        start = _start_in(value)
        if start is None:
            return Judged(self._value(wall_s, {self._boot: now}), "")
        seen_at = min(now, start.seen.get(self._boot, self._first.get(start.at_s, now)))
        age_s, slack_s = now - seen_at, min(SLACK_SHARE * self._every_s, SLACK_S_MAX)
        is_old = start.at_s >= NEVER_SET_S and wall_s - start.at_s >= self._every_s + CLOCKS_OFF_S
        if is_old and self._boot not in start.seen or age_s >= self._every_s - slack_s:
            return Judged(self._value(wall_s, {self._boot: now}), "")
        every, age = format_duration(self._every_s), format_duration(age_s)
        why_not = f"not due before {every} have passed since this machine saw a start, {age} ago"
        if self._boot in start.seen or len(start.seen) >= SEEN_MAX:
            return Judged(None, why_not)
        return Judged(self._value(start.at_s, {**start.seen, self._boot: seen_at}), why_not)

    def _value(self, at_s: float, seen: Mapping[str, float]) -> bytes:
        noted = {boot: round(at, 3) for boot, at in seen.items()}
        return json.dumps({"Node": self._node, "Started": round(at_s, 3), "Seen": noted}).encode()


def _start_in(value: bytes) -> Start | None:
    """Return the start that this value tells of. None: it tells of none."""
    if len(value) > VALUE_BYTES_MAX:
        return None
    try:
        content = json.loads(value)
        seen = {boot: float(at) for boot, at in content["Seen"].items() if isfinite(at)}
        start = Start(float(content["Started"]), seen)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
    return start if isfinite(start.at_s) else None
