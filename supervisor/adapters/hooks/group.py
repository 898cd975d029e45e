"""Finds out whether any process of a process group still runs.

The kernel shows at once whether a group has any process (kill(2)), but counts dead processes that their
parent has not reaped yet. Where process 1 reaps late or never (containers), those stay, and only ``/proc``
shows that they are dead. ``/proc`` lists each process of the machine, so it is read seldom.
"""

import os
from collections.abc import Iterable
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
    return bool(members([group]))


def names(group: int) -> list[str]:
    """Return the first NAMES_MAX names of programs that run in the group, without their arguments."""
    return sorted({name for found in members([group]).values() for name, _ in found})[:NAMES_MAX]


def members(groups: Iterable[int]) -> dict[int, list[tuple[str, str]]]:
    """Return the name and number of each process that is not dead, by group. ``?``: no look is possible."""
    found: dict[int, list[tuple[str, str]]] = {}
    existing = {group for group in groups if exists(group)}
    try:
        pids = os.listdir("/proc") if existing else []
    except OSError:  # such as EMFILE, which ends no process
        return {group: [("?", str(group))] for group in existing}
    for pid in filter(str.isdigit, pids):
        with suppress(OSError):  # it has ended since the listing, or is none of ours
            if (group := os.getpgid(int(pid))) in existing and (name := _name(pid)):
                found.setdefault(group, []).append((name, pid))
    return found


def _name(pid: str) -> str:
    """Return the name of a process. Blank: it is dead or gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError as error:
        return "" if isinstance(error, ProcessLookupError | FileNotFoundError) else "?"
    name, _, rest = stat.partition(b"(")[2].rpartition(b")")  # the name may have any bytes
    state, *more = rest.split()
    is_dead = state in DEAD and more[16] == b"1"  # of several threads another one may live
    return "" if is_dead else printable(name) or "?"
