"""Finds out whether any process of a process group still runs.

The kernel shows at once whether a group has any process (kill(2)), but counts dead processes that their
parent has not reaped yet. Where process 1 reaps late or never (containers), those stay, and only ``/proc``
shows that they are dead. Reading ``/proc`` takes some 15 us for each process of the machine, so it is read
seldom.
"""

import os
from contextlib import suppress

from supervisor.adapters.hooks.output import printable

SCAN_AFTER_S = 0.02  # by then the dead are usually reaped, so that no scan is needed
NAMES_MAX = 8  # of processes that are left, in one line of the log
DEAD = (b"Z", b"X")  # states in /proc/PID/stat: zombie and dead, proc(5)


class RemainingProcesses:
    """The processes of one group that may still run. ``now``: seconds of a clock that does not go back."""

    def __init__(self, group: int, now: float) -> None:
        self._group = group
        self._pause_s = SCAN_AFTER_S
        self._scan_at = now + self._pause_s

    def any_running(self, now: float) -> bool:
        """Return whether some process of the group may still run.

        Dead processes may count until the next scan of ``/proc``. The pause before a scan begins with
        SCAN_AFTER_S and doubles with each scan.
        """
        if not exists(self._group):
            return False
        if now < self._scan_at:
            return True
        self._pause_s *= 2
        self._scan_at = now + self._pause_s
        return runs(self._group)


def exists(group: int) -> bool:
    try:
        with suppress(PermissionError):  # of a process that runs as another user
            os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def runs(group: int) -> bool:
    """Return whether the group has a process that is not dead. Reads all of ``/proc``."""
    return bool(names(group))


def names(group: int) -> list[str]:
    """Return the first NAMES_MAX names of programs that run in the group, without their arguments."""
    found = {name for entry in os.listdir("/proc") if entry.isdigit() and (name := _name_in(group, entry))}
    return sorted(found)[:NAMES_MAX]


def _name_in(group: int, pid: str) -> str:
    """Return the name of a process of the group. Blank: it is dead, or of another group."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return ""  # the process has ended since the listing
    name, _, rest = stat.partition(b"(")[2].rpartition(b")")  # the name may have any bytes
    state, _, of_group = rest.split()[:3]
    return printable(name) or "?" if int(of_group) == group and state not in DEAD else ""
