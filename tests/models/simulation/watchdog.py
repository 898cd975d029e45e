"""The watchdog device of a machine, which resets it in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from supervisor.core.settings import Watchdog
from tests.support.watchdog import FakeKernel

if TYPE_CHECKING:
    from tests.models.simulation.machine import Machine

WATCHDOG = Watchdog("/dev/watchdog", 4.0)
EARLY_S = 1e-6  # of a call, because times are floats


class MachineKernel(FakeKernel):
    """The kernel of one machine. Each feed schedules the look at which the machine may be reset."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        super().__init__(has_s=int(WATCHDOG.timeout_s))

    @property
    def now(self) -> float:
        return self._machine.clock.local(self._machine.schedule.now)

    @now.setter
    def now(self, now: float) -> None:
        """Leave the time to the schedule."""

    def _ping(self) -> None:
        super()._ping()
        self._look_later()

    def _look_later(self) -> None:
        assert self.fires_at is not None
        self._machine.schedule.at(self._machine.clock.true(self.fires_at), self._look)

    def _look(self) -> None:
        if self.fires_at is not None and self.now >= self.fires_at - EARLY_S:
            self._machine.reset()

    def stand_still(self, for_s: float) -> None:
        """Let the device stand still with its machine."""
        if self.fires_at is not None:
            self.fires_at += for_s * self._machine.clock.rate
            self._look_later()

    def boot(self) -> None:
        """Begin without a device that runs."""
        self.fires_at, self.is_open = None, False
