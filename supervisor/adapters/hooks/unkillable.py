"""Processes that KILL has not ended, and that may therefore still act.

A file system that does not answer may keep even a killed process, and so a descriptor of ours. A check every
five seconds would leave on_lose neither processes nor descriptors by the end of the day.
"""

import asyncio
from collections.abc import Callable

from supervisor.adapters.hooks.group import NAMES_MAX, exists, members
from supervisor.core.actions import StartHook, StartRun

UNKILLABLE_MAX = 4  # of one hook: after three that hang, a fourth may find a file system that answers
REPEATED = ("check", "change", "fence")  # the events of hooks that a tenure needs neither to begin nor to end
LOOK_S, LOOK_MAX_S = 0.25, 4.0  # the pause between two looks at the groups, doubled up to the maximum


class Unkillable:
    """The process groups of which KILL has left processes."""

    def __init__(self, ended: Callable[[int], None], survive: Callable[[str, str], None]) -> None:
        self._ended = ended  # receives the number of each group of which nothing is left
        self._survive = survive  # receives an item, and what is left of its tenure now. Blank: nothing
        self._owners: dict[int, tuple[str, str]] = {}  # by the number of the group: see ``owner_of``
        self._left: dict[int, list[tuple[str, str]]] = {}  # what the last look has found of each group
        self._pause_s = LOOK_S
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, group: int, item: str, hook: str = "") -> None:
        """Look at a group that has been killed or has ended, until nothing of it is left."""
        if not exists(group):
            self._ended(group)
            return
        self._owners[group] = item, hook
        self._pause_s = LOOK_S
        self._look()

    def _look(self) -> None:
        """Look at all groups by one reading of ``/proc``, and again after a longer pause if any is left."""
        before, self._left = self._left, members(self._owners)
        changed = {owner for each, owner in self._owners.items() if before.get(each) != self._left.get(each)}
        for group in self._owners.keys() - self._left.keys():
            del self._owners[group]
            self._ended(group)
        if self._timer is not None:
            self._timer.cancel()
        if self._left:
            self._timer = asyncio.get_running_loop().call_later(self._pause_s, self._look)
            self._pause_s = min(2 * self._pause_s, LOOK_MAX_S)
        for item in (item for item, hook in changed if not hook):
            of_tenure = [found for each, found in self._left.items() if self._owners[each] == (item, "")]
            left = [f"{name} ({pid})" for found in of_tenure for name, pid in found]
            self._survive(item, "KILL has not ended " + ", ".join(left[:NAMES_MAX]) if left else "")

    def too_many(self, action: StartHook | StartRun) -> bool:
        """Return whether the groups of earlier attempts that are left are too many for a further attempt."""
        owner = owner_of(action)
        return bool(owner[1]) and list(self._owners.values()).count(owner) >= UNKILLABLE_MAX


def owner_of(action: StartHook | StartRun) -> tuple[str, str]:
    """Return the item, and the hook that runs again and again. Blank: its tenure needs the action."""
    item, event = action.context.name, action.context.event
    return item, action.hook.name if isinstance(action, StartHook) and event in REPEATED else ""
