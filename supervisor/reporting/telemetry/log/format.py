"""How a line looks: a sentence with fields in the journal, text on a terminal, one JSON object elsewhere.

systemd connects a service's standard error to the journal and names it in JOURNAL_STREAM. A line of text or
JSON that then begins with ``<3>`` to ``<7>`` gets that priority (SyslogLevelPrefix= in systemd.exec(5)).
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from supervisor.adapters.filesystem.writing import NonBlockingWriter
from supervisor.reporting.telemetry.log.journald import JournalWriter
from supervisor.reporting.telemetry.names import PRIORITIES, Level

Write = Callable[[Level, str, Mapping[str, Any]], None]


def reaches_journal(fd: int, environ: Mapping[str, str]) -> bool:
    """Return whether journald itself reads this descriptor, and not a pipe or file in between."""
    try:
        status = os.fstat(fd)
    except OSError:
        return False  # the descriptor is closed
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def writer(form: str, stream: NonBlockingWriter, journald: JournalWriter, *, journal: bool) -> Write:
    """Return the function that writes an event with its fields in this form.

    ``journal``: whether the stream is the journal, which the form ``auto`` then uses by its own protocol.
    """
    if form == "journal" or (form == "auto" and journal):
        return journald.write
    import structlog  # which journald's own protocol does not need

    is_console = form == "console" or (form == "auto" and stream.isatty())
    time = "timestamp" if is_console else "time"
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True, key=time)
    render: Callable[..., Any] = structlog.processors.JSONRenderer()
    if is_console:
        render = structlog.dev.ConsoleRenderer(colors=stream.isatty(), sort_keys=False)

    def write(level: Level, event: str, fields: Mapping[str, Any]) -> None:
        # First time, level and event, where a person who reads raw lines looks for them, on a terminal then
        # the item and the hook.
        first = ("item", "hook") if is_console else ()
        line = {time: "", "level": level, "event": event}
        line |= {name: fields[name] for name in first if name in fields} | dict(fields)
        prefix = f"<{PRIORITIES[level]}>" if journal else ""
        stream.write(f"{prefix}{render(None, level, stamp(None, level, line))}\n")
        stream.flush()

    return write
