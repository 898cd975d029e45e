"""The transitions of earlier processes, from the events that they left.

Events become the transitions that the history of their process had. A transition that a crash cut ends where
the next process starts.
"""

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from supervisor.core.actions import Role, RoleChanged
from supervisor.telemetry.event_log import EventLog
from supervisor.telemetry.history import History
from supervisor.telemetry.item_history import Attempt, Transition
from supervisor.telemetry.shown import unix_time

_ENDS = ("hook-succeeded", "hook-failed", "run-ended")


class Past:
    """The histories of earlier processes. Their clock is the time of the event that is replayed."""

    def __init__(self) -> None:
        self._now = 0.0
        self._history = History(lambda: self._now, lambda: self._now)

    def replay(self, event: Mapping[str, Any]) -> None:
        """Take in the next event, the oldest first. One that lacks a field makes no transition."""
        self._history.events.keep(dict(event))
        with suppress(KeyError, TypeError, ValueError):
            self._now = unix_time(event["time"])
            if event["event"] == "started":
                self._history.end_all()
            elif event["event"] == "role":
                role, reason = Role(event["role"]), str(event.get("reason", ""))
                self._history.on_role(RoleChanged(event["item"], role, reason))
            elif event["event"] in _ENDS:
                self._hook_ended(event)

    def _hook_ended(self, event: Mapping[str, Any]) -> None:
        history, ended_at = self._history.of(event["item"]), self._now
        is_run = event["event"] == "run-ended"
        duration_s, kind = float(event.get("duration_s", 0.0)), "run" if is_run else event["event_kind"]
        ok = history.role is Role.LOSING if is_run else event["event"] == "hook-succeeded"
        self._now = ended_at - duration_s
        hook, number = ("run", 1) if is_run else (event["hook"], int(event["attempt"]))
        attempt = Attempt(hook, number, kind, self._now, self._now, ok, duration_s, event.get("detail", ""))
        transition = self._history.transition(history, kind, event["reason"], event.get("transition", ""))
        self._now = ended_at
        transition.attempts.append(attempt)
        if transition is not history.current:
            transition.duration_s = ended_at - transition.began

    def of(self, item: str) -> deque[Transition]:
        """Return the transitions of this item, the newest first."""
        return self._history.of(item).transitions

    def end(self) -> None:
        """End what was under way, because the last of these processes has ended."""
        self._history.end_all()

    @property
    def events(self) -> EventLog:
        """The events that were replayed."""
        return self._history.events
