"""How a line looks: a sentence with fields in the journal, text on a terminal, one JSON object elsewhere.

systemd connects a service's standard error to the journal and names it in JOURNAL_STREAM. A line of text or
JSON that then begins with ``<3>`` to ``<7>`` gets that priority (SyslogLevelPrefix= in systemd.exec(5)).
"""

import os
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, TextIO, cast

import structlog

from supervisor.adapters.filesystem.writing import NonBlockingWriter
from supervisor.reporting.telemetry.log.journald import JournalWriter
from supervisor.reporting.telemetry.names import PRIORITIES, Level, Name

Write = Callable[[Level, Name, Mapping[str, Any]], None]


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
    logger = _logger(form, stream, journal=journal)
    return lambda level, event, fields: getattr(logger, level)(event, **fields)


def _logger(form: str, stream: NonBlockingWriter, *, journal: bool) -> Any:
    console = form == "console" or (form == "auto" and stream.isatty())
    renderer: Callable[..., Any] = structlog.processors.JSONRenderer()
    if console:
        renderer = structlog.dev.ConsoleRenderer(colors=stream.isatty(), sort_keys=False)
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp" if console else "time")
    in_order = [_item_first if console else _in_order]
    rendered = _with_priority(renderer) if journal else renderer
    return structlog.wrap_logger(
        structlog.PrintLogger(cast(TextIO, stream)),
        processors=[structlog.processors.add_log_level, stamp, *in_order, rendered],
        wrapper_class=structlog.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _in_order(logger: Any, method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Put time, level and event first, where a person who reads raw lines looks for them."""
    return {"time": fields["time"], "level": fields["level"], "event": fields["event"]} | dict(fields)


def _item_first(logger: Any, method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Put the item and the hook of a line before its details."""
    return {name: fields[name] for name in ("item", "hook") if name in fields} | dict(fields)


def _with_priority(renderer: Callable[..., Any]) -> Callable[..., str]:
    def rendered(logger: Any, method: str, fields: MutableMapping[str, Any]) -> str:
        priority = PRIORITIES[cast(Level, fields["level"])]
        return f"<{priority}>{renderer(logger, method, fields)}"

    return rendered
