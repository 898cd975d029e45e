"""Processes of hooks: how long each takes, and how it ends.

A crash of the supervisor ends only the run child. The supervisor enforces time limits by its own clock, so
the child of a supervisor that died or stands still goes on.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from supervisor.core.actions import StartHook, StartRun
from tests.models.simulation.schedule import Schedule

LASTS_S = (0.005, 0.4)
SLOW_S = (0.5, 4.0)  # includes times longer than most time limits
TERM_LASTS_S = (0.001, 0.05)
Started = StartHook | StartRun


@dataclass(eq=False, slots=True)
class Child:
    """One process group. ``ok``: whether it will succeed if it is left alone."""

    started: Started
    ok: bool
    number: int
    alive: bool = True
    asked_to_end: bool = False

    @property
    def in_tenure(self) -> bool:
        """Whether it is one of the children that never run side by side."""
        return self.started.context.event not in ("change", "check", "fence")

    @property
    def acts(self) -> bool:
        return isinstance(self.started, StartRun) or self.started.context.event == "acquire"


class Children:
    """The children of one node.

    ended: is called with a child when the child has ended.
    still_until: until then nothing on this machine moves.
    """

    def __init__(self, dice: random.Random, schedule: Schedule, ended: Callable[[Child], None]) -> None:
        self.alive: list[Child] = []
        self.still_until = 0.0
        self._dice = dice
        self._schedule = schedule
        self._ended = ended
        self._count = 0

    def spawn(self, started: Started, *, slow: bool, failing: bool) -> Child:
        """Start a child; the run child lives until it is ended."""
        self._count += 1
        child = Child(started, not failing, self._count)
        self.alive.append(child)
        if isinstance(started, StartHook) or failing:
            lasts_s = self._dice.uniform(*(SLOW_S if slow else LASTS_S))
            self._schedule.after(lasts_s, self._end, child)
        return child

    def terminate(self, child: Child, kill_after_s: float) -> None:
        """Send TERM, and KILL after this time; most children end by TERM."""
        if child.alive and not child.asked_to_end:
            child.asked_to_end = True
            child.ok = False
            stubborn = self._dice.random() < 0.3
            self._schedule.after(
                kill_after_s if stubborn else min(kill_after_s, self._dice.uniform(*TERM_LASTS_S)),
                self._end,
                child,
            )

    def kill(self, child: Child) -> None:
        if child.alive:
            child.alive = child.ok = False
            self.alive.remove(child)

    def exit(self, child: Child) -> bool:
        """End the run child by itself, unless its end was requested."""
        if not isinstance(child.started, StartRun) or child.asked_to_end:
            return False
        self._end(child)
        return True

    def _end(self, child: Child) -> None:
        if not child.alive:
            return
        if self._schedule.now < self.still_until:
            self._schedule.at(self.still_until, self._end, child)
            return
        child.alive = False
        self.alive.remove(child)
        self._ended(child)
