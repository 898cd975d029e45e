"""Times and texts as the log, the status, the events and the replies to commands show them.

An item is stuck because a hook of the lose side failed, and only an operator can confirm that nothing of it
acts any more. So its texts name that hook and the whole command that the operator runs.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from supervisor.core.actions import Fault

DETAIL_CHARS_MAX = 500  # of a text from a hook, Consul or the kernel; the log has the whole text
FAILED_BEFORE = "on_lose failed before this process began, see the log of that time"


def when(at: float) -> str:
    """Return a time of day as text: UTC, to the millisecond. ``at`` is Unix time."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def unix_time(text: str) -> float:
    """Return the Unix time of a text that ``when`` has made. Raises ValueError."""
    return datetime.fromisoformat(text).timestamp()


def bounded(text: str) -> str:
    return text if len(text) <= DETAIL_CHARS_MAX else f"{text[:DETAIL_CHARS_MAX]}…"


def cannot_start(fault: Fault) -> str:
    return f"{fault.hook} cannot start: {fault.why}: {fault.remedy}"


def kept_in_silence(since: Mapping[str, str | None]) -> str:
    """Return why a command should not stop these items. Blank: it may. since: ``silent_since`` of each."""
    if not (silent := {name: at for name, at in since.items() if at}):
        return ""
    why = f"Consul is silent since {min(silent.values())}, so nobody could take over {', '.join(silent)}"
    waits = "another node has waited by the tenure record or fenced this machine, unless the session lives"
    return f"{why}: the application would stop, and stay stopped until Consul is back and {waits}"


def remedy(item: str, *, ended: bool = False) -> str:
    """Return what an operator does about a stuck item. ``ended``: the supervisor no longer runs."""
    again = "start the supervisor again, " if ended else ""
    return f"see that nothing of it still acts, {again}then run: consul-supervisor recover {item}"
