"""What an operator should know of an item, told once although it comes and goes.

What Consul shows may be incomplete for a moment, as after a reconnection: a notice that is over for less than
SETTLE_S and then the same again has not been over.
"""

from collections.abc import Callable
from typing import Any

from supervisor.telemetry.log.names import Level, Name

SETTLE_S = 2.0  # a reconnection and the reads behind it take less


class Notices:
    """The newest notice of each item. ``say`` writes a line; ``clock`` in seconds."""

    def __init__(
        self, say: Callable[[Level, Name, dict[str, Any]], None], clock: Callable[[], float]
    ) -> None:
        self._say = say
        self._clock = clock
        self._told: dict[str, str] = {}
        self._over_since: dict[str, float] = {}

    def noticed(self, item: str, notice: str) -> None:
        """Take what is noticed of this item; blank: nothing any more."""
        if not notice:
            if item in self._told:
                self._over_since[item] = self._clock()
            return
        self._over_since.pop(item, None)
        if self._told.get(item) != notice:
            self._told[item] = notice
            self._say("warning", "notice", {"item": item, "why": notice})

    def tick(self) -> None:
        """Tell what has been over for long enough."""
        now = self._clock()
        for item in [item for item, since in self._over_since.items() if now - since >= SETTLE_S]:
            self._end(item)

    def forget_item(self, item: str) -> None:
        """Forget an item that has ended; what was over is told."""
        if item in self._over_since:
            self._end(item)
        self._told.pop(item, None)

    def _end(self, item: str) -> None:
        del self._over_since[item]
        del self._told[item]
        self._say("info", "notice-over", {"item": item})
