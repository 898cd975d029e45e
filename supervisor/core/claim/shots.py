"""The shots of this process: one run of the fence serves every guard behind the same boot of a machine.

A machine that is lost may have led many elections, and what switches machines off may take few sessions at a
time. Of all guards whose records name one boot of one machine, by one name to one fence, only one runs the
fence, and the others wait for it. Its success proves that this boot is over, so it ends each of them, and
each that reads such a record later. It says nothing of a tenure that began after the one of the guard that
shot: a machine that was put back to an earlier state of its memory has the same boot. A machine without an
id, and a guard that may shoot nobody, share nothing.
"""

from collections.abc import Iterator

from supervisor.core.claim.guard import Boot, Guard, GuardEnd, Shots
from supervisor.core.frozen import replace
from supervisor.core.machines.tenure import Tenure
from supervisor.core.settings import Fence
from supervisor.core.times import LONG_AGO

OVER_MAX = 64  # shots that are remembered


class SharedShots:
    """The guards of all items, by the boot that they wait for."""

    def __init__(self) -> None:
        self._behind: dict[str, Boot] = {}  # by item: the boot that its guard waits for
        self._runs: dict[str, Boot] = {}  # by item: the boot for which its fence runs, or is to be repeated
        self._over: tuple[tuple[Boot, int], ...] = ()  # that of ``Shots``

    def informed(self, item: str, guard: Guard) -> Guard:
        """Return the guard of this item, which knows of the shots of the others."""
        others = frozenset(boot for each, boot in self._runs.items() if each != item)
        return replace(guard, shots=Shots(others, self._over))

    def note(
        self, item: str, guard: Guard | None, tenure: Tenure | None, fence: Fence | None
    ) -> Iterator[str]:
        """Note what the guard of this item does now, and yield the items that need a step because of it."""
        boot = None if guard is None or guard.end is not None else guard.boot(fence)
        if boot is not None:
            self._behind[item] = boot
        else:
            self._behind.pop(item, None)
        ran = self._runs.get(item)
        if _shoots(guard, tenure):
            if ran is None and boot is not None:
                self._runs[item] = boot
            return
        if ran is None:
            return
        del self._runs[item]
        if guard is not None and tenure is not None and guard.end is GuardEnd.FENCED:
            self._over = (*self._over, (ran, tenure.token))[-OVER_MAX:]
        yield from [each for each, behind in self._behind.items() if behind == ran]


def _shoots(guard: Guard | None, tenure: Tenure | None) -> bool:
    """Return whether the fence runs, is being killed, or waits for its next attempt."""
    if tenure is None:
        return False
    hooks = tenure.hooks
    if hooks.running is not None:
        return hooks.running.context.event == "fence"
    return guard is not None and hooks.due_at > LONG_AGO
