"""The transitions of earlier processes, from the events that they left.

Events become the transitions that the history of their process had. A transition that a crash cut ends where
the next process starts.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from supervisor.reporting.telemetry.formatting import unix_time
from supervisor.reporting.telemetry.history import History

_BEGINS = {"hook-succeeded": "hook-started", "hook-failed": "hook-started", "run-ended": "run-started"}


class Replay:
    """Makes the history of earlier processes. Its clock is the time of the event that is replayed."""

    def __init__(self) -> None:
        self._now = 0.0
        self.history = History(lambda: self._now, lambda: self._now)

    def event(self, event: Mapping[str, Any]) -> None:
        """Take in the next event, the oldest first. One that lacks a field makes no transition."""
        self.history.events.keep(dict(event))
        with suppress(KeyError, TypeError, ValueError):
            at, name = unix_time(event["time"]), event["event"]
            if name in _BEGINS:  # only the end of a hook is an event
                self._now = at - float(event.get("duration_s", 0.0))
                self.history.note(_BEGINS[name], event)
            self._now = at
            if name == "started":
                self.history.end_all()
            else:
                self.history.note(name, event)
