"""Whether anything of a process group still runs.

The kernel tells at once whether a group has any process, but counts those that are dead and not
yet reaped by their parent; where process 1 reaps late or never (containers) those stay. Then
``/proc`` tells them apart, at some 15 us for each process of the machine, so it is asked seldom.
"""

import os

SCAN_AFTER_S = 0.02  # by then the dead are usually reaped, and nobody has to ask /proc
DEAD = (b"Z", b"X")  # proc(5)


class RemainingProcesses:
    """What is left of one group. ``now`` is any clock in seconds that does not go back."""

    def __init__(self, group: int, now: float) -> None:
        self._group = group
        self._pause_s = SCAN_AFTER_S
        self._scan_at = now + self._pause_s

    def any_running(self, now: float) -> bool:
        """Whether some process of it may still run; the dead may count for the pause between two
        scans, which doubles from SCAN_AFTER_S on."""
        if not exists(self._group):
            return False
        if now < self._scan_at:
            return True
        self._pause_s *= 2
        self._scan_at = now + self._pause_s
        return runs(self._group)


def exists(group: int) -> bool:
    """Whether the group has any process, dead or alive."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def runs(group: int) -> bool:
    """Whether the group has a process that is not dead; reads all of /proc."""
    return any(_is_alive_in(group, entry) for entry in os.listdir("/proc") if entry.isdigit())


def _is_alive_in(group: int, pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return False  # it has ended since the listing
    state, _, of_group = stat.rpartition(b")")[2].split()[:3]  # the name before may hold anything
    return int(of_group) == group and state not in DEAD
