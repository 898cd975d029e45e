"""The shots of this process: one run of the fence serves every guard behind the same boot of a machine.

A machine that is lost may have led many elections, and what switches machines off may take few sessions at a
time. Of all guards whose records name one boot of one machine, by one name to one fence, only one runs the
fence, and the others wait for it. Its success proves that this boot is over, so it ends each of them, and
each that reads such a record later. It says nothing of a tenure that began after the one of the guard that
shot: a machine that was put back to an earlier state of its memory has the same boot. A machine without an
id, and a guard that may shoot nobody, share nothing.
"""

from collections.abc import Iterator

from supervisor.core.claim.guard import Boot, GuardEnd, Shots
from supervisor.core.contender.state import Contender
from supervisor.core.frozen import replace
from supervisor.core.times import LONG_AGO

OVER_MAX = 64  # shots that are remembered


class SharedShots:
    """The guards of all items, by the boot that they wait for."""

    def __init__(self) -> None:
        self._behind: dict[str, Boot] = {}  # by item: the boot that its guard waits for
        self._runs: dict[str, Boot] = {}  # by item: the boot for which its fence runs, or is to be repeated
        self._over: dict[Boot, int] = {}  # the fencing token of the guard that has shot

    def informed(self, contender: Contender) -> Contender:
        """Return the contender whose guard knows of the shots of the others."""
        guard, name = contender.guard, contender.settings.name
        if guard is None:
            return contender
        others = frozenset(boot for each, boot in self._runs.items() if each != name)
        guard = replace(guard, shots=Shots(others, tuple(self._over.items())))
        return replace(contender, claim=replace(contender.claim, guard=guard))

    def note(self, contender: Contender) -> Iterator[str]:
        """Note what this contender's guard does now, and yield the items that need a step because of it."""
        name, guard, tenure = contender.settings.name, contender.guard, contender.tenure
        boot = None if guard is None or guard.end is not None else guard.boot(contender.settings.fence)
        if boot is not None:
            self._behind[name] = boot
        else:
            self._behind.pop(name, None)
        ran = self._runs.get(name)
        if _runs(contender):
            if ran is None and boot is not None:
                self._runs[name] = boot
            return
        if ran is None:
            return
        del self._runs[name]
        if guard is not None and tenure is not None and guard.end is GuardEnd.FENCED:
            self._over = dict([*self._over.items(), (ran, tenure.token)][-OVER_MAX:])
        yield from [each for each, behind in self._behind.items() if behind == ran]


def _runs(contender: Contender) -> bool:
    """Return whether its fence runs, is being killed, or waits for its next attempt."""
    if contender.tenure is None:
        return False
    hooks = contender.tenure.hooks
    if hooks.running is not None:
        return hooks.running.context.event == "fence"
    return contender.guard is not None and hooks.due_at > LONG_AGO
