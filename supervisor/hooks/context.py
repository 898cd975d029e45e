"""What a hook is told: one set of facts, as environment, as standard input and as a body.

The names are a contract with everybody's scripts. Pure functions; nothing here may put a secret
or anything of the daemon's own environment that concerns the daemon alone into a hook's.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from supervisor.core.actions import Holder, HookContext
from supervisor.formats.json_depth import DEPTH_MAX, is_deeper

PREFIX = "CONSUL_SUPERVISOR_"
ENV_STRING_BYTES_MAX = 131_072  # Linux: MAX_ARG_STRLEN, for "NAME=value" with its final NUL

Fact = str | int | float | list[dict[str, Any]] | None


def facts(context: HookContext, *, attempt: int, node: str, now: float) -> dict[str, Fact]:
    """The facts by their lower-case names, numbers as numbers.

    ``leader`` and ``previous_leader`` are None when there is none; bytes that are not UTF-8
    become replacement characters. ``time_left`` (seconds, at least 0) is there only when a moment
    is known from which on a rival may hold.
    """
    told: dict[str, Fact] = {
        "event": context.event,
        "kind": context.kind,
        "name": context.name,
        "key": context.key,
        "session": context.session,
        "lock_index": context.lock_index,
        "fencing_token": context.fencing_token,
        "reason": context.reason.value,
        "leader": _text(context.leader),
        "previous_leader": _text(context.previous_leader),
        "transition": context.transition,
        "attempt": attempt,
        "node": node,
    }
    if context.kind == "semaphore":
        del told["leader"], told["previous_leader"]
        told["holders"] = [_holder(each) for each in context.holders]
    if context.rival_at is not None:
        # Rounded down: a hook must never believe that it has longer than it has.
        told["time_left"] = math.floor(max(0.0, context.rival_at - now) * 1000) / 1000
    return told


def as_json(told: Mapping[str, Fact]) -> bytes:
    """The facts as one JSON object, UTF-8, on one line without its newline."""
    return json.dumps(told, ensure_ascii=False).encode()


def as_environment(told: Mapping[str, Fact]) -> dict[str, str]:
    """The facts as environment variables; None becomes empty, so that ``set -u`` is no trap.

    A value that no environment can carry (a NUL byte, or too long for the kernel) is left out
    altogether: half a leader's value would be worse than none. Standard input has it whole.
    """
    named = {PREFIX + name.upper(): _variable(value) for name, value in told.items()}
    return {name: value for name, value in named.items() if _fits_environment(name, value)}


def base_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What hooks inherit of the daemon's environment: all but what concerns the daemon alone.

    Left out are systemd's notification and watchdog (a hook must not answer for the daemon),
    Consul's token and password (secrets), and variables of our own prefix, which only an event may set.
    """
    return {name: value for name, value in environ.items() if not _is_withheld(name)}


def _is_withheld(name: str) -> bool:
    return name in ("NOTIFY_SOCKET", "CONSUL_HTTP_TOKEN", "CONSUL_HTTP_AUTH") or name.startswith(
        ("WATCHDOG_", PREFIX)
    )


def _holder(holder: Holder) -> dict[str, Any]:
    """Its value as JSON where it is JSON that can be told on, else as text. Anybody may have written it."""
    try:
        value = json.loads(holder.value)
        if is_deeper(value, DEPTH_MAX):
            raise ValueError("nested too deep")
        json.dumps(value, ensure_ascii=False).encode()  # a half of a surrogate pair is no text
    except (ValueError, RecursionError):
        value = _text(holder.value)
    return {"session": holder.session, "value": value}


def _variable(fact: Fact) -> str:
    if fact is None:
        return ""
    return json.dumps(fact, ensure_ascii=False) if isinstance(fact, list) else str(fact)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def _fits_environment(name: str, value: str) -> bool:
    return "\0" not in value and len(name) + len(value.encode()) + 2 <= ENV_STRING_BYTES_MAX
