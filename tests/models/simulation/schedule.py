"""Virtual time: calls in the order of their times, and of their requests where the times are equal."""

import heapq
from collections.abc import Callable
from typing import Any


class Schedule:
    """The one clock of a simulation; it stands still while something happens."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []
        self._count = 0

    def at(self, at: float, call: Callable[..., object], *arguments: Any) -> None:
        """Make this call at that time, or now if it is past."""
        self._count += 1
        heapq.heappush(self._due, (max(at, self.now), self._count, call, arguments))

    def after(self, delay_s: float, call: Callable[..., object], *arguments: Any) -> None:
        self.at(self.now + delay_s, call, *arguments)

    def run(self, until: float) -> None:
        """Make all calls that are due up to that time."""
        due = self._due
        while due and due[0][0] <= until:
            self.now, _, call, arguments = heapq.heappop(due)
            call(*arguments)
        self.now = until
