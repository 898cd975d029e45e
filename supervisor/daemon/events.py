"""The events of this node beside its records: read after the start, and written after everything urgent.

A lack of room or a file that cannot be read costs events and nothing else, and the log reports each failure.
"""

import asyncio
from collections import deque
from typing import Any

from supervisor.adapters.journal.event_file import BATCH_MAX, EventFile, events_of, lines_in
from supervisor.daemon.shared import Shared
from supervisor.reporting.telemetry.event_log import EVENTS_MAX
from supervisor.reporting.telemetry.history import Replay

DELAY_S = 0.05  # so that the hook whose begin is an event begins first, and one write has several events
RETRY_S = 10.0  # after a failure, such as a lack of room
READ_AT_ONCE = 25  # lines in one turn of the loop, which take it half a millisecond


class Events:
    """The events of one daemon, from the lines that the log keeps to the file in its state directory."""

    def __init__(self, shared: Shared, folder: str, machine: str) -> None:
        self._log, self._history = shared.log, shared.history
        self._items = shared.status.items  # whose transitions are still of interest
        self._folder, self._machine = folder, machine
        self._file = EventFile(folder, machine)
        self._pending: deque[dict[str, Any]] = deque(maxlen=EVENTS_MAX)
        self._timer: asyncio.TimerHandle | None = None
        self._read = False
        shared.log.keep = self._add

    def _add(self, name: str, fields: dict[str, Any]) -> None:
        if name == "command" and not fields.get("why"):
            return  # it was carried out, as the events since ``command-received`` show
        self._pending.append(self._history.events.add(name, fields))
        self._write_in(DELAY_S)

    # --- reading -------------------------------------------------------------------------------

    async def restore(self) -> None:
        """Read the events of earlier processes, piece by piece, and write those of this one from then on."""
        past, lines = Replay(), list[bytes]()
        try:
            lines = lines_in(self._folder)
        except OSError as error:
            self._failed(error)
        for number, event in enumerate(events_of(lines, self._machine)):
            if event is not None:
                past.event(event)
            if number % READ_AT_ONCE == 0:
                await asyncio.sleep(0)
        past.history.end_all()
        self._history.events.prepend(past.history.events)
        for item in self._items():
            self._history.recall(item, past.history.of(item).transitions)
        past.history.leaders.retain(tuple(self._items()))
        self._history.leaders.begin(
            past.history.leaders, lambda fields: self._log.line("info", "leader-changed", **fields)
        )
        self._read = True
        self._write_in(DELAY_S)

    # --- writing -------------------------------------------------------------------------------

    def _write_in(self, delay_s: float) -> None:
        if self._read and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._write)

    def _write(self) -> None:
        """Write the pending events, at most BATCH_MAX of them in one turn of the loop."""
        self._timer = None
        try:
            self._append()
        except OSError as error:
            self._failed(error)
            self._write_in(RETRY_S)
            return
        self._log.noted("events-failed", "", "")
        if self._pending:
            self._write_in(0.0)

    def _append(self) -> None:
        batch = [self._pending[at] for at in range(min(BATCH_MAX, len(self._pending)))]
        if batch:
            self._file.append(batch)
        for _ in batch:
            self._pending.popleft()

    def _failed(self, error: OSError) -> None:
        self._log.noted("events-failed", "", f"cannot use the file of events: {error.strerror}")

    def close(self) -> None:
        """Write the pending events. Nothing may be logged afterwards."""
        if self._timer is not None:
            self._timer.cancel()
        try:
            while self._pending:
                self._append()
        except OSError as error:
            self._failed(error)
