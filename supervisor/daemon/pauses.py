"""Ends each pause whose time is over.

The time is Unix time, because a pause lasts over restarts and boots. So a clock that is set forward ends a
pause early, and one that is set back ends it late.
"""

import asyncio
from collections.abc import Sequence

from supervisor.core.actions import Action
from supervisor.core.contender.state import Contender
from supervisor.core.events import ConfigLoaded, Event, PauseAsked, PauseOver
from supervisor.core.times import LONG_AGO, NEVER
from supervisor.daemon.shared import Shared

LOOK_EVERY_S = 60.0  # because a clock may be set, and an item may not have begun yet
LOOK_AGAIN_S = 1.0


class Pauses:
    """The pauses of one node."""

    def __init__(self, shared: Shared) -> None:
        self._shared, self._contenders = shared, shared.contenders
        self._timer: asyncio.TimerHandle | None = None

    def on_step(self, event: Event, actions: Sequence[Action]) -> None:
        if isinstance(event, PauseAsked | ConfigLoaded):
            self.look_again()

    def look_again(self) -> None:
        """Look when the next pause is over. Nothing is armed while no pause has an end."""
        self.close()
        known = (self._contenders.not_begun | self._contenders.by_name).values()
        ends = [each.paused_until for each in known if _has_end(each)]
        if ends:
            delay_s = min(max(min(ends) - self._shared.wall(), LOOK_AGAIN_S), LOOK_EVERY_S)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._end)

    def _end(self) -> None:
        now = self._shared.wall()
        for name, contender in tuple(self._contenders.by_name.items()):
            if _has_end(contender) and contender.paused_until <= now:
                self._shared.log.line("info", "pause-over", item=name)
                self._shared.dispatch(PauseOver(name))
        self.look_again()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _has_end(contender: Contender) -> bool:
    """Return whether its pause ends by itself. What winds up contends no more; the next process ends it."""
    return LONG_AGO < contender.paused_until < NEVER and not contender.winding_up
