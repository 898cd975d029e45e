"""What a refused token lacks, in the words of Consul's policies.

Consul 1.8 says "Permission denied" and no more. This names the rule that the request needed, to be
pasted into a policy, or whose token Consul did not know. It must never show a token.
"""

from supervisor.core.actions import (
    Acquire,
    CreateSession,
    DestroySession,
    Enroll,
    Leave,
    ReadKey,
    ReadSession,
    ReadSlots,
    Release,
    RenewSession,
    Request,
    Rewrite,
    SetRoster,
    TakeSlot,
    WatchKey,
    WatchSlots,
)
from supervisor.core.settings import LOCK_SUFFIX

UNKNOWN_TOKEN = "ACL not found"  # Consul's words for a token that was deleted, or never was


def remedy(token: str, request: Request, said: str) -> str:
    """What would mend the refusal ``said`` of this request; ``token`` is what it is called."""
    if UNKNOWN_TOKEN in said:
        return unknown(token)
    return f"{token} needs {needed(request)}"


def unknown(token: str) -> str:
    """Of a token that Consul does not know."""
    return f"Consul does not know {token}: it was deleted or mistyped"


def needed(request: Request) -> str:
    """The rule of a policy without which Consul refuses this request."""
    match request:
        case CreateSession() | RenewSession() | DestroySession():
            return _rule("session", "NAME-OF-THE-AGENTS-NODE", "write")
        case ReadSession():
            return _rule("session", "NAME-OF-THE-AGENTS-NODE", "read")
        case Rewrite(key=key, of_slot=True):
            return _rule("key_prefix", f"{key.rpartition('/')[0]}/", "write")
        case Acquire(key=key) | Release(key=key) | Rewrite(key=key):
            return _rule("key", key, "write")
        case ReadKey(key=key, prefix="") | WatchKey(key=key):
            return f'{_rule("key", key, "read")} ("write" to contend)'
        case ReadKey(prefix=prefix) | ReadSlots(prefix=prefix) | WatchSlots(prefix=prefix):
            return f'{_rule("key_prefix", f"{prefix}/", "read")} ("write" to contend)'
        case Enroll(prefix=prefix) | TakeSlot(prefix=prefix) | Leave(prefix=prefix):
            return _rule("key_prefix", f"{prefix}/", "write")
        case SetRoster(prefix=prefix):
            return _rule("key", f"{prefix}{LOCK_SUFFIX}", "write")
    raise AssertionError(f"no such request: {type(request).__name__}")


def _rule(resource: str, name: str, policy: str) -> str:
    return f'{resource} "{name}" {{ policy = "{policy}" }}'
