"""The shots of this process: one run of the fence serves every guard behind the same boot of a machine.

A machine that is lost may have led many elections, and what switches machines off may take few sessions at a
time. Of all guards whose records name one boot of one machine, by one name to one fence, only one runs the
fence, and the others wait for it. Its success proves that this boot is over, so it ends each of them, and
each that reads such a record later. It says nothing of a tenure that began after the one of the guard that
shot: a machine that was put back to an earlier state of its memory has the same boot. A machine without an
id, and a guard that may shoot nobody, share nothing. A run goes on after its own guard has ended, for as
long as another one waits for it.

With ``fence_limit`` or a fleet each run is granted before it begins (``core.claim.grants``).
"""

from collections.abc import Iterator

from supervisor.core.actions import KillHook, StartHook
from supervisor.core.claim.grants import Grants, Want
from supervisor.core.claim.guard import Guard, Shots
from supervisor.core.claim.notes import Boot, Shot, note_of
from supervisor.core.frozen import replace
from supervisor.core.machines.tenure import Tenure
from supervisor.core.settings import Fence
from supervisor.core.times import LONG_AGO, NEVER

OVER_MAX = 64  # shots that are remembered


class SharedShots:
    """The guards of all items, by the boot that they wait for."""

    def __init__(self) -> None:
        self.grants = Grants()
        self._behind: dict[str, Boot] = {}  # by item: the boot that its guard waits for
        self._runs: dict[str, Boot] = {}  # by item: the boot for which its fence runs, or is to be repeated
        self._orphans: dict[StartHook, Shot] = {}  # the runs that go on without their guard
        self._killed: set[StartHook] = set()  # of these
        self._over: tuple[Shot, ...] = ()

    def informed(self, item: str, guard: Guard, fence: Fence | None) -> Guard:
        """Return the guard of this item, which knows of the shots of the others."""
        runs = [boot for each, boot in self._runs.items() if each != item]
        runs += [shot.boot for shot in self._orphans.values()]
        under_way, grants = frozenset(boot for boot in runs if boot.is_known), self.grants
        granted = frozenset(grants.granted) if fence is not None and fence.asks else None
        return replace(guard, shots=Shots(under_way, self._over, granted, grants.limited))

    def note(
        self, item: str, guard: Guard | None, tenure: Tenure | None, fence: Fence | None, now: float
    ) -> Iterator[str]:
        """Note what the guard of this item does now, and yield the items that need a step because of it."""
        boot = None if guard is None or guard.end is not None else guard.boot(fence)
        former = self._behind.pop(item, None)
        if boot is not None:
            self._behind[item] = boot
        ran = self._runs.get(item)
        if tenure is not None and _shoots(guard, tenure):
            if ran is None and boot is not None and guard is not None:
                self._runs[item] = boot
                self.grants.begun(note_of(boot, tenure.token, _named(guard), now))
            elif ran is not None and tenure.hooks.deadline < NEVER:
                self.grants.give_back(ran)  # all its methods have failed, so another node may try
        elif ran is not None:
            del self._runs[item]
            shot = None
            if guard is not None and tenure is not None and guard.has_shot:
                shot = Shot(ran, tenure.token, guard.method)
            yield from self._ended(ran, shot)
        if boot is not None and guard is not None and guard.wants_shot and fence is not None and fence.asks:
            assert tenure is not None and guard.record is not None, "it wants no shot"
            note = note_of(boot, tenure.token, _named(guard), now)
            self.grants.want(boot, Want(item, fence, guard.record.token, note))
        if former not in (None, boot):
            self.grants.forget_others({*self._behind.values(), *self._runs.values()})

    def _ended(self, boot: Boot, shot: Shot | None) -> list[str]:
        """Note the end of a run, and return the items whose guards wait for it. shot: it has succeeded."""
        self.grants.give_back(boot, shot)
        if shot is not None:
            self._over = (*self._over, shot)[-OVER_MAX:]
        return [each for each, behind in self._behind.items() if behind == boot]

    def news(self) -> list[str]:
        """Return the items that need a step because of what was granted, or of what other nodes have shot."""
        news, self.grants.news = self.grants.news, set()
        self._over = (*self._over, *self.grants.over)[-OVER_MAX:]
        self.grants.over.clear()
        return [each for each, behind in self._behind.items() if behind in news]

    # --- runs that go on without their guard ------------------------------------------------------------

    def take_over(self, item: str, started: StartHook) -> bool:
        """Return whether a run goes on that its own item would kill, because another guard waits for it."""
        boot, context = self._runs.get(item), started.context
        others = {behind for each, behind in self._behind.items() if each != item}
        if context.event != "fence" or boot is None or not boot.is_known or boot not in others:
            return False
        del self._runs[item]
        method = "" if context.previous is None else context.previous.method
        self._orphans[started] = Shot(boot, context.fencing_token or 0, method)
        return True

    def orphan_ended(self, started: StartHook, *, ok: bool) -> list[str]:
        """Note the end of such a run, and return the items that need a step. Another run changes nothing."""
        shot = self._orphans.pop(started, None)
        self._killed.discard(started)
        return [] if shot is None else self._ended(shot.boot, shot if ok else None)

    def unwanted(self) -> list[KillHook]:
        """Return the end of each such run for which no guard waits any more."""
        awaited = self._behind.values()
        idle = [each for each, shot in self._orphans.items() if shot.boot not in awaited]
        ends = [KillHook(each) for each in idle if each not in self._killed]
        self._killed.update(idle)
        return ends

    @property
    def lasts(self) -> bool:
        """Whether a run goes on without its guard, for which the process waits."""
        return bool(self._orphans)


def _named(guard: Guard) -> str:
    """Return how a note names this process, because two daemons may be on one host."""
    return f"{guard.here.host} {guard.here.journal[:8]}"


def _shoots(guard: Guard | None, tenure: Tenure) -> bool:
    """Return whether the fence runs, is being killed, or is about to try its next method."""
    hooks = tenure.hooks
    if hooks.running is not None:
        return hooks.running.context.event == "fence"
    if guard is None or guard.end is not None or not hooks.attempts:
        return False
    return hooks.due_at > LONG_AGO or guard.wants_shot
