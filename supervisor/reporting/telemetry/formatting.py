"""Times and texts as the status and the events show them."""

from datetime import UTC, datetime

DETAIL_CHARS_MAX = 500  # of a text from a hook, Consul or the kernel; the log has the whole text


def when(at: float) -> str:
    """Return a time of day as text: UTC, to the millisecond. ``at`` is Unix time."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def unix_time(text: str) -> float:
    """Return the Unix time of a text that ``when`` has made. Raises ValueError."""
    return datetime.fromisoformat(text).timestamp()


def bounded(text: str) -> str:
    """Return the text, or its first DETAIL_CHARS_MAX characters."""
    return text if len(text) <= DETAIL_CHARS_MAX else f"{text[:DETAIL_CHARS_MAX]}…"
