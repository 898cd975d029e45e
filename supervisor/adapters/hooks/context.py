"""The facts that a hook gets: as environment variables, as standard input, and as the body of a webhook.

The names are a contract with the operators' scripts. Pure functions. Nothing here may put a secret, or a
variable that concerns the daemon alone, into the environment of a hook.
"""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from supervisor.config.formats.json_values import DEPTH_MAX, is_deeper
from supervisor.config.formats.templates import PREFIX, Fact, fact_text
from supervisor.core.actions import Holder, HookContext

ENV_STRING_BYTES_MAX = 131_072  # MAX_ARG_STRLEN in execve(2), for "NAME=value" with its final NUL


def facts(context: HookContext, *, attempt: int, node: str, now: float, at: float) -> dict[str, Fact]:
    """Return the facts of one attempt by their lower-case names, numbers as numbers.

    ``now`` is the core's clock, and ``at`` the Unix time. A leader is None when there is none. ``time_left``
    (seconds, at least 0) is present only when the time is known from which a rival may hold.
    """
    event_facts: dict[str, Fact] = {
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
        "time": datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",  # not +00:00
        "node": node,
        "note": context.note,
    }
    if context.kind == "semaphore":
        del event_facts["leader"], event_facts["previous_leader"]
        event_facts["holders"] = [_holder(each) for each in context.holders]
        event_facts["slot"] = context.slot
    if context.role is not None:
        event_facts["role"] = context.role.value
    if context.rival_at is not None:
        # Rounded down, so that a hook never believes that it has more time than it has.
        event_facts["time_left"] = math.floor(max(0.0, context.rival_at - now) * 1000) / 1000
    if (before := context.previous) is not None:
        event_facts |= {"previous_end": before.end, "previous_target": before.target}
        event_facts |= {"previous_node": before.node, "previous_host": before.host}
        event_facts["previous_token"] = before.token
        event_facts["fence_method"] = before.method.partition(" ")[0]
    return event_facts


def as_json(event_facts: Mapping[str, Fact]) -> bytes:
    """Return the facts as one JSON object: UTF-8, on one line, without a newline at its end."""
    return json.dumps(event_facts, ensure_ascii=False).encode()


def as_environment(event_facts: Mapping[str, Fact]) -> dict[str, str]:
    """Return the facts as environment variables. None becomes empty, so that ``set -u`` ends no hook.

    A value that no environment can carry (with a NUL byte, or too long for the kernel) is left out, because
    half a leader's value would be worse than none. Standard input has the whole value.
    """
    environment = ((PREFIX + fact.upper(), fact_text(value)) for fact, value in event_facts.items())
    return {name: text for name, text in environment if _fits_environment(name, text)}


def base_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the daemon's environment without the variables that concern the daemon alone.

    These are systemd's notification and watchdog (a hook must not answer for the daemon), Consul's token and
    password (secrets), and the variables with our own prefix, which only an event may set.
    """
    withheld = ("NOTIFY_SOCKET", "CONSUL_HTTP_TOKEN", "CONSUL_HTTP_AUTH")
    inherited = (name for name in environ if not name.startswith(("WATCHDOG_", PREFIX)))
    return {name: environ[name] for name in inherited if name not in withheld}


def _holder(holder: Holder) -> dict[str, Any]:
    """Return the session and the value of a holder, decoded if it is JSON.

    Any client of Consul may have written it, so JSON that is too deep or cannot be encoded again is text.
    """
    try:
        value = json.loads(holder.value)
        if is_deeper(value, DEPTH_MAX):
            raise ValueError("nested too deep")
        json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair cannot be encoded
    except (ValueError, RecursionError):
        value = _text(holder.value)
    return {"session": holder.session, "value": value}


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def _fits_environment(name: str, value: str) -> bool:
    return "\0" not in value and len(name) + len(value.encode()) + 2 <= ENV_STRING_BYTES_MAX
