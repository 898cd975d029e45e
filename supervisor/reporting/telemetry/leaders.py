"""Who leads each election and who led before, as far as this node has seen it.

Whoever asks a survivor at night gets an answer also when the machine of the former leader is gone. Nothing
here decides anything. Each change is a line of the log that is kept as an event, so the next process knows
the last leader too.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from supervisor.config.formats.json_values import holder_name
from supervisor.core.events import Answered, Event
from supervisor.core.outcomes import KeyView, Won
from supervisor.core.requests import Acquire, ReadKey, WatchKey
from supervisor.reporting.telemetry.formatting import bounded, when

TELL_EVERY_S = 1.0  # of one election: what flaps must not push the tenures out of the events


@dataclass(frozen=True, slots=True)
class Leader:
    """A leader whom this node has seen."""

    name: str  # the node that its value names, or else its session. Another value may be a secret
    session: str
    key: str
    since: str  # when this node saw first that it leads, as events have times
    shown: str = ""  # as status shows it: by its value, also where that names no node. Nothing keeps this


class Leaders:
    """The last leader of each election. ``wall`` returns Unix time."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._seen: dict[str, Leader] = {}
        self._told: dict[str, Leader] = {}
        self._told_at: dict[str, float] = {}
        self.gone: dict[str, tuple[str, str]] = {}  # the session that led before, missed since when
        # Reports a change with the fields of its line. None: earlier events have not been read yet.
        self.tell: Callable[[dict[str, Any]], None] | None = None

    def of(self, item: str, key: str) -> Leader | None:
        """Return the last leader of the election on this key. None: this node has seen none."""
        seen, told = self._seen.get(item), self._told.get(item)
        if seen is not None and told is not None and seen.session == told.session:
            seen = replace(seen, since=told.since)  # an earlier process has seen it first
        led = seen or told
        return led if led is not None and led.key == key else None

    def on_step(self, event: Event) -> None:
        match event:
            case Answered(WatchKey() | ReadKey(prefix="") as request, KeyView(session=session, value=value)):
                self._see(request.item, request.key, session, value)
            case Answered(Acquire(session=session, value=value) as request, Won()):
                self._see(request.item, request.key, session, value)

    def _see(self, item: str, key: str, session: str | None, value: bytes) -> None:
        seen = self._seen.get(item)
        if seen is not None and seen.session not in (session, *self.gone.get(item, ())):
            self.gone[item] = seen.session, when(self._wall())  # a later answer may be an older one
        if not session:
            return
        if seen is None or seen.session != session:
            name, since = holder_name(value), when(self._wall())
            shown = bounded(name or value.decode(errors="replace"))
            self._seen[item] = Leader(bounded(name or session), session, key, since, shown)
        self._tell(item)

    def _tell(self, item: str) -> None:
        """Report the leader of this election, unless the newest report names it or is too young."""
        seen, told, now = self._seen[item], self._told.get(item), self._wall()
        is_told = told is not None and told.session == seen.session
        if is_told or self.tell is None or abs(now - self._told_at.get(item, 0.0)) < TELL_EVERY_S:
            return
        self._told[item], self._told_at[item] = seen, now
        former = {"from": told.name, "since": told.since} if told and told.key == seen.key else {}
        self.tell({"item": item, **former, "to": seen.name, "session": seen.session, "key": seen.key})

    def recall(self, item: str, to: str, session: str, key: str, at: str) -> None:
        """Note a change that an earlier process reported."""
        self._told[item] = Leader(str(to), str(session), str(key), at)

    def begin(self, earlier: "Leaders", tell: Callable[[dict[str, Any]], None]) -> None:
        """Report changes from now on, also those since the end of the earlier process."""
        self._told, self.tell = earlier._told, tell
        for item in self._seen:
            self._tell(item)

    def retain(self, items: Collection[str]) -> None:
        for known in (self._seen, self._told, self._told_at, self.gone):
            for item in known.keys() - set(items):
                del known[item]
