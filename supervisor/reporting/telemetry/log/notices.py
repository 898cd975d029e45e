"""The notices about items, each logged once although it comes and goes.

Consul's view may be incomplete for a moment, as after a reconnection. So a notice that ends and comes back
unchanged within SETTLE_S counts as one.
"""

from collections.abc import Callable
from typing import Any

from supervisor.reporting.telemetry.names import Level, Name

SETTLE_S = 2.0  # a reconnection and the reads after it take less


class Notices:
    """The newest notice of each item. ``write`` writes a line; ``clock`` returns seconds."""

    def __init__(
        self, write: Callable[[Level, Name, dict[str, Any]], None], clock: Callable[[], float]
    ) -> None:
        self._write = write
        self._clock = clock
        self._logged: dict[str, str] = {}
        self._over_since: dict[str, float] = {}

    def noticed(self, item: str, notice: str) -> None:
        """Take the notice of this item. Blank: there is none any more."""
        if not notice:
            if item in self._logged:
                self._over_since[item] = self._clock()
            return
        self._over_since.pop(item, None)
        if self._logged.get(item) != notice:
            self._logged[item] = notice
            self._write("warning", "notice", {"item": item, "why": notice})

    def tick(self) -> None:
        """Log the end of each notice that has been over for long enough."""
        now = self._clock()
        for item in [item for item, since in self._over_since.items() if now - since >= SETTLE_S]:
            self._end(item)

    def forget_item(self, item: str) -> None:
        """Forget an item that has ended. If its notice was over, log the end."""
        if item in self._over_since:
            self._end(item)
        self._logged.pop(item, None)

    def _end(self, item: str) -> None:
        del self._over_since[item]
        del self._logged[item]
        self._write("info", "notice-over", {"item": item})
