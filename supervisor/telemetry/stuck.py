"""What is told of an item that is stuck, the same in the log, the status and replies to commands.

An item is stuck because a hook of the lose side failed, and only an operator can say that nothing of
it acts any more. The text names that hook and the whole command to give.
"""

from supervisor.core.events import HookEnded


def failure_of(event: HookEnded) -> str:
    """Say which hook failed, and how."""
    return f"{event.started.hook.name} failed: {event.detail}"


def why_stuck(failure: str) -> str:
    """Say why; ``failure`` is blank where an earlier process ran the hook."""
    return failure or "on_lose failed before this process began, as the log of that time tells"


def remedy(item: str, *, ended: bool = False) -> str:
    """Say what an operator is to do; ``ended``: the supervisor does not run any more."""
    first = "see that nothing of it still acts, then run"
    if ended:
        first = "see that nothing of it still acts, start the supervisor again, then run"
    return f"{first}: consul-supervisor recover {item}"
