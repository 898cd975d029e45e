"""The events of this node: its tenures and commands, for people who ask what happened, also before a restart.

An event is a line of the log that is kept, by the same name and with the same fields. Texts are cut, and the
newest events are kept within EVENTS_MAX and BYTES_MAX. Each event is kept as JSON, so that an answer with all
of them takes the loop no longer than joining texts.
"""

import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from supervisor.reporting.telemetry.formatting import bounded, when

EVENTS_MAX = 4000  # as many as the file usually holds; a failover has about six
BYTES_MAX = 1 << 20  # of their JSON, because a hook's message may be long
VERSION = 1  # of the JSON; fields may be added, and none changes its meaning or is removed

Event = dict[str, Any]


class EventLog:
    """The newest events of this node. ``wall`` returns Unix time."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._texts: deque[str] = deque()
        self._bytes = 0
        self._commands: dict[tuple[str, str | None], Event] = {}
        self._before = self._commands  # as they were before the newest one
        self.newest_at: str | None = None  # the time of the newest event. None: there is none

    def add(self, name: str, fields: Mapping[str, Any]) -> Event:
        cut = {key: bounded(value) if isinstance(value, str) else value for key, value in fields.items()}
        event = {"time": when(self._wall()), "event": name, **cut}
        if name == "command-received":
            self._before = dict(self._commands)
        self.keep(event)
        return event

    def keep(self, event: Event) -> None:
        """Keep an event that is newer than those that are kept."""
        self.newest_at = event["time"]
        text = json.dumps(event, separators=(",", ":"))
        self._texts.append(text)
        self._bytes += len(text)
        self._drop_oldest()
        if event["event"] in ("command-received", "ordered"):
            self._keep_command(event)

    def prepend(self, earlier: "EventLog") -> None:
        """Keep also the older events of ``earlier``."""
        self._texts.extendleft(reversed(earlier._texts))
        self._bytes += earlier._bytes
        self._drop_oldest()
        self.newest_at = self.newest_at or earlier.newest_at
        later, self._commands = self._commands, dict(earlier._commands)
        for event in later.values():
            self._keep_command(event)

    def _drop_oldest(self) -> None:
        while len(self._texts) > EVENTS_MAX or self._bytes > BYTES_MAX:
            self._bytes -= len(self._texts.popleft())

    def _keep_command(self, event: Event) -> None:
        verb, item = event.get("verb", ""), event.get("item")
        if item is None:  # the command is for all items, so it replaces every earlier command for one item
            self._commands = {key: each for key, each in self._commands.items() if key[0] != verb}
        self._commands.pop((verb, item), None)
        self._commands[verb, item] = event
        if len(self._commands) > EVENTS_MAX:
            del self._commands[next(iter(self._commands))]

    def command(self, verb: str, item: str) -> Event | None:
        """Return the newest command of this kind for the item or for all items. None: none is kept."""
        return self._commands.get((verb, item)) or self._commands.get((verb, None))

    def before(self, verb: str, item: str) -> Event | None:
        """Return the same as ``command``, without the newest command, which is under way."""
        return self._before.get((verb, item)) or self._before.get((verb, None))

    def body(self, newest: int = EVENTS_MAX) -> bytes:
        texts = list(self._texts)[-newest:] if newest else []
        listed = ",\n".join(texts)
        return f'{{"version":{VERSION},"events":[\n{listed}]}}\n'.encode()
