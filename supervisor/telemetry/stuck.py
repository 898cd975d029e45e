"""The texts about an item that is stuck, for the log, the status and the replies to commands.

An item is stuck because a hook of the lose side failed, and only an operator can confirm that nothing of the
item acts any more. The texts name that hook and the whole command that the operator runs.
"""

from supervisor.core.events import HookEnded


def failure_of(event: HookEnded) -> str:
    """Return which hook failed, and how."""
    return f"{event.started.hook.name} failed: {event.detail}"


def why_stuck(failure: str) -> str:
    """Return why an item is stuck. ``failure`` is blank when an earlier process ran the hook."""
    return failure or "on_lose failed before this process began, see the log of that time"


def remedy(item: str, *, ended: bool = False) -> str:
    """Return what an operator does about a stuck item. ``ended``: the supervisor no longer runs."""
    first = "see that nothing of it still acts, then run"
    if ended:
        first = "see that nothing of it still acts, start the supervisor again, then run"
    return f"{first}: consul-supervisor recover {item}"
