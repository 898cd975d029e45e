"""``status --watch``: reads the daemon's status for each page.

While the daemon does not answer, its last status is shown dim and with its age, because it may be outdated.
"""

import time
from typing import Any

from supervisor.commands.cli.display.table import DIM, RED, lines, of_item, painted
from supervisor.commands.cli.display.text import escape, truncate
from supervisor.reporting.control import fetch

ANSWER_S = 3.0  # a daemon that takes longer is shown as silent


class LiveStatus:
    """The pages of one daemon's status. ``name``: the only item to show. None: all items."""

    def __init__(self, socket_path: str, name: str | None, *, colours: bool) -> None:
        self._socket_path = socket_path
        self._name = name
        self._colours = colours
        self._last: dict[str, Any] | None = None
        self._answered_at = time.monotonic()

    def lines(self, columns: int) -> list[str]:
        try:
            _, status = fetch.status(self._socket_path, within_s=ANSWER_S)
        except fetch.DaemonUnreachable as error:
            return self._silent(str(error), columns)
        self._last, self._answered_at = status, time.monotonic()
        page = lines(self._chosen(status), columns, colours=self._colours)
        if self._name is not None and not self._chosen(status)["items"]:
            page.append(truncate(f"{self._name}: no such election or semaphore now", columns))
        return page

    def _silent(self, why: str, columns: int) -> list[str]:
        since_s = int(time.monotonic() - self._answered_at)
        text = f"no answer from the daemon for {since_s} s, trying again: {escape(why)}"
        page = [painted(truncate(text, columns), RED, self._colours)]
        if self._last is None:
            return page
        last = lines(self._chosen(self._last), columns, colours=False)
        return [*page, "", *(painted(line, DIM, self._colours) for line in ["the last status:", *last])]

    def _chosen(self, status: dict[str, Any]) -> dict[str, Any]:
        return status if self._name is None else of_item(status, self._name)
