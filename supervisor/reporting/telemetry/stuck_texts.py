"""The texts about an item that is stuck, for the log, the status and the replies to commands.

An item is stuck because a hook of the lose side failed, and only an operator can confirm that nothing of the
item acts any more. The texts name that hook and the whole command that the operator runs.
"""

FAILED_BEFORE = "on_lose failed before this process began, see the log of that time"


def remedy(item: str, *, ended: bool = False) -> str:
    """Return what an operator does about a stuck item. ``ended``: the supervisor no longer runs."""
    again = "start the supervisor again, " if ended else ""
    return f"see that nothing of it still acts, {again}then run: consul-supervisor recover {item}"
