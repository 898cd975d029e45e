"""Processes that KILL has not ended, of hooks that run again and again.

A file system that does not answer may keep even a killed process. Each such process also keeps a descriptor
of ours, so a check every five seconds would leave on_lose neither processes nor descriptors by the end of the
day.
"""

from supervisor.adapters.hooks import group
from supervisor.core.actions import StartHook, StartRun

UNKILLABLE_MAX = 4  # of one hook: after three that hang, a fourth may find a file system that answers
REPEATED = ("check", "change", "fence")  # the events of hooks that a tenure needs neither to begin nor to end


class Unkillable:
    """The process groups that are left, by the hook that began them."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], list[int]] = {}

    def add(self, action: StartHook | StartRun, pgid: int) -> None:
        if _is_repeated(action):
            self._groups.setdefault(_hook_of(action), []).append(pgid)

    def too_many(self, action: StartHook | StartRun) -> bool:
        """Return whether the groups of earlier attempts that are left are too many for a further attempt."""
        if not _is_repeated(action) or (hook := _hook_of(action)) not in self._groups:
            return False
        left = [pgid for pgid in self._groups.pop(hook) if group.exists(pgid) and group.runs(pgid)]
        if left:
            self._groups[hook] = left
        return len(left) >= UNKILLABLE_MAX


def _is_repeated(action: StartHook | StartRun) -> bool:
    return action.context.event in REPEATED


def _hook_of(action: StartHook | StartRun) -> tuple[str, str]:
    return action.context.name, action.hook.name if isinstance(action, StartHook) else "run"
